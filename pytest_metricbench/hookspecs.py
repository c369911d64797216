"""The extension points: hooks that a ``conftest.py`` or an installed plugin implements to add kinds of its own."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # pydantic stays unimported until an experiment is collected
    from pytest_metricbench.bases import CoverageSystem, Runner
    from pytest_metricbench.generating.base import Generator, TextOperator


@pytest.hookspec
def pytest_metricbench_runners() -> "Iterable[type[Runner]]":  # type: ignore[empty-body]
    """Give runner classes, each a :class:`~pytest_metricbench.Runner` that names itself with its ``kind``.

    The experiment's ``runner: {kind: ...}`` picks one by that name; its other keys are the fields of the class and
    are checked like those of the built-in runners. Workers of pytest-xdist call the hook too, so it must give the
    same classes everywhere. Example, in a ``conftest.py`` beside the experiment::

        class Echo(Runner):
            kind: Literal["echo"] = "echo"

            def run(self, request, workspace):
                return Outcome.scored({"reward": request.task.params["reward"]})

        def pytest_metricbench_runners():
            return [Echo]
    """


@pytest.hookspec
def pytest_metricbench_coverage_systems() -> "Iterable[type[CoverageSystem]]":  # type: ignore[empty-body]
    """Give coverage system classes, each a :class:`~pytest_metricbench.CoverageSystem` with a ``kind`` of its own.

    An entry of the experiment's ``coverage`` picks one by that name. Systems run on the controller only. Example::

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
def pytest_metricbench_generators() -> "Iterable[type[Generator]]":  # type: ignore[empty-body]
    """Give classes that make mutants, each a :class:`~pytest_metricbench.generating.base.Generator` with an ``origin``.

    ``mutants: {generate: {from: ...}}`` picks one by that name; its other keys are the fields of the class. What is
    generated stands in the lock, so it must be a function of the keys and the files alone. Workers of pytest-xdist
    call the hook too. Example::

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
def pytest_metricbench_text_operators() -> "Iterable[TextOperator]":  # type: ignore[empty-body]
    """Give ways to damage a text, each a name and a function of the text, for ``generate: {from: text}``.

    Example::

        def shout(text):
            for word in sorted(set(re.findall(r"[a-z]{5,}", text))):
                yield TextChange(text.replace(word, word.upper(), 1), word, f"{word!r} is shouted")

        def pytest_metricbench_text_operators():
            return [TextOperator("shout", shout)]
    """
