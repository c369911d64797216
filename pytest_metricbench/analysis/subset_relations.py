"""Everything that the subsets of a case say together: correlations, comparisons, reliability, choices."""

from typing import Any

from pytest_metricbench.analysis.choices import choices
from pytest_metricbench.analysis.correlation_figures import correlations, pair_tables
from pytest_metricbench.analysis.figures import Figure
from pytest_metricbench.analysis.inference import Inference
from pytest_metricbench.analysis.kill_matrix import KillMatrix
from pytest_metricbench.analysis.pair_tables import member_matrix
from pytest_metricbench.analysis.reliability import reliabilities
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.subset_figures import CaseScores
from pytest_metricbench.definition.experiment import Case, MutationScore


def subset_relations(results: Results, case: Case, matrix: KillMatrix, scores: CaseScores) -> dict[str, Any]:
    """The fields ``correlation``, ``comparisons``, ``reliability`` and ``choice`` of a case's summary."""
    seed = results.experiment.analysis.seed
    systems = [entry.id for entry in results.experiment.coverage]
    members = member_matrix(scores.subsets, matrix.tasks)
    tables = pair_tables(scores.subsets, systems)
    inference = Inference(results, case, matrix, members, tables)
    pool: dict[MutationScore, Figure] = {"kill_share": scores.pool.kill_share, "mean_drop": scores.pool.mean_drop}
    unavailable = {name: figure for name, figure in pool.items() if figure.value is None}
    return {
        "correlation": correlations(tables, inference),
        "comparisons": inference.comparisons() if scores.subsets else (),
        "reliability": reliabilities(matrix, members, seed, case.id, unavailable),
        "choice": choices(scores.subsets, systems),
    }
