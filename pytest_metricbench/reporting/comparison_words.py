"""What a comparison with an earlier run says, in words that the terminal and Markdown share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_metricbench.analysis.comparing_gates import SIGNIFICANT
from pytest_metricbench.analysis.comparing_models import (
    CaseComparison,
    ChangedFigure,
    MutantChange,
    PairedDifference,
    RunComparison,
    ScoreDifference,
    TaskThenOrNow,
    VerdictChange,
)
from pytest_metricbench.analysis.summary import Settings
from pytest_metricbench.definition.experiment import BASELINE
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.coverage_sentences import p_text
from pytest_metricbench.reporting.layout import two_digits

MOST_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class NamedChange:
    """A change with the words for what it is about."""

    what: str
    """``baseline pass@1``."""
    over: str
    """What it rests on: ``13 tasks``."""
    figure: ChangedFigure


def headline_changes(found: CaseComparison, settings: Settings) -> Iterator[NamedChange]:
    """The changes that a reader looks at first: the baseline, the mutation score, coverage, and its correlation."""
    for k, mean in found.pass_at_k.get(BASELINE, {}).items():
        yield NamedChange(f"baseline pass@{k}", _over_tasks(mean), mean)
    score = found.kill_share if settings.mutation_score == "kill_share" else found.mean_drop
    if score.mutants or score.outside:
        name = "mutation score" if settings.mutation_score == "kill_share" else "mean drop"
        yield NamedChange(name, _over_mutants(score), score)
    for system, figure in found.coverage.items():
        yield NamedChange(f"coverage {system}", "the pool", figure)
    for system, by_score in found.correlation.items():
        change = by_score[settings.mutation_score]
        if change.kendall.value is not None:
            yield NamedChange(f"tau-b {system}", counted(change.subsets, "subset"), change.kendall)


def _over_tasks(mean: PairedDifference) -> str:
    parts = [counted(mean.tasks, "task")]
    parts += [f"{mean.better} better"] if mean.better else []
    parts += [f"{mean.worse} worse"] if mean.worse else []
    return ", ".join(parts)


def _over_mutants(score: ScoreDifference) -> str:
    parts = [counted(score.mutants, "mutant")]
    parts += [f"{score.gained} gained"] if score.gained else []
    parts += [f"{score.lost} lost"] if score.lost else []
    return ", ".join(parts)


def counts_survivors(gate: str) -> bool:
    """Whether the figure of a gate is a number of mutants and no fraction."""
    return gate.split()[-1:] == ["survivors"]


def is_against_earlier(gate: str) -> bool:
    """Whether a gate compares with an earlier run: its figure alone does not say why it holds or does not."""
    return counts_survivors(gate) or "drop" in gate.split()


def signed(value: float) -> str:
    """A change to two digits with its sign, to more where it would look like none."""
    text = f"{value:+.2f}"
    if float(text) == 0:
        return "0.00" if value == 0 else f"{value:+.1g}"
    return text


def change_text(figure: ChangedFigure) -> str:
    """A change with its interval, and whether that leaves no change out: ``-0.10 [-0.20, -0.01]``."""
    if figure.value is None:
        return f"n/a: {figure.reason}"
    if figure.interval is None:
        return signed(figure.value)
    return f"{signed(figure.value)} [{two_digits(figure.interval[0])}, {two_digits(figure.interval[1])}]"


def is_settled(figure: ChangedFigure) -> bool:
    """Whether the interval of a change leaves 0 out."""
    return figure.interval is not None and (figure.interval[0] > 0 or figure.interval[1] < 0)


def killers_text(change: MutantChange, verb: str) -> str:
    """By which tasks a mutant that only one run kills is killed, and whether noise explains it."""
    by = first_names([f"{task} (gone)" if task in change.gone else task for task in change.tasks], 4)
    return f"{verb} by {by}; {noise_text(change)}"


def noise_text(change: MutantChange) -> str:
    """Whether noise of the attempts explains that a mutant is killed in one run only."""
    if change.p.value is None or change.holm is None:
        return f"no chance in it: {change.p.reason}"
    told = "" if change.holm <= SIGNIFICANT else ": noise can explain it"
    adjusted = f", adjusted {p_text(change.holm)}" if change.holm != change.p.value else ""
    return f"p = {p_text(change.p.value)}{adjusted}{told}"


def seen_text(seen: TaskThenOrNow) -> str:
    """A task in one run: ``flaky 2/5``, with the attempts that died."""
    died = f", {seen.died} died" if seen.died else ""
    return f"{seen.verdict} {seen.passed}/{seen.n}{died}"


def is_better(change: VerdictChange) -> bool:
    """Whether a task passes more often than it did."""
    return change.now.passed * change.then.n > change.then.passed * change.now.n


def group_words(group: str) -> str:
    """A group of mutants in words."""
    return group.replace("_", " ")


def parts_texts(case: CaseComparison, side: str) -> list[str]:
    """What only one run has of a case: ``tasks a, b``; side is ``added`` or ``removed``."""
    parts = case.added if side == "added" else case.removed
    kinds: Sequence[tuple[str, tuple[str, ...]]] = (
        *(("task", parts.tasks), ("mutant", parts.mutants)),
        ("subset", parts.subsets),
    )
    return [kind_text(kind, names) for kind, names in kinds if names]


def experiment_parts_texts(comparison: RunComparison, side: str) -> list[str]:
    """What only one run has of the experiment."""
    parts = comparison.added if side == "added" else comparison.removed
    kinds = (("case", parts.cases), ("coverage system", parts.systems))
    return [kind_text(kind, names) for kind, names in kinds if names]


def kind_text(kind: str, names: Sequence[str]) -> str:
    """Names behind what they are: ``task a``, ``3 tasks a, b, c``, and of many the first."""
    return f"{kind} {names[0]}" if len(names) == 1 else f"{counted(len(names), kind)} {first_names(names, MOST_NAMES)}"


def source_text(comparison: RunComparison) -> str:
    """What this run is compared with, and what limits that."""
    then = sum(case.attempts.then for case in comparison.cases.values())
    same = sum(case.attempts.same for case in comparison.cases.values())
    limits = [f"{same:,} of {counted(then, 'attempt')} {'is' if same == 1 else 'are'} the same"] if same else []
    limits += [f"a part of the experiment: {comparison.part}"] if comparison.part is not None else []
    limits += ["not complete"] if not comparison.complete and comparison.part is None else []
    return comparison.source + (f" ({'; '.join(limits)})" if limits else "")


def says_nothing(found: CaseComparison) -> bool:
    """Whether nothing is different in a case, as far as both runs have it."""
    listed = (found.new_survivors, found.newly_killed, found.other_groups, found.verdicts)
    figures: list[ChangedFigure] = [found.kill_share, found.mean_drop, *found.coverage.values()]
    figures += [mean for by_k in found.pass_at_k.values() for mean in by_k.values()]
    return not any(listed) and all(figure.value in (0, None) and not figure.outside for figure in figures)
