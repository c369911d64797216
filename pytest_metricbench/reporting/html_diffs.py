"""What a mutant changes, as lines of a diff: its patch, the files it replaces, or its params beside the baseline's."""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import yaml

from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.experiment import Case, Experiment, Variant
from pytest_metricbench.plain_files import open_regular
from pytest_metricbench.sources import SourceError

MOST_LINES: Final = 400
"""Lines of a diff that the page shows."""
MOST_BYTES: Final = 1 << 18
"""Of a patch or of a file that is compared; of a longer one the beginning is read."""
_MOST_COLUMNS: Final = 1000
_WIDTH: Final = 100
"""Columns at which a long text of the params is broken."""
_FILES: Final = "files"
_SUFFIXES: Final = (".patch", ".diff")
_HUNK: Final = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_KINDS: Final = (("+++", "head"), ("---", "head"), ("@@", "hunk"), ("+", "added"), ("-", "removed"))


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff: ``added``, ``removed``, ``hunk``, ``head`` or ``same``."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    """What a mutant changes."""

    what: str
    """Name of the patch or file, or ``params``."""
    lines: tuple[DiffLine, ...]
    more: int
    """Lines that are not shown."""


def mutant_diffs(experiment: Experiment, case: Case, mutant: Variant) -> list[Diff]:
    """What a mutant changes, as far as its params say so.

    A patch is a value of ``params`` that is the text of a unified diff, or that names a ``.patch`` or ``.diff`` file
    which the mutant's fingerprint or the case's inputs hold. Where the params replace files of the source by others, or
    hold the changed text of an input under ``files``, as generated mutants do, those are compared. Where there is none
    of this, and beside changed inputs, the params are compared with the baseline's. A file that cannot be read is left
    out: the page is about results that are there already.
    """
    found = [*_patches(experiment, case, mutant), *_replaced(experiment, mutant)]
    if not found:
        changed = dict(_inputs_changed(case, mutant))
        before, after = _without(case.baseline.params, changed), _without(mutant.params, changed)
        found = [*changed.items(), *([("params", _params_diff(before, after))] if before != after else [])]
    return [_diff(what, lines) for what, lines in found if lines]


def _patches(experiment: Experiment, case: Case, mutant: Variant) -> Iterator[tuple[str, list[str]]]:
    files = _patch_files(experiment, case, mutant)
    for key, value in _texts(mutant.params):
        if _HUNK.search(value):
            yield key, value.splitlines()
        elif value in files:
            yield value, _lines(files[value])


def _patch_files(experiment: Experiment, case: Case, mutant: Variant) -> dict[str, Path]:
    """Patches by their name as written: only those that results depend on, so that params can name no other file."""
    named = {file.name: file.path for file in case.inputs}
    named |= {name.rpartition(":")[2]: path for name, path in _variant_files(experiment, mutant).items()}
    return {name: path for name, path in named.items() if name.endswith(_SUFFIXES)}


def _variant_files(experiment: Experiment, mutant: Variant) -> Mapping[str, Path]:
    return _if_there(lambda: experiment.runner.variant_files(mutant.params, experiment.folder))


def _if_there(ask: Callable[[], Mapping[str, Path]]) -> Mapping[str, Path]:
    """The files that a runner names; none where one is missing by now."""
    try:
        return ask()
    except SourceError:
        return {}


def _replaced(experiment: Experiment, mutant: Variant) -> Iterator[tuple[str, list[str]]]:
    """Files of the source beside those that take their place."""
    replace = mutant.params.get("replace")
    if not isinstance(replace, Mapping) or not replace:
        return
    shared = _if_there(lambda: experiment.runner.shared_files(experiment.folder))
    files = {**shared, **_variant_files(experiment, mutant)}
    for name, by in replace.items():
        before, after = files.get(f"source:{name}"), files.get(f"mutant:{by}")
        if before is not None and after is not None:
            yield str(name), _compared(_lines(before), _lines(after), str(name), str(by))


def _inputs_changed(case: Case, mutant: Variant) -> Iterator[tuple[str, list[str]]]:
    """Inputs beside the text that the mutant has in their place, in its params under ``files``."""
    files, given = mutant.params.get(_FILES), case.baseline.params.get(_FILES)
    inputs = {file.name: file.path for file in case.inputs}
    for name, text in files.items() if isinstance(files, Mapping) else ():
        before = given.get(name) if isinstance(given, Mapping) else None
        if isinstance(text, str) and (isinstance(before, str) or name in inputs):
            old = before.splitlines() if isinstance(before, str) else _lines(inputs[name])
            yield name, _compared(old, text.splitlines(), name, name)


def _without(params: Mapping[str, Json], files: Mapping[str, object]) -> dict[str, Json]:
    """Params without the texts of these files, and without ``files`` where there is no other."""
    there = params.get(_FILES)
    if not isinstance(there, Mapping):
        return dict(params)
    rest = {name: text for name, text in there.items() if name not in files}
    return {key: value for key, value in params.items() if key != _FILES} | ({_FILES: rest} if rest else {})


def _texts(value: Json, key: str = "params") -> Iterator[tuple[str, str]]:
    """Every text in a value, with the name of its key."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(item, str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, key)


def _lines(path: Path) -> list[str]:
    """The lines of a file's beginning; none where it cannot be read."""
    try:
        with open_regular(path.resolve()) as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def _params_diff(baseline: Mapping[str, Json], mutant: Mapping[str, Json]) -> list[str]:
    lines = _compared(_yaml_lines(baseline), _yaml_lines(mutant), "baseline", "mutant")[2:]
    return [line for line in lines if not line.startswith("@@")]


def _yaml_lines(params: Mapping[str, Json]) -> list[str]:
    """Params as an experiment has them, a text of several lines as such: a prompt is compared line by line."""
    if not params:
        return []
    plain = json.loads(json.dumps(params, default=str))
    text = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text.splitlines()


class _Dumper(yaml.SafeDumper):
    """Writes a text of several lines as a block."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _block)


def _compared(before: list[str], after: list[str], old: str, new: str) -> list[str]:
    return list(difflib.unified_diff(before, after, old, new, lineterm=""))


def _diff(what: str, lines: list[str]) -> Diff:
    shown = [DiffLine(_kind(line), line[:_MOST_COLUMNS]) for line in islice(lines, MOST_LINES)]
    return Diff(what, tuple(shown), max(len(lines) - MOST_LINES, 0))


def _kind(line: str) -> str:
    return next((kind for start, kind in _KINDS if line.startswith(start)), "same")
