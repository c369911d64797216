"""A small package, and the mutants that are made of it."""

import textwrap
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.definition.lock import write_lock
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.generating.base import Context, Dropped, Proposal
from pytest_metricbench.generating.builtin import known_makers
from pytest_metricbench.generating.code import CosmicRayGenerator
from pytest_metricbench.runners.command import CommandRunner
from pytest_metricbench.runners.suite import SuiteRunner
from pytest_metricbench.suite.mutations import MutantParams, mutation_of

PRICES: Final = """\
RATE = 10


def total(prices):
    result = 0
    for price in prices:
        result = result + price
    return result


def discount(price, percent):
    if percent > 100:
        raise ValueError("too much")
    return price - price * percent / 100
"""
EXPERIMENT: Final = """\
metricbench: 1
name: shop
runner: {kind: suite, source: [shop], tests: tests, env: {PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}}
cases:
  - id: shop
    tasks: [{id: a, params: {nodeid: "tests/test_prices.py::test_total"}}]
    mutants:
      generate: {from: cosmic-ray%s}
"""
TESTS: Final = """\
from shop.prices import discount, total


def test_total():
    assert total([1, 2, 3]) == 6


def test_discount():
    assert discount(100, 50) == 50
"""


class CodeLab:
    """Writes a package and gives what is made of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("shop/__init__.py", "")
        self.write("shop/prices.py", PRICES)
        self.write("tests/test_prices.py", TESTS)

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
        return path

    # ------------------------------------------------ the generator alone

    @property
    def runner(self) -> SuiteRunner:
        return SuiteRunner.model_validate({"source": ["shop"], "tests": "tests"}, context={"folder": self.path})

    def context(self) -> Context:
        return Context(self.path, "shop", self.runner, {})

    def made(self, **keys: Any) -> list[Proposal | Dropped]:
        context = self.context()
        generator = CosmicRayGenerator.model_validate(keys).bound(context)
        return list(generator.generate(context))

    def proposals(self, **keys: Any) -> list[Proposal]:
        return [made for made in self.made(**keys) if isinstance(made, Proposal)]

    def dropped(self, **keys: Any) -> dict[str, int]:
        found: dict[str, int] = {}
        for made in self.made(**keys):
            if isinstance(made, Dropped):
                found[made.reason] = found.get(made.reason, 0) + made.count
        return found

    def source_of(self, proposal: Proposal, name: str = "shop/prices.py") -> bytes:
        """What the runner makes of a proposal."""
        assert proposal.listed is not None
        params = MutantParams.model_validate(dict(proposal.listed))
        return mutation_of(params, self.runner.source, self.path).changes[name].new

    # ------------------------------------------------ whole experiments

    def load(self, keys: str = "", more: str = "", *, lock: bool = False, renew: bool = False) -> Experiment:
        path = self.path / "experiment.yml"
        path.write_text(EXPERIMENT % keys + more)
        loaded = load_experiment(
            path,
            runners={"suite": SuiteRunner, "command": CommandRunner},
            systems={},
            makers=known_makers(),
            renew_lock=renew,
        )
        if lock:
            assert loaded.lock is not None
            write_lock(loaded.lock)
        return loaded

    def problem(self, keys: str = "", more: str = "") -> str:
        try:
            self.load(keys, more)
        except DefinitionError as error:
            return str(error)
        raise AssertionError("it loads")


def ids(experiment: Experiment) -> list[str]:
    return [variant.id for variant in experiment.cases[0].variants if variant.kind == "mutant"]
