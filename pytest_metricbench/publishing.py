"""What a run writes beside its store when it is asked to: results in the formats of other tools.

Whether it can be written is checked before anything runs; a run of hours does not end with a missing folder.
"""

import os
from pathlib import Path
from typing import Final

import pytest

from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summary import Summary


class PublishError(Exception):
    """Something that was asked for cannot be written; the message says what, where and why."""


class Publisher:
    """Writes what the options of a session ask for."""

    def __init__(self, config: pytest.Config) -> None:
        """Read the options; nothing is written yet."""
        self._bundles: Final = _path(config, "metricbench_nemo_bundle")

    def check(self) -> None:
        """See that everything can be written.

        Raises:
            PublishError: it cannot.
        """
        if self._bundles is not None:
            _require_folder("--metricbench-nemo-bundle", self._bundles)

    def publish(self, results: Results, summary: Summary) -> list[str]:
        """Write everything about one experiment; a sentence on each thing that was written.

        Raises:
            PublishError: something of it could not be written; the rest was.
        """
        said, failed = [], []
        if self._bundles is not None:
            try:
                said.append(_write_bundles(self._bundles, results, summary))
            except PublishError as error:
                failed.append(str(error))
        if failed:
            raise PublishError("; ".join(failed))
        return said


def _path(config: pytest.Config, option: str) -> Path | None:
    given = config.getoption(option)
    return None if not given else Path(os.path.abspath(config.invocation_params.dir / given))


def _require_folder(option: str, folder: Path) -> None:
    """See that a folder is there or can be made, and written.

    Raises:
        PublishError: it cannot.
    """
    standing = next(parent for parent in (folder, *folder.parents) if os.path.lexists(parent))
    if not standing.is_dir():
        raise PublishError(f"{option}: {standing} is no folder; name another one")
    if not os.access(standing, os.W_OK | os.X_OK):
        raise PublishError(f"{option}: the folder {standing} cannot be written; name another one")


def _write_bundles(folder: Path, results: Results, summary: Summary) -> str:
    if results.outside:
        count = f"{len(results.outside):,} attempts are" if len(results.outside) > 1 else "1 attempt is"
        return f"no evaluator bundle was written: {count} outside this part of the experiment"
    from pytest_metricbench.interop.nemo_trials import BundleError
    from pytest_metricbench.interop.nemo_writing import write_bundles

    try:
        written = write_bundles(folder, results.experiment, results.attempts, primary=summary.settings.primary)
    except BundleError as error:
        raise PublishError(f"--metricbench-nemo-bundle: {error}") from error
    except OSError as error:
        raise PublishError(f"--metricbench-nemo-bundle: {error.filename or folder}: {error.strerror}") from error
    bundles = "1 evaluator bundle" if len(written) == 1 else f"{len(written)} evaluator bundles"
    return f"wrote {bundles} below {folder / results.experiment.name}"
