"""From results to the summary: the whole analysis, in the order in which its parts need each other."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pytest_metricbench.analysis.choices import greedy_order
from pytest_metricbench.analysis.completeness import baseline_check, coverage_failures, is_complete, problems
from pytest_metricbench.analysis.deaths import deaths
from pytest_metricbench.analysis.gates import check_gates
from pytest_metricbench.analysis.kill_figures import (
    attempts_against,
    cell_states,
    detection,
    died_kills,
    false_kills,
    kill_nothing,
    mutant_groups,
    reach_warning,
    survivors,
    task_summaries,
)
from pytest_metricbench.analysis.kill_matrix import kill_matrix
from pytest_metricbench.analysis.outcomes import case_outcomes, primary_score
from pytest_metricbench.analysis.over_cases import adjusted, over_cases
from pytest_metricbench.analysis.relations import relation_fields
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.subset_figures import case_scores, size_summaries
from pytest_metricbench.analysis.summary import CaseSummary, RecordedNote, Settings, Summary
from pytest_metricbench.analysis.variant_figures import add_counts, variant_summaries
from pytest_metricbench.contracts import FORMAT_VERSION
from pytest_metricbench.definition.experiment import Case, Experiment
from pytest_metricbench.messages import unheard


@dataclass(frozen=True, slots=True)
class _Analysed:
    """A case's summary, and what of it concerns the whole run."""

    summary: CaseSummary
    complete: bool
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def summarize(results: Results, progress: Callable[[str], None] = unheard) -> Summary:
    """Everything that can be said of an experiment's results.

    A pure function: the same results give the same summary, whatever the order of tasks, subsets and records.

    Args:
        results: all that is known.
        progress: told, before each case, which one is analysed; a case with many subsets takes seconds.
    """
    experiment = results.experiment
    primary = primary_score(results)
    ks = computed_ks(experiment)
    settings = _settings(experiment, primary)
    cases = {}
    for number, case in enumerate(experiment.cases, start=1):
        progress(f"analysing case {number} of {len(experiment.cases)}: {case.id}")
        cases[case.id] = _analyse(results, case, primary, ks)
    summaries = adjusted({case_id: analysed.summary for case_id, analysed in cases.items()})
    return Summary(
        metricbench=FORMAT_VERSION,
        experiment=experiment.name,
        part=results.part,
        complete=all(analysed.complete for analysed in cases.values()),
        counts=add_counts([summary.counts for summary in summaries.values()]),
        settings=settings,
        problems=tuple(text for analysed in cases.values() for text in analysed.problems),
        warnings=(*experiment.warnings, *(text for analysed in cases.values() for text in analysed.warnings)),
        gates=check_gates(experiment.gates, summaries, settings),
        cases=summaries,
        over_cases=over_cases(summaries, experiment.analysis),
    )


def computed_ks(experiment: Experiment) -> tuple[int, ...]:
    """The k of pass@k and pass^k: those asked for in ``analysis`` and those that gates name."""
    asked = {gate.k for gate in experiment.gates if gate.k is not None}
    return tuple(sorted(asked | set(experiment.analysis.pass_at_k)))


def _analyse(results: Results, case: Case, primary: str, ks: tuple[int, ...]) -> _Analysed:
    settings = results.experiment.analysis
    outcomes = case_outcomes(results, case, primary)
    matrix = kill_matrix(outcomes, settings.kill)
    valid = dict(zip((mutant.id for mutant in case.mutants), matrix.valid.tolist(), strict=True))
    variants = variant_summaries(outcomes, valid, settings, ks)
    scores = case_scores(results, case, matrix)
    failures = coverage_failures(results, scores, case.id)
    check = baseline_check(outcomes)
    found = detection(matrix)
    groups = mutant_groups(matrix)
    summary = CaseSummary(
        description=case.description,
        counts=add_counts([variant.counts for variant in variants.values()]),
        baseline_check=check,
        detection=found,
        mutants=groups,
        survivors=survivors(matrix, groups),
        deaths=deaths(results, outcomes, replace(results.experiment.score, primary=primary)),
        notes=tuple(RecordedNote(text=note.text, count=note.count) for note in case.notes),
        died_kills=died_kills(matrix),
        false_kills=false_kills(matrix),
        kill_nothing=kill_nothing(matrix),
        greedy=greedy_order(matrix),
        pool=scores.pool,
        sizes=size_summaries(scores.subsets),
        coverage_failures=failures,
        tasks=task_summaries(outcomes, matrix),
        kills=cell_states(matrix),
        subsets=dict(scores.subsets),
        variants=variants,
        **relation_fields(results, case, matrix, scores),
    )
    warning = reach_warning(case.id, found, attempts_against(matrix))
    return _Analysed(
        summary,
        is_complete(outcomes, scores),
        tuple(problems(outcomes, check, failures)),
        (warning,) if warning is not None else (),
    )


def _settings(experiment: Experiment, primary: str) -> Settings:
    analysis = experiment.analysis
    return Settings(
        primary=primary,
        pass_at_least=experiment.score.pass_at_least,
        pass_at_k=analysis.pass_at_k,
        mutation_score=analysis.mutation_score,
        permutation=analysis.permutation,
        bootstrap=analysis.bootstrap,
        seed=analysis.seed,
    )
