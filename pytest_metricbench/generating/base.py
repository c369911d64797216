"""The classes that users extend to have mutants made: a generator, and an operator over texts.

A generator proposes; what becomes of its proposals (ids, duplicates, the sample, the lock) is the same for all of them
and stands in :mod:`~pytest_metricbench.generating.generation`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, Field

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import Json

EQUAL: Final = "generated mutants equal to the baseline: dropped"
"""The reason of :class:`Dropped` that every generator gives for a mutant that changes nothing."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """One way in which an operator would change a text."""

    text: str
    """The whole changed text."""
    target: str
    """A few words on what is changed, for the mutant's id: ``must identify the customer``."""
    description: str
    """What became of it, for readers, in one line: ``'must' became 'may'``."""


@dataclass(frozen=True, slots=True)
class TextOperator:
    """A way to damage a text, with a name: what the hook ``pytest_metricbench_text_operators`` gives.

    ``find`` takes the whole text, its lines ended by a newline, and gives the changes in the order of their places. It
    must be a function of the text alone: no clock, no unseeded chance.
    """

    name: str
    """Names it in ``operators`` and in the ids and tags of its mutants: letters, digits and ``-``."""
    find: Callable[[str], Iterable[TextChange]]
    """Gives the changes of a text, as described above."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a generator is asked for: the mutants of one case of one experiment."""

    folder: Path
    """The experiment's; names of files are relative to it."""
    case: str
    runner: Runner
    """The experiment's, checked; its fields and ``kind`` say what is measured."""
    baseline: Mapping[str, Json]
    """The baseline's ``params`` as written."""
    operators: Mapping[str, TextOperator] = field(default_factory=dict)
    """Every operator over texts that is known, by its name."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One mutant that could be.

    What it changes is said in one of two ways. ``files`` and ``params`` are what the mutant has in place of the
    baseline's: the lock then shows a unified diff, and the mutant's params are made from it whenever the experiment is
    read. ``listed`` are the params as a user would list them; the lock shows them as they are, texts of several lines
    as such, and it is the runner that understands them.
    """

    operator: str
    """What kind of damage it is: first part of the id, tag, and stratum of a sample. Letters, digits, ``-``."""
    target: str
    """A few words on what is changed; with the operator they make the id, so they must not hold a line number."""
    description: str
    """What is wrong with the mutant, for readers, in one line, with file and line where there are such."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files below the experiment's folder (forward slashes) -> their whole changed text."""
    params: Mapping[str, Json] | None = None
    """The whole params of the mutant; None: the baseline's."""
    listed: Mapping[str, Json] | None = None
    """The params as a user would list them, in place of ``files`` and ``params``."""
    tags: tuple[str, ...] = ()
    """Further tags; ``generated`` and the operator's name are there already."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Mutants that a generator does not propose although they could be made; their number is shown with the results."""

    reason: str = EQUAL
    """What they were: ``generated mutants equal to the baseline: dropped``."""
    count: int = 1
    """How many of them, at least 1."""


@dataclass(frozen=True, slots=True)
class Makers:
    """The generators that ``from`` may name, and the operators over texts that they may use, each by its name."""

    generators: Mapping[str, type["Generator"]] = field(default_factory=dict)
    operators: Mapping[str, TextOperator] = field(default_factory=dict)


class Generator(BaseModel, ABC):
    """What makes mutants. Its fields are the keys of ``mutants: {generate: {from: ...}}``, beside ``from``.

    A subclass names itself (``origin = "prompts"`` for ``from: prompts``) and implements :meth:`generate`. The hook
    ``pytest_metricbench_generators`` gives such classes. Every method may raise
    :class:`~pytest_metricbench.sources.SourceError`, which becomes a problem at the generator's place in the file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    origin: ClassVar[str]
    """What stands after ``from``."""

    seed: Annotated[int, Field(ge=0, lt=2**64)] = Field(0, description="Another seed, another sample.")
    sample: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, description="At most this many mutants, as evenly over the operators as there are enough; default: all."
    )

    def bound(self, context: Context) -> Self:
        """The generator with what it needs of the experiment; asked for once, before anything else.

        Raises:
            SourceError: its keys do not fit the experiment.
        """
        return self

    @abstractmethod
    def generate(self, context: Context) -> Iterable[Proposal | Dropped]:
        """Every mutant that could be, in a fixed order: a function of the keys, the files and :meth:`lock_state` alone.

        ``seed`` and ``sample`` are heeded afterwards, for every generator alike. Proposals that change nothing, or the
        same as another one, need not be left out.

        Raises:
            SourceError: there is nothing to make mutants of, or it cannot be read.
        """

    def input_files(self, context: Context) -> Mapping[str, Path]:
        """The files of the system that it changes: name -> where. They become ``inputs`` of the case.

        Raises:
            SourceError: one is missing.
        """
        return {}

    def lock_files(self, context: Context) -> Mapping[str, Path]:
        """The files whose content decides what is generated, inputs included; a change makes the lock disagree.

        Raises:
            SourceError: one is missing.
        """
        return self.input_files(context)

    def lock_state(self, context: Context) -> Mapping[str, Json]:
        """What else decides it, beside keys and files: name -> JSON value, large ones as digests.

        Raises:
            SourceError: it cannot be read.
        """
        return {}
