"""Makes a bundle of a Harbor job with NVIDIA's own adapter. Run by a Python that has the SDK and Harbor.

Usage: ``make_from_harbor.py JOB FOLDER``.
"""

import json
import sys
from pathlib import Path

from nhx_evals_sdk.agent_eval.evaluator import AgentEvaluator
from nhx_evals_sdk.agent_eval.runtimes.harbor.runtime import build_trials_from_job_dir
from nhx_evals_sdk.agent_eval.runtimes.harbor.scoring import harbor_scoring_metrics
from nhx_evals_sdk.agent_eval.tasks import AgentEvalRunConfig, AgentEvalTask
from nhx_evals_sdk.metrics.runner_rewards import HarborRewardMetric


def main(job: Path, folder: Path) -> None:
    names = [json.loads(path.read_text())["task_name"] for path in sorted(job.glob("*/result.json"))]
    tasks = [
        AgentEvalTask(id=name, intent="", inputs={}, metrics=[HarborRewardMetric()]) for name in dict.fromkeys(names)
    ]
    trials = build_trials_from_job_dir(job, tasks, reward_key="reward")
    for task in tasks:
        own = [trial for trial in trials if trial.task_id == task.id]
        task.metrics = harbor_scoring_metrics(task, own, reward_key="reward")
    config = AgentEvalRunConfig(work_dir=folder, run_id=job.name)
    AgentEvaluator().run_sync(tasks=tasks, trials=trials, config=config).persist(folder, write_dashboard=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
