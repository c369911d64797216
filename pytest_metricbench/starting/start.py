"""``--metricbench-init`` and ``python -m pytest_metricbench init``: a first experiment, and what to do next."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.messages import did_you_mean, joined
from pytest_metricbench.starting.about import about
from pytest_metricbench.starting.filling import folder_name, id_of, templates
from pytest_metricbench.starting.finding import KINDS, WORDS, Finding, Kind
from pytest_metricbench.starting.looking import look
from pytest_metricbench.starting.pipeline import workflow
from pytest_metricbench.starting.placing import StartError, existing, place, repository_of
from pytest_metricbench.starting.proposing import EXPERIMENT, LABELS, SCHEMA, Proposal, example

_IGNORED: Final = ".gitignore"
_MARK: Final = re.compile(r"(FILL IN|CHECK): ([^\"\n]*)")
_SHOWN_MARKS: Final = 12


@dataclass(frozen=True, slots=True)
class Spoken:
    """How the user asked, so that what is said can be typed."""

    kind: str
    """The option that names a kind."""
    here: str
    """What writes an experiment into the current folder."""


BY_OPTION: Final = Spoken("--metricbench-init-kind", "pytest --metricbench-init .")
BY_COMMAND: Final = Spoken("--kind", "python -m pytest_metricbench init .")


def start(folder: str | os.PathLike[str], here: Path, kind: str | None, spoken: Spoken) -> list[str]:
    """Write a first experiment into a folder and say what was written, why, and what to do next.

    What the folder holds decides what the experiment is about; where there is no such folder, or nothing in it, what
    ``here`` holds decides which example is written.

    Args:
        folder: where the experiment goes, relative to ``here``; it is made where it does not exist.
        here: the current folder.
        kind: one of :data:`KINDS`; None for the likeliest.
        spoken: how the user asked, for messages.

    Raises:
        StartError: the kind is unknown, a file is in the way, or the folder cannot be written. Nothing was written.
    """
    wanted = _known(kind, spoken)
    path = _named(folder, here)
    found = look(path)
    nearby = look(here) if wanted is None and not _is_taken(path) else []
    name = id_of(folder_name(path), "experiment")
    chosen = next((finding for finding in found if wanted in (None, finding.kind)), None)
    if chosen is not None:
        proposal = about(chosen, path, name)
    else:
        proposal = example(wanted or (nearby[0].kind if nearby else "python"), name)
    files, notes = _all_files(proposal, path)
    _refuse_existing(proposal, files, path, here, spoken)
    where = f"in {_shown(path, here)}" if _is_taken(path) else ""
    unfound = "none" if wanted else "no agent, Harbor dataset, tests or table of results"
    why = [*_why(proposal, found, nearby, here, spoken, f", since {unfound} was found {where}" if where else "")]
    place(files)
    return [*why, "", *_written(files, path, here), *notes, "", *_next(proposal, files, path, here)]


def _named(folder: str | os.PathLike[str], here: Path) -> Path:
    path = Path(os.path.abspath(here / folder))
    if "\0" in str(path):
        raise StartError("a folder has no null character in its name; nothing was written. Name a folder")
    if os.path.lexists(path) and not os.path.isdir(path):
        raise StartError(f"{_shown(path, here)} is no folder; nothing was written. Name a folder")
    return path


def _known(kind: str | None, spoken: Spoken) -> Kind | None:
    if kind is None or kind in KINDS:
        return kind
    remedy = joined(did_you_mean(kind, KINDS), f"there are {', '.join(KINDS)}")
    raise StartError(f"{spoken.kind}: {kind!r} is no kind; {remedy}")


def _is_taken(path: Path) -> bool:
    """Whether there is a folder with something in it."""
    try:
        return any(not name.startswith(".") for name in os.listdir(path))
    except OSError:
        return False


# ---------------------------------------------------------------- files


def _all_files(proposal: Proposal, folder: Path) -> tuple[dict[Path, str], list[str]]:
    """Every file with its text, and what is said of those that are left out."""
    files = {folder / name: text for name, text in proposal.files.items()}
    notes = []
    schema = schema_of_experiments()
    if not _has_text(folder / SCHEMA, schema):
        files[folder / SCHEMA] = schema
    if existing([folder / _IGNORED]):
        notes.append("left .gitignore as it is: the store, .metricbench/, has one of its own")
    else:
        files[folder / _IGNORED] = templates("common")["gitignore"]
    found = workflow(proposal, folder)
    if found is None:
        notes.append("left the CI workflows as they are: there is one of this name")
    else:
        files[found[0]] = found[1]
    return files, notes


@cache
def schema_of_experiments() -> str:
    """The JSON Schema of experiment files, as this version understands them without plugins."""
    from pytest_metricbench import coverage, runners
    from pytest_metricbench.definition.schema import experiment_schema, schema_text
    from pytest_metricbench.generating.builtin import BUILTIN

    return schema_text(experiment_schema(runners.BUILTIN, coverage.BUILTIN, BUILTIN))


def _has_text(path: Path, text: str) -> bool:
    try:
        return path.read_text("utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _refuse_existing(proposal: Proposal, files: Mapping[Path, str], folder: Path, here: Path, spoken: Spoken) -> None:
    there = existing(list(files))
    if not there:
        return
    exist = f"{', '.join(_shown(path, here) for path in there)} exist{'s' if len(there) == 1 else ''}"
    if folder / EXPERIMENT in there:
        run = f"pytest {shlex.quote(_shown(folder / EXPERIMENT, here))}"
        remedy = f"There is an experiment already: run it ({run}), move it, or name another folder"
    elif proposal.finding is None:
        remedy = (
            f"The example of {WORDS[proposal.kind]} has files of that name: "
            f"name a new folder, or another kind with {spoken.kind}"
        )
    else:
        remedy = "Move what is there"
    raise StartError(f"{exist}; nothing was written. {remedy}")


def _shown(path: Path, here: Path) -> str:
    """A path as the user would type it."""
    relative = os.path.relpath(path, here)
    return relative if not relative.startswith("../..") else str(path)


# ---------------------------------------------------------------- what is said


def _why(
    proposal: Proposal,
    found: Sequence[Finding],
    nearby: Sequence[Finding],
    here: Path,
    spoken: Spoken,
    unfound: str,
) -> Iterator[str]:
    """What was found and chosen, and what else is possible; ``unfound`` says why it is an example, of a used folder."""
    words = WORDS[proposal.kind]
    if proposal.finding is not None:
        yield f"{proposal.kind}: an experiment about {words}: {proposal.finding.reason}"
        for finding in found:
            if finding.kind != proposal.kind:
                yield f"  also possible, with {spoken.kind} {finding.kind}: {finding.reason}"
    elif nearby:
        yield f"{proposal.kind}: an example of {words}, since this is in {here}: {nearby[0].reason}"
        yield f"  an experiment about that stands beside it: {spoken.here}"
    else:
        others = "|".join(kind for kind in KINDS if kind != proposal.kind)
        yield f"{proposal.kind}: an example of {words}{unfound} (others: {spoken.kind} {others})"
        for finding in found:
            yield f"  found, with {spoken.kind} {finding.kind}: {finding.reason}"


def _written(files: Mapping[Path, str], folder: Path, here: Path) -> Iterator[str]:
    shown: dict[str, str] = {}
    for path in files:
        name = os.path.relpath(path, folder)
        if ".github" in path.parts:
            is_above = name.startswith("..")
            words = "runs it in CI, for every change"
            words += "" if is_above or repository_of(folder) else "; its place is the top of a repository"
            shown[_shown(path, here) if is_above else name] = words
        elif os.sep in name:
            shown[f"{name.split(os.sep)[0]}{os.sep}"] = ""
        else:
            shown[name] = LABELS.get(name, "")
    yield f"wrote in {_shown(folder, here)}"
    yield from _columns(shown.items())


def _columns(rows: Iterable[tuple[str, str]]) -> list[str]:
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    return [f"  {name:<{width}}  {words}".rstrip() for name, words in rows]


def _next(proposal: Proposal, files: Mapping[Path, str], folder: Path, here: Path) -> Iterator[str]:
    """What the user does now."""
    file = shlex.quote(_shown(folder / EXPERIMENT, here))
    marks = [mark for name in proposal.files for mark in _marks(files[folder / name], _shown(folder / name, here))]
    problems = [*_problems(folder / EXPERIMENT), *_missing(proposal)]
    if marks:
        yield "what only you know"
        yield from (f"  {mark}" for mark in _few(marks))
        yield ""
    if problems:
        yield "what it needs before it can run"
        yield from (f"  {problem}" for problem in problems)
        yield ""
    workers = "" if proposal.kind in ("python", "table") else " -n auto"
    rows = [
        (f"pytest {file} --metricbench-show plan", "what a run would do"),
        (f"pytest {file}{workers}", "run it"),
        (f"pytest {file} --metricbench-show survivors", "the damage that no task notices"),
    ]
    yield "next"
    yield from _columns(rows[1:] if proposal.kind == "table" else rows)
    yield f"then commit it, with the lock that the run writes beside it ({EXPERIMENT.removesuffix('.yml')}.lock.yml)"


def _marks(text: str, name: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if (found := _MARK.search(line)) is not None:
            yield f"{name}:{number}: {found[1].lower()}: {found[2].strip()}"


def _few(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _SHOWN_MARKS
    return [*lines[:_SHOWN_MARKS], *([f"and {more} more"] if more > 0 else [])]


def _missing(proposal: Proposal) -> list[str]:
    """What the experiment asks for beside the package, and is not here."""
    if proposal.kind == "harbor" and proposal.finding is not None and not proposal.finding.values["docker"]:
        return ["docker is not on PATH: install it, or name another environment under runner"]
    return []


def _problems(path: Path) -> list[str]:
    """Why the experiment does not load here, such as a package that is missing; none where it does."""
    from pytest_metricbench.stages import load_experiment

    try:
        load_experiment(path)
    except DefinitionError as error:
        return str(error).splitlines()
    return []
