"""Real Harbor: trials in this process and by an executable end the same way, whatever goes wrong in them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.contracts import Outcome
from pytest_metricbench.runners.harbor import in_process as harbor_in_process
from pytest_metricbench.runners.harbor import runner as harbor_runner
from tests.harbor_runner.harbor_runner_lab import (
    EXAMPLE,
    EXECUTABLE,
    IN_PROCESS,
    TASK_TOML,
    WAYS,
    copy_example,
    left,
    make_runner,
    request_for,
    run,
    write_task,
)
from tests.present import present

pytestmark = [
    pytest.mark.harbor,
    pytest.mark.slow,
    pytest.mark.skipif(not WAYS, reason="Harbor is neither installed nor named by METRICBENCH_HARBOR"),
]

AGENT = '''\
"""Does what its kwargs say."""
import time
from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities


class Agent(BaseAgent):
    capabilities = AgentCapabilities(atif=True)

    def __init__(self, *args, say="1", boom="", sleep=0, block=0, setup_boom="", leave=False, **kwargs):
        super().__init__(*args, **kwargs)
        self.say, self.boom, self.sleep, self.setup_boom, self.leave = say, boom, sleep, setup_boom, leave
        self.block = block

    @staticmethod
    def name():
        return "lab"

    def version(self):
        return "1"

    async def setup(self, environment):
        if self.setup_boom:
            raise RuntimeError(self.setup_boom)

    async def run(self, instruction, environment, context):
        if self.sleep:
            await environment.exec(f"sleep {self.sleep}")
        if self.block:
            time.sleep(self.block)
        if self.boom:
            raise RuntimeError(self.boom)
        if self.leave:
            raise SystemExit("leaving")
        told = self.extra_env.get("TOLD", "")
        await environment.exec(f"printf %s '{self.say}{told}' > /app/answer.txt")
        await environment.exec(f"printf %s '{instruction}' > /app/instruction.txt")
'''

REWARD = '#!/bin/bash\nr="${HARBOR_ROOT:-}"\n'
WRITES = REWARD + 'cat "$r/app/answer.txt" > "$r/logs/verifier/reward.txt"\n'
SHORT = TASK_TOML.replace("20.0", "1.0")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The keys of a runner that runs Harbor in this way."""
    return {"harbor": EXECUTABLE} if request.param == "by executable" else {}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lab.py").write_text(AGENT)
    (tmp_path / "local_environment.py").write_text((EXAMPLE / "local_environment.py").read_text())
    return tmp_path


def trial(folder: Path, way: dict[str, Any], kwargs: dict[str, Any], **more: Any) -> Outcome:
    task = {key: more.pop(key) for key in ("toml", "test", "instruction") if key in more}
    write_task(folder / "task", **{"test": WRITES, **task})
    variant = {"agent": "lab:Agent", "kwargs": kwargs, **more.pop("variant", {})}
    runner = make_runner(folder, environment="local_environment:LocalEnvironment", **way, **more)
    return run(runner, folder / "ws", variant)


def shape(outcome: Outcome) -> tuple[Any, ...]:
    error = outcome.error
    return outcome.kind, dict(outcome.scores), error and error.type, error and error.phase


# ---------------------------------------------------------------- outcomes, the same both ways


