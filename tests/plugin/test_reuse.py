"""What a second run takes from the store, and what makes attempts run again."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.plugin.plugin_lab import AGENT, COVERAGE, MUTANTS, SUBSETS, TASKS, Lab, without

ALL = [
    f"{variant}::{task}[{slot}]"
    for variant in ("baseline", "no-pay", "quiet")
    for task in ("find", "pay", "refund")
    for slot in (1, 2)
]


def ran_again(lab: Lab, *args: str) -> list[str]:
    """The attempts that a further run makes, in a fixed order."""
    lab.calls()
    lab.run("experiment.yml", *args)
    return sorted(lab.calls())


def test_a_second_run_reuses_everything(lab: Lab, workers: list[str]) -> None:
    lab.make()
    lab.run("experiment.yml")
    first, journal = lab.summary(), lab.journal()
    lab.calls()
    again = lab.run("experiment.yml", *workers)
    assert again.ret == 0
    assert again.parseoutcomes() == {"reused": 22}
    assert lab.calls() == []
    assert lab.journal() == journal
    second = lab.summary()
    assert second["counts"]["reused"] == 18
    assert without(second, "reused") == without(first, "reused")  # the same trial ids too


@pytest.mark.slow
def test_what_one_mode_made_the_other_reuses(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml", "-n2")
    assert ran_again(lab) == []


def test_unmeasured_attempts_run_again_and_the_rest_does_not(lab: Lab) -> None:
    lab.make(outcomes={"quiet::pay": "pu", "no-pay::find": "d"})
    assert lab.run("experiment.yml").ret == pytest.ExitCode.TESTS_FAILED
    assert ran_again(lab) == ["quiet::pay[2]"]
    lines = [line for line in lab.journal() if (line["variant"], line["task"], line["attempt"]) == ("quiet", "pay", 2)]
    assert [line["outcome"] for line in lines] == ["unmeasured", "unmeasured"]
    assert lines[1]["supersedes"] == lines[0]["trial_id"]


def test_retry_died(lab: Lab, workers: list[str]) -> None:
    lab.make(outcomes={"quiet::pay": "pd", "no-pay::find": "d"})
    lab.run("experiment.yml")
    assert ran_again(lab) == []
    assert ran_again(lab, "--metricbench-retry-died", *workers) == [
        "no-pay::find[1]",
        "no-pay::find[2]",
        "quiet::pay[2]",
    ]
    assert len(lab.journal()) == 21


def test_fresh_starts_over_and_keeps_the_old_store(lab: Lab, workers: list[str]) -> None:
    lab.make()
    lab.run("experiment.yml")
    old = {path.name: path.read_bytes() for path in lab.store().iterdir() if path.suffix in (".json", ".jsonl")}
    lab.calls()
    result = lab.run("experiment.yml", "--metricbench-fresh", *workers)
    assert sorted(lab.calls()) == sorted(ALL)
    assert result.parseoutcomes() == {"passed": 16, "missed": 5, "died": 1}
    assert len(lab.journal()) == 18
    (aside,) = (path for path in lab.store().parent.iterdir() if path.name.startswith("shop.before-"))
    result.stdout.re_match_lines([rf"note: the old store is kept in \S*{re.escape(aside.name)}$"])
    assert {name: (aside / name).read_bytes() for name in old} == old
    assert not {line["trial_id"] for line in lab.journal()} & set(_trial_ids(old["attempts.jsonl"]))


def _trial_ids(journal: bytes) -> list[str]:
    return [json.loads(line)["trial_id"] for line in journal.splitlines()]


def test_fresh_without_an_old_store(lab: Lab) -> None:
    lab.make()
    assert lab.run("experiment.yml", "--metricbench-fresh").ret == 0
    assert [path.name for path in lab.store().parent.iterdir() if path.is_dir()] == ["shop"]


def test_fresh_and_collect_only_touches_nothing(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    before = sorted(path.name for path in (lab.path / ".metricbench").iterdir())
    lab.run("experiment.yml", "--metricbench-fresh", "--collect-only")
    assert sorted(path.name for path in (lab.path / ".metricbench").iterdir()) == before
    assert lab.run("experiment.yml").parseoutcomes() == {"reused": 22}


# ---------------------------------------------------------------- where the store is


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
def test_a_store_elsewhere(lab: Lab, absolute: bool) -> None:
    lab.make("deep/experiment.yml")
    folder = str(lab.path / "kept here") if absolute else "kept here"
    result = lab.run("deep/experiment.yml", f"--metricbench-store={folder}")
    result.stdout.fnmatch_lines(["metricbench: shop: *, store: kept here/shop"])
    assert (lab.path / "kept here/shop/summary.json").exists()
    assert not (lab.path / "deep/.metricbench").exists()
    assert lab.run("deep/experiment.yml", f"--metricbench-store={folder}").parseoutcomes() == {"reused": 22}


def test_a_relative_store_is_relative_to_where_pytest_runs(
    lab: Lab, workers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.make("deep/experiment.yml")
    lab.write("pytest.ini", "[pytest]\n")
    (lab.path / "here").mkdir()
    monkeypatch.chdir(lab.path / "here")
    assert lab.run("../deep/experiment.yml", "--metricbench-store=kept", *workers).ret == 0
    assert (lab.path / "here/kept/shop/summary.json").exists()
    assert [path.name for path in lab.path.glob("*/kept")] == ["kept"]


def test_the_store_stays_out_of_version_control(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    assert "*" in (lab.path / ".metricbench/.gitignore").read_text().splitlines()


# ---------------------------------------------------------------- what makes attempts run again


def changed(entries: list[dict[str, Any]], id_: str, **keys: Any) -> list[dict[str, Any]]:
    """The entries, one of them with other keys."""
    assert id_ in [entry["id"] for entry in entries]
    return [{**entry, **keys} if entry["id"] == id_ else entry for entry in entries]


AGAIN: dict[str, tuple[dict[str, Any], Callable[[str], bool]]] = {
    "params of a task": ({"case": {"tasks": changed(TASKS, "pay", params={"x": 1})}}, lambda name: "::pay" in name),
    "params of a mutant": (
        {"case": {"mutants": changed(MUTANTS, "quiet", params={"x": 1})}},
        lambda name: name.startswith("quiet"),
    ),
    "params of the baseline": (
        {"case": {"baseline": {"params": {"x": 1}}}},
        lambda name: name.startswith("baseline"),
    ),
    "the seed": ({"seed": 1}, lambda name: True),
    "the agent's module": ({"agent": AGENT + "\n# another word\n"}, lambda name: True),
    "the inputs": ({"case": {"inputs": ["notes.md"]}}, lambda name: True),
}


@pytest.mark.parametrize("what", AGAIN)
def test_exactly_the_attempts_that_it_touches_run_again(lab: Lab, what: str) -> None:
    keys, touched = AGAIN[what]
    lab.write("notes.md", "Be polite.\n")
    lab.make()
    lab.run("experiment.yml")
    lab.make(**keys)
    assert ran_again(lab) == sorted(filter(touched, ALL))
    assert ran_again(lab) == []


def test_changed_content_of_an_input(lab: Lab) -> None:
    lab.write("notes.md", "Be polite.\n")
    lab.make(case={"inputs": ["*.md"]})
    lab.run("experiment.yml")
    assert ran_again(lab) == []
    lab.write("notes.md", "Be terse.\n")
    assert ran_again(lab) == sorted(ALL)
    lab.write("more.md", "Another file of the glob.\n")
    assert ran_again(lab) == sorted(ALL)


def test_what_was_stale_is_superseded_and_coverage_of_it_measured_again(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.make(case={"baseline": {"params": {"x": 1}}})
    result = lab.run("experiment.yml")
    outcomes = result.parseoutcomes()
    assert outcomes["reused"] >= 12
    by_key: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for line in lab.journal():
        by_key.setdefault((line["variant"], line["task"], line["attempt"]), []).append(line)
    for (variant, _, _), lines in by_key.items():
        assert len(lines) == (2 if variant == "baseline" else 1)
        assert [line["supersedes"] for line in lines] == [None, *(line["trial_id"] for line in lines[:-1])]


NOT_AGAIN: dict[str, dict[str, Any]] = {
    "descriptions": {
        "case": {
            "description": "Sells things.",
            "tasks": changed(TASKS, "pay", description="Takes money."),
            "mutants": changed(MUTANTS, "quiet", description="Keeps silent."),
        }
    },
    "tags": {"case": {"tasks": changed(TASKS, "pay", tags=["hard"]), "baseline": {"tags": ["reference"]}}},
    "names": {"case": {"tasks": changed(TASKS, "pay", name="shop/pay")}},
    "score": {"score": {"primary": "reward", "pass_at_least": 0.2}},
    "analysis": {"analysis": {"pass_at_k": [2], "mutation_score": "mean_drop", "seed": 4}},
    "gates": {"gates": ["baseline pass@1 >= 0.5"]},
    "retries": {"retries": 3},
    "coverage": {"coverage": changed(COVERAGE, "goals", settings={"deep": True})},
    "subsets": {"case": {"subsets": SUBSETS[:2]}},
    "equivalent": {"case": {"mutants": changed(MUTANTS, "quiet", equivalent="Silence is allowed.")}},
    "time-out": {
        "runner": {"kind": "python", "agent": "agent:run", "verifier": "agent:verify", "timeout": 30},
    },
}


@pytest.mark.parametrize("what", NOT_AGAIN)
def test_nothing_runs_again(lab: Lab, what: str) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.make(**NOT_AGAIN[what])
    assert ran_again(lab) == []
    assert lab.summary()["complete"]


def test_a_changed_score_reads_the_same_attempts_anew(lab: Lab) -> None:
    lab.make(outcomes={"baseline::pay": "m"})
    lab.run("experiment.yml")
    assert lab.summary()["counts"]["missed"] == 2
    lab.make(outcomes={}, score={"primary": "reward", "pass_at_least": 0.2})
    assert ran_again(lab) == []
    assert lab.summary()["counts"]["missed"] == 0


def test_more_attempts_run_only_those(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.make(attempts=3)
    assert ran_again(lab) == sorted(name.replace("[1]", "[3]") for name in ALL if "[1]" in name)


def test_fewer_attempts_run_nothing(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.make(attempts=1)
    assert ran_again(lab) == []
    assert lab.summary()["counts"]["declared"] == 9


def test_a_new_mutant_and_a_new_task_run_only_those(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.make(case={"tasks": [*TASKS, {"id": "new"}], "mutants": [*MUTANTS, {"id": "late"}]})
    called = ran_again(lab)
    assert len(called) == 2 * (3 + 4)
    assert all("::new" in name or name.startswith("late") for name in called)
