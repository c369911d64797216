"""A folder with an experiment in it, and small runners and coverage systems to load it with."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, Field

from pytest_metricbench.argv import Argv
from pytest_metricbench.bases import CoverageSystem, Role, Runner
from pytest_metricbench.contracts import Outcome, Score, Seconds
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.definition.problems import DefinitionError, Problem
from pytest_metricbench.targets import Target


class Shape(BaseModel):
    model_config: ClassVar[Any] = {"extra": "forbid"}

    width: int = 1
    script: Argv | None = None


class FakeRunner(Runner):
    kind: Literal["fake"] = "fake"
    agent: Argv
    model: str = "small"
    sizes: tuple[int, ...] = ()
    shape: Shape = Shape()
    hook: Target | None = None
    checker: Annotated[Argv | None, Role.VERIFIER] = None
    judge: Annotated[Target | None, Role.VERIFIER] = None
    strictness: Annotated[int, Role.VERIFIER] = 1
    timeout: Annotated[Seconds, Role.NEITHER] = 60
    nested: Annotated[int, Role.NEITHER] | None = None
    with_alias: str = Field("x", alias="with-alias")

    def run(self, request: Any, workspace: Path) -> Outcome:
        return Outcome.scored({"reward": 1.0})


class PlainRunner(Runner):
    kind: Literal["plain"] = "plain"

    def run(self, request: Any, workspace: Path) -> Outcome:
        return Outcome.scored({"reward": 1.0})


class FakeCoverage(CoverageSystem):
    kind: Literal["fake"] = "fake"
    command: Argv | None = None
    settings: dict[str, Any] = Field(default={})
    timeout: Annotated[Seconds, Role.NEITHER] = 60

    def measure(self, request: Any, workspace: Path) -> Score:
        return Score(1.0)


RUNNERS: dict[str, type[Runner]] = {"fake": FakeRunner, "plain": PlainRunner}
SYSTEMS: dict[str, type[CoverageSystem]] = {"fake": FakeCoverage}

BASE = """\
metricbench: 1
name: shop
runner: {kind: plain}
"""


class Folder:
    """Write files, load experiments, read what is wrong with them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text, encoding="utf-8")
        return path

    def load(self, text: str | bytes | None = None, *, name: str = "experiment.yml", **options: Any) -> Experiment:
        path = self.path / name if text is None else self.write(name, text)
        return load_experiment(path, runners=RUNNERS, systems=SYSTEMS, **options)

    def problems(self, text: str | bytes | None = None, **options: Any) -> tuple[Problem, ...]:
        with pytest.raises(DefinitionError) as caught:
            self.load(text, **options)
        return caught.value.problems
