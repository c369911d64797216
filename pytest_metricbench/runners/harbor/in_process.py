"""A Harbor trial run in this process, as if it were one of its own: environment, folder, modules and warnings.

Nothing of it is left when the trial is over, so that the next attempt meets what this one met, and the same as in a
process of Harbor's.
"""

import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pytest_metricbench.answers import plain_text
from pytest_metricbench.contracts import Json
from pytest_metricbench.deadlines import DeadlineExceededError, call_within

_UNTIL_FORCED: Final = 10.0
"""Seconds after the limit that a cancelled trial may take to end what it has running, before it is interrupted."""
_NEVER_HIDDEN: Final = sys.stdlib_module_names | {"harbor", "pytest_metricbench"}
"""Modules that no file of an experiment takes the place of."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the running of a trial ended; whether the trial is measured stands in the trial's result."""

    problem: str | None = None
    """Why there may be no result, in words."""
    timed_out: bool = False
    """It ran longer than the limit that the experiment sets."""
    version: str | None = None
    """Harbor's, where it is known."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What surrounds a trial."""

    environment: Mapping[str, str]
    """All of its environment variables."""
    folder: Path
    """Its working directory."""
    python_path: Sequence[Path]
    """Where modules are looked for first."""


def installed_version() -> str | None:
    """The version of Harbor that can be imported here; None where there is none.

    A folder that happens to be called ``harbor`` is none.
    """
    return _version_on(tuple(sys.path))


@lru_cache(maxsize=4)
def _version_on(path: tuple[str, ...]) -> str | None:
    """The version that is found on a search path; asked several times an attempt, and looking takes milliseconds."""
    from importlib import metadata  # here: it takes long to import, and few experiments are about Harbor

    found = next(iter(metadata.distributions(name="harbor", path=list(path))), None)
    return None if found is None else found.version


def run_in_process(trial: Mapping[str, Json], retry: Mapping[str, Json], scene: Scene, timeout: float | None) -> Ended:
    """Run a trial (``TrialConfig`` as JSON) to its end.

    A trial that is cancelled, by the limit or by Ctrl-C, still stops its environment and writes its result.
    """
    version = installed_version()
    with _on(scene):
        try:
            late = call_within(
                None if timeout is None else timeout + _UNTIL_FORCED, _run_trial, dict(trial), dict(retry), timeout
            )
        except DeadlineExceededError:
            return Ended("it did not end when it was told to", True, version)
        except KeyboardInterrupt:
            raise
        except (Exception, SystemExit) as error:  # Harbor ends some of its checks with sys.exit
            said = plain_text(str(error)) or "no message"
            return Ended(said if isinstance(error, SystemExit) else f"{type(error).__name__}: {said}", False, version)
    return Ended(None, late, version)


def _run_trial(trial: dict[str, Json], retry: dict[str, Json], timeout: float | None) -> bool:
    import asyncio

    return asyncio.run(_bounded(trial, retry, timeout))


async def _bounded(trial: dict[str, Json], retry: dict[str, Json], timeout: float | None) -> bool:
    """Run a trial; gives whether the limit ended it."""
    import asyncio

    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            await _trial(trial, retry)
    except TimeoutError:
        if not limit.expired():
            raise
    return limit.expired()


async def _trial(trial: dict[str, Json], retry: dict[str, Json]) -> None:
    """What ``harbor run`` does for a job of one trial, without the job."""
    factory: Any = importlib.import_module("harbor.agents.factory")
    environments: Any = importlib.import_module("harbor.environments.factory")
    jobs: Any = importlib.import_module("harbor.models.job.config")
    trials: Any = importlib.import_module("harbor.models.trial.config")
    queue: Any = importlib.import_module("harbor.trial.queue")
    config = trials.TrialConfig.model_validate(trial)
    factory.AgentFactory.run_preflight(config.agent)
    environment, check = config.environment, environments.EnvironmentFactory.run_preflight
    more = {"kwargs": environment.kwargs} if "kwargs" in inspect.signature(check).parameters else {}  # from 0.26 on
    check(environment.type, environment.import_path, **more)
    runs = queue.TrialQueue(n_concurrent=1, retry_config=jobs.RetryConfig.model_validate(retry))
    await runs.submit(config)


# ---------------------------------------------------------------- the scene


@contextmanager
def _on(scene: Scene) -> Iterator[None]:
    variables, path, before = dict(os.environ), list(sys.path), set(sys.modules)
    folder = None
    with suppress(OSError):  # it may be gone
        folder = os.getcwd()
    roots = [str(root) for root in scene.python_path]
    hidden = _hide_namesakes(roots)
    try:
        os.environ.clear()
        os.environ.update(scene.environment)
        os.chdir(scene.folder)
        sys.path[:0] = roots
        importlib.invalidate_caches()
        with warnings.catch_warnings():
            # Harbor warns of itself, and where warnings are errors a trial would fail of that.
            warnings.simplefilter("ignore")
            yield
    finally:
        for name in [name for name in set(sys.modules) - before if _stems_from(name, roots)]:
            del sys.modules[name]
        sys.modules.update(hidden)
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(variables)
        if folder is not None:
            with suppress(OSError):
                os.chdir(folder)


def _hide_namesakes(roots: Sequence[str]) -> dict[str, ModuleType]:
    """Take loaded modules away that have the name of one in the folders and come from another place."""
    namesakes = set()
    for root in roots:
        with suppress(OSError), os.scandir(root) as entries:
            for entry in entries:
                stem, suffix = os.path.splitext(entry.name)
                is_module = suffix == ".py" or os.path.isfile(os.path.join(entry.path, "__init__.py"))
                if is_module and stem in sys.modules and stem not in _NEVER_HIDDEN:
                    namesakes |= set() if _stems_from(stem, roots) else {stem}
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in namesakes}


def _stems_from(name: str, roots: Sequence[str]) -> bool:
    """Whether a loaded module was found in one of the folders, and not in an environment that lies below it."""
    module = sys.modules.get(name)
    top = name.partition(".")[0]
    origin = getattr(module, "__file__", None)
    places = [origin] if origin else [str(entry) for entry in getattr(module, "__path__", ())]
    return any(
        place.startswith((os.path.join(root, f"{top}.py"), os.path.join(root, top) + os.sep))
        or place == os.path.join(root, top)
        for place in places
        for root in roots
    )
