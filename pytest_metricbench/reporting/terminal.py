"""The section at the end of a run: how good the agent is, what the evaluation misses, whether coverage tells.

Pure text from a summary: whatever is printed stands in ``summary.json`` under a documented key.
"""

from itertools import islice
from typing import Final

from pytest_metricbench.analysis.figures import Figure
from pytest_metricbench.analysis.summary import CaseSummary, GateResult, Settings, Summary
from pytest_metricbench.definition.experiment import BASELINE
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.case_block import attempts_text, case_block, deaths_block
from pytest_metricbench.reporting.comparison_block import comparison_block
from pytest_metricbench.reporting.comparison_words import counts_survivors, is_against_earlier
from pytest_metricbench.reporting.layout import (
    LABEL_WIDTH,
    UNAVAILABLE,
    Column,
    Line,
    Style,
    block,
    line,
    listing,
    named,
    one_line,
    paragraph,
    shortened,
    table,
    two_digits,
    with_interval,
)
from pytest_metricbench.reporting.next_steps import next_steps

MOST_BLOCKS: Final = 3
"""Cases that get a block each; more get one line each."""
MOST_CASES: Final = 20
"""Lines of the table of cases; of more, the worst and the best ten by mutation score."""
MOST_SURVIVORS: Final = 8
MOST_PROBLEMS: Final = 6
MINIMUM_WIDTH: Final = 40
_WORD_WIDTH: Final = 6
_MOST_DIGITS: Final = 12
_WORDS: Final[dict[bool | None, tuple[str, Style]]] = {
    True: ("ok", "green"),
    False: ("FAIL", "red"),
    None: ("open", "yellow"),
}


def section_title(summary: Summary) -> str:
    """The words of the section's rule."""
    return f"metricbench: {summary.experiment}"


def section_lines(
    summary: Summary, *, width: int = 80, brief: bool = False, summary_path: str | None = None
) -> list[Line]:
    """The section, without its rule.

    Args:
        summary: what to show.
        width: columns of the terminal; nothing is wider, down to 40.
        brief: one line a case, what is wrong, and the gates: for ``-q``.
        summary_path: where ``summary.json`` is, as the last line names it.
    """
    width = max(width, MINIMUM_WIDTH)
    blocks = [_part(summary, width), _problems(summary, width)]
    if brief or len(summary.cases) > MOST_BLOCKS:
        blocks += [
            paragraph(attempts_text(summary.counts), width),
            _cases_table(summary, width),
            _broken_baselines(summary, width),
            _survivors(summary, width),
            _unavailable(summary, width),
        ]
    else:
        blocks += [case_block(name, case, summary.settings, width) for name, case in summary.cases.items()]
    blocks.append(_over_cases(summary, width))
    blocks.append(comparison_block(summary, width))
    blocks.append(_gates(summary, width))
    blocks.append([] if brief else block("warning", summary.warnings, width, "yellow"))
    blocks.append(_next([] if brief else next_steps(summary), width, summary_path))
    lines: list[Line] = []
    for found in blocks:
        if found:
            lines += [Line(), *found] if lines else found
    return lines


def _part(summary: Summary, width: int) -> list[Line]:
    if summary.part is None:
        return []
    outside, declared = summary.counts.outside, counted(summary.counts.declared, "attempt")
    verb = "is" if outside == 1 else "are"
    rest = f"; {outside:,} of {declared} {verb} outside it and not in the store" if outside else ""
    return block("part", [f"{summary.part}{rest}"], width, "yellow")


def _problems(summary: Summary, width: int) -> list[Line]:
    more = len(summary.problems) - MOST_PROBLEMS
    texts = [*summary.problems[:MOST_PROBLEMS], *([f"and {more} more: summary.json, problems"] if more > 0 else [])]
    return block("problems", texts, width, "red")


# ---------------------------------------------------------------- many cases


