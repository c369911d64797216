"""What the analysis works from: an experiment and everything that is known of its attempts and coverage."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from pytest_metricbench.contracts import AttemptKey, AttemptRecord, CoverageKey, CoverageRecord
from pytest_metricbench.definition.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Results:
    """The results of one experiment, from this run and from its store.

    Every attempt of ``experiment.attempts()`` is either in ``attempts``, or in ``outside`` (not part of this run and
    not in the store: figures that need it are unavailable), or missing (part of this run, and no outcome arrived:
    it counts like an unmeasured one and makes the run incomplete).
    """

    experiment: Experiment
    attempts: Mapping[AttemptKey, AttemptRecord]
    coverage: Mapping[CoverageKey, CoverageRecord]
    coverage_absent: Mapping[CoverageKey, str] = field(default_factory=dict)
    """Why a coverage request was not made, for each that has no record."""
    outside: AbstractSet[AttemptKey] = frozenset()
    reused: AbstractSet[AttemptKey] = frozenset()
    """Those of ``attempts`` that were taken from the store."""
    part: str | None = None
    """What part of the experiment this run was about, in words; None for the whole."""
