"""What plugins add through the hooks: asked plugin by plugin, so that an error names the plugin it is about."""

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

from pytest_metricbench import coverage, runners
from pytest_metricbench.bases import CoverageSystem, Runner
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.generating.base import Generator, Makers
from pytest_metricbench.generating.builtin import MakerError, known_makers
from pytest_metricbench.kinds import Kinds
from pytest_metricbench.messages import did_you_mean, without_traceback
from pytest_metricbench.origins import origin_of, whose

if TYPE_CHECKING:
    from pluggy import HookCaller, HookImpl, HookRelay

_Kind = TypeVar("_Kind", bound=Runner | CoverageSystem)

RUNNERS: Final = "pytest_metricbench_runners"
SYSTEMS: Final = "pytest_metricbench_coverage_systems"
GENERATORS: Final = "pytest_metricbench_generators"
OPERATORS: Final = "pytest_metricbench_text_operators"
HOOKS: Final = (RUNNERS, SYSTEMS, GENERATORS, OPERATORS)
_WORK: Final = {Runner: "run(self, request, workspace)", CoverageSystem: "measure(self, request, workspace)"}
"""The method that a class must have, as it is written."""


class ExtensionError(ValueError):
    """A plugin or a conftest.py gives what is not expected; the message names it, its hook and what to do."""


def known_runners(config: pytest.Config, hooks: "HookRelay") -> Kinds[Runner]:
    """Kind -> class of the built-in runners and those of plugins.

    Args:
        config: the session's, for implementations that ask for it.
        hooks: those of the plugins that hold for the experiment.

    Raises:
        ExtensionError: a plugin gives something else.
    """
    return _known_kinds(_given(config, hooks, RUNNERS), runners.BUILTIN, Runner)


def known_systems(config: pytest.Config, hooks: "HookRelay") -> Kinds[CoverageSystem]:
    """Kind -> class of the coverage systems, likewise.

    Raises:
        ExtensionError: a plugin gives something else.
    """
    return _known_kinds(_given(config, hooks, SYSTEMS), coverage.BUILTIN, CoverageSystem)


def found_makers(config: pytest.Config, hooks: "HookRelay") -> Makers:
    """The generators of mutants and operators over texts, built in and from plugins.

    Raises:
        ExtensionError: a plugin gives something else, or a name that is taken.
    """
    classes: list[Any] = []
    operators: list[Any] = []
    for name, collected in ((GENERATORS, classes), (OPERATORS, operators)):
        for who, given in _given(config, hooks, name):
            collected.append(given)
            if inspect.isabstract(given) and issubclass(given, Generator):
                raise ExtensionError(f"{who} gave {given.__qualname__}, which lacks def generate(self, context)")
            try:
                known_makers([classes], [operators])
            except MakerError as error:
                raise ExtensionError(f"{who}: {error}") from None
    return known_makers([classes], [operators])


def check_hook_names(manager: pytest.PytestPluginManager) -> None:
    """Refuse what is named like a hook of ours and is none: nobody would ever call it.

    Args:
        manager: pytest's plugin manager.

    Raises:
        ExtensionError: a plugin has such a function.
    """
    for plugin in manager.get_plugins():
        for name in dir(plugin):
            if not name.startswith("pytest_metricbench_") or name in HOOKS:
                continue
            method = getattr(plugin, name, None)
            caller = getattr(manager.hook, name, None)
            optional = getattr(method, "pytest_impl", None) or {}
            if not inspect.isroutine(method) or optional.get("optionalhook"):
                continue
            if caller is not None and caller.has_spec():
                continue  # another plugin's hook
            hint = did_you_mean(name, HOOKS) or f"the hooks are {', '.join(HOOKS)}"
            raise ExtensionError(f"{_named(plugin)} has {name}, and there is no such hook; {hint}")


