"""Kills on the terminal: mutants against tasks, the mutation score of the pool, and the blind spots."""

from collections.abc import Sequence
from string import ascii_lowercase
from typing import Final

from pytest_metricbench.analysis.summary import CaseSummary
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.layout import (
    UNAVAILABLE,
    Line,
    block,
    cut_apart,
    flowing,
    line,
    listing,
    named,
    told_apart,
    two_digits,
    with_interval,
)

MOST_MUTANTS: Final = 14
"""Rows of the table of kills."""
MOST_SURVIVORS: Final = 8
FEW_SURVIVORS: Final = 4
"""So many are described at length."""
MOST_STEPS: Final = 8
_ID_WIDTH: Final = 24


def kill_table(case: CaseSummary, width: int) -> list[Line]:
    """Mutants against tasks, where there are few enough of both; nothing otherwise."""
    tasks = list(case.tasks)
    ids = min(max((len(mutant) for mutant in case.kills), default=0), _ID_WIDTH)
    spaced = ids + 2 + 2 * len(tasks) <= width
    if (
        not case.kills
        or len(case.kills) > MOST_MUTANTS
        or len(tasks) > len(ascii_lowercase)
        or ids + 2 + len(tasks) > width
    ):
        return []
    between = " " if spaced else ""
    signs = {"killed": "x", "survived": ".", "missing": "?", "not_reached": "-"}
    used = {state for states in case.kills.values() for state in states.values()}
    head = f"{'kills':<{ids}}  {between.join(ascii_lowercase[: len(tasks)])}"
    legend = "   ".join(f"{sign} {word}" for word, sign in signs.items() if word in used)
    lines = [line((head, "bold"))]
    for name, states in zip(cut_apart(list(case.kills), ids), case.kills.values(), strict=True):
        row = between.join(signs[states[task]] for task in tasks)
        lines.append(line(f"{name:<{ids}}  {row}"))
    short = told_apart(tasks, _ID_WIDTH)
    keys = [f"{letter} {task}" for letter, task in zip(ascii_lowercase, short, strict=False)]
    return [*lines, *(line((text, "light")) for text in (legend, *flowing(keys, width)))]


def score_block(name: str, case: CaseSummary, width: int) -> list[Line]:
    """The mutation score of the pool, what weakens it, and the blind spots."""
    if not case.kills:
        return []
    groups = case.mutants
    lines = block("mutation score", _score_texts(case), width, "bold")
    lines += _names("invalid", groups.invalid, "every attempt died", width)
    lines += _names("unmeasured", groups.unmeasured, "no task says anything of them", width)
    if case.survivors:
        shown = case.survivors[:MOST_SURVIVORS]
        pairs = [(survivor.mutant, survivor.description) for survivor in shown]
        texts = named(pairs, width, most_lines=5 if len(shown) <= FEW_SURVIVORS else 1)
        if len(case.survivors) > len(shown):
            texts.append(f"and {len(case.survivors) - len(shown)} more: summary.json, cases.{name}.survivors")
        lines += listing("survived", texts, width, "yellow")
    lines += _names("kills nothing", case.kill_nothing, "", width)
    return lines + _greedy(case, width)


def _greedy(case: CaseSummary, width: int) -> list[Line]:
    """The few tasks that kill all that the pool kills, best first, each with the mutants killed so far."""
    steps = case.greedy
    if len(steps) < 2 or len(steps) == len(case.tasks):
        return []
    shown = [f"{step.task} {step.killed}" for step in steps[:MOST_STEPS]]
    more = f", and {len(steps) - len(shown)} more" if len(steps) > len(shown) else ""
    start = f"{len(steps)} of {counted(len(case.tasks), 'task')} kill all that is killed, {steps[-1].killed}: "
    return block("best first", [f"{start}{', '.join(shown)}{more}"], width)


def _score_texts(case: CaseSummary) -> list[str]:
    share, drop = case.pool.kill_share, case.pool.mean_drop
    if share.value is None:
        texts = [f"{UNAVAILABLE}: {share.reason}"]
    else:
        interval = with_interval(share.value, share.interval)
        texts = [f"{share.killed} of {counted(share.mutants, 'valid mutant')} killed = {interval}"]
    if drop.value is not None:
        texts.append(f"mean drop of the pass rate {two_digits(drop.value)}, over {counted(drop.cells, 'cell')}")
    if share.value is not None and share.missing_cells:
        texts.append(f"{counted(share.missing_cells, 'cell')} missing: neither killed nor survived")
    also = share.with_equivalents
    if case.mutants.equivalent and also.value is not None:
        names = first_names(case.mutants.equivalent)
        texts.append(
            f"with what was found equivalent ({names}): {also.killed} of {also.mutants} = {two_digits(also.value)}"
        )
    return [*texts, *_doubts(case)]


def _doubts(case: CaseSummary) -> list[str]:
    """How far kills can be trusted."""
    texts = []
    weak, false = case.died_kills, case.false_kills
    if weak.kills:
        only = f"; nothing else kills {first_names(weak.mutants)}" if weak.mutants else ""
        slow = f" ({len(weak.time_outs)} without those that ran out of time)" if weak.time_outs else ""
        texts.append(
            f"{len(weak.kills)} of {counted(weak.total, 'kill')} would not stand without attempts that died{slow}{only}"
        )
    if false.cell_rate.value is not None:
        rate = with_interval(false.cell_rate.value, false.cell_rate.interval)
        texts.append(
            f"false kills: {false.killed_cells} of {counted(false.cells, 'cell')} of "
            f"{counted(false.controls, 'control')} = {rate}"
        )
    itself = case.against_itself.pool.false_kills
    if itself.value is not None and case.against_itself.splits:
        cells = counted(case.against_itself.cells, "cell")
        texts.append(f"the baseline against itself: {two_digits(itself.value)} of {cells} killed")
    return texts


def _names(label: str, names: Sequence[str], meaning: str, width: int) -> list[Line]:
    if not names:
        return []
    return block(label, [f"{first_names(names)}: {meaning}" if meaning else first_names(names)], width)
