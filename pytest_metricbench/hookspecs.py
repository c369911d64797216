"""The extension points: hooks that a ``conftest.py`` or an installed plugin implements to add kinds of its own.

Each is called once for every experiment file, before the keys of the file are checked, in every process that collects
it: workers of pytest-xdist too. It is asked of the plugins that hold for the folder of the file, so a ``conftest.py``
of a folder serves the experiments in it. What it gives must be the same in every process, since all of them must
collect the same items. Built-in names and those of other plugins cannot be taken over. ``config`` is the session's, for
what depends on an option; as with every hook of pytest, an implementation that does not need it leaves it out.

A plugin that raises, or gives something else, ends the session before anything runs, with a message that names the
plugin, the hook and what to do; for a file that was found in a folder, that message is an error of the file.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # pydantic stays unimported until an experiment is collected
    from pytest_metricbench.bases import CoverageSystem, Runner
    from pytest_metricbench.generating.base import Generator, TextOperator


@pytest.hookspec
def pytest_metricbench_runners(config: pytest.Config) -> "Iterable[type[Runner]]":  # type: ignore[empty-body]
    """Give runner classes, each a :class:`~pytest_metricbench.Runner` that names itself with its ``kind``.

    The experiment's ``runner: {kind: ...}`` picks one by that name; its other keys are the fields of the class and
    are checked like those of the built-in runners. The class is instantiated in each process, and its ``run`` is called
    where the attempt's item is run.

    Example, in a ``conftest.py`` beside the experiment::

        class Echo(Runner):
            kind: Literal["echo"] = "echo"

            def run(self, request, workspace):
                return Outcome.scored({"reward": request.task.params["reward"]})

        def pytest_metricbench_runners():
            return [Echo]
    """


@pytest.hookspec
def pytest_metricbench_coverage_systems(config: pytest.Config) -> "Iterable[type[CoverageSystem]]":  # type: ignore[empty-body]
    """Give coverage system classes, each a :class:`~pytest_metricbench.CoverageSystem` with a ``kind`` of its own.

    An entry of the experiment's ``coverage`` picks one by that name; its other keys are the fields of the class. Every
    process checks them; ``measure`` is called when the last attempt is in, on the controller or where an executor
    measures, and never on a worker of pytest-xdist.

    Example::

        class Words(CoverageSystem):
            kind: Literal["words"] = "words"
            vocabulary: list[str]

            def measure(self, request, workspace):
                texts = [path.read_text() for files in request.evidence.values() for path in files]
                said = {word for text in texts for word in text.split()}
                return Score(len(said & set(self.vocabulary)) / len(self.vocabulary))

        def pytest_metricbench_coverage_systems():
            return [Words]
    """


@pytest.hookspec
def pytest_metricbench_generators(config: pytest.Config) -> "Iterable[type[Generator]]":  # type: ignore[empty-body]
    """Give classes that make mutants, each a :class:`~pytest_metricbench.generating.base.Generator` with an ``origin``.

    ``mutants: {generate: {from: ...}}`` picks one by that name; its other keys are the fields of the class. What is
    generated stands in the lock, so it must be a function of the keys and the files alone: where there is no lock
    yet, every process calls ``generate`` for itself; where there is one, none does.

    Example::

        class Personas(Generator):
            origin: ClassVar[str] = "personas"
            names: list[str]

            def generate(self, context):
                for name in self.names:
                    params = {**context.baseline, "persona": name}
                    yield Proposal("persona", name, f"speaks like {name}", params=params)

        def pytest_metricbench_generators():
            return [Personas]
    """


@pytest.hookspec
def pytest_metricbench_text_operators(config: pytest.Config) -> "Iterable[TextOperator]":  # type: ignore[empty-body]
    """Give ways to damage a text, each a name and a function of the text, for ``generate: {from: text}``.

    The key ``operators`` there picks some by their names; without it all are used. A function yields a change for each
    way in which it can damage the text, in an order that depends on the text alone.

    Example::

        def shout(text):
            for word in sorted(set(re.findall(r"[a-z]{5,}", text))):
                yield TextChange(text.replace(word, word.upper(), 1), word, f"{word!r} is shouted")

        def pytest_metricbench_text_operators():
            return [TextOperator("shout", shout)]
    """
