"""Earlier runs to compare with: their summaries, read from a store or a file that somebody else may have made."""

import os
from pathlib import Path
from typing import Final

from pytest_metricbench.analysis.comparing import compared
from pytest_metricbench.analysis.comparing_terms import (
    ComparisonError,
    require_coherent,
    require_comparable,
    terms_of_experiment,
    terms_of_summary,
)
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.analysis.summary_json import SummaryError, summary_from_json
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.plain_files import open_regular
from pytest_metricbench.store.layout import Layout

LIMIT: Final = 1 << 29
"""Bytes of a summary that are read; one of 100 mutants, 200 tasks and 10 attempts has some 20 million."""


class EarlierRuns:
    """The earlier runs that the experiments of a session are compared with, all named by one path."""

    def __init__(self, path: Path, source: str) -> None:
        """Nothing is read yet.

        Args:
            path: a summary, a store, or a folder that has stores under the experiments' names.
            source: the path as it was given, for readers.
        """
        self._path, self._source = path, source
        self._summaries: Final[dict[str, Summary]] = {}

    def read(self, experiment: Experiment) -> None:
        """Read the earlier run of an experiment, before a store is opened: it may be the one that is written.

        Raises:
            ComparisonError: there is none, it cannot be read, or it cannot be compared with what is about to run.
        """
        summary = read_earlier(self._path, experiment.name)
        require_comparable(terms_of_summary(summary), terms_of_experiment(experiment))
        self._summaries[experiment.name] = summary

    def compare(self, experiment: Experiment, summary: Summary) -> Summary:
        """The summary of an experiment that was read, with its comparison and the gates that need one.

        Raises:
            ComparisonError: figures of the two do not mean the same after all: the primary score turned out another.
        """
        return compared(summary, self._summaries[experiment.name], self._source, experiment.gates)


def read_earlier(path: Path, experiment: str) -> Summary:
    """The summary to compare with.

    Args:
        path: a summary, a store, or a folder that has the store under the experiment's name.
        experiment: name of the experiment.

    Raises:
        ComparisonError: there is none, or it cannot be read; the message says what to do.
    """
    # A link that is named is meant; one in a store, which may be a stranger's, is not followed.
    file = _summary_file(path, experiment) if path.is_dir() else Path(os.path.realpath(path))
    text = _read(file)
    try:
        summary = summary_from_json(text)
        require_coherent(summary)
    except (SummaryError, ComparisonError, RecursionError) as error:
        said = "the summary is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ComparisonError(
            f"{file}: {said}; a store gives its summary anew with --metricbench-cached-only"
        ) from None
    return summary


def _summary_file(folder: Path, experiment: str) -> Path:
    """The whole answer of a store; that of a part is taken only when it is named itself."""
    stores = [folder, folder / experiment]
    for store in stores:
        if os.path.lexists(Layout(store).summary):
            return Layout(store).summary
    for store in stores:
        if os.path.lexists(Layout(store).partial_summary):
            part = Layout(store).partial_summary.name
            raise ComparisonError(
                f"{store}: there is no summary of a whole run in it; finish that run, or name its {part}"
            )
    raise ComparisonError(f"{folder}: there is no summary.json in it, nor a store of {experiment!r} with one")


def _read(file: Path) -> str:
    try:
        with open_regular(file) as opened:
            content = opened.read(LIMIT + 1)
    except FileNotFoundError:
        raise ComparisonError(f"{file}: there is no such file or folder") from None
    except OSError as error:
        raise ComparisonError(f"{file}: cannot be read: {error.strerror}") from None
    if len(content) > LIMIT:
        raise ComparisonError(f"{file}: it has more than {LIMIT:,} bytes, so it is no summary")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ComparisonError(f"{file}: it is no UTF-8 text: byte {error.start + 1} is wrong") from None