def check_answers(experiment: Experiment) -> None:
    """See that a plugin's runner can be asked what sorts and begins attempts, before any is sorted.

    Raises:
        ExtensionError: it raises, or gives something of another kind.
    """
    runner = experiment.runner
    who = f"the runner {runner.kind!r}{whose(type(runner))}"
    if not whose(type(runner)):
        return
    combinations = [(c.id, v.id, t.id) for c in experiment.cases for v in c.variants for t in c.tasks]
    asked: list[tuple[str, Callable[[], object], type | UnionType, str]] = [
        ("ahead", lambda: runner.ahead, int, "a whole number"),
        ("time_limit", lambda: runner.time_limit, float | int | None, "a number of seconds, or None"),
        (
            "affinity",
            lambda: next(filter(_is_no_text, (runner.affinity(*c) for c in combinations)), None),
            str | None,
            "a text, or None",
        ),
    ]
    for name, ask, expected, words in asked:
        try:
            answer = ask()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise ExtensionError(f"{who}: {name} {_raised(error)}") from None
        if not isinstance(answer, expected):
            raise ExtensionError(f"{who}: {name} gave {answer!r}; {words} is expected")


def _is_no_text(answer: object) -> bool:
    return answer is not None and not isinstance(answer, str)


# ---------------------------------------------------------------- asking


def _given(config: pytest.Config, hooks: "HookRelay", name: str) -> Iterator[tuple[str, Any]]:
    """What every plugin gives through a hook, with the words that name hook and plugin.

    In the order in which pytest would call them, though not through its call of all: what one raises would end it, and
    which one gave an entry could not be told.

    Raises:
        ExtensionError: a plugin raises, or does not give a list.
    """
    caller: HookCaller = getattr(hooks, name)
    for implementation in reversed(caller.get_hookimpls()):
        who = f"the hook {name} of {_named(implementation.plugin)}"
        if implementation.wrapper or implementation.hookwrapper:
            raise ExtensionError(f"{who} is a wrapper; return a list instead")
        try:
            given = _called(implementation, config)
            is_group = given is None or (isinstance(given, Iterable) and not isinstance(given, str | bytes | type))
            entries = list(given or ()) if is_group else []  # a generator raises only now
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # pytest.skip and sys.exit too
            name_of_plugin = str(implementation.plugin_name)
            leave_out = "" if name_of_plugin.endswith(".py") else f", or leave the plugin out: -p no:{name_of_plugin}"
            raise ExtensionError(f"{who} {_raised(error)}{leave_out}") from None
        if not is_group:
            raise ExtensionError(f"{who} gave {given!r}; a list is expected")
        yield from ((who, entry) for entry in entries)


def _called(implementation: "HookImpl", config: pytest.Config) -> Any:
    """What an implementation returns, given what it asks for; pytest has refused it where it must have more."""
    arguments = {"config": config}
    defaults = {name: arguments[name] for name in implementation.kwargnames if name in arguments}
    return implementation.function(*(arguments[name] for name in implementation.argnames), **defaults)


def _named(plugin: object) -> str:
    return origin_of(plugin) or "pytest-metricbench"


def _raised(error: BaseException) -> str:
    """What was raised, and where it is to be mended."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if len(frames) > 1 else ""
    return f"raised {without_traceback(error)}; mend it{where}"


def _known_kinds(given: Iterable[tuple[str, Any]], builtin: Kinds[_Kind], base: type[Any]) -> Kinds[_Kind]:
    """Kind -> class, of the built-in classes and those that a hook gives, each with the words that name who gave it.

    Raises:
        ExtensionError: something else than a class of that base, without its method or a kind, or with a kind that
            is taken.
    """
    known = builtin
    for who, cls in given:
        if not (isinstance(cls, type) and issubclass(cls, base)):
            raise ExtensionError(f"{who} gave {cls!r}; a subclass of {base.__name__} is expected")
        model: Any = cls
        kind = model.model_fields["kind"].default
        if not isinstance(kind, str):
            raise ExtensionError(
                f'{who} gave {cls.__qualname__}, which names no kind; write kind: Literal["name"] = "name"'
            )
        if inspect.isabstract(cls):
            raise ExtensionError(f"{who} gave {cls.__qualname__}, which is abstract; write def {_WORK[base]}")
        if kind in known and known[kind] is not cls:
            other = f"{known[kind].__module__}.{known[kind].__qualname__}{whose(known[kind])}"
            raise ExtensionError(
                f"{who} gave {cls.__qualname__} the kind {kind!r}, which is taken by {other}; rename one"
            )
        known = known.also({kind: cls})
    return known
