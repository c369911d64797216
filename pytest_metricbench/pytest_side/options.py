"""Options with an ini twin each: what the command line says, else what the ini file says, else the default.

Loaded in every pytest run of an environment that has the package, so it imports nothing heavy.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import pytest

from pytest_metricbench.private_names import ini_file_names

WITHOUT_TWIN: Final[Mapping[str, str]] = {
    "metricbench_fresh": "every run would pay for all attempts anew",
    "metricbench_init": "it writes files once and ends",
    "metricbench_init_kind": "it says what is written once",
    "metricbench_lock": "it writes files once and ends",
    "metricbench_merge": "stores are merged once",
    "metricbench_shard": "each machine runs another part",
    "metricbench_show": "it shows something and ends: nothing would ever run",
}
"""Options that an ini file cannot set -> why. All others can."""

FILES: Final = "metricbench_files"
"""The ini value that has no option: names of experiment files to collect from folders."""
_PATHS: Final = ("DIR", "FILE", "STORE_OR_SUMMARY")
"""Metavars of options that name a file or folder."""
_DEFAULT: Final = re.compile(r" \(default: (?P<text>.*)\)$", re.DOTALL)
_IniType: TypeAlias = Literal["string", "args", "bool"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of ours, as it was declared."""

    flag: str
    """As it is written: ``--metricbench-store``."""
    default: Any
    """What it is where nobody sets it."""
    ini: str | None
    """The name of its twin; None where it has none."""
    is_path: bool
    choices: Sequence[str] | None


OPTIONS: Final[dict[str, Option]] = {}
"""Every option that was declared, by its destination: the same in each session of a process."""


class OptionGroup:
    """Takes the place of pytest's group: adds each option with its ini twin, and both with their help."""

    def __init__(self, parser: pytest.Parser, name: str, title: str) -> None:
        """The group that ``pytest --help`` shows under ``title``."""
        self._parser: Final = parser
        self._group: Final = parser.getgroup(name, title)

    def addoption(self, flag: str, *, help: str, **attrs: Any) -> None:  # noqa: A002  (as pytest calls it)
        """Add an option and its twin.

        Args:
            flag: the option as it is written; its destination, and its twin, are named after it.
            help: what it does; may end in ``(default: ...)``, else the default is "off" or "none".
            attrs: as pytest's own ``addoption`` takes them.
        """
        dest = flag.lstrip("-").replace("-", "_")
        is_switch = attrs.get("action") == "store_true"
        is_list = attrs.get("action") == "append" or attrs.get("nargs") in ("+", "*")
        empty: object = False if is_switch else [] if is_list else None
        option = Option(
            flag,
            attrs.pop("default", empty),
            None if dest in WITHOUT_TWIN else dest,
            attrs.get("metavar") in _PATHS,
            attrs.get("choices"),
        )
        OPTIONS[dest] = option
        self._group.addoption(flag, default=None, help=_help(help, option), **attrs)
        if option.ini is not None:
            kind: _IniType = "bool" if is_switch else "args" if is_list else "string"
            self._parser.addini(option.ini, f"Sets {flag}", type=kind, default=None)


def _help(text: str, option: Option) -> str:
    """The help of an option: what it does, its default, and its twin."""
    found = _DEFAULT.search(text)
    default = found["text"] if found is not None else "off" if option.default is False else "none"
    twin = f"; ini: {option.ini}" if option.ini is not None else ""
    return f"{_DEFAULT.sub('', text)} (default: {default}{twin})"


def settle(config: pytest.Config) -> None:
    """Give every option that the command line does not set its ini value, or else its default. May be called again.

    Raises:
        UsageError: an ini value is none that the option takes.
    """
    for dest, option in OPTIONS.items():
        if getattr(config.option, dest, None) is not None:
            continue
        value = None if option.ini is None else _ini_value(config, option.ini)
        if value is None or value == "":  # pytest gives an empty text or list for a name without a value
            value = list(option.default) if isinstance(option.default, list) else option.default
        else:
            value = _checked(config, option, value)
            config.stash.setdefault(_FROM_INI, {})[option.flag] = str(option.ini)
        setattr(config.option, dest, value)


_FROM_INI: Final = pytest.StashKey[dict[str, str]]()


def _ini_value(config: pytest.Config, name: str) -> Any:
    """What pytest makes of an ini value.

    Raises:
        UsageError: it can make nothing of it.
    """
    try:
        return config.getini(name)
    except (pytest.UsageError, TypeError, ValueError) as error:  # pytest says what is wrong, and not always with what
        raise pytest.UsageError(f"metricbench: {_ini_file(config, name)}: {name}: {error}") from None


