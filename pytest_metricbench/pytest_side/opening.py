"""Experiment files before anything runs: claimed, checked on the controller, collected, their locks written."""

import os
import warnings
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.definition.claiming import claim
from pytest_metricbench.definition.lock import write_lock
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.pytest_side.benches import benches, cached_by, shard_of
from pytest_metricbench.pytest_side.collection import ExperimentFile
from pytest_metricbench.pytest_side.executor_choice import check_executor, refuse_workers
from pytest_metricbench.pytest_side.options import is_from_ini
from pytest_metricbench.pytest_side.publishing import Publisher, PublishError
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.selecting import parts_of, selection_problem
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.workers import is_worker


def check_named(session: pytest.Session, named: Iterable[Path]) -> None:
    """Check the experiment files that the command line names, before any worker starts.

    Raises:
        UsageError: one of them is not a valid experiment; the message has every problem of every file.
    """
    problems = []
    for path in sorted(named):
        problem = _foreign(session.config, path, session)
        if problem is not None:
            problems.append(problem)
            continue
        if not claim(path).ours:
            continue  # another plugin's
        try:
            bench = benches(session.config).load(path, session.config, session.gethookproxy(path))
            refuse_workers(session.config, bench)
            problems += _selection_problems(session.config, bench)
        except DefinitionError as error:
            problems.append(str(error))
    if problems:
        raise pytest.UsageError(*problems)


def _selection_problems(config: pytest.Config, bench: Bench) -> list[str]:
    """What is wrong with the ids on the command line that name a part of an experiment."""
    found = []
    for argument in config.args:
        path = config.invocation_params.dir / argument.partition("::")[0]
        if Path(os.path.normpath(path)) == bench.experiment.path:
            problem = selection_problem(bench.experiment, parts_of(argument))
            found += [f"{argument}: {problem}"] if problem is not None else []
    return found


def collect_experiment(path: Path, parent: pytest.Collector, *, claimed: bool) -> pytest.Collector | None:
    """The collector of an experiment file; None where the file is not ours and another plugin has claimed it."""
    if claimed and not claim(path).ours:
        return None
    root = parent.config.rootpath
    # Outside the root folder pytest cuts ids down to what the command line named, and two files may become one.
    outside: dict[str, Any] = {} if root in path.parents else {"nodeid": Path(os.path.relpath(path, root)).as_posix()}
    collector: ExperimentFile = ExperimentFile.from_parent(parent, path=path, **outside)
    return collector


def _foreign(config: pytest.Config, path: Path, session: pytest.Session) -> str | None:
    """Why a named file is neither ours nor another plugin's; None when it is one of them."""
    found = claim(path)
    if found.ours or _claimed_by_another(config, path, session):
        return None
    return found.message


def _claimed_by_another(config: pytest.Config, path: Path, session: pytest.Session) -> bool:
    ours = config.pluginmanager.get_plugin("metricbench")
    others = config.pluginmanager.subset_hook_caller("pytest_collect_file", remove_plugins=[ours])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pluggy's, of an argument that pytest 8 still has
            return bool(others(file_path=path, parent=session))
    except Exception:
        return False  # a plugin that cannot cope with being asked has not claimed it


def check_options(config: pytest.Config) -> None:
    """Check what the options say on their own and together, before anything is touched.

    Raises:
        UsageError: two of them contradict each other, there is no such executor, the shard is not of the form 2/5, the
            durations cannot be read or have no shard, the stores to merge hold the name of an experiment file, or what
            is asked for cannot be written where it is to be.
    """
    if cached := cached_by(config):
        for name, means in (("fresh", "starts over"), ("retry-died", "runs attempts again")):
            if config.getoption(f"metricbench_{name.replace('-', '_')}"):
                raise _usage(f"{cached} runs no attempt, and --metricbench-{name} {means}; leave one of them out")
    check_executor(config)
    lone = config.getoption("metricbench_durations") and not config.getoption("metricbench_shard")
    if lone and not is_from_ini(config, "--metricbench-durations"):  # an ini file is for the machines of a shard too
        raise _usage("--metricbench-durations: there are no parts to balance; add --metricbench-shard I/N")
    for name in config.getoption("metricbench_merge"):
        if (config.invocation_params.dir / name).is_file():
            advice = "name the folders of stores, and the experiment before the option, which takes all that follows"
            raise _usage(f"--metricbench-merge: {name!r} is a file; {advice}")
    if not is_worker(config):
        try:
            Publisher(config).check()
        except PublishError as error:
            raise _usage(str(error)) from None
    try:
        shard_of(config)
    except ValueError as error:
        raise _usage(f"--metricbench-shard: {error}") from None
    except StoreError as error:
        raise _usage(f"--metricbench-durations: {error}") from None


def _usage(message: str) -> pytest.UsageError:
    return pytest.UsageError(f"metricbench: {message}")


def write_locks(config: pytest.Config, named: Collection[Path]) -> int:
    """Write the locks of the named experiments anew, say so, and give the exit status.

    Raises:
        UsageError: no experiment is named, one is not valid, or a lock cannot be written.
    """
    if not named:
        raise pytest.UsageError("metricbench: --metricbench-lock: name the experiment files whose locks to write")
    if config.pluginmanager.has_plugin("terminal"):  # a session would have made its reporter, for progress to be shown
        config.pluginmanager.register(pytest.TerminalReporter(config), "terminalreporter")
    for path in sorted(named):
        try:
            experiment = benches(config).load(path, config, config.hook).experiment
        except DefinitionError as error:
            raise pytest.UsageError(str(error)) from None
        except KeyboardInterrupt:  # there is no session yet in which pytest would say so
            print(f"interrupted: the lock of {path.name} is as it was")
            return int(pytest.ExitCode.INTERRUPTED)
        if experiment.lock is None:
            print(f"{path.name} expands nothing: it needs no lock")
            continue
        try:
            write_lock(experiment.lock)
        except OSError as error:
            raise pytest.UsageError(f"metricbench: {experiment.lock.path}: {error.strerror}") from None
        print(f"wrote {experiment.lock.path}: review it and commit it")
    return 0


def load_conftests(session: pytest.Session, file: Path) -> None:
    """Load the conftest.py files above a file that only the workers collected, as collecting it here would."""
    config = session.config
    named = (os.path.normpath(config.invocation_params.dir / argument.partition("::")[0]) for argument in config.args)
    tops = {config.rootpath, *(Path(path) for path in named if os.path.isdir(path))}
    folders = [folder for folder in reversed(file.parents) if tops & {folder, *folder.parents}]
    parent: Any = session
    for folder in folders:
        parent = pytest.Dir.from_parent(parent, path=folder)
        session.config.hook.pytest_make_collect_report(collector=parent)
