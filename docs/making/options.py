"""``docs/reference/options.md``: command-line options, ini values and environment variables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pytest_metricbench import plugin
from pytest_metricbench.pytest_side.options import WITHOUT_TWIN

FLAG = "store_true"

EXAMPLES = {
    "--metricbench-store": "--metricbench-store stores",
    "--metricbench-fresh": "--metricbench-fresh",
    "--metricbench-retry-died": "--metricbench-retry-died",
    "--metricbench-coverage": "--metricbench-coverage tools",
    "--metricbench-cached-attempts": "--metricbench-cached-attempts",
    "--metricbench-cached-only": "--metricbench-cached-only",
    "--metricbench-lock": "--metricbench-lock",
    "--metricbench-show": "--metricbench-show plan",
    "--metricbench-shard": "--metricbench-shard 1/3",
    "--metricbench-durations": "--metricbench-shard 1/3 --metricbench-durations attempts.jsonl",
    "--metricbench-merge": "--metricbench-merge other",
    "--metricbench-html": "--metricbench-html report.html",
    "--metricbench-markdown": "--metricbench-markdown report.md",
    "--metricbench-codequality": "--metricbench-codequality quality.json",
    "--metricbench-nemo-bundle": "--metricbench-nemo-bundle bundles",
    "--metricbench-compare": "--metricbench-compare earlier/summary.json",
    "--metricbench-executor": "--metricbench-executor threads:8",
    "--metricbench-protocol": "--metricbench-protocol standard",
    "--metricbench-init": "--metricbench-init new",
    "--metricbench-init-kind": "--metricbench-init new --metricbench-init-kind table",
}
"""Option -> what is written behind ``pytest experiment.yml`` to use it; tests/docs runs each."""

INI_EXAMPLES = {"metricbench_files": "experiment.yml bench_*.yml"}
"""Ini values without an option of their name -> an example."""

ENVIRONMENT = {
    "METRICBENCH_HARBOR": (
        "the executable of an installed Harbor, or its interpreter, where the runner's key `harbor` is absent",
        "/opt/harbor/bin/harbor",
    ),
    "GITHUB_ACTIONS": ("`true`: gates that do not hold and survivors are shown as annotations of their lines", "true"),
    "GITHUB_STEP_SUMMARY": (
        "the file to which the Markdown answer is added, the job summary of a GitHub step",
        "/home/runner/summary.md",
    ),
    "GITHUB_WORKSPACE": ("the folder that names of files in annotations start from", "/home/runner/work/shop"),
    "CI_PROJECT_DIR": ("the same in GitLab, for the code quality report", "/builds/shop"),
    "DASK_SCHEDULER_ADDRESS": ("the scheduler of the executor `dask`, where its settings name none", "tcp://host:8786"),
    "PATH": ("handed to every command, and where an interpreter or Harbor is looked for", "/usr/bin:/bin"),
    "HOME": ("handed to every command", "/home/me"),
    "LANG": ("handed to every command", "en_US.UTF-8"),
}
"""Environment variables that the package reads -> what for, and an example."""

INTRODUCTION = """\
# Options, ini values, environment variables

