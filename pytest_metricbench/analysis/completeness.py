"""What keeps a run from being complete and green, in words."""

from collections.abc import Iterator, Mapping

from pytest_metricbench.analysis.figures import CoverageFigure
from pytest_metricbench.analysis.outcomes import CaseOutcomes
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.subset_figures import NO_RESULT, CaseScores
from pytest_metricbench.analysis.summary import BaselineCheck, CoverageFailure
from pytest_metricbench.analysis.unavailable import briefly, outside_reason
from pytest_metricbench.definition.experiment import POOL
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.messages import counted


def baseline_check(outcomes: CaseOutcomes) -> BaselineCheck:
    """Whether some attempt of the baseline passes; not checked where none does and some are outside this part."""
    cells = outcomes.baseline.values()
    if any(cell.passed for cell in cells):
        return BaselineCheck(holds=True, reason=None)
    absent, declared = sum(cell.outside for cell in cells), sum(cell.declared for cell in cells)
    if absent:
        return BaselineCheck(holds=None, reason=outside_reason(absent, declared))
    counts = {word: sum(getattr(cell, word) for cell in cells) for word in ("unmeasured", "missing")}
    aside = "".join(f", {count} of them {word}" for word, count in counts.items() if count)
    return BaselineCheck(
        holds=False,
        reason=f"none of {counted(declared, 'attempt')} of the baseline passes{aside}: "
        "nothing can be learned from its mutants",
    )


def coverage_failures(results: Results, scores: CaseScores, case: str) -> tuple[CoverageFailure, ...]:
    """Requests that failed, and requests without a result that this run should have made."""
    found = []
    for subset, system, figure in _requests(scores):
        record = results.coverage.get((case, system, subset))
        if record is not None and record.outcome == "failed":
            error = record.error or "no error was given"
            found.append(CoverageFailure(system=system, subset=subset, error=error))
        elif figure.state == "absent" and not figure.outside:
            found.append(CoverageFailure(system=system, subset=subset, error=figure.reason or NO_RESULT))
    return tuple(found)


def is_complete(outcomes: CaseOutcomes, scores: CaseScores) -> bool:
    """Every attempt that had to be run has an entry for the primary score, every coverage request a result."""
    cells = (cell for by_task in outcomes.cells.values() for cell in by_task.values())
    return all(cell.n + cell.not_reached + cell.not_needed == cell.declared for cell in cells) and all(
        figure.state == "measured" for _, _, figure in _requests(scores)
    )


def problems(outcomes: CaseOutcomes, check: BaselineCheck, failures: tuple[CoverageFailure, ...]) -> Iterator[str]:
    """What keeps this case from being green, gates aside; nothing that lies outside this part of the experiment."""
    case = outcomes.case.id
    total = sum(cell.declared for by_task in outcomes.cells.values() for cell in by_task.values())
    for name, why in (("unmeasured", "unmeasured"), ("missing", "missing: nothing is known of what became of them")):
        places = _places(outcomes, name)
        number = sum(places.values())
        if number:
            verb = "is" if number == 1 else "are"
            where = first_names([f"{place} {times}" for place, times in places.items()], 3)
            yield f"{case}: {number} of {counted(total, 'attempt')} {verb} {why} ({where})"
    if check.holds is False:
        yield f"{case}: {check.reason}"
    by_system: dict[str, list[CoverageFailure]] = {}
    for failure in failures:
        by_system.setdefault(failure.system, []).append(failure)
    for system, failed in by_system.items():
        subsets = first_names([failure.subset for failure in failed], 3)
        first = briefly(failed[0].error)
        requests = counted(len(failed), "coverage request")
        yield f"{case}: {requests} of {system} without a result ({subsets}): {first}"


def _places(outcomes: CaseOutcomes, name: str) -> Mapping[str, int]:
    return {
        f"{variant}::{task}": getattr(cell, name)
        for variant, by_task in outcomes.cells.items()
        for task, cell in by_task.items()
        if getattr(cell, name)
    }


def _requests(scores: CaseScores) -> Iterator[tuple[str, str, CoverageFigure]]:
    """Every coverage request of a case: subset, system, its figure."""
    for subset, scored in (*scores.subsets.items(), (POOL, scores.pool)):
        for system, figure in scored.coverage.items():
            yield subset, system, figure
