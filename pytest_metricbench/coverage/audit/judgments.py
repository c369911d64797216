"""What somebody judged about a trace: files of judgments, checked against the audit and bound to a trace by digest."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_metricbench.answers import read_json_file
from pytest_metricbench.contracts import ContractError, Json
from pytest_metricbench.coverage.audit.document import Audit
from pytest_metricbench.coverage.audit.forms import Digest, JudgedKind, Text
from pytest_metricbench.definition.fields import annotation_at, known_keys
from pytest_metricbench.definition.problems import key_text, shortened
from pytest_metricbench.definition.wording import in_words
from pytest_metricbench.messages import and_more

FILE_LIMIT: Final = 16 << 20
"""Bytes of the largest file of judgments that is read."""

JudgedItem: TypeAlias = Literal["capability", "failure_case"]
SCHEMAS: Final[dict[JudgedItem, str]] = {
    "capability": "nemo.eval_author.audit_capability_judgments.v1",
    "failure_case": "nemo.eval_author.audit_failure_case_judgments.v1",
}
EVIDENCE_NAMES: Final[dict[str, JudgedItem]] = {
    "capability-judgments.json": "capability",
    "failure-case-judgments.json": "failure_case",
}
"""What files of judgments are called that an attempt left among its evidence."""


class JudgmentError(Exception):
    """A file of judgments that is not right, or two that do not agree; the message names them and the judgment."""


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Judgment(_Form):
    evidence_index: Annotated[int, Field(ge=0)]
    kind: JudgedKind | Literal["tool_call"]
    description: Text
    status: Literal["satisfied", "missing", "unclear"]
    confidence: Literal["low", "medium", "high"]
    rationale: str
    supporting_trace_refs: list[str] | None = None

    @property
    def item(self) -> str:
        """The item that is judged."""
        raise NotImplementedError


class _CapabilityJudgment(_Judgment):
    capability: Text

    @property
    def item(self) -> str:
        return self.capability


class _FailureCaseJudgment(_Judgment):
    failure_case: Text

    @property
    def item(self) -> str:
        return self.failure_case


class _File(_Form):
    schema_: str = Field(alias="schema")
    trace_sha256: Digest
    judged_by: str | None = None
    instructions: str | None = None


class _CapabilityFile(_File):
    judgments: list[_CapabilityJudgment]


class _FailureCaseFile(_File):
    judgments: list[_FailureCaseJudgment]


_FORMS: Final[dict[JudgedItem, type[_CapabilityFile] | type[_FailureCaseFile]]] = {
    "capability": _CapabilityFile,
    "failure_case": _FailureCaseFile,
}


@dataclass(frozen=True, slots=True)
class Judgment:
    """One judgment: whether the trace shows one piece of an item's evidence."""

    status: str
    """``satisfied``, ``missing`` or ``unclear``."""
    confidence: str
    rationale: str
    supporting_trace_refs: tuple[str, ...] | None
    file: str
    """The name of the file it stands in."""


@dataclass(frozen=True, slots=True)
class Judgments:
    """The judgments of one kind of items about one trace: of one file, or of several that agree."""

    kind: JudgedItem
    trace_sha256: str
    by_evidence: Mapping[tuple[str, int], Judgment]
    """Item, and position of the evidence in its ``evidence_required`` -> judgment."""
    judged_by: str | None = None
    file: str = ""
    """The name of the file they stand in, for messages."""


def read_judgments(path: Path, name: str, audit: Audit, expected: JudgedItem | None = None) -> Judgments:
    """Read one file of judgments and check it against the audit.

    Args:
        path: the file.
        name: what messages call it.
        audit: the audit whose items it judges.
        expected: which items it must judge; None: what its ``schema`` says.

    Raises:
        JudgmentError: it is not of the documented form, or judges something that the audit does not leave to judges.
    """
    try:
        content = read_json_file(path, FILE_LIMIT)
    except ContractError as error:
        raise JudgmentError(f"{name}: {error}") from None
    kind = _kind(content, name, expected)
    form = _validated(_FORMS[kind], content, name)
    found: dict[tuple[str, int], Judgment] = {}
    for number, entry in enumerate(form.judgments):
        where = f"{name}: judgments[{number}]"
        _check_target(where, kind, entry, audit)
        refs = None if entry.supporting_trace_refs is None else tuple(entry.supporting_trace_refs)
        judgment = Judgment(entry.status, entry.confidence, entry.rationale, refs, name)
        key = (entry.item, entry.evidence_index)
        if key in found:
            raise JudgmentError(f"{where}: {_twice(kind, key, found[key], judgment)}")
        found[key] = judgment
    return Judgments(kind, form.trace_sha256, found, form.judged_by, name)


