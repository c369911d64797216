"""An experiment to copy, of each kind: small, whole, and running as it is written."""

from collections.abc import Mapping
from typing import Final

from pytest_metricbench.starting.filling import filled, subsets_of, templates
from pytest_metricbench.starting.finding import Kind
from pytest_metricbench.starting.proposing import EXTRAS, Proposal

_SUITE: Final[Mapping[str, str]] = {
    "source": "parcels",
    "tests": "tests",
    "case": "parcels",
    "sample": "8",
    "subsets": subsets_of(8),
}


def example(kind: Kind, name: str) -> Proposal:
    """The example of a kind, as an experiment of this name."""
    values = {"name": name, **(_SUITE if kind == "suite" else {})}
    files = {file: filled(text, values) for file, text in templates(kind).items()}
    return Proposal(kind, name, files, extra=EXTRAS[kind])
