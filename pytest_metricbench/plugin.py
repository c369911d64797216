"""The pytest plugin: options and wiring, no logic.

This module is loaded in every pytest run of an environment that has the package, so it imports nothing heavy: what an
experiment needs is imported when one is in the session.
"""

import os
import sys
from collections.abc import Generator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_metricbench.pytest_side.option_list import add_options
from pytest_metricbench.pytest_side.options import (
    FILES,
    check_flags,
    check_ini_names,
    origins_named,
    settle,
)
from pytest_metricbench.pytest_side.protocol_choice import tell, why_standard
from pytest_metricbench.workers import is_worker

if TYPE_CHECKING:
    from pytest_metricbench.pytest_side.session import Controller

SUFFIXES: Final = (".yml", ".yaml")
_CHECKED: Final = (
    *("executor", "shard", "durations", "merge", "cached_only", "cached_attempts"),
    *("nemo_bundle", "markdown", "codequality", "html"),
)
"""Options that are checked before anything runs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; each is explained in ``docs/usage.md``."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the extension points."""
    from pytest_metricbench import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> Generator[None, object, object]:
    """Say which option a misspelt one probably means, once every plugin has declared its own."""
    result = yield
    check_flags(parser, args)
    return result


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks that every attempt carries, and settle the options."""
    check_ini_names(config)
    settle(config)
    config.addinivalue_line("markers", "baseline: an attempt of the undamaged version")
    config.addinivalue_line("markers", "mutant: an attempt of a deliberately damaged version")
    config.addinivalue_line(
        "markers", "metricbench(case, variant, task): which attempt this is, for exact selection with -m"
    )
    if any(config.getoption(f"metricbench_{name}") for name in _CHECKED):
        from pytest_metricbench.pytest_side.opening import check_options

        with origins_named(config):
            check_options(config)


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Write locks and end, or have the session show something and run nothing, where that is asked for."""
    settle(config)
    if config.getoption("metricbench_init") is not None or config.getoption("metricbench_init_kind") is not None:
        return _start(config)
    if config.getoption("metricbench_lock"):
        from pytest_metricbench.pytest_side.opening import write_locks

        return write_locks(config, _named_files(config))
    if config.getoption("metricbench_show"):
        from pytest_metricbench.pytest_side.preview import prepare

        with origins_named(config):
            prepare(config)
    return None


def _start(config: pytest.Config) -> int:
    """Write a first experiment and say what to do next."""
    from pytest_metricbench.starting.placing import StartError
    from pytest_metricbench.starting.start import BY_OPTION, start

    folder = config.getoption("metricbench_init")
    if folder is None:
        raise pytest.UsageError("metricbench: --metricbench-init-kind: say where to write it, --metricbench-init DIR")
    try:
        lines = start(folder, config.invocation_params.dir, config.getoption("metricbench_init_kind"), BY_OPTION)
    except StartError as error:
        raise pytest.UsageError(f"metricbench: {error}") from None
    print("\n".join(lines))
    return 0


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Check the named experiments before any worker starts, so that a broken one is a usage error in any mode."""
    session.config.stash[_SESSION] = session
    if not is_worker(session.config) and (named := _named_files(session.config)):
        from pytest_metricbench.pytest_side.opening import check_named

        check_named(session, named)
        _controller(session.config)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Where a store cannot be opened for what an option says, name the ini value that says it."""
    with origins_named(session.config):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect an experiment file; one that another plugin has claimed and that is not ours is left to it."""
    collectors = yield
    config = parent.config
    if file_path.suffix in SUFFIXES and (file_path in _named_files(config) or _matches(config, file_path)):
        from pytest_metricbench.pytest_side.opening import collect_experiment

        collector = collect_experiment(file_path, parent, claimed=bool(collectors))
        if collector is not None:
            if not is_worker(config):
                _controller(config)
            collectors.append(collector)
    return collectors


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Start experiments before the first item, and measure coverage after the last unless the run was stopped."""
    if _runs_nothing(session.config) or is_worker(session.config) or _broken(session):
        return (yield)
    if (controller := _known_controller(session.config)) is not None:
        with origins_named(session.config):
            controller.before_loop()
    result = yield
    if (controller := _known_controller(session.config)) is not None:  # perhaps only since the workers collected
        controller.after_loop()
    return result


def _runs_nothing(config: pytest.Config) -> bool:
    return bool(config.option.collectonly or config.getoption("metricbench_show"))


def _broken(session: pytest.Session) -> bool:
    """Whether pytest will run nothing, since something could not be collected."""
    return bool(session.testsfailed) and not session.config.option.continue_on_collection_errors


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what is about to run, and with ``-v`` why pytest's own protocol runs it."""
    controller = _known_controller(config)
    lines = [] if controller is None else controller.header()
    if lines and config.get_verbosity() > 0 and (reason := why_standard(config)) is not None:
        lines.append(f"metricbench: three reports an attempt, by pytest's standard protocol: {reason}")
    return lines


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker who listens here to what its reports say."""
    tell(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send attempts in their order; any ``--dist`` but the default is left to pytest-xdist."""
    if config.getoption("dist") != "load":
        return None
    from pytest_metricbench.pytest_side.scheduling import ExperimentScheduling

    return ExperimentScheduling(config, log, lambda ids: _controller(config).plan(ids) if _any_ours(ids) else None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """Open the stores when the first worker says what is selected, before any item is sent."""
    if _any_ours(ids):
        with origins_named(node.config):
            _controller(node.config).begin_distributed(ids)


def _any_ours(ids: Sequence[str]) -> bool:
    return any(".yml::" in nodeid or ".yaml::" in nodeid for nodeid in ids)


_NAMED: Final = pytest.StashKey[frozenset[Path]]()


def _named_files(config: pytest.Config) -> frozenset[Path]:
    """The YAML files that the command line names."""
    if _NAMED not in config.stash:
        texts = (argument.partition("::")[0] for argument in config.args)
        paths = (config.invocation_params.dir / text for text in texts if text.endswith(SUFFIXES))
        config.stash[_NAMED] = frozenset(Path(os.path.normpath(path)) for path in paths if path.is_file())
    return config.stash[_NAMED]


def _matches(config: pytest.Config, path: Path) -> bool:
    return any(fnmatch(path.name, pattern) for pattern in config.getini(FILES))


_SESSION: Final = pytest.StashKey[pytest.Session]()


def _known_controller(config: pytest.Config) -> "Controller | None":
    controller: Controller | None = config.pluginmanager.get_plugin("metricbench-controller")
    return controller


def _controller(config: pytest.Config) -> "Controller":
    """The controller's plugin, registered when the first experiment is seen."""
    controller = _known_controller(config)
    if controller is None:
        if sys.platform == "win32":
            raise pytest.UsageError("metricbench: process groups are needed; on Windows, run under WSL")
        if config.pluginmanager.has_plugin("dsession") and config.getoption("dist") == "each":
            raise pytest.UsageError(
                "metricbench: --dist each would make every attempt anew on every worker; --dist load makes each once"
            )
        from pytest_metricbench.pytest_side.session import Controller

        controller = Controller(config.stash[_SESSION])
        config.pluginmanager.register(controller, Controller.NAME)
    return controller
