"""The experiments of a pytest session: each file loaded once in a process, with what the options say about it."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import pytest

from pytest_metricbench.bases import CoverageSystem, Runner
from pytest_metricbench.contracts import AttemptKey, AttemptRecord
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.generating.base import Makers
from pytest_metricbench.kinds import Kinds
from pytest_metricbench.messages import did_you_mean, joined
from pytest_metricbench.pytest_side.executor_choice import chosen_executor
from pytest_metricbench.pytest_side.extensions import (
    ExtensionError,
    check_answers,
    check_hook_names,
    found_makers,
    known_runners,
    known_systems,
)
from pytest_metricbench.reporting.progress import PassingText
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.sharding import Shard, read_durations
from pytest_metricbench.store.layout import STORE_FOLDER

if TYPE_CHECKING:
    from pluggy import HookRelay


def store_root(experiment: Experiment, config: pytest.Config) -> Path:
    """The folder of an experiment's store."""
    given = config.getoption("metricbench_store")
    base = config.invocation_params.dir / given if given else experiment.folder / STORE_FOLDER
    return Path(base) / experiment.name


def cached_by(config: pytest.Config) -> str:
    """The option that forbids to run attempts; empty where they may run."""
    for name in ("cached-only", "cached-attempts"):
        if config.getoption(f"metricbench_{name.replace('-', '_')}"):
            return f"--metricbench-{name}"
    return ""


def shard_of(config: pytest.Config) -> tuple[Shard, Mapping[AttemptKey, AttemptRecord]] | None:
    """The part of the attempts that this run is about, and the durations to balance the parts by.

    Raises:
        ValueError: the shard is not of the form 2/5.
        StoreError: the durations cannot be read.
    """
    text = config.getoption("metricbench_shard")
    if not text:
        return None
    file = config.getoption("metricbench_durations")
    return Shard.parse(text), read_durations(config.invocation_params.dir / file) if file else {}


@dataclass(slots=True)
class Benches:
    """The experiments loaded in this process, each file once."""

    _loaded: dict[Path, Bench | DefinitionError] = field(default_factory=dict)
    _targets: dict[str, Path] = field(default_factory=dict)
    """Module name -> file, for Python targets of all experiments: a module name means one file."""

    def load(self, path: Path, config: pytest.Config, hooks: "HookRelay") -> Bench:
        """The bench of an experiment file; ``hooks`` are those of the plugins that hold for that path.

        Raises:
            DefinitionError: the file is not a valid experiment.
        """
        path = Path(os.path.abspath(path))
        if path not in self._loaded:
            try:
                self._loaded[path] = self._bench(path, config, hooks)
            except DefinitionError as error:
                self._loaded[path] = error
        loaded = self._loaded[path]
        if isinstance(loaded, DefinitionError):
            raise loaded
        return loaded

    def __iter__(self) -> Iterator[Bench]:
        """Every bench that could be loaded."""
        return (bench for bench in self._loaded.values() if isinstance(bench, Bench))

    def _bench(self, path: Path, config: pytest.Config, hooks: "HookRelay") -> Bench:
        line = PassingText(config)
        try:
            experiment = load_experiment(
                path,
                **_extended(config, hooks),
                targets=self._targets,
                renew_lock=config.getoption("metricbench_lock"),
                cached_only=bool(cached_by(config)),
                progress=line.show,
            )
        finally:
            line.clear()
        try:
            check_answers(experiment)
        except ExtensionError as error:
            raise pytest.UsageError(f"metricbench: {error}") from None
        return Bench(
            experiment,
            store_root(experiment, config),
            retry_died=config.getoption("metricbench_retry_died"),
            cached=cached_by(config),
            executor=chosen_executor(config, experiment),
        )


BENCHES: Final = pytest.StashKey[Benches]()


def benches(config: pytest.Config) -> Benches:
    """The experiments of a pytest session."""
    return config.stash.setdefault(BENCHES, Benches())


class _Extended(TypedDict):
    """What an experiment may name, built in and from plugins."""

    runners: Kinds[Runner]
    systems: Kinds[CoverageSystem]
    makers: Makers


def _extended(config: pytest.Config, hooks: "HookRelay") -> _Extended:
    """What an experiment may name; ``hooks`` are those of the plugins that hold for its file.

    Raises:
        UsageError: a plugin gives something else.
    """
    try:
        check_hook_names(config.pluginmanager)
        return {
            "runners": known_runners(config, hooks),
            "systems": known_systems(config, hooks),
            "makers": found_makers(config, hooks),
        }
    except ExtensionError as error:
        raise pytest.UsageError(f"metricbench: {error}") from None


def chosen_systems(config: pytest.Config, selected: Iterable[Bench]) -> frozenset[str] | None:
    """The coverage systems that ``--metricbench-coverage`` names; None: all.

    Raises:
        UsageError: none of the selected experiments has a system of that id.
    """
    wanted: list[str] = config.getoption("metricbench_coverage")
    known = {entry.id for bench in selected for entry in bench.experiment.coverage}
    for system in wanted:
        if system not in known:
            message = joined(f"there is no coverage system {system!r}", did_you_mean(system, known))
            there = ", ".join(sorted(known)) or "none"
            raise pytest.UsageError(f"metricbench: --metricbench-coverage: {message} (there are: {there})")
    return frozenset(wanted) or None
