"""What a run writes beside its store when it is asked to: results in the formats of other tools.

Whether it can be written is checked before anything runs; a run of hours does not end with a missing folder. What
nobody asks for is not imported.
"""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.reporting.annotations import (
    Annotation,
    AnnotationError,
    CodeQualityReport,
    annotations,
    asks_github,
    github_lines,
)
from pytest_metricbench.reporting.markdown_files import MarkdownError, MarkdownWriter

if TYPE_CHECKING:
    from pytest_metricbench.running.earlier import EarlierRuns


class PublishError(Exception):
    """Something that was asked for cannot be written; the message says what, where and why."""


class Publisher:
    """Writes what the options of a session ask for."""

    def __init__(self, config: pytest.Config) -> None:
        """Read the options; nothing is written yet."""
        self._bundles: Final = _path(config, "metricbench_nemo_bundle")
        self._page: Final = _path(config, "metricbench_html")
        self._command: Final = shlex.join(["pytest", *map(str, config.invocation_params.args)])
        self._start: Final = config.invocation_params.dir
        self._markdown: Final = MarkdownWriter(_path(config, "metricbench_markdown"), os.environ)
        report = _path(config, "metricbench_codequality")
        self._root: Final = _repository_root(config)
        self._quality: Final = None if report is None else CodeQualityReport(report, self._root)
        named: str | None = config.getoption("metricbench_compare")
        self._earlier: Final = _earlier_runs(self._start / named, named) if named else None
        self._incomparable: Final[dict[str, str]] = {}
        """Experiment -> why it turned out that it cannot be compared."""
        self._found: Final[list[Annotation]] = []

    def check(self) -> None:
        """See that everything can be written.

        Raises:
            PublishError: it cannot.
        """
        if self._bundles is not None:
            _require_folder("--metricbench-nemo-bundle", self._bundles)
        if self._page is not None:
            _check_page(self._page)
        try:
            self._markdown.check()
        except MarkdownError as error:
            raise PublishError(f"--metricbench-markdown: {error}") from None
        try:
            if self._quality is not None:
                self._quality.check()
        except AnnotationError as error:
            raise PublishError(f"--metricbench-codequality: {error}") from None

    def begin(self, experiment: Experiment) -> None:
        """Read what an experiment is to be compared with, before its store is opened: it may be the one that is read.

        Raises:
            PublishError: it cannot be read, or not be compared with what is about to run.
        """
        if self._earlier is not None:
            from pytest_metricbench.analysis.comparing_terms import ComparisonError

            try:
                self._earlier.read(experiment)
            except ComparisonError as error:
                raise PublishError(f"--metricbench-compare: {error}") from None

    def compare(self, experiment: Experiment, summary: Summary) -> Summary:
        """The summary with what changed since the earlier run, where one was named."""
        if self._earlier is None:
            return summary
        from pytest_metricbench.analysis.comparing_terms import ComparisonError

        try:
            return self._earlier.compare(experiment, summary)
        except ComparisonError as error:  # the answer is written all the same; publishing says why it lacks that
            self._incomparable[experiment.name] = f"--metricbench-compare: {error}"
            return summary

    def commands(self) -> list[str]:
        """Lines that a GitHub runner reads from the output, on all that was published; none elsewhere."""
        return github_lines(self._found, self._root) if asks_github(os.environ) else []

    def publish(
        self, results: Results, summary: Summary, path: Path, fingerprints: Fingerprints, *, several: bool
    ) -> list[str]:
        """Write everything about one experiment; a sentence on each thing that was written.

        ``fingerprints`` are the session's, which has read the experiment's files; ``several``: it is not the only
        experiment of the session.

        Raises:
            PublishError: something of it could not be written; the rest was.
        """
        said, failed = [], [text for name, text in self._incomparable.items() if name == summary.experiment]
        if self._bundles is not None:
            try:
                said.append(_write_bundles(self._bundles, results, summary))
            except PublishError as error:
                failed.append(str(error))
        try:
            said += self._markdown.write(summary, os.path.relpath(path, self._start))
        except MarkdownError as error:
            failed.append(f"--metricbench-markdown: {error}")
        if self._quality is not None or asks_github(os.environ):
            found = annotations(results.experiment, summary)
            self._found.extend(found)
            try:
                said += [self._quality.write(summary.experiment, found)] if self._quality is not None else []
            except AnnotationError as error:
                failed.append(f"--metricbench-codequality: {error}")
        if self._page is not None:
            try:
                said.append(_write_page(self._page, results, summary, self._command, fingerprints, several=several))
            except PublishError as error:
                failed.append(str(error))
        if failed:
            raise PublishError("; ".join(failed))
        return said


def _repository_root(config: pytest.Config) -> Path:
    """Where CI systems start when they name files: what they say it is, else pytest's root."""
    return Path(os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR") or config.rootpath)


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
    from pytest_metricbench.interop.nemo.trials import BundleError
    from pytest_metricbench.interop.nemo.writing import write_bundles

    try:
        written = write_bundles(folder, results.experiment, results.attempts, primary=summary.settings.primary)
    except BundleError as error:
        raise PublishError(f"--metricbench-nemo-bundle: {error}") from error
    except OSError as error:
        raise PublishError(f"--metricbench-nemo-bundle: {error.filename or folder}: {error.strerror}") from error
    bundles = "1 evaluator bundle" if len(written) == 1 else f"{len(written)} evaluator bundles"
    return f"wrote {bundles} below {folder / results.experiment.name}"


def _earlier_runs(path: Path, named: str) -> "EarlierRuns":
    from pytest_metricbench.running.earlier import EarlierRuns

    return EarlierRuns(path, named)


def _check_page(path: Path) -> None:
    from pytest_metricbench.reporting.html import HtmlError, check_html_possible

    try:
        check_html_possible(path)
    except HtmlError as error:
        raise PublishError(f"--metricbench-html: {error}") from None


def _write_page(
    path: Path, results: Results, summary: Summary, command: str, fingerprints: Fingerprints, *, several: bool
) -> str:
    from pytest_metricbench.reporting.html import HtmlError, page_path, write_html
    from pytest_metricbench.reporting.html_origin import origin_of

    page = page_path(path, summary.experiment, several=several)
    try:
        write_html(page, results, summary, origin_of(results, command=command, fingerprints=fingerprints))
    except HtmlError as error:
        raise PublishError(f"--metricbench-html: {error}") from None
    return f"wrote {page}"
