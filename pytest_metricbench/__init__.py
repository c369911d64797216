"""pytest-metricbench: benchmark cases as tests, and whether a coverage metric predicts what they catch.

The public names are loaded when they are first used: the plugin is imported in every pytest run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pytest_metricbench.analysis.summary import Summary
    from pytest_metricbench.argv import Argv
    from pytest_metricbench.bases import CoverageSystem, Role, Runner
    from pytest_metricbench.contracts import (
        AttemptError,
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
    from pytest_metricbench.generating.agent_side import text_of, with_faults
    from pytest_metricbench.generating.base import Dropped, Generator, Proposal, TextChange, TextOperator
    from pytest_metricbench.sources import CaseSource, Source, SourceError
    from pytest_metricbench.stages import analyze, load_experiment, measure_coverage, open_store
    from pytest_metricbench.store.journal import StoreError
    from pytest_metricbench.store.reading import Store
    from pytest_metricbench.targets import Target

_HOMES: Final = {
    "Argv": "argv",
    "AttemptError": "contracts",
    "AttemptRecord": "contracts",
    "AttemptRequest": "contracts",
    "CaseSource": "sources",
    "CoverageError": "contracts",
    "CoverageRecord": "contracts",
    "CoverageRequest": "contracts",
    "CoverageSystem": "bases",
    "DefinitionError": "definition.problems",
    "Dropped": "generating.base",
    "Experiment": "definition.experiment",
    "Generator": "generating.base",
    "Goals": "contracts",
    "Outcome": "contracts",
    "Proposal": "generating.base",
    "Role": "bases",
    "Runner": "bases",
    "Score": "contracts",
    "Source": "sources",
    "SourceError": "sources",
    "Store": "store.reading",
    "StoreError": "store.journal",
    "Summary": "analysis.summary",
    "Target": "targets",
    "TextChange": "generating.base",
    "TextOperator": "generating.base",
    "analyze": "stages",
    "load_experiment": "stages",
    "measure_coverage": "stages",
    "open_store": "stages",
    "text_of": "generating.agent_side",
    "with_faults": "generating.agent_side",
}

__all__ = [
    "Argv",
    "AttemptError",
    "AttemptRecord",
    "AttemptRequest",
    "CaseSource",
    "CoverageError",
    "CoverageRecord",
    "CoverageRequest",
    "CoverageSystem",
    "DefinitionError",
    "Dropped",
    "Experiment",
    "Generator",
    "Goals",
    "Outcome",
    "Proposal",
    "Role",
    "Runner",
    "Score",
    "Source",
    "SourceError",
    "Store",
    "StoreError",
    "Summary",
    "Target",
    "TextChange",
    "TextOperator",
    "analyze",
    "load_experiment",
    "measure_coverage",
    "open_store",
    "text_of",
    "with_faults",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