@pytest.mark.parametrize(
    ("kwargs", "task", "expected"),
    [
        ({}, {}, ("scored", {"reward": 1.0}, None, None)),
        ({"say": "0"}, {}, ("scored", {"reward": 0.0}, None, None)),
        ({"say": "0.25"}, {}, ("scored", {"reward": 0.25}, None, None)),
        ({"boom": "no"}, {}, ("died", {}, "RuntimeError", "agent")),
        ({"setup_boom": "no"}, {}, ("unmeasured", {}, "RuntimeError", "setup")),
        ({"say": "nan"}, {}, ("unmeasured", {}, "VerifierOutputParseError", "verifier")),
        ({}, {"test": REWARD}, ("unmeasured", {}, "RewardFileNotFoundError", "verifier")),
        (
            {},
            {"test": REWARD + ': > "$r/logs/verifier/reward.txt"\n'},
            ("unmeasured", {}, "RewardFileEmptyError", "verifier"),
        ),
        (
            {},
            {"test": REWARD + 'echo \'{"a": 0.5, "b": 1}\' > "$r/logs/verifier/reward.json"\n'},
            ("scored", {"a": 0.5, "b": 1}, None, None),
        ),
        ({}, {"test": WRITES + "exit 7\n"}, ("scored", {"reward": 1.0}, None, None)),
        (
            {"sleep": 30},
            {
                "toml": TASK_TOML.replace("20.0", "1.0", 1),
                "test": REWARD + 'echo 0.5 > "$r/logs/verifier/reward.txt"\n',
            },
            ("scored", {"reward": 0.5}, "AgentTimeoutError", "agent"),
        ),
        ({}, {"toml": SHORT, "test": "sleep 30\n"}, ("unmeasured", {}, "VerifierTimeoutError", "verifier")),
        ({}, {"toml": TASK_TOML.replace("1", "x", 1)}, ("scored", {"reward": 1.0}, None, None)),
    ],
    ids=[
        *("passes", "misses", "in part", "crashes", "setup fails", "nan", "no reward", "empty reward", "two rewards"),
        *("status", "late with a reward", "late verifier", "image is not looked at"),
    ],
)
def test_outcomes(
    folder: Path,
    way: dict[str, Any],
    kwargs: dict[str, Any],
    task: dict[str, str],
    expected: tuple[str, dict[str, float], str | None, str | None],
) -> None:
    outcome = trial(folder, way, kwargs, **task)
    assert shape(outcome) == expected
    assert outcome.trial_name is not None
    assert outcome.trial_name.startswith("task__")


def test_steps_are_seen(folder: Path, way: dict[str, Any]) -> None:
    task = folder / "task"
    for step, reward in (("one", "1"), ("two", "0")):
        for name, text in (
            ("instruction.md", step),
            ("tests/test.sh", REWARD + f'echo {reward} > "$r/logs/verifier/reward.txt"\n'),
        ):
            (task / "steps" / step / name).parent.mkdir(parents=True, exist_ok=True)
            (task / "steps" / step / name).write_text(text)
    outcome = trial(folder, way, {}, toml='[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n' + TASK_TOML)
    assert outcome.kind == "scored"
    assert outcome.scores == {"reward": 0.5, "step.one.reward": 1.0, "step.two.reward": 0.0}
    assert {"steps/one/verifier/reward.txt", "steps/two/verifier/reward.txt"} <= left(folder / "ws")


def test_what_harbor_refuses_is_no_measurement(folder: Path, way: dict[str, Any]) -> None:
    outcome = trial(folder, way, {}, variant={"agent": "no-such-agent"})
    assert (outcome.kind, present(outcome.error).type, present(outcome.error).phase) == (
        "unmeasured",
        "HarborFailed",
        "setup",
    )
    assert "no-such-agent" in present(outcome.error).message
    assert "Traceback" not in present(outcome.error).message
    assert "\u2502" not in present(outcome.error).message


def test_an_agent_that_ends_the_process_is_no_pass(folder: Path, way: dict[str, Any]) -> None:
    outcome = trial(folder, way, {"leave": True})
    assert outcome.kind != "scored" or not any(outcome.scores.values())


def test_the_variant_reaches_the_agent(folder: Path, way: dict[str, Any]) -> None:
    (folder / "more.md").write_text("And be brief.")
    variant = {
        "env": {"TOLD": ".0"},
        "extra_instructions": ["Use two hands."],
        "extra_instruction_files": ["more.md"],
    }
    test = WRITES + 'cp "$r/app/instruction.txt" "$r/logs/verifier/"\n'
    outcome = trial(folder, way, {"say": "1"}, variant=variant, test=test)
    assert outcome.scores == {"reward": 1.0}
    assert (folder / "ws" / "verifier" / "instruction.txt").read_text() == "Do it.\n\nAnd be brief.\n\nUse two hands."


def test_evidence_and_the_version_are_kept(folder: Path, way: dict[str, Any]) -> None:
    trial(folder, way, {}, artifacts=["/app/answer.txt"])
    files = left(folder / "ws")
    assert {"result.json", "config.json", "lock.json", "verifier/reward.txt", "harbor.json"} <= files
    assert "artifacts/app/answer.txt" in files
    about = json.loads((folder / "ws" / "harbor.json").read_text())
    assert about["harbor"].count(".") == 2
    assert about["in_process"] == (not way)
    assert not (folder / "ws" / "jobs").exists()
    assert not (folder / "ws" / "job.json").exists()


