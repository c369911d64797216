"""What the baseline's noise and the redundancy of the mutants say of a case, and what its subsets say together."""

from typing import Any

from pytest_metricbench.analysis.kill_matrix import KillMatrix
from pytest_metricbench.analysis.pair_tables import member_matrix
from pytest_metricbench.analysis.redundancy import minimal_mutants, redundancy
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.self_comparison import self_comparison
from pytest_metricbench.analysis.subset_figures import CaseScores
from pytest_metricbench.definition.experiment import Case


def relation_fields(results: Results, case: Case, matrix: KillMatrix, scores: CaseScores) -> dict[str, Any]:
    """The fields of a case's summary that its subsets and coverage systems make together, and the noise controls."""
    seed = results.experiment.analysis.seed
    members = member_matrix(scores.subsets, matrix.tasks)
    return {
        "against_itself": self_comparison(matrix, members, seed, case.id),
        "redundancy": redundancy(matrix, minimal_mutants(matrix), seed, case.id),
        **_of_subsets(results, case, matrix, scores),
    }


def _of_subsets(results: Results, case: Case, matrix: KillMatrix, scores: CaseScores) -> dict[str, Any]:
    """Correlations, comparisons, reliability and choices."""
    if not scores.subsets and not results.experiment.coverage:
        return {"correlation": {}, "comparisons": (), "reliability": {}, "choice": {}}
    # Only here: an experiment without subsets need not wait for what it has no use for.
    from pytest_metricbench.analysis.subset_relations import subset_relations

    return subset_relations(results, case, matrix, scores)
