"""The page's headline and its numbers: what an experiment says, in sentences."""

from collections.abc import Iterator
from typing import Final

from pytest_metricbench.analysis.figures import CorrelationBySize, Figure
from pytest_metricbench.analysis.summary import CaseSummary, Settings, Summary
from pytest_metricbench.definition.experiment import BASELINE, MutationScore
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.coverage_sentences import SIGNIFICANT, p_text
from pytest_metricbench.reporting.layout import two_digits, with_interval

SCORE_WORDS: Final[dict[MutationScore, str]] = {"kill_share": "kill share", "mean_drop": "mean drop of the pass rate"}
"""What a mutation score is called on the page."""


def headline(summary: Summary) -> list[str]:
    """What the whole experiment says, the most important first: a sentence or two each."""
    lines = list(_whole(summary))
    several = len(summary.cases) > 1
    if not several:
        for case in summary.cases.values():
            lines += case_headline(case, summary.settings)
    lines += list(_gates(summary))
    return lines


def case_headline(case: CaseSummary, settings: Settings) -> list[str]:
    """How good the baseline is, what the evaluation catches and misses, and whether coverage tells."""
    return [*_baseline(case, settings), *_kills(case), *_coverage(case, settings)]


def _whole(summary: Summary) -> Iterator[str]:
    if summary.part is not None:
        yield f"This run was about a part of the experiment: {summary.part}."
    if not summary.complete:
        yield "The results are incomplete: some attempts or coverage requests have no result."
    if len(summary.cases) > 1:
        killed = sum(case.pool.kill_share.killed for case in summary.cases.values())
        mutants = sum(case.pool.kill_share.mutants for case in summary.cases.values())
        survivors = sum(len(case.survivors) for case in summary.cases.values())
        caught = f"Their tasks catch {killed} of {counted(mutants, 'mutant')}" if mutants else "No mutant is known"
        missed = f"; nothing catches the other {survivors}" if survivors and survivors == mutants - killed else ""
        yield f"{counted(len(summary.cases), 'case')}. {caught}{missed}."


def _baseline(case: CaseSummary, settings: Settings) -> Iterator[str]:
    if case.baseline_check.holds is False:
        yield "The baseline never passes, so its mutants say nothing."
        return
    baseline = case.variants[BASELINE]
    for k, figure in list(baseline.pass_at_k.get(settings.primary, {}).items())[:1]:
        if figure.value is None:
            yield f"pass@{k} of the baseline is unavailable: {figure.reason}."
        else:
            value = with_interval(figure.value, figure.interval)
            yield f"The baseline solves {baseline.verdicts.solved} of {counted(len(case.tasks), 'task')} in every " + (
                f"attempt; its pass@{k} is {value}."
            )


def _kills(case: CaseSummary) -> Iterator[str]:
    share = case.pool.kill_share
    if not case.kills:
        return
    if share.value is None:
        yield f"The mutation score is unavailable: {share.reason}."
        return
    value = with_interval(share.value, share.interval)
    yield f"The tasks catch {share.killed} of {counted(share.mutants, 'mutant')}: a mutation score of {value}."
    names = [survivor.mutant for survivor in case.survivors]
    if names:
        yield f"Nothing catches {first_names(names, 4)}: {counted(len(names), 'blind spot')}."
    if case.kill_nothing:
        some = counted(len(case.kill_nothing), "task")
        yield f"{some} {'catches' if len(case.kill_nothing) == 1 else 'catch'} no mutant."


def _coverage(case: CaseSummary, settings: Settings) -> Iterator[str]:
    score = settings.mutation_score
    for system, by_score in case.correlation.items() if case.kills and case.subsets else ():
        yield _of_system(system, by_score[score], SCORE_WORDS[score])


def _of_system(system: str, found: CorrelationBySize, score: str) -> str:
    """One sentence about a coverage system: its coefficient, and whether random goals reach the same."""
    figure = found.overall.kendall
    if figure.value is None:
        return f"Whether coverage by {system} predicts the {score} cannot be told: {figure.reason}."
    together = f"Coverage by {system} and the {score} go together at {with_interval(figure.value, figure.interval)}"
    start = f"{together} (Kendall's tau-b over {counted(found.overall.pairs, 'subset')})"
    if figure.p.value is None or figure.random.value is None:
        return f"{start}; how much of it is due to size and overlap cannot be told."
    beside = f"random goals reach {two_digits(figure.random.value)}, p = {p_text(figure.p.value)}"
    told_apart = "more than by chance" if figure.value > figure.random.value else "less than by chance"
    verdict = told_apart if figure.p.value <= SIGNIFICANT else "not told apart from chance"
    return f"{start}; {beside}: {verdict}."


def _gates(summary: Summary) -> Iterator[str]:
    if not summary.gates:
        return
    broken = [gate.text for gate in summary.gates if gate.holds is False]
    unchecked = sum(1 for gate in summary.gates if gate.holds is None)
    aside = f" ({unchecked} not checked)" if unchecked else ""
    if broken:
        not_hold = "does not hold" if len(broken) == 1 else "do not hold"
        yield f"{len(broken)} of {counted(len(summary.gates), 'gate')} {not_hold}{aside}: {'; '.join(broken)}."
    elif unchecked == len(summary.gates):
        yield f"No gate was checked: {summary.gates[0].reason}."
    else:
        yield f"Every gate that was checked holds{aside}." if unchecked else "Every gate holds."


def shown(figure: Figure) -> str:
    """A figure's value to two digits, its interval beside it where it has one; ``n/a`` where there is none."""
    interval = getattr(figure, "interval", None)
    return with_interval(figure.value, interval)
