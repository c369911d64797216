"""What 1,000, 10,000 and 100,000 attempts cost, first and reused, in each process: does it grow with their number?"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.cost_lab import Cost

pytestmark = pytest.mark.benchmark

RUNNER = "{kind: python, agent: 'agent:run'}"
AGENT = "def run(request):\n    return 1.0\n"
SIZES = (1_000, 10_000, 100_000)
GROWTH = 1.2
"""An attempt of the largest run beside one of the run before it."""
MEMORY = 2.0
"""kB of an attempt above a plain parametrized test, in each process."""


@pytest.mark.parametrize("options", [[], ["-n2"]], ids=["one process", "-n 2"])
def test_cost_grows_with_the_number_of_attempts_and_no_faster(
    tmp_path: Path,
    measured_each: Callable[..., tuple[Cost, dict[str, Cost]]],
    experiment: Callable[..., None],
    plain_tests: Callable[[Path, int], None],
    bare_pytest: list[str],
    shown: Callable[[str], None],
    options: list[str],
) -> None:
    """Collection, run, journal and summary of the no-op python runner; pytest's cache is off, since it only grows."""
    command = [*bare_pytest, "-pno:cacheprovider"]
    costs = {}
    for count in SIZES:
        experiment(tmp_path / "ours", count, RUNNER, {"agent.py": AGENT})
        plain_tests(tmp_path / "plain", count)
        for name, folder, file in (
            ("first", "ours", "experiment.yml"),
            ("reused", "ours", "experiment.yml"),
            ("plain", "plain", "test_plain.py"),
        ):
            whole, each = measured_each([*command, file, *options], tmp_path / folder)
            costs[count, name] = whole, each
            peaks = ", ".join(f"{who} {cost.cpu:.1f} s {cost.peak / 1024:.0f} MB" for who, cost in sorted(each.items()))
            shown(f"\n{count:>7,} {name:6}: {whole.cpu / count * 1e6:5.0f} us CPU each; {peaks}")
    shutil.rmtree(tmp_path / "ours")
    *_, before, last = SIZES
    for name in ("first", "reused"):
        growth = costs[last, name][0].cpu / last / (costs[before, name][0].cpu / before)
        shown(f"{name}: an attempt of {last:,} costs {growth:.2f} times one of {before:,}")
        assert growth <= GROWTH
        for who, cost in costs[last, name][1].items():
            above = (cost.peak - costs[last, "plain"][1][who].peak) / last
            shown(f"{name}: {who} keeps {above:+.2f} kB an attempt beside plain tests")
            assert above <= MEMORY
