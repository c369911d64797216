"""An experiment to be written, such as the example of a kind: its files, and what is said of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pytest_metricbench.starting.filling import filled, subsets_of, templates
from pytest_metricbench.starting.finding import Finding, Kind

EXPERIMENT: Final = "experiment.yml"
SCHEMA: Final = "experiment.schema.json"
LABELS: Final[Mapping[str, str]] = {
    EXPERIMENT: "the experiment: begin reading here",
    SCHEMA: "lets editors complete and check it",
    ".gitignore": "keeps what runs leave out of git",
    "agent.py": "the agent",
    "verify.py": "gives its answers scores",
    "policy.md": "what it goes by; mutants are made of it",
    "tools.json": "its tools; mutants are made of them",
    "results.csv": "the results",
    "topics.py": "a coverage system of one's own",
    "notes_agent.py": "the Harbor agent",
    "local_environment.py": "a Harbor environment without Docker",
    "metricbench_attempt.py": "how your agent is run for one attempt",
    "metricbench_verify.py": "how its answer is scored",
}
"""What the files are, in a few words, for those who have just got them."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is written, before anything is."""

    kind: Kind
    name: str
    """The experiment's."""
    files: Mapping[str, str]
    """Name, relative to the folder -> text."""
    finding: Finding | None = None
    """What the experiment is about; None for an example."""
    extra: str = ""
    """The extra of the package that it needs, such as ``suite``."""


EXTRAS: Final[Mapping[Kind, str]] = {"suite": "suite", "harbor": "harbor", "python": "", "command": "", "table": ""}

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
