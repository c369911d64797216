"""Which judgments are about which trace: those that the experiment names, and those that an attempt left with it."""

from collections.abc import Iterable, Sequence
from os.path import lexists

from pytest_metricbench.contracts import CoverageError, EvidenceFile
from pytest_metricbench.coverage.audit.document import Audit
from pytest_metricbench.coverage.audit.judgments import (
    EVIDENCE_NAMES,
    JudgedItem,
    JudgmentError,
    Judgments,
    read_judgments,
    together,
)
from pytest_metricbench.coverage.traces import changed, is_trace
from pytest_metricbench.digests import digest_stream
from pytest_metricbench.named_files import NamedFile
from pytest_metricbench.plain_files import open_regular


class JudgmentDesk:
    """Finds the judgments about a trace; each file is read once."""

    def __init__(self, audit: Audit, named: Iterable[NamedFile]) -> None:
        """Read the files that the experiment names; one that is absent is left out.

        Raises:
            JudgmentError: one is not right.
        """
        self._audit = audit
        self._left: dict[tuple[str, JudgedItem], Judgments] = {}
        files = [read_judgments(file.path, file.written, audit) for file in named if lexists(file.path)]
        self._named: dict[tuple[JudgedItem, str], list[Judgments]] = {}
        for judgments in files:
            self._named.setdefault((judgments.kind, judgments.trace_sha256), []).append(judgments)
        for about_one_trace in self._named.values():
            together(about_one_trace)

    def about(self, kind: JudgedItem, trace: EvidenceFile, left: Sequence[EvidenceFile]) -> Judgments | None:
        """The judgments of one kind of items about a trace; None where there are none.

        Args:
            kind: of the items.
            trace: the file of the trace.
            left: all evidence of its task; that of the same attempt counts.

        Raises:
            JudgmentError: a file that the attempt left is not right, is about no trace of that attempt, or judges
                what another file judges too.
            CoverageError: such a file cannot be read, or has changed since its attempt ended.
        """
        own = [file for file in left if file.trial_id == trace.trial_id]
        found = list(self._named.get((kind, trace.sha256), ()))
        for file in own:
            if EVIDENCE_NAMES.get(file.name.rpartition("/")[2]) == kind:
                judgments = self._left_by(kind, file, [other.sha256 for other in own if is_trace(other)])
                if judgments.trace_sha256 == trace.sha256:
                    found.append(judgments)
        return together(found)

    def _left_by(self, kind: JudgedItem, file: EvidenceFile, traces: Sequence[str]) -> Judgments:
        name = f"{file.name} of {file.trial_id}"
        key = (file.sha256, kind)
        if key not in self._left:
            try:
                with open_regular(file.path) as opened:
                    digest = digest_stream(opened)
            except OSError as error:
                raise CoverageError(f"{file.path} cannot be read: {error.strerror}") from None
            if digest != file.sha256:
                raise changed(file.path)
            self._left[key] = read_judgments(file.path, name, self._audit, kind)
        found = self._left[key]
        if found.trace_sha256 not in traces:
            raise JudgmentError(
                f"{name}: judges the trace {found.trace_sha256}, which this attempt did not leave; "
                f"its own is {' and '.join(traces)}"
            )
        return found