def test_the_limit_of_the_runner(folder: Path, way: dict[str, Any]) -> None:
    began = time.monotonic()
    outcome = trial(folder, way, {"sleep": 60}, timeout=12.0)  # enough to begin, also on a machine with other work
    assert time.monotonic() - began < 50
    assert shape(outcome) == ("died", {}, "TimeOut", "agent")
    assert outcome.time_limit == 12.0
    _until(lambda: not _processes("sleep 60"), 10)


def test_an_agent_that_does_not_let_itself_be_cancelled(
    folder: Path, way: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harbor_in_process, "_UNTIL_FORCED", 0.5)
    monkeypatch.setattr(harbor_runner, "GRACE", 3.0)
    began = time.monotonic()
    outcome = trial(folder, way, {"block": 60}, timeout=4.0)
    assert time.monotonic() - began < 15
    assert (outcome.kind, present(outcome.error).type) in {("died", "TimeOut"), ("unmeasured", "TimeOut")}


def test_retries_are_harbors_own(folder: Path, way: dict[str, Any]) -> None:
    """A trial that crashes once is repeated by Harbor and leaves no trace of that."""
    agent = AGENT.replace(
        "        if self.boom:\n",
        "        from pathlib import Path\n        if self.boom and not Path('crashed').exists():\n"
        "            Path('crashed').write_text('')\n",
    )
    (folder / "lab.py").write_text(agent)
    retry = {"max_retries": 1, "include_exceptions": ["RuntimeError"], "exclude_exceptions": [], "min_wait_sec": 0.0}
    outcome = trial(folder, way, {"boom": "once"}, retry=retry)
    assert (folder / "crashed").exists()  # the working directory of a trial is the experiment's folder
    assert shape(outcome) == ("scored", {"reward": 1.0}, None, None)


def test_an_edited_agent_is_what_runs(folder: Path, way: dict[str, Any]) -> None:
    assert trial(folder, way, {}).scores == {"reward": 1.0}
    source = AGENT.replace('say="1"', 'say="0"')
    (folder / "lab.py").write_text(source)
    os.utime(folder / "lab.py", (1, 1))  # within a second, and older: the compiled file must not win
    request = request_for(folder / "ws2", {"agent": "lab:Agent"})
    runner = make_runner(folder, environment="local_environment:LocalEnvironment", **way)
    assert runner.run(request, request.workspace).scores == {"reward": 0.0}


# ---------------------------------------------------------------- the example


PLUGINS = ("randomly", "rerunfailures", "repeat", "timeout", "html", "pytest_cov", "sugar", "hypothesispytest")


def session(folder: Path, way: dict[str, Any], *args: str, **popen: Any) -> "subprocess.Popen[str]":
    """A session of the example, with warnings as errors."""
    text = (folder / "experiment.yml").read_text()
    if way and f"harbor: {EXECUTABLE}" not in text:
        (folder / "experiment.yml").write_text(
            text.replace("kind: harbor\n", f"kind: harbor\n  harbor: {EXECUTABLE}\n")
        )
    off = [part for plugin in PLUGINS for part in ("-p", f"no:{plugin}")]
    argv = [sys.executable, "-m", "pytest", "-p", "metricbench", *off, "-W", "error", "experiment.yml", *args]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    return subprocess.Popen(
        argv, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **popen
    )


def summary_of(folder: Path, *, partial: bool = False) -> Any:
    name = "summary.partial.json" if partial else "summary.json"
    return json.loads((folder / ".metricbench" / "harbor-ledgers" / name).read_text())


@pytest.mark.skipif(not IN_PROCESS, reason="Harbor is not installed here")
def test_the_whole_example(tmp_path: Path) -> None:
    copy_example(tmp_path)
    ended = session(tmp_path, {})
    output, _ = ended.communicate(timeout=280)
    assert ended.returncode == 0, output[-3000:]
    case = summary_of(tmp_path)["cases"]["ledgers"]
    check_common(case)
    assert case["pool"]["kill_share"]["value"] == pytest.approx(6 / 7)
    assert case["pool"]["coverage"]["tools"]["value"] == pytest.approx(8 / 9)  # nobody asks for a chart
    assert case["correlation"]["tools"]["kill_share"]["overall"]["kendall"]["value"] == pytest.approx(0.79, abs=0.005)
    assert "0.79 over all subsets" in (EXAMPLE / "README.md").read_text("utf-8")
    assert len(jobs_of(tmp_path)) == 96


