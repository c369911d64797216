"""A run for a job summary or a comment on a pull request: the headline, gates, survivors, what changed.

Markdown as GitHub and GitLab show it; whatever it says stands in ``summary.json``.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pytest_metricbench.analysis.summary import CaseSummary, GateResult, Settings, Summary
from pytest_metricbench.definition.experiment import BASELINE
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.case_block import attempts_text
from pytest_metricbench.reporting.comparison_words import counts_survivors
from pytest_metricbench.reporting.layout import UNAVAILABLE, with_interval
from pytest_metricbench.reporting.markdown_changes import change_blocks
from pytest_metricbench.reporting.markdown_text import bullets, code, heading, joined, table, text
from pytest_metricbench.reporting.terminal import gate_value

LIMIT: Final = 1_000_000
"""Bytes: a GitHub step's summary may have 1 MiB, a GitLab comment a million characters; more is shown not at all."""
MOST_SURVIVORS: Final = 50
MOST_CASES: Final = 100
MOST_TEXTS: Final = 20
_WORDS: Final = {True: "✅ ok", False: "❌ FAIL", None: "⚪ open"}


def markdown_text(summary: Summary, *, summary_path: str | None = None, limit: int = LIMIT) -> str:
    """The summary as Markdown, the most important first.

    Args:
        summary: of this run; with its comparison, where an earlier run was named.
        summary_path: where ``summary.json`` is, as the last line names it.
        limit: bytes, UTF-8; what does not fit is cut between lines, with a note.
    """
    blocks = [
        [heading(2, f"metricbench: {code(summary.experiment)}")],
        [_verdict(summary)],
        _part(summary),
        _cases(summary),
        [text(attempts_text(summary.counts))],
        *_titled("Problems", _texts(summary.problems)),
        *_titled("Gates", _gates(summary.gates)),
        *change_blocks(summary),
        *_titled("Survivors: what this evaluation does not see", _survivors(summary)),
        *_titled("Warnings", _texts(summary.warnings)),
        [f"Everything: {code(summary_path)}"] if summary_path is not None else [],
    ]
    where = f"in {code(summary_path)}" if summary_path is not None else "in `summary.json`"
    return joined(blocks, limit, f"*Cut: a job summary has a limit. The rest is {where}.*")


def _titled(title: str, lines: list[str]) -> list[list[str]]:
    return [[heading(3, title)], lines] if lines else []


# ---------------------------------------------------------------- the headline


def _verdict(summary: Summary) -> str:
    """In a sentence whether the run is green, and if not, what is wrong."""
    broken = sum(gate.holds is False for gate in summary.gates)
    unchecked = sum(gate.holds is None for gate in summary.gates)
    new = _new_survivors(summary)
    parts = [f"{broken} of {counted(len(summary.gates), 'gate')} {_do(broken)} not hold"] if broken else []
    parts += [counted(len(summary.problems), "problem")] if summary.problems else []
    wrong = bool(parts)
    parts += [f"{counted(new, 'new survivor')}"] if new else []
    held = len(summary.gates) - broken - unchecked
    if summary.gates and not broken:
        parts.append(f"{held} of {counted(len(summary.gates), 'gate')} {'holds' if held == 1 else 'hold'}")
    parts += [f"{unchecked} not checked"] if unchecked else []
    parts = parts or ["measured; no gates"]
    return f"{'❌' if wrong else '✅'} **{', '.join(parts)}**"


def _do(number: int) -> str:
    return "does" if number == 1 else "do"


def _new_survivors(summary: Summary) -> int:
    cases = summary.comparison.cases.values() if summary.comparison is not None else ()
    return sum(len(case.new_survivors) for case in cases)


def _part(summary: Summary) -> list[str]:
    return [] if summary.part is None else [f"⚪ A part of the experiment: {text(summary.part)}"]


