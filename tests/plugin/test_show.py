"""``--metricbench-show``: what a store holds, printed without running anything."""

import pytest

from tests.plugin.plugin_lab import MUTANTS, TASKS, Lab
from tests.plugin.show_lab import PRICED, show, shown

PARTS = ["survivors", "matrix", "tasks", "attempts", "plan"]


# ---------------------------------------------------------------- nothing runs


WAYS = [*((part, []) for part in PARTS), ("matrix", ["-n0"]), pytest.param("tasks", ["-n2"], marks=pytest.mark.slow)]


@pytest.mark.parametrize(("part", "workers"), WAYS)
def test_nothing_is_run_and_nothing_is_written(lab: Lab, part: str, workers: list[str]) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.calls()
    files = {path: path.read_bytes() for path in lab.store().rglob("*") if path.is_file()}
    shown(lab, part, *workers)
    assert lab.calls() == []
    assert {path: path.read_bytes() for path in lab.store().rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("part", PARTS)
def test_other_tests_of_the_session_do_not_run(lab: Lab, part: str) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.write("test_other.py", "def test_it():\n    open('ran.txt', 'w').close()\n")
    assert show(lab, part, "test_other.py").ret == 0
    assert not (lab.path / "ran.txt").exists()


@pytest.mark.parametrize(("part", "workers"), [way for way in WAYS if way[0] != "plan"])
def test_a_store_that_holds_nothing(lab: Lab, part: str, workers: list[str]) -> None:
    lab.make()
    result = show(lab, part, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == (
        f"ERROR: metricbench: --metricbench-show {part}: the store .metricbench/shop holds no attempt; run it first: "
        "pytest experiment.yml (--metricbench-store says where another store is)"
    )
    assert not (lab.path / ".metricbench").exists()


def test_a_store_that_holds_nothing_that_fits(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.make(seed=3)
    result = show(lab, "matrix")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == (
        "ERROR: metricbench: --metricbench-show matrix: the store .metricbench/shop holds 18 attempts, none of which "
        "fits the experiment as it is now; --metricbench-show plan says why; to make new ones, pytest experiment.yml"
    )


def test_a_damaged_store(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    journal = lab.store() / "attempts.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"attempt":1', b'"attempt":7', 1))
    result = show(lab, "tasks")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "attempts.jsonl:1: the line is not as it was written" in result.stderr.str()


def test_an_unknown_part(lab: Lab) -> None:
    lab.make()
    result = show(lab, "survivor")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "argument --metricbench-show: invalid choice: 'survivor'" in result.stderr.str()
    for part in PARTS:
        assert part in result.stderr.str()


OF_NO_USE = "nothing is run or written, so {} would do nothing; leave it out"
NO_PLAN = "with {} no attempt runs, so there is nothing to plan; leave one of them out"


@pytest.mark.parametrize(
    ("part", "option", "message"),
    [
        ("matrix", "--metricbench-fresh", OF_NO_USE),
        ("plan", "--metricbench-merge=x", OF_NO_USE),
        ("plan", "--metricbench-cached-only", NO_PLAN),
        ("plan", "--metricbench-cached-attempts", NO_PLAN),
    ],
)
def test_options_that_only_a_run_has(lab: Lab, part: str, option: str, message: str) -> None:
    lab.make()
    result = show(lab, part, option)
    message = message.format(option.partition("=")[0])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == f"ERROR: metricbench: --metricbench-show {part}: {message}"


def test_a_broken_experiment_is_said_to_be_so(lab: Lab) -> None:
    lab.make(attempts="many")
    result = show(lab, "plan")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "attempts: is the text 'many'" in result.stderr.str()


def test_nothing_selected(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    assert show(lab, "matrix", "-k", "no_such_thing").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_of_a_copied_store_without_the_agent(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    (lab.path / "agent.py").unlink()
    assert shown(lab, "survivors", "--metricbench-cached-only")[-1].strip().startswith("at no task does it pass less")


def test_while_a_run_writes_the_store(lab: Lab) -> None:
    from pytest_metricbench.store.writing import StoreWriter

    lab.make()
    lab.run("experiment.yml")
    writer = StoreWriter(lab.store())
    try:
        shown(lab, "attempts")
    finally:
        writer.close()


def test_a_folder_in_place_of_a_file(lab: Lab) -> None:
    lab.make("deep/experiment.yml")
    lab.run("deep")
    result = show(lab, "survivors", file="deep")
    assert result.ret == 0
    assert "from deep/.metricbench/shop: 18 of 18 attempts" in result.outlines


def test_several_experiments_each_under_its_name(lab: Lab) -> None:
    lab.make("a/experiment.yml", module="agent_a", name="one")
    lab.make("b/experiment.yml", module="agent_b", name="two")
    lab.run("a", "b")
    result = show(lab, "matrix", "b", file="a")
    assert [line.strip("= ") for line in result.outlines if line.startswith("==")] == [
        "metricbench: one: matrix",
        "metricbench: two: matrix",
    ]


def test_without_a_terminal_plugin(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    result = lab.run("experiment.yml", "--metricbench-show", "matrix", "-p", "no:terminal")
    assert result.ret == 0
    assert "metricbench: shop: matrix" in result.outlines


# ---------------------------------------------------------------- survivors


def test_survivors(lab: Lab) -> None:
    path = lab.make()
    lab.run("experiment.yml")
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "id: quiet" in text)
    assert shown(lab, "survivors") == [
        "from .metricbench/shop: 18 of 18 attempts",
        "",
        "case shop: 1 of 2 judged mutants survives",
        "",
        "quiet           Says nothing.",
        f"                experiment.yml:{line}; 3 tasks could have killed it",
        "                at no task does it pass less often than the baseline",
    ]


def test_the_task_that_comes_nearest(lab: Lab) -> None:
    outcomes = {"quiet::pay": "ppm", "quiet::find": "pp", "no-pay::pay": "m"}
    lab.make(attempts=3, outcomes=outcomes)
    lab.run("experiment.yml")
    assert shown(lab, "survivors")[-1].strip() == "nearest: pay, where the baseline passes 3 of 3 and it 2 of 3"


def test_no_survivors_and_invalid_mutants(lab: Lab) -> None:
    lab.make(outcomes={"no-pay::pay": "m", "quiet::find": "d", "quiet::pay": "d", "quiet::refund": "d"})
    lab.run("experiment.yml")
    assert shown(lab, "survivors")[2:] == ["case shop: none of 1 judged mutant survives", "invalid         quiet"]


def test_what_is_not_known_yet(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml", "-k", "baseline or no-pay")
    lines = shown(lab, "survivors")
    assert lines[:2] == [
        "from .metricbench/shop: 12 of 18 attempts",
        "6 not in the store: what needs them is not known",
    ]
    assert lines[3:] == ["case shop: none of 1 judged mutant survives", "not known       quiet"]


def test_without_mutants(lab: Lab) -> None:
    lab.make(case={"mutants": None})
    lab.run("experiment.yml")
    assert shown(lab, "survivors")[-1] == "case shop has no mutants"
    assert shown(lab, "matrix")[-1] == "case shop has no mutants"
    assert not any("kills" in line for line in shown(lab, "tasks"))


def test_a_long_id_and_a_description_of_several_lines(lab: Lab) -> None:
    mutants = [{"id": "a-very-long-id-of-a-mutant", "description": "Says\nnothing\x1b[31m at all."}]
    lab.make(case={"mutants": mutants})
    lab.run("experiment.yml")
    lines = shown(lab, "survivors")
    start = lines.index("a-very-long-id-of-a-mutant")
    assert lines[start + 1].strip() == "Says nothing [31m at all."


# ---------------------------------------------------------------- matrix


def test_matrix(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    assert shown(lab, "matrix") == [
        "from .metricbench/shop: 18 of 18 attempts",
        "",
        "case shop",
        "kills   a b c  by",
        "no-pay  . x .  1",
        "quiet   . . .  0",
        "        0 1 0",
        "",
        "cells           x killed   . survived",
        "a find    b pay     c refund",
    ]


def test_matrix_of_a_selection(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    assert shown(lab, "matrix", "-k", "no-pay and pay")[3:6] == [
        "kills   a b c  by",
        "no-pay  . x .  1",
        "        0 1 0",
    ]
    assert shown(lab, "matrix", "-m", "metricbench(variant='no-pay', task='pay')")[3:5] == [
        "kills   a  by",
        "no-pay  x  1",
    ]


def test_a_matrix_wider_than_the_terminal_is_cut_into_blocks(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    tasks = [{"id": f"t{number}"} for number in range(1, 41)]
    lab.make(attempts=1, coverage=None, outcomes={"no-pay::t40": "m"}, case={"tasks": tasks, "subsets": None})
    lab.run("experiment.yml")
    lines = shown(lab, "matrix")
    assert all(len(line) <= 60 for line in lines)
    heads = [line for line in lines if line.startswith("kills ")]
    assert len(heads) == 3
    assert " ".join(heads).replace("kills", "").replace("by", "").split() == [f"{n:02}" for n in range(1, 41)]
    rows = [line for line in lines if line.startswith("no-pay")]
    assert sum(row.count("x") for row in rows) == 1
    assert rows[0].endswith("  1")


def test_controls_equivalents_and_invalid_mutants_are_marked(lab: Lab) -> None:
    mutants = [*MUTANTS, {"id": "same", "equivalent": "it is"}, {"id": "dead"}]
    outcomes = {f"dead::{task['id']}": "d" for task in TASKS}
    lab.make(controls=1, case={"mutants": mutants}, outcomes=outcomes)
    lab.run("experiment.yml")
    rows = [line.rpartition("  ")[0][:22].strip() for line in shown(lab, "matrix")[4:9]]
    marked = ["same (equivalent)", "dead (invalid)", "control-1 (control)"]
    assert [row.partition("  ")[0] for row in rows] == ["no-pay", "quiet", *marked]


# ---------------------------------------------------------------- tasks


def test_tasks(lab: Lab) -> None:
    lab.make(agent=PRICED)
    lab.run("experiment.yml")
    lines = shown(lab, "tasks")
    assert lines[2] == "case shop"
    assert lines[3].split("  ")[0] == "task"
    rows = {line.split()[0]: " ".join(line.split()) for line in lines[4:7]}
    assert rows["find"].startswith("find solved 2/2 0 of 2 - ")
    assert rows["pay"].startswith("pay solved 2/2 1 of 2 no-pay ")
    assert rows["refund"].startswith("refund flaky 1/2 0 of 2 - ")
    assert all(row.endswith(" $0.25") for row in rows.values())
    assert lines[7] == "kills nothing   find, refund"


# ---------------------------------------------------------------- attempts


def test_attempts(lab: Lab) -> None:
    lab.make(agent=PRICED, outcomes={"baseline::pay": "pu", "no-pay::find": "d", "quiet::refund": "m"})
    lab.run("experiment.yml", "-k", "not quiet or refund")
    lines = shown(lab, "attempts")
    names = {line["trial_id"] for line in lab.journal()}
    rows = {line.split()[0]: line.split()[1:] for line in lines if "]  " in line}
    assert len(rows) == 18
    assert rows["baseline::find[1]"][:2] == ["passed", "1.0"]
    assert rows["baseline::find[1]"][-1] in names
    assert rows["baseline::pay[2]"][:2] == ["unmeasured", "-"]
    assert rows["no-pay::find[2]"][:2] == ["died", "-"]
    assert rows["quiet::refund[1]"][:2] == ["missed", "0.25"]
    assert " ".join(rows["quiet::find[1]"]) == "not in the store - - - -"
    index = next(number for number, line in enumerate(lines) if line.startswith("no-pay::find[1]"))
    assert lines[index + 1].strip().startswith("agent: RuntimeError: the agent crashed")
    assert lines[-1] == "what they left: .metricbench/shop/attempts/<case>/<variant>/<task>/<trial id>/"


def test_attempts_of_a_selection_and_stale_ones(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    lab.make(case={"baseline": {"params": {"x": 1}}})
    lines = shown(lab, "attempts", "-k", "find")
    rows = {line.split()[0]: line.split()[1] for line in lines if "]  " in line}
    assert rows == {
        f"{variant}::find[{slot}]": "stale" if variant == "baseline" else "passed"
        for variant in ("baseline", "no-pay", "quiet")
        for slot in (1, 2)
    }
    assert lines[1] == "6 no longer fit: what needs them is not known"
