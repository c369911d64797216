"""What workers without the experiment's folder need of it: everything that its fingerprints know, and its YAML files.

A file that an agent needs and no key names would be missing there, and the agent would seem to have died of it. What
can be told beforehand is told: Python files that import a neighbour which is not among the bundled files.
"""

import ast
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.executors.dask_packs import PackError


def bundled_files(experiment: Experiment, fingerprints: Fingerprints) -> dict[str, Path]:
    """The files of an experiment below its folder that workers need: relative name -> where it is.

    Files elsewhere (inputs that are named absolutely) are not among them: workers need them at the same place, and
    the fingerprints say whether they are there.

    Raises:
        OSError: an input cannot be read.
        PackError: one of them imports a module beside it that is not among them.
    """
    fingerprints.summary()  # reads every file
    paths = {*experiment.documents, *fingerprints.contents}
    if experiment.lock is not None and experiment.lock.path.is_file():
        paths.add(experiment.lock.path)
    folder = experiment.folder
    files = {path.relative_to(folder).as_posix(): path for path in paths if path.is_relative_to(folder)}
    files |= _packages(files, folder)
    _refuse_unnamed(files, folder)
    return dict(sorted(files.items()))


def file_digests(files: Mapping[str, Path], fingerprints: Fingerprints) -> dict[str, str]:
    """Name -> digest of bundled files.

    Raises:
        OSError: one cannot be read.
    """
    from pytest_metricbench.digests import digest_file

    known = fingerprints.contents
    return {name: known[path] if path in known else digest_file(path) for name, path in files.items()}


def _packages(files: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """The ``__init__.py`` of each package that a bundled Python file is in."""
    found = {}
    for path in files.values():
        if path.suffix == ".py":
            for parent in path.relative_to(folder).parents[:-1]:
                if (init := folder / parent / "__init__.py").is_file():
                    found[init.relative_to(folder).as_posix()] = init
    return found


def _refuse_unnamed(files: Mapping[str, Path], folder: Path) -> None:
    for name, path in sorted(files.items()):
        if path.suffix != ".py":
            continue
        for module in _imported(path):
            for home in dict.fromkeys((path.parent, folder)):
                lacking = _beside(module, home)
                if lacking is not None and lacking.relative_to(folder).as_posix() not in files:
                    raise PackError(
                        f"{name} imports {module}, which is {lacking.relative_to(folder).as_posix()} beside it and "
                        "would be missing on the workers; add it to the inputs of the case (then a change of it also "
                        "makes attempts stale), or have the workers see the folder and say files: shared"
                    )


def _beside(module: str, home: Path) -> Path | None:
    """The file of a module in a folder; None where there is none."""
    for path in (
        home.joinpath(*module.split(".")).with_suffix(".py"),
        home.joinpath(*module.split("."), "__init__.py"),
    ):
        if path.is_file():
            return path
    return None


def _imported(path: Path) -> Iterator[str]:
    """The dotted names that a Python file imports, its packages among them; none of a file that cannot be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a module that compiles with a warning compiles
            tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(dict.fromkeys(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            base = [node.module] if node.module else []
            names.update(dict.fromkeys(".".join([*base, alias.name]) for alias in node.names))
            names.update(dict.fromkeys(base))
    for name in names:
        parts = name.split(".")
        yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))