What can be said on the command line, in `pytest.ini` (or `[tool.pytest.ini_options]` of `pyproject.toml`) and in the
environment. An ini file names an option as the command line does, without the dashes in front and with `_` for `-`; an
option on the command line wins over it, and paths start from the folder of the ini file.
[Using pytest-metricbench](../usage.md) explains how they are used, and has the [exit statuses](../usage.md#exit-status)
and the [letters and words](../usage.md#items) of items.
"""


@dataclass
class Recorder:
    """Takes the place of pytest's parser, to learn what the plugin adds."""

    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Option -> the arguments of ``addoption``."""
    inis: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Ini value -> the arguments of ``addini``."""

    def getgroup(self, name: str, description: str = "", after: str | None = None) -> "Recorder":
        """There is one group, this one."""
        return self

    def addoption(self, *names: str, **arguments: Any) -> None:
        """Keep an option."""
        self.options[names[0]] = arguments

    def addini(self, name: str, help: str, type: Any = None, default: Any = None, **_: Any) -> None:  # noqa: A002
        """Keep an ini value."""
        self.inis[name] = {"help": help, "type": type, "default": default}


def recorded() -> Recorder:
    """Everything that the plugin adds to pytest's parser."""
    recorder = Recorder()
    plugin.pytest_addoption(recorder)  # type: ignore[arg-type]
    return recorder


def ini_name(option: str) -> str:
    """The ini value that is called like an option."""
    return option.removeprefix("--").replace("-", "_")


def ini_example(name: str) -> str:
    """What to write behind ``name =``."""
    if name in INI_EXAMPLES:
        return INI_EXAMPLES[name]
    option = "--" + name.replace("_", "-")
    return EXAMPLES[option].rpartition(option)[2].strip() or "true"


def page() -> str:
    """The page."""
    found = recorded()
    return "\n".join([INTRODUCTION, *_options(found), *_inis(found), *_environment()])


def _options(found: Recorder) -> Iterator[str]:
    yield "## Options\n\n| option | type | default | ini value | meaning |\n|---|---|---|---|---|"
    for name, given in found.options.items():
        meaning, default = _meaning(given)
        twin = f"`{ini_name(name)}`" if ini_name(name) in found.inis else f"none: {WITHOUT_TWIN[ini_name(name)]}"
        yield f"| `{name}{_value(given)}` | {_type(given)} | {default} | {twin} | {meaning} |"
    yield "\nOne at a time:\n\n```sh"
    yield from (f"pytest {'' if 'init' in name else 'experiment.yml '}{EXAMPLES[name]}" for name in found.options)
    yield "```"


def _inis(found: Recorder) -> Iterator[str]:
    yield "\n## Ini values\n\n| ini value | type | default | example | meaning |\n|---|---|---|---|---|"
    for name, given in found.inis.items():
        meaning, default = _meaning(given)
        yield f"| `{name}` | {_ini_type(given['type'])} | {default} | `{name} = {ini_example(name)}` | {meaning} |"


def _environment() -> Iterator[str]:
    yield "\n## Environment variables\n\n| variable | example | what it is read for |\n|---|---|---|"
    yield from (f"| `{name}` | `{example}` | {meaning} |" for name, (meaning, example) in ENVIRONMENT.items())
    yield "\nVariables that an experiment names under `env` with null are read too, and handed to its commands.\n"


def _value(given: dict[str, Any]) -> str:
    """The value behind an option, as in ``--help``."""
    if given.get("action") == FLAG:
        return ""
    return f" {given['metavar']}{'...' if given.get('nargs') in ('+', '*') else ''}".replace("|", "\\|")


def _type(given: dict[str, Any]) -> str:
    if given.get("action") == FLAG:
        return "flag"
    if given.get("choices"):
        return " or ".join(f"`{choice}`" for choice in given["choices"])
    words = _TYPES.get(given.get("type")) or _METAVARS.get(str(given["metavar"]), "text")
    if given.get("nargs") in ("+", "*"):
        return f"{words}s"
    return f"{words}, again for more" if given.get("action") == "append" else words


_TYPES: dict[Any, str] = {int: "whole number", float: "number"}
_METAVARS = {"FILE": "file", "DIR": "folder", "I/N": "two whole numbers"}


def _ini_type(kind: Any) -> str:
    words = {"args": "texts", "bool": "`true` or `false`", "int": "whole number", "float": "number"}
    return words.get(str(kind), "text")


def _meaning(given: dict[str, Any]) -> tuple[str, str]:
    """What the help says, and the default that it says at its end."""
    text = re.sub(r"\s+", " ", given["help"]).strip()
    said = _DEFAULT.search(text)
    meaning = _DEFAULT.sub("", text).replace("|", "\\|").replace("<", "&lt;")
    return meaning, said["default"] if said else "off" if given.get("action") == FLAG else "none"


_DEFAULT = re.compile(r" \(default: (?P<default>.*?)(?:; ini: \w+)?\)$")