def together(files: Iterable[Judgments]) -> Judgments | None:
    """The judgments of several files of one kind about one trace; None of no file.

    Raises:
        JudgmentError: two of them judge the same evidence.
    """
    known = list(files)
    if len(known) < 2:
        return known[0] if known else None
    found: dict[tuple[str, int], Judgment] = {}
    for judgments in known:
        for key, judgment in judgments.by_evidence.items():
            if key in found:
                raise JudgmentError(f"{judgment.file}: {_twice(judgments.kind, key, found[key], judgment)}")
            found[key] = judgment
    judges = dict.fromkeys(judgments.judged_by for judgments in known if judgments.judged_by is not None)
    first = known[0]
    return Judgments(first.kind, first.trace_sha256, found, ", ".join(judges) or None, first.file)


def _kind(content: Json, name: str, expected: JudgedItem | None) -> JudgedItem:
    schema = content.get("schema") if isinstance(content, dict) else None
    kinds = {text: kind for kind, text in SCHEMAS.items()}
    wanted = SCHEMAS[expected] if expected is not None else " or ".join(kinds)
    if not isinstance(schema, str) or schema not in kinds or (expected is not None and kinds[schema] != expected):
        raise JudgmentError(f"{name}: schema is {shortened(repr(schema))}; {wanted} is expected")
    return kinds[schema]


def _validated(
    form: type[_CapabilityFile] | type[_FailureCaseFile], content: Json, name: str
) -> _CapabilityFile | _FailureCaseFile:
    try:
        return form.model_validate(content)
    except ValidationError as error:
        details = error.errors(include_url=False)
    first = details[0]
    where, last = key_text(first["loc"]), str(first["loc"][-1]) if first["loc"] else ""
    if first["type"] == "missing":
        said = "is missing"
    elif first["type"] == "extra_forbidden":
        said = f"is an unknown key; the keys here are {', '.join(known_keys(form, first['loc'][:-1]))}"
    else:
        words = in_words(first, annotation_at(form, first["loc"]), None)
        said = f"{words.message}; {words.remedy}" if words.remedy else words.message
    raise JudgmentError(f"{name}: {where or last}: {said}{and_more(len(details) - 1, 'problem')}")


def _check_target(where: str, kind: JudgedItem, entry: _Judgment, audit: Audit) -> None:
    name = shortened(entry.item)
    item = audit.item(entry.item)
    said = kind.replace("_", " ")
    if item is None or item.kind != kind:
        other = "" if item is None else f" (it is a {item.kind.replace('_', ' ')})"
        raise JudgmentError(f"{where}: judges the {said} {name!r}, which {audit.name} does not have{other}")
    if entry.evidence_index >= len(item.evidence):
        raise JudgmentError(
            f"{where}: judges evidence {entry.evidence_index} of {name!r}, which has {len(item.evidence)} in "
            f"{audit.name}, counted from 0"
        )
    evidence = item.evidence[entry.evidence_index]
    which = f"evidence {entry.evidence_index} of {name!r}"
    if evidence.tool is not None:
        raise JudgmentError(f"{where}: judges {which}, which is a tool call: that is found in the trace, not judged")
    if (entry.kind, entry.description) != (evidence.kind, evidence.description):
        raise JudgmentError(
            f"{where}: judges {which} as {entry.kind} {shortened(entry.description)!r}, and in {audit.name} it is "
            f"{evidence.kind} {shortened(evidence.description)!r}: judge it anew"
        )


def _twice(kind: JudgedItem, key: tuple[str, int], one: Judgment, other: Judgment) -> str:
    which = f"evidence {key[1]} of the {kind.replace('_', ' ')} {key[0]!r}"
    first = "" if one.file == other.file else f" (first in {one.file})"
    if one.status == other.status:
        return f"{which} is judged twice{first}; keep one judgment"
    return f"{which} is judged twice, and the two contradict: {one.status} and {other.status}{first}"
