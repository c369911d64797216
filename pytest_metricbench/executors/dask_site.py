"""An experiment of this run as workers are told of it: what they need, and what they must find the same."""

import importlib
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pytest_metricbench import coverage, runners
from pytest_metricbench.digests import digest_file
from pytest_metricbench.executor_settings import DaskSettings
from pytest_metricbench.executors.base import ExecutorError
from pytest_metricbench.executors.dask_files import bundled_files, file_digests
from pytest_metricbench.executors.dask_messages import Home, Site, own_version
from pytest_metricbench.executors.dask_packs import MIB, PackError, pack
from pytest_metricbench.running.bench import Bench

TOKEN: Final = ".dask-"
"""What the name of the file begins with by which workers tell that they see the store."""


def site_of(bench: Bench, settings: DaskSettings) -> tuple[Site, bytes | None]:
    """What workers are told of an experiment, and the bundle of its files if they are sent them.

    Writes the token into the store, which must be open.

    Raises:
        ExecutorError: its files cannot be read or sent, or its runner is in no file that workers could load.
    """
    experiment, folder = bench.experiment, bench.experiment.folder
    is_bundled = settings.files == "bundle"
    limit = settings.evidence_limit * MIB
    digests, content = None, None
    try:
        summary = bench.fingerprints.summary()
        documents = _documents(bench)
        own_kinds = _foreign([(experiment.runner.kind, type(experiment.runner))], runners.BUILTIN, folder, is_bundled)
        systems = [(entry.system.kind, type(entry.system)) for entry in experiment.coverage]
        their_kinds = _foreign(systems, coverage.BUILTIN, folder, is_bundled)
        if is_bundled:
            files = bundled_files(experiment, bench.fingerprints)
            files |= {home.file: folder / home.file for home in (*own_kinds, *their_kinds) if home.file is not None}
            digests = file_digests(files, bench.fingerprints)
            content = pack(files, limit, "the bundle of the experiment's files")
        _forget_former_tokens(bench.layout.root)
        token = f"{TOKEN}{secrets.token_hex(8)}"
        (bench.layout.root / token).write_text(token, "ascii")
    except PackError as error:
        raise ExecutorError(str(error)) from None
    except OSError as error:
        raise ExecutorError(f"{error.filename}: {error.strerror}") from None
    site = Site(
        id=secrets.token_hex(6),
        version=own_version(),
        experiment=experiment.path.name if is_bundled else str(experiment.path),
        bundle=digests,
        documents=documents,
        digests=summary,
        runners=own_kinds,
        systems=their_kinds,
        store=str(bench.layout.root),
        token=token,
        retry_died=bench.retry_died,
        limit=limit,
    )
    return site, content


def forget_token(site: Site) -> None:
    """Remove from the store what workers told by that they see it, and what they kept there for the run."""
    shutil.rmtree(site.answers, ignore_errors=True)
    with suppress(OSError):
        (Path(site.store) / site.token).unlink()


def _forget_former_tokens(store: Path) -> None:
    """Remove what runs left in the store that were killed; it is locked, so none of them goes on."""
    for left in store.glob(f"{TOKEN}*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _documents(bench: Bench) -> dict[str, str]:
    """The YAML files of the experiment -> digest; their names as found from its folder."""
    experiment = bench.experiment
    paths = list(experiment.documents)
    if experiment.lock is not None and experiment.lock.path.is_file():
        paths.append(experiment.lock.path)
    return {Path(os.path.relpath(path, experiment.folder)).as_posix(): digest_file(path) for path in paths}


def _foreign(
    kinds: Iterable[tuple[str, type[Any]]], builtin: Mapping[str, type[Any]], folder: Path, is_bundled: bool
) -> tuple[Home, ...]:
    """Where the classes are that this package does not have, each once.

    Raises:
        ExecutorError: one is in no module that workers could import, and in no file that they could load.
    """
    found = {}
    for kind, cls in kinds:
        if kind not in builtin or builtin[kind] is not cls:
            found[kind] = _home(kind, cls, folder, is_bundled)
    return tuple(found.values())


def _home(kind: str, cls: type[Any], folder: Path, is_bundled: bool) -> Home:
    name, where = cls.__qualname__, f"the kind {kind!r} ({cls.__module__}.{cls.__qualname__})"
    file = getattr(importlib.import_module(cls.__module__), "__file__", None)
    if "<locals>" in name or file is None:
        raise ExecutorError(f"{where} is made by a function, and workers cannot load it; define it in a module")
    path = Path(file)
    if path.name != "conftest.py":
        return Home(kind, cls.__module__, name)
    if not path.is_relative_to(folder):
        if is_bundled:
            raise ExecutorError(
                f"{where} is in {path}, outside the experiment's folder; put it into an installed package, or into a "
                "conftest.py beside the experiment"
            )
        return Home(kind, cls.__module__, name, str(path))
    return Home(kind, cls.__module__, name, path.relative_to(folder).as_posix())
