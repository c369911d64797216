"""2,000 attempts that do nothing: beside plain pytest, beside muteval and beside inspect-ai, in one run.

muteval 0.12 and inspect-ai are looked for in the environment that ``METRICBENCH_PEERS_EVAL`` names::

    python -m venv peers && peers/bin/pip install muteval==0.12.0 inspect-ai
    METRICBENCH_PEERS_EVAL=$PWD/peers pytest tests/benchmarks/test_evaluation_peers.py -m benchmark
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.cost_lab import Cost

pytestmark = pytest.mark.benchmark

COUNT = 2_000
REPEATS = 2
RUNNER = "{kind: python, agent: 'agent:run'}"
AGENT = "def run(request):\n    return 1.0\n"
MUTEVAL = """\
from muteval import MutEvalConfig

def run(prompt, case):
    return "fine"

def check(output, case):
    return output == "fine"

config = MutEvalConfig(prompt={prompt!r}, cases=[{{"id": "one"}}], run=run, evals=[check])
"""
INSPECT = """\
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import solver

@solver
def nothing():
    async def solve(state, generate):
        return state
    return solve

@scorer(metrics=[accuracy()])
def fine():
    async def score(state, target):
        return Score(value=1.0)
    return score

@task
def bench():
    return Task(dataset=[Sample(input="x", target="y", id=n) for n in range(1, {samples} + 1)],
                solver=nothing(), scorer=fine())
"""


@pytest.fixture(scope="module")
def peers() -> Path:
    """The environment with the peers."""
    named = os.environ.get("METRICBENCH_PEERS_EVAL")
    if not named:
        pytest.skip("METRICBENCH_PEERS_EVAL names no environment with muteval and inspect-ai")
    return Path(named)


def executable(peers: Path, name: str) -> str:
    found = peers / "bin" / name
    if not found.exists():
        pytest.skip(f"{found} is not there")
    return str(found)


def muteval(folder: Path, count: int) -> None:
    """As many mutants, each judged by one case: every line that is dropped is a mutant."""
    folder.mkdir()
    lines = "\n".join(f"- You must follow rule {number}." for number in range(count))
    (folder / "muteval_config.py").write_text(MUTEVAL.format(prompt=lines))


def inspect(folder: Path, count: int) -> None:
    """As many samples times epochs: ten epochs of each sample."""
    folder.mkdir()
    (folder / "bench.py").write_text(INSPECT.format(samples=count // 10))


def cost(measured: Callable[..., Cost], argv: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of CPU and of wall."""
    began = time.monotonic()
    cpu = measured(argv, folder).cpu
    return cpu, time.monotonic() - began


def of_one(measured: Callable[..., Cost], argv: list[str], many: Path, few: Path, more: int) -> tuple[float, float]:
    """CPU and wall of one attempt of ``more`` that ``many`` has above ``few``: without the start of the process."""
    runs = [(cost(measured, argv, many), cost(measured, argv, few)) for _ in range(REPEATS)]
    cpu, wall = ((min(m[i] for m, _ in runs) - min(f[i] for _, f in runs)) / more for i in (0, 1))
    return cpu, wall


def test_an_attempt_beside_inspect_ai_muteval_and_plain_tests(
    tmp_path: Path,
    measured: Callable[..., Cost],
    experiment: Callable[..., None],
    plain_tests: Callable[[Path, int], None],
    bare_pytest: list[str],
    shown: Callable[[str], None],
    peers: Path,
) -> None:
    few = 20
    experiment(tmp_path / "ours", COUNT, RUNNER, {"agent.py": AGENT})
    experiment(tmp_path / "ours-few", 40, RUNNER, {"agent.py": AGENT})
    plain_tests(tmp_path / "plain", COUNT)
    plain_tests(tmp_path / "plain-few", few)
    muteval(tmp_path / "muteval", COUNT)
    muteval(tmp_path / "muteval-few", few)
    inspect(tmp_path / "inspect", COUNT)
    inspect(tmp_path / "inspect-few", few)
    fresh = [*bare_pytest, "--metricbench-fresh", "experiment.yml"]
    mutants = ["run", "-c", "muteval_config.py", "--operators", "drop_instruction_lines", "--no-color"]
    samples = ["eval", "bench.py", "--epochs", "10", "--display", "none"]
    commands = {
        "ours": (fresh, COUNT - 40),
        "plain": ([*bare_pytest, "test_plain.py"], COUNT - few),
        "muteval": ([executable(peers, "muteval"), *mutants], COUNT - few),
        "inspect": ([executable(peers, "inspect"), *samples], COUNT - few),
    }
    found = {
        name: of_one(measured, argv, tmp_path / name, tmp_path / f"{name}-few", more)
        for name, (argv, more) in commands.items()
    }
    for name, (cpu, wall) in found.items():
        shown(f"\n{name:8} {cpu * 1e6:7.0f} us CPU, {wall * 1e6:7.0f} us wall an attempt")
    assert found["ours"][0] < 0.75 * found["plain"][0]
    assert found["ours"][0] < 0.1 * found["inspect"][0]
