"""Tasks and attempts of a store on a terminal: what a task's baseline does and what it kills; one line an attempt."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from pytest_metricbench.analysis.choices import only_killers
from pytest_metricbench.analysis.kill_figures import kill_nothing, task_summaries
from pytest_metricbench.analysis.unavailable import briefly
from pytest_metricbench.budget import agent_ran, cost_of
from pytest_metricbench.contracts import AttemptKey, AttemptRecord
from pytest_metricbench.definition.experiment import BASELINE
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.definition.scoring import policy_at, status
from pytest_metricbench.reporting.amounts import duration_text, money_text
from pytest_metricbench.reporting.layout import (
    Column,
    Line,
    block,
    line,
    one_line,
    paragraph,
    shortened,
    table,
)
from pytest_metricbench.reporting.showing import Shown, ShownCase
from pytest_metricbench.score_values import value_to_json

_ID_WIDTH: Final = 40
_MESSAGE_WIDTH: Final = 160
_NO_LIMIT: Final = 10_000


# ---------------------------------------------------------------- tasks


def task_lines(shown: Shown, width: int) -> list[Line]:
    """Every task: its verdict under the baseline, what it kills, and what its attempts take."""
    lines: list[Line] = []
    for name, case in shown.cases.items():
        lines += [Line()] if lines else []
        lines += [line("case ", (name, "bold")), *_tasks(shown, case, width)]
    return lines


def _tasks(shown: Shown, case: ShownCase, width: int) -> list[Line]:
    summaries = task_summaries(case.outcomes, case.matrix)
    tasks = [task.id for task in case.outcomes.tasks if task.id in case.tasks]
    baseline = case.outcomes.cells[BASELINE]
    columns = [
        Column("task", [shortened(task, _ID_WIDTH) for task in tasks], "<"),
        Column("baseline", [summaries[task].baseline for task in tasks], "<"),
        Column("passes", [f"{baseline[task].passed}/{baseline[task].n}" for task in tasks]),
    ]
    if case.case.mutants:
        alone = only_killers(case.matrix)
        columns += [
            Column("kills", [f"{summaries[task].kills} of {summaries[task].cells}" for task in tasks]),
            Column("only killer of", [first_names(alone[task], 3) or "-" for task in tasks], "<"),
        ]
    records = _by_task(shown, case)
    columns.append(Column("an attempt takes", [_mean_time(records[task]) for task in tasks]))
    costs = [_mean_cost(shown, records[task]) for task in tasks]
    if any(cost != "-" for cost in costs):
        columns.append(Column("and costs", costs))
    idle = [task for task in kill_nothing(case.matrix) if task in case.tasks] if case.case.mutants else []
    lines = table(columns, width)
    return lines + (block("kills nothing", [first_names(idle, 20)], width, "yellow") if idle else [])


def _by_task(shown: Shown, case: ShownCase) -> Mapping[str, list[AttemptRecord]]:
    found: dict[str, list[AttemptRecord]] = {task.id: [] for task in case.case.tasks}
    for record in shown.attempts.values():
        if record.case == case.case.id and record.task in found and agent_ran(record):
            found[record.task].append(record)
    return found


def _mean_time(records: Sequence[AttemptRecord]) -> str:
    return duration_text(fmean(record.duration for record in records)) if records else "-"


def _mean_cost(shown: Shown, records: Sequence[AttemptRecord]) -> str:
    found = [cost for record in records if (cost := cost_of(record.scores, shown.cost_scores)) is not None]
    return money_text(fmean(amount for _, amount in found), found[0][0]) if found else "-"


# ---------------------------------------------------------------- attempts


def attempt_lines(shown: Shown, store: str) -> list[Line]:
    """Every selected attempt on a line, however long: what became of it, its score, what it took, what it is called.

    Below one that died or could not be measured stands why.
    """
    keys = [key for key in shown.standings if key in shown.selected]
    words = _words(shown, keys)
    several = len(shown.cases) > 1
    records = [shown.attempts.get(key) for key in keys]
    columns = [
        Column("attempt", ["::".join(key[:3] if several else key[1:3]) + f"[{key[3]}]" for key in keys], "<"),
        Column("outcome", [words[key] for key in keys], "<"),
        Column(shortened(shown.primary, 20), [_primary(shown, record) for record in records]),
        Column("time", ["-" if record is None else duration_text(record.duration) for record in records]),
    ]
    costs = [None if record is None else cost_of(record.scores, shown.cost_scores) for record in records]
    if any(cost is not None for cost in costs):
        columns.append(Column("cost", ["-" if cost is None else money_text(cost[1], cost[0]) for cost in costs]))
    columns.append(Column("trial id", ["-" if record is None else record.shown_id for record in records], "<"))
    head, *rows = table(columns, _NO_LIMIT)
    lines = [head]
    for row, record in zip(rows, records, strict=True):
        lines.append(row)
        if record is not None and record.error is not None:
            said = one_line(briefly(record.error.message))
            text = f"{record.error.phase}: {record.error.type}: {shortened(said, _MESSAGE_WIDTH)}"
            lines.append(line("    ", (text, "light")))
    where = f"what they left: {store}/attempts/<case>/<variant>/<task>/<trial id>/"
    return [*lines, Line(), *paragraph(where, _NO_LIMIT, "light")]


def _words(shown: Shown, keys: Sequence[AttemptKey]) -> dict[AttemptKey, str]:
    return dict(zip(keys, _each_word(shown, keys), strict=True))


def _each_word(shown: Shown, keys: Sequence[AttemptKey]) -> Iterator[str]:
    """What became of each attempt, or why it is not known."""
    tasks = {(case.id, task.id): task for case in shown.experiment.cases for task in case.tasks}
    policy = replace(shown.experiment.score, primary=shown.primary)
    for key in keys:
        record = shown.attempts.get(key)
        if record is None:
            state = shown.standings[key].state
            yield {"absent": "not in the store", "rescorable": "to be scored again"}.get(state, state)
        else:
            yield status(policy_at(policy, tasks[key[0], key[2]]), record).replace("_", " ")


def _primary(shown: Shown, record: AttemptRecord | None) -> str:
    value = None if record is None else record.scores.get(shown.primary)
    return "-" if value is None else one_line(str(value_to_json(value)))
