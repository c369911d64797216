"""Attempts that need not be made: their records are those of attempts that were asked of the runner one by one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import pytest

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import AttemptRequest, Json, Outcome
from pytest_metricbench.digests import digest_value
from pytest_metricbench.runners.suite import SuiteRunner
from pytest_metricbench.store.records import attempt_from_line, attempt_to_json, to_line
from tests.suite_runner.suite_lab import PRICES, TESTS, Made, diff

EXPERIMENT: Final = """\
metricbench: 1
name: shop
retries: 1
runner: {kind: suite, source: [shop], tests: tests, kill: KILL, env: {PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}}
cases:
  - id: shop
    tasks: {collect: tests}
    mutants:
      - {id: minus, params: {patch: mutants/minus.patch}}
      - {id: half, params: {patch: mutants/half.patch}}
      - {id: stranger, params: {patch: mutants/stranger.patch}}
"""
PATCHES: Final = {
    "minus": diff("shop/prices.py", 9, "        result += price", "        result -= price"),
    "half": diff("shop/prices.py", 18, "    return price - price * percent / 100", "    return price"),
    "stranger": diff("shop/prices.py", 14, "    if percent > 100:", "    if percent > 101:"),
}


@pytest.fixture
def shop(tmp_path: Path) -> Callable[[str], Path]:
    files = {"shop/__init__.py": "from shop.prices import discount, total\n", "shop/prices.py": PRICES}
    files |= {"tests/test_prices.py": TESTS, **{f"mutants/{name}.patch": text for name, text in PATCHES.items()}}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def experiment(kill: str) -> Path:
        path = tmp_path / "experiment.yml"
        path.write_text(EXPERIMENT.replace("KILL", kill))
        return path

    return experiment


@pytest.mark.parametrize("kill", ["all", "first"])
def test_records_are_those_of_attempts_that_were_asked_for(
    shop: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: str
) -> None:
    quick = Made(shop(kill), tmp_path / "quick")
    foreseen = quick.make()
    monkeypatch.setattr(SuiteRunner, "foresees", False)
    asked = Made(shop(kill), tmp_path / "asked").make()
    kinds = {performed.record.outcome for performed in foreseen.values()}
    assert {"not_reached", "scored"} <= kinds
    assert list(foreseen) == list(asked)
    for key, performed in foreseen.items():
        (one,), (other,) = performed.new, asked[key].new
        files = set(one.files) == set(other.files)  # in output.json stands how long it took
        same = replace(other, trial_id=one.trial_id, started=one.started, duration=one.duration, files=one.files)
        assert files
        assert one == same
        assert attempt_from_line(to_line(attempt_to_json(one))) == one
        if one.outcome == "not_reached":
            assert not quick.layout.left_by(one).exists()
            assert one.started[-6:] == other.started[-6:] == "+00:00"
            assert one.duration >= 0
    assert len({performed.record.trial_id for performed in foreseen.values()}) == len(foreseen)


def test_they_are_taken_from_the_store_and_go_with_what_they_depend_on(
    shop: Callable[[str], Path], tmp_path: Path
) -> None:
    made = Made(shop("all"), tmp_path / "store")
    first = made.make()
    again = made.make()
    assert all(performed.reused for performed in again.values())
    patch = tmp_path / "mutants/half.patch"
    patch.write_text(diff("shop/prices.py", 8, "    for price in prices:", "    for price in prices[1:]:"))
    other = Made(shop("all"), tmp_path / "store")
    other.stored.update(made.stored)
    changed = {key[2] for key, performed in other.make().items() if not performed.reused}
    assert changed == {key[2] for key in first}
    reached = {key[2] for key, performed in other.make().items() if key[1] == "half" and performed.record.scores}
    assert [name for name in reached if "total" in name] == list(reached)


def test_the_digest_is_that_of_the_whole_value(shop: Callable[[str], Path], tmp_path: Path) -> None:
    made = Made(shop("all"), tmp_path / "store")
    prints, case = made.fingerprints, made.experiment.cases[0]
    parts = prints.summary()
    for variant in case.variants:
        for task in case.tasks:
            value = {
                "metricbench": 1,
                "seed": made.experiment.seed,
                "runner": parts["runner"],
                "inputs": parts["cases"]["shop"]["inputs"],
                "variant": parts["cases"]["shop"]["variants"][variant.id],
                "task": parts["cases"]["shop"]["tasks"][task.id],
            }
            assert prints.attempt(case, variant, task) == digest_value(value)
    made.attempts.close()


# ---------------------------------------------------------------- the contract


PLAIN: Final = """\
metricbench: 1
name: plain
runner: {kind: oracle}
cases:
  - id: one
    tasks: [{id: known}, {id: wrong}, {id: raises}, {id: made}]
    mutants: [{id: m, params: {drop: x}}]
"""


class Oracle(Runner):
    """Foresees what its tasks are called."""

    kind: Literal["oracle"] = "oracle"
    foresees: ClassVar[bool] = True
    log: ClassVar[list[str]] = []
    numbers: ClassVar[Iterator[int]] = count()

    @property
    def ahead(self) -> int:
        return 8

    def foreseen(
        self, variant: Mapping[str, Json], task: Mapping[str, Json], baseline: Sequence[Path]
    ) -> Outcome | None:
        assert variant == {"drop": "x"}
        found: Outcome | None = self.oracle[next(self.numbers) % 4]()
        return found

    oracle: ClassVar[list[Callable[[], Any]]] = [
        lambda: Outcome.not_reached("it is known"),
        lambda: Outcome.scored({"reward": 1}),
        lambda: 1 / 0,
        lambda: None,
    ]

    def begin(self, request: AttemptRequest, workspace: Path) -> None:
        self.log.append(f"begin {request.variant.id} {request.task.id}")

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        self.log.append(f"run {request.variant.id} {request.task.id}")
        return Outcome.scored({"reward": 0})


def test_only_what_need_not_be_made_is_foreseen_and_nobody_begins_it(tmp_path: Path) -> None:
    (tmp_path / "experiment.yml").write_text(PLAIN)
    Oracle.log.clear()
    made = Made(tmp_path / "experiment.yml", tmp_path / "store", oracle=Oracle)
    found = {key[1:3]: performed.record for key, performed in made.make().items()}
    assert [record.outcome for (variant, _), record in found.items() if variant == "baseline"] == ["scored"] * 4
    assert {task: record.outcome for (variant, task), record in found.items() if variant == "m"} == {
        "known": "not_reached",
        "wrong": "scored",
        "raises": "scored",
        "made": "scored",
    }
    assert found["m", "wrong"].scores == {"reward": 0}
    assert [line for line in Oracle.log if " m " in line] == ["run m wrong", "run m raises", "run m made"]