def _cases_table(summary: Summary, width: int) -> list[Line]:
    """One line a case: its baseline, its mutation score, and what coverage says."""
    shown, left_out = _shown_cases(summary)
    columns = _case_columns({name: summary.cases[name] for name in shown}, summary.settings)
    between = f"{counted(left_out, 'more case')} between these: summary.json"
    return table(columns, width, (MOST_CASES // 2, between) if left_out else None)


def _broken_baselines(summary: Summary, width: int) -> list[Line]:
    """Why attempts died, of cases whose baseline never passes: nothing else matters before that is mended."""
    broken = ((name, case) for name, case in summary.cases.items() if case.baseline_check.holds is False)
    return [found for name, case in islice(broken, MOST_PROBLEMS) for found in deaths_block(name, case, width)]


def _case_columns(cases: dict[str, CaseSummary], settings: Settings) -> list[Column]:
    first = next(iter(cases.values()))
    columns = [
        Column("case", [shortened(name, 24) for name in cases], "<"),
        Column("tasks", [str(len(case.tasks)) for case in cases.values()]),
    ]
    for k in list(first.variants[BASELINE].pass_at_k.get(settings.primary, {}))[:1]:
        figures = [case.variants[BASELINE].pass_at_k[settings.primary][k] for case in cases.values()]
        cells = [with_interval(figure.value, figure.interval) for figure in figures]
        columns.append(Column(f"baseline pass@{k}", cells, "<"))
    if any(case.kills for case in cases.values()):
        columns.append(Column("mutants killed", [_killed(case) for case in cases.values()], "<"))
    for system in first.correlation:
        taus = [case.correlation[system][settings.mutation_score].overall.kendall for case in cases.values()]
        columns.append(Column(f"tau-b {shortened(system, 16)}", [two_digits(tau.value) for tau in taus]))
    return columns


def _killed(case: CaseSummary) -> str:
    share = case.pool.kill_share
    if share.value is None:
        return UNAVAILABLE
    return f"{share.killed} of {share.mutants} = {two_digits(share.value)}"


def _survivors(summary: Summary, width: int) -> list[Line]:
    """The blind spots of all cases; which case a mutant is of, where there are several."""
    prefix = "" if len(summary.cases) == 1 else "{case}::"
    found = [
        (prefix.format(case=name) + survivor.mutant, survivor.description)
        for name, case in summary.cases.items()
        for survivor in case.survivors
    ]
    texts = named(found[:MOST_SURVIVORS], width)
    if len(found) > MOST_SURVIVORS:
        texts.append(f"and {len(found) - MOST_SURVIVORS} more: summary.json, survivors")
    return listing("survived", texts, width, "yellow")


def _unavailable(summary: Summary, width: int) -> list[Line]:
    """Why figures of the table of cases are missing, each reason once."""
    by_reason: dict[str, list[str]] = {}
    for name, case in summary.cases.items():
        figures: list[tuple[str, Figure]] = [("mutants killed", case.pool.kill_share)] if case.kills else []
        baseline = case.variants[BASELINE].pass_at_k.get(summary.settings.primary, {})
        figures += [(f"pass@{k}", figure) for k, figure in list(baseline.items())[:1]]
        for system, by_score in case.correlation.items():
            figures.append((f"tau-b {system}", by_score[summary.settings.mutation_score].overall.kendall))
        for what, figure in figures:
            if figure.reason is not None:
                by_reason.setdefault(figure.reason, []).append(f"{name} {what}")
    return block(UNAVAILABLE, [f"{first_names(found, 3)}: {reason}" for reason, found in by_reason.items()], width)


def _shown_cases(summary: Summary) -> tuple[list[str], int]:
    names = list(summary.cases)
    if len(names) <= MOST_CASES:
        return names, 0

    def quality(name: str) -> float:
        value = summary.cases[name].pool.kill_share.value
        return -1.0 if value is None else value

    ranked = sorted(names, key=quality)
    half = MOST_CASES // 2
    return [*ranked[:half], *ranked[-half:]], len(names) - MOST_CASES


def _over_cases(summary: Summary, width: int) -> list[Line]:
    """The mean of tau-b over the cases, one line a system, and how many cases are behind it."""
    texts, reasons = [], []
    for system, by_score in summary.over_cases.items():
        mean = by_score[summary.settings.mutation_score].kendall
        if mean.value is not None:
            value = with_interval(mean.value, mean.interval)
            texts.append(f"tau-b of {system}: mean {value}, {mean.defined} of {counted(mean.cases, 'case')} defined")
            reasons += [mean.interval_reason] if mean.interval_reason else []
    return block("over the cases", [*texts, *dict.fromkeys(reasons)], width)


# ---------------------------------------------------------------- gates, and what now


def _gates(summary: Summary, width: int) -> list[Line]:
    """Every gate with its figure; below one that does not hold, why, where its figure does not say it."""
    lines: list[Line] = []
    indent = LABEL_WIDTH + _WORD_WIDTH
    column = max((len(one_line(gate.text)) for gate in summary.gates), default=0)
    for index, gate in enumerate(summary.gates):
        word, style = _WORDS[gate.holds]
        text = f"{one_line(gate.text):<{column}}  {gate_value(gate)}"
        if len(text) > width - indent:
            text = f"{one_line(gate.text)}: {gate_value(gate)}"
        first, *rest = paragraph(text, width - indent) if len(text) > width - indent else [line(text)]
        label = "gates" if index == 0 else ""
        lines.append(line((f"{label:<{LABEL_WIDTH}}", "bold"), (f"{word:<{_WORD_WIDTH}}", style), first.text))
        lines += [line(" " * indent, found.text) for found in rest]
        if gate.reason is not None and (gate.value is None or len(gate.checks) > 1 or is_against_earlier(gate.text)):
            lines += paragraph(gate.reason, width, indent=" " * indent)
    return lines


def gate_value(gate: GateResult) -> str:
    """A gate's figure with as many digits as it takes to see that it holds or does not."""
    if gate.value is None:
        return UNAVAILABLE
    if counts_survivors(gate.text):
        return f"{gate.value:.0f}"
    wanted = gate.text.split()[-1]
    digits = 2
    while digits < _MOST_DIGITS and gate.holds is False and _same(gate.value, wanted, digits):
        digits += 1
    return two_digits(gate.value) if digits == 2 else f"{gate.value:.{digits}f}"


def _same(value: float, wanted: str, digits: int) -> bool:
    """Whether a figure looks equal to the number that its gate wants."""
    try:
        return f"{value:.{digits}f}" == f"{float(wanted):.{digits}f}" and value != float(wanted)
    except ValueError:
        return False


def _next(hints: list[str], width: int, summary_path: str | None) -> list[Line]:
    where = [f"everything, and what is not shown here: {summary_path}"] if summary_path is not None else []
    return block("next", [*hints, *where], width, "bold")
