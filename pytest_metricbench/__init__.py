"""pytest-metricbench: benchmark cases as tests, and whether a coverage metric predicts what they catch.

The public names are loaded when they are first used: the plugin is imported in every pytest run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pytest_metricbench.analysis.summary import Summary
    from pytest_metricbench.bases import CoverageSystem, Role, Runner
    from pytest_metricbench.contracts import (
        AttemptRecord,
        AttemptRequest,
        CoverageError,
        CoverageRecord,
        CoverageRequest,
        Goals,
        Outcome,
        Score,
    )
    from pytest_metricbench.definition.experiment import Experiment
    from pytest_metricbench.definition.problems import DefinitionError
    from pytest_metricbench.processes import Argv
    from pytest_metricbench.stages import analyze, load_experiment, measure_coverage, open_store
    from pytest_metricbench.store.journal import StoreError
    from pytest_metricbench.targets import Target

_HOMES: Final = {
    "AttemptRecord": "contracts",
    "AttemptRequest": "contracts",
    "CoverageError": "contracts",
    "CoverageRecord": "contracts",
    "CoverageRequest": "contracts",
    "CoverageSystem": "bases",
    "Goals": "contracts",
    "Outcome": "contracts",
    "Role": "bases",
    "Runner": "bases",
    "Score": "contracts",
    "Experiment": "definition.experiment",
    "DefinitionError": "definition.problems",
    "Argv": "processes",
    "analyze": "stages",
    "load_experiment": "stages",
    "measure_coverage": "stages",
    "open_store": "stages",
    "StoreError": "store.journal",
    "Summary": "analysis.summary",
    "Target": "targets",
}

__all__ = [
    "Argv",
    "AttemptRecord",
    "AttemptRequest",
    "CoverageError",
    "CoverageRecord",
    "CoverageRequest",
    "CoverageSystem",
    "DefinitionError",
    "Experiment",
    "Goals",
    "Outcome",
    "Role",
    "Runner",
    "Score",
    "StoreError",
    "Summary",
    "Target",
    "analyze",
    "load_experiment",
    "measure_coverage",
    "open_store",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
