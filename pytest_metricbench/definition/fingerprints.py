"""What a kept result depends on, as digests: of attempts, of the verifier, of coverage settings.

Values go in as they are written in the YAML, ``{python}`` literally, and files by their content, so that a store that
is copied to another folder stays valid and a changed file makes exactly the results stale that depend on it.
"""

import fnmatch
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from pytest_metricbench.argv import Argv
from pytest_metricbench.bases import Role
from pytest_metricbench.contracts import FORMAT_VERSION, Json
from pytest_metricbench.definition.experiment import Case, CoverageEntry, Experiment, Task, Variant
from pytest_metricbench.definition.fields import role_of
from pytest_metricbench.digests import canonical_json, digest_bytes, digest_file, digest_value
from pytest_metricbench.named_files import NamedFile
from pytest_metricbench.sources import SourceError
from pytest_metricbench.targets import Target

ABSENT: Final = "absent"
"""Stands for the content of a file that is neither there nor in the store: equal to no digest."""
_SHARED: Final = "shared:"
"""What the names of files begin with, among those that were read, on which every attempt depends."""


def attempt_seed(experiment_seed: int, case_id: str, variant_id: str, task_id: str, slot: int) -> int:
    """The seed of one attempt: stable over runs and machines, 0 <= seed < 2**32.

    The first four bytes of the SHA-256 digest of the canonical JSON of its arguments. ``variant_id`` is the
    variant's own id, ``control-1`` for a control.
    """
    text = f"{_seed_text(experiment_seed, case_id, variant_id, task_id)},{slot}]"
    return int.from_bytes(hashlib.sha256(text.encode("ascii")).digest()[:4], "big")


@lru_cache(maxsize=1024)
def _seed_text(experiment_seed: int, case_id: str, variant_id: str, task_id: str) -> str:
    """The canonical JSON up to the slot, which is all that differs from one attempt of a task to the next."""
    return canonical_json([experiment_seed, case_id, variant_id, task_id])[:-1]