def _cases(summary: Summary) -> list[str]:
    """One row a case: its baseline, its mutation score, and what coverage says."""
    first = next(iter(summary.cases.values()))
    ks = list(first.variants[BASELINE].pass_at_k.get(summary.settings.primary, {}))
    heads = ["case", "tasks", *(f"baseline pass@{k}" for k in ks), "mutants killed", "false kills"]
    heads += [f"tau-b {code(system)}" for system in first.correlation]
    rows = [_case_row(name, case, summary.settings, ks) for name, case in list(summary.cases.items())[:MOST_CASES]]
    lines = table(heads, rows, right=[1])
    return lines + _more(len(summary.cases), MOST_CASES, len(heads))


def _case_row(name: str, case: CaseSummary, settings: Settings, ks: Sequence[str]) -> list[str]:
    means = case.variants[BASELINE].pass_at_k.get(settings.primary, {})
    cells = [code(name), str(len(case.tasks))]
    cells += [_figure(means[k].value, means[k].interval, means[k].reason) if k in means else UNAVAILABLE for k in ks]
    share = case.pool.kill_share
    if share.value is None:
        cells.append(_figure(None, None, share.reason))
    else:
        cells.append(f"{share.killed} of {share.mutants} = {_figure(share.value, share.interval, None)}")
    false = case.false_kills
    cells.append(f"{false.killed_cells} of {counted(false.cells, 'cell')}" if false.cells else "no control")
    for by_score in case.correlation.values():
        tau = by_score[settings.mutation_score].overall.kendall
        cells.append(_figure(tau.value, tau.interval, tau.reason))
    return cells


def _figure(value: float | None, interval: tuple[float, float] | None, reason: str | None) -> str:
    return f"{UNAVAILABLE}: {text(reason or '', 120)}" if value is None else with_interval(value, interval)


# ---------------------------------------------------------------- lists


def _texts(texts: Sequence[str]) -> list[str]:
    more = [f"and {len(texts) - MOST_TEXTS} more"] if len(texts) > MOST_TEXTS else []
    return bullets([*map(text, texts[:MOST_TEXTS]), *more])


def _gates(gates: Sequence[GateResult]) -> list[str]:
    """Broken gates first, then those not checked."""
    order = {False: 0, None: 1, True: 2}
    rows = [
        [_WORDS[gate.holds], code(gate.text), gate_text(gate), text(gate.reason or "")]
        for gate in sorted(gates, key=lambda gate: order[gate.holds])
    ]
    return table(["", "gate", "figure", ""], rows, right=[2])


def gate_text(gate: GateResult) -> str:
    """The figure of a gate; new survivors are counted, everything else is a fraction."""
    return f"{gate.value:.0f}" if gate.value is not None and counts_survivors(gate.text) else gate_value(gate)


def _survivors(summary: Summary) -> list[str]:
    """New ones first; which case a mutant is of, where there are several."""
    rows = sorted(_survivor_rows(summary), key=lambda row: not row[0])
    several = len(summary.cases) > 1
    heads = ["", *(["case"] if several else []), "mutant", "what it does", "tasks that did not see it"]
    cells = [[new, *([code(case)] if several else []), *rest] for new, case, *rest in rows[:MOST_SURVIVORS]]
    return table(heads, cells) + _more(len(rows), MOST_SURVIVORS, len(heads))


def _survivor_rows(summary: Summary) -> Iterator[tuple[str, str, str, str, str]]:
    compared = summary.comparison.cases if summary.comparison is not None else {}
    for name, case in summary.cases.items():
        new = {change.mutant for change in compared[name].new_survivors} if name in compared else frozenset[str]()
        for survivor in case.survivors:
            missing = f", {survivor.missing_cells} not measured" if survivor.missing_cells else ""
            sign = "🆕 new" if survivor.mutant in new else ""
            yield sign, name, code(survivor.mutant), text(survivor.description), f"{survivor.cells}{missing}"


def _more(found: int, shown: int, columns: int) -> list[str]:
    """The last row of a table that holds not all rows."""
    return [] if found <= shown else [f"| {' | '.join([f'and {found - shown} more', *[''] * (columns - 1)])} |"]