def test_three_mutants_by_two_workers(tmp_path: Path, way: dict[str, Any]) -> None:
    """What is the same both ways: verdicts, kills and coverage; the correlation needs the mutants that are left out."""
    copy_example(tmp_path)
    fewer = " and not plain-total and not sent-twice" if way else ""  # a second for each
    part = f"baseline or ((ignores-refunds or old-rates or rounds-down){fewer})"
    ended = session(tmp_path, way, "-n", "2", "-k", part)
    output, _ = ended.communicate(timeout=280)
    assert ended.returncode == 0, output[-3000:]
    case = summary_of(tmp_path, partial=True)["cases"]["ledgers"]
    check_common(case)
    assert case["subsets"]["n2-01"]["coverage"]["tools"]["value"] is not None
    kendall = case["correlation"]["tools"]["kill_share"]["overall"]["kendall"]
    assert kendall["value"] is None
    assert kendall["reason"]
    assert len(jobs_of(tmp_path)) == (36 if way else 48)


def check_common(case: Any) -> None:
    """What holds of the baseline and three mutants, however they were run."""
    killed = {mutant: {task for task, what in row.items() if what == "killed"} for mutant, row in case["kills"].items()}
    assert killed["ignores-refunds"] == {"best-customer", "with-refunds"}
    assert killed["old-rates"] == {"two-currencies"}
    assert killed["rounds-down"] == set()
    baseline = case["variants"]["baseline"]
    assert baseline["pass_at_k"]["reward"]["2"]["value"] == 1.0
    attempts = baseline["attempts"]["one-month"]["reward"]
    assert len({attempt["trial_id"] for attempt in attempts}) == 2
    assert all(attempt["trial_id"].startswith("one-month__") for attempt in attempts)


def jobs_of(folder: Path) -> set[str]:
    """The names of the jobs; each has to belong to one attempt only."""
    found = list((folder / ".metricbench" / "harbor-ledgers" / "attempts").glob("*/*/*/*/harbor.json"))
    told = [json.loads(path.read_text()) for path in found]
    assert len({about["job"] for about in told}) == len(told)
    return {about["job"] for about in told}


def test_a_second_session_reuses_all_of_the_first(tmp_path: Path, way: dict[str, Any]) -> None:
    copy_example(tmp_path)
    part = ["-k", "baseline and plain-total"]
    session(tmp_path, way, *part).communicate(timeout=120)
    again = session(tmp_path, way, *part)
    output, _ = again.communicate(timeout=120)
    assert "reused" in output.splitlines()[-1]
    assert "passed" not in output.splitlines()[-1]
    (tmp_path / "ledger_agent.py").write_text((tmp_path / "ledger_agent.py").read_text() + "# edited\n")
    edited = session(tmp_path, way, *part)
    output, _ = edited.communicate(timeout=120)
    assert "2 passed" in output.splitlines()[-1]


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["plain", "n2"])
def test_ctrl_c_leaves_no_process(tmp_path: Path, way: dict[str, Any], workers: list[str]) -> None:
    copy_example(tmp_path)
    mark = f"sleep 61{os.getpid() % 1000:03d}"
    source = (tmp_path / "ledger_agent.py").read_text()
    (tmp_path / "ledger_agent.py").write_text(
        source.replace(
            '        read = await environment.exec("cat',
            f'        await environment.exec("{mark}")\n        read = await environment.exec("cat',
        )
    )
    running = session(tmp_path, way, *workers, start_new_session=True)
    try:
        _until(lambda: len(_processes(mark)) >= (2 if workers else 1), 60)
        os.killpg(running.pid, signal.SIGINT)
        running.communicate(timeout=60)
        assert running.returncode == 2
        _until(lambda: not _processes(mark), 30)
    finally:
        running.kill()
        for pid in _processes(mark):
            os.kill(pid, signal.SIGKILL)


def _processes(words: str) -> list[int]:
    """The processes that run a command which holds these words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if command.strip() == words:
            found.append(int(path.parent.name))
    return found


def _until(holds: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)