def _checked(config: pytest.Config, option: Option, value: Any) -> Any:
    """An ini value as the command line would have given it.

    Raises:
        UsageError: it is none that the option takes.
    """
    if option.choices is not None and value not in option.choices:
        listed = ", ".join(option.choices)
        where = _ini_file(config, str(option.ini))
        raise pytest.UsageError(f"metricbench: {where}: {option.ini} = {value}: choose one of {listed}")
    if not option.is_path:
        return value
    folder = config.inipath.parent if config.inipath is not None else config.invocation_params.dir
    named = [os.path.normpath(folder / name) for name in ([value] if isinstance(value, str) else value)]
    return named[0] if isinstance(value, str) else named


def _ini_file(config: pytest.Config, name: str) -> str:
    """Where an ini value stands: the name of the file, or ``-o``."""
    overridden = {text.partition("=")[0].strip() for text in config.getoption("override_ini", None) or ()}
    return "-o" if config.inipath is None or name in overridden else config.inipath.name


def is_from_ini(config: pytest.Config, flag: str) -> bool:
    """Whether an option is set by its ini twin, and so perhaps meant for other sessions than this one."""
    return flag in config.stash.get(_FROM_INI, {})


def with_origins(config: pytest.Config, message: str) -> str:
    """A message about options, with the ini values that are behind those of them that the command line does not set."""
    found: dict[str, list[str]] = {}
    for flag, ini in config.stash.get(_FROM_INI, {}).items():
        if re.search(rf"{flag}(?![\w-])", message):
            found.setdefault(_ini_file(config, ini), []).append(ini)
    origins = [f"{' and '.join(names)} in {file}" for file, names in found.items()]
    return f"{message} ({'; '.join(origins)})" if origins else message


@contextmanager
def origins_named(config: pytest.Config) -> Iterator[None]:
    """Have a usage error that is raised inside name the ini values that are behind it.

    Raises:
        UsageError: the one that was raised.
    """
    try:
        yield
    except pytest.UsageError as error:
        message = str(error.args[0]) if len(error.args) == 1 else ""
        told = with_origins(config, message)
        if told == message:
            raise
        raise pytest.UsageError(told) from None


# ---------------------------------------------------------------- misspelt names


def check_flags(parser: pytest.Parser, arguments: Sequence[str]) -> None:
    """Refuse a misspelt option of ours with the right one; argparse only says that it does not know it.

    Raises:
        UsageError: an argument begins like an option of ours and is none.
    """
    flags = {option.flag for option in OPTIONS.values()}
    doubtful = {name for text in arguments if (name := text.partition("=")[0]).startswith("--met")} - flags
    if not doubtful:
        return
    _, unknown = parser.parse_known_and_unknown_args(arguments)  # an argument may be another option's value
    for name in (text.partition("=")[0] for text in unknown):
        if name in doubtful and (near := _hint(name, flags, strict=not name.startswith("--metricbench"))) is not None:
            raise pytest.UsageError(f"metricbench: there is no option {name}{near}")


def check_ini_names(config: pytest.Config) -> None:
    """Refuse a misspelt ini value of ours with the right one; pytest only warns that it does not know it.

    Raises:
        UsageError: a name begins like one of ours and is none, or the names of experiment files cannot be read.
    """
    _ini_value(config, FILES)
    ours = [option.ini for option in OPTIONS.values() if option.ini is not None] + [FILES]
    for name in ini_file_names(config):
        if not name.startswith("metricbench_") or name in ours:
            continue
        try:
            config.getini(name)  # another plugin's
        except ValueError:
            why = WITHOUT_TWIN.get(name)
            near = f": {OPTIONS[name].flag} has none, {why}" if why and name in OPTIONS else _hint(name, ours)
            where = _ini_file(config, name)
            raise pytest.UsageError(f"metricbench: {where}: there is no ini value {name}{near}") from None


def _hint(name: str, known: Iterable[str], *, strict: bool = False) -> str | None:
    """The end of a sentence that names the nearest known name; with ``strict``, None where none is very near."""
    from pytest_metricbench.messages import did_you_mean

    meant = did_you_mean(name, known, cutoff=0.85 if strict else 0.6)
    if not meant:
        return None if strict else "; pytest --help lists those that there are"
    return f"; {meant}"
