"""A folder with an experiment whose mutants are made, and runners to load it with."""

from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, ConfigDict

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import Outcome
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.definition.lock import write_lock
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.generating.base import Context
from pytest_metricbench.generating.builtin import known_makers

POLICY = """\
# Refunds

You must identify the customer first. Goods are taken back within 30 days.

- Never refund more than 500 EUR by yourself.
- Leave a note, e.g. on the order.
"""


class BareRunner(Runner):
    """Takes whatever params there are."""

    kind: Literal["bare"] = "bare"

    def run(self, request: Any, workspace: Path) -> Outcome:
        return Outcome.scored({"reward": 1})


class StrictParams(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kwargs: dict[str, Any] = {}
    model: str | None = None


class MergingRunner(Runner):
    """A mutant's params are merged with the baseline's, key by key below ``kwargs``; null removes. No other keys."""

    kind: Literal["merging"] = "merging"
    variant_params: ClassVar[type[BaseModel] | None] = StrictParams

    def inherit(self, baseline: Any, mutant: Any) -> Any:
        whole = {**baseline, **{key: value for key, value in mutant.items() if key != "kwargs"}}
        merged = {**baseline.get("kwargs", {}), **mutant.get("kwargs", {})}
        whole["kwargs"] = {key: value for key, value in merged.items() if value is not None}
        return {key: value for key, value in whole.items() if value is not None}

    def run(self, request: Any, workspace: Path) -> Outcome:
        return Outcome.scored({"reward": 1})


RUNNERS: dict[str, type[Runner]] = {"bare": BareRunner, "merging": MergingRunner}

HEAD = """\
metricbench: 1
name: shop
runner: {{kind: {runner}}}
cases:
  - id: desk
    tasks: [{{id: a}}]
    baseline: {{params: {baseline}}}
    mutants:
"""


class Bench:
    """Writes files beside an experiment and loads it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "policy.md").write_text(POLICY)

    def write(self, mutants: str, *, baseline: str = "{}", runner: str = "bare", name: str = "experiment.yml") -> Path:
        path = self.path / name
        body = "".join(f"      {line}\n" for line in mutants.strip("\n").splitlines())
        path.write_text(HEAD.format(runner=runner, baseline=baseline) + body)
        return path

    def load(self, mutants: str | None = None, **options: Any) -> Experiment:
        given = {key: options.pop(key) for key in ("baseline", "runner") if key in options}
        path = self.path / "experiment.yml" if mutants is None else self.write(mutants, **given)
        options.setdefault("makers", known_makers())
        return load_experiment(path, runners=RUNNERS, systems={}, **options)

    def locked(self, mutants: str | None = None, **options: Any) -> Experiment:
        experiment = self.load(mutants, **options)
        assert experiment.lock is not None
        write_lock(experiment.lock)
        return experiment

    def problems(self, mutants: str | None = None, **options: Any) -> list[str]:
        with pytest.raises(DefinitionError) as caught:
            self.load(mutants, **options)
        return str(caught.value).splitlines()

    def context(self, baseline: dict[str, Any] | None = None, runner: Runner | None = None) -> Context:
        return Context(self.path, "desk", runner or BareRunner(), baseline or {}, known_makers().operators)
