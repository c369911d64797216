"""The extension points: hooks that a ``conftest.py`` or an installed plugin implements to add kinds of its own."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # pydantic stays unimported until an experiment is collected
    from pytest_metricbench.bases import CoverageSystem, Runner


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