@dataclass
class Fingerprints:
    """The digests of one experiment. Each file is read once, when a digest first needs it.

    Raises:
        OSError: (every method) a file cannot be read, and ``known`` is not given.
    """

    experiment: Experiment
    known: Mapping[str, str] | None = None
    """Digests of files as a store recorded them (:attr:`files`), taken for those that are absent. Without it an absent
    file is an error."""
    files: dict[str, str] = field(default_factory=dict, init=False)
    """Digest of every file that was read so far: what it is and its name as written -> digest."""
    _contents: dict[Path, str] = field(default_factory=dict, init=False, repr=False)
    _attempts: dict[tuple[str, str, str], str] = field(default_factory=dict, init=False, repr=False)
    _parts: dict[tuple[str, ...], str] = field(default_factory=dict, init=False, repr=False)

    def attempt(self, case: Case, variant: Variant, task: Task) -> str:
        """Digest of everything that shapes the attempts of a variant on a task.

        The format version, the experiment's seed, the runner's kind and the fields that shape results with the
        contents of the files they name, the case's inputs, the variant's id and params, the task's id and params.
        """
        key = (case.id, variant.id, task.id)
        if key not in self._attempts:
            head, task_digest = self._head(case), self._task(case, task)
            # The canonical JSON in pieces, of which most are the same for all: there can be very many attempts.
            text = f'{head}"task":"{task_digest}","variant":"{self._variant(case, variant)}"}}'
            self._attempts[key] = digest_bytes(text.encode("ascii"))
        return self._attempts[key]

    def _head(self, case: Case) -> str:
        """The canonical JSON of what an attempt's digest is made of, as far as it is the same for all of a case."""
        key = ("head", case.id)
        if key not in self._parts:
            value = {
                "metricbench": FORMAT_VERSION,
                "seed": self.experiment.seed,
                "runner": self._runner(Role.RESULT),
                "inputs": self._inputs(case),
            }
            self._parts[key] = f"{canonical_json(value)[:-1]},"  # these names come before the others
        return self._parts[key]

    def verifier(self) -> str:
        """Digest of the runner's fields that shape scores only, with the contents of the files they name."""
        return self._runner(Role.VERIFIER)

    def coverage_settings(self, entry: CoverageEntry) -> str:
        """Digest of a coverage system's kind and fields, time-outs left out, with the contents of their files."""
        key = ("coverage", entry.id)
        if key not in self._parts:
            shaping = (Role.RESULT, Role.VERIFIER)
            self._parts[key] = digest_value(self._fields(entry.system, shaping, f"coverage:{entry.id}"))
        return self._parts[key]

    @property
    def contents(self) -> Mapping[Path, str]:
        """Digest of every file that was read so far and is there, by where it is."""
        return self._contents

    def summary(self) -> dict[str, Json]:
        """What a store keeps about the experiment: digests of its parts, its subsets, and :attr:`files`."""
        experiment = self.experiment
        summary = {
            "metricbench": FORMAT_VERSION,
            "experiment": experiment.name,
            "seed": experiment.seed,
            "runner": self._runner(Role.RESULT),
            "verifier": self.verifier(),
            "cases": {case.id: self._case(case) for case in experiment.cases},
            "coverage": {entry.id: self.coverage_settings(entry) for entry in experiment.coverage},
        }
        return {**summary, "files": dict(sorted(self.files.items()))}

    # ------------------------------------------------------------ parts

    def _case(self, case: Case) -> dict[str, Json]:
        return {
            "inputs": self._inputs(case),
            "variants": {variant.id: self._variant(case, variant) for variant in case.variants},
            "tasks": {task.id: self._task(case, task) for task in case.tasks},
            "subsets": {subset.id: list(subset.tasks) for subset in case.subsets},
        }

    def _variant(self, case: Case, variant: Variant) -> str:
        key = ("variant", case.id, variant.id)
        if key not in self._parts:
            runner, folder = self.experiment.runner, self.experiment.folder
            named = partial(runner.variant_files, variant.params, folder)
            value = {
                "id": variant.id,
                "request_id": variant.request_id,
                "params": variant.params,
                **self._named_by(f"variant:{case.id}:{variant.id}:", named),
            }
            self._parts[key] = digest_value(value)
        return self._parts[key]

    def _task(self, case: Case, task: Task) -> str:
        key = ("task", case.id, task.id)
        if key not in self._parts:
            named = partial(self.experiment.runner.task_files, task.params, self.experiment.folder)
            value = {"id": task.id, "params": task.params, **self._named_by(f"task:{case.id}:{task.id}:", named)}
            self._parts[key] = digest_value(value)
        return self._parts[key]

    def _named_by(self, scope: str, ask: Callable[[], Mapping[str, Path]]) -> dict[str, Json]:
        """The contents of the files that params name; no key where they name none."""
        contents = self._named_contents(scope, ask)
        return {"files": contents} if contents else {}

    def _named_contents(self, scope: str, ask: Callable[[], Mapping[str, Path]]) -> dict[str, str]:
        """Name -> digest of files that a runner names."""
        try:
            named = ask()
        except SourceError as error:
            if self.known is None:
                raise OSError(error.message) from error
            named = {}
        if self.known is not None and not any(path.exists() for path in named.values()):
            recorded = [key.removeprefix(scope) for key in self.known if key.startswith(scope)]
            named = {name: self.experiment.folder / name for name in recorded} or named
        return {name: self._content(f"{scope}{name}", named[name]) for name in sorted(named)}

    def _inputs(self, case: Case) -> str:
        key = ("inputs", case.id)
        if key not in self._parts:
            named = self._shared()
            for file in case.inputs:
                named.update(self._input(f"case:{case.id}:", file.name, file.path))
            self._parts[key] = digest_value(named)
        return self._parts[key]

    def _shared(self) -> dict[str, str]:
        """The contents of the files that the runner names for all attempts, told once: there can be many of both."""
        named = partial(self.experiment.runner.shared_files, self.experiment.folder)
        return {f"{_SHARED}{name}": digest for name, digest in self._named_contents(_SHARED, named).items()}

    def _input(self, scope: str, name: str, path: Path) -> dict[str, str]:
        if self.known is not None and not path.exists():
            recorded = {key.removeprefix(scope): key for key in self.known if key.startswith(scope)}
            if name not in recorded:  # a glob whose files are all gone: what it matched is in the store
                matching = [found for found in sorted(recorded) if _matches(found, name)]
                return {found: self._content(recorded[found], path) for found in matching} or {name: ABSENT}
        return {name: self._content(f"{scope}{name}", path)}

    def _runner(self, role: Role) -> str:
        key = ("runner", role.value)
        if key not in self._parts:
            self._parts[key] = digest_value(self._fields(self.experiment.runner, (role,), "runner"))
        return self._parts[key]

    def _fields(self, model: BaseModel, roles: tuple[Role, ...], scope: str) -> dict[str, Json]:
        """The kind, the fields of those roles as written, and the contents of the files that they name."""
        fields = type(model).model_fields
        chosen = {name for name, info in fields.items() if name != "kind" and role_of(info) in roles}
        contents: dict[str, str] = {}
        for name in sorted(chosen):
            for written, path in self._named(getattr(model, name), scope):
                contents[written] = self._content(f"{scope}:{written}", path)
        return {
            "kind": getattr(model, "kind", type(model).__name__),
            "fields": model.model_dump(mode="json", by_alias=True, include=chosen),
            "files": contents,
        }

    def _named(self, value: Any, scope: str) -> Iterator[tuple[str, Path]]:
        """(as written, where it is) of the files that a field's value names, however deep it is nested."""
        if isinstance(value, Argv):
            files = dict(value.files)
            for written in value.written:
                if written in files or self._was_recorded(f"{scope}:{written}"):
                    yield written, files.get(written, self.experiment.folder / written)
        elif isinstance(value, Target):
            if value.file is not None or self._was_recorded(f"{scope}:{value.written}"):
                yield value.written, value.file or self.experiment.folder / value.written
        elif isinstance(value, NamedFile):
            yield value.written, value.path
        elif isinstance(value, BaseModel):
            for name in type(value).model_fields:
                yield from self._named(getattr(value, name), scope)
        elif isinstance(value, Mapping):
            for entry in value.values():
                yield from self._named(entry, scope)
        elif isinstance(value, list | tuple | set | frozenset):
            for entry in value:
                yield from self._named(entry, scope)

    # ------------------------------------------------------------ files

    def _was_recorded(self, key: str) -> bool:
        return self.known is not None and key in self.known

    def _content(self, key: str, path: Path) -> str:
        if path not in self._contents:
            if self.known is not None and not path.exists():
                self.files[key] = self.known.get(key, ABSENT)
                return self.files[key]
            self._contents[path] = digest_file(path)
        self.files[key] = self._contents[path]
        return self.files[key]


def _matches(name: str, pattern: str) -> bool:
    """Whether a recorded name may be one of a glob's: ``**/`` may stand for no folder at all."""
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, pattern.replace("**/", ""))
