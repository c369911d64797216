"""The form of an audit: the keys of the block in ``audit.md``, their types, and the JSON Schema that says the same."""

import re
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema
from pydantic_core import PydanticCustomError

from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.schema import DIALECT

AUDIT_SCHEMA: Final = "nemo.eval_author.audit.v1"
NAME_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_.:/-]*$"
DIGEST_PATTERN: Final = r"^sha256:[0-9a-f]{64}$"

ItemKind: TypeAlias = Literal["tool", "capability", "failure_case"]
JudgedKind: TypeAlias = Literal[
    "environment_state",
    "outcome",
    "output",
    "policy_boundary",
    "state_change",
    "trace_span",
    "user_intent",
    "verifier",
]
"""Kinds of evidence that somebody has to judge; the other one is ``tool_call``."""

_REF: Final = "#/$defs/"


def _matching(pattern: str, words: str) -> tuple[AfterValidator, Any]:
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> str:
        if compiled.fullmatch(text) is None:
            raise PydanticCustomError("form", "{message}", {"message": f"is {text[:60]!r}; {words} is expected"})
        return text

    return AfterValidator(check), Field(json_schema_extra={"pattern": pattern})


_NAME: Final = _matching(NAME_PATTERN, "a letter, then letters, digits and _ . : / -,")
_DIGEST: Final = _matching(DIGEST_PATTERN, "sha256: and 64 hexadecimal digits")

Text: TypeAlias = Annotated[str, Field(min_length=1)]
Name: TypeAlias = Annotated[str, *_NAME]
Digest: TypeAlias = Annotated[str, *_DIGEST]


class AuditForm(BaseModel):
    """A mapping of the audit: no keys but these, and no value turned into another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SourceForm(AuditForm):
    """A file that the audit was made from."""

    name: Text
    path: Text = Field(description="Relative to the audit.")
    sha256: Digest
    description: Text


class ToolCallEvidence(AuditForm):
    """A call of a declared tool, found in the trace."""

    kind: Literal["tool_call"]
    tool: Name
    description: Text


class JudgedEvidence(AuditForm):
    """Something that a judgment says about the trace."""

    kind: JudgedKind
    description: Text


class ToolItem(AuditForm):
    """A tool, covered when a trace calls it."""

    kind: Literal["tool"]
    name: Name
    description: Text
    expected_use: Text
    expected_failure_behavior: Text
    evidence_required: list[Any] = Field(min_length=1)
    source_refs: list[Text] = []


class CapabilityItem(AuditForm):
    """Something the agent can do, covered when its tools are called and its evidence is there."""

    kind: Literal["capability"]
    name: Name
    description: Text
    required_tools: list[Name]
    expected_behavior: Text
    evidence_required: list[Any] = Field(min_length=1)
    source_refs: list[Text] = []


class FailureCaseItem(AuditForm):
    """A way to fail that is handled, covered when its evidence is there and no prohibited tool is called."""

    kind: Literal["failure_case"]
    name: Name
    applies_to: list[Name] = Field(min_length=1, description="Capabilities of this audit.")
    description: Text
    trigger: Text
    expected_behavior: Text
    evidence_required: list[Any] = Field(min_length=1)
    expected_tools: list[Name] = []
    prohibited_tools: list[Text] = []
    prohibited_outputs: list[Text] = []
    source_refs: list[Text] = []


class TopForm(AuditForm):
    """The block as a whole; its items and their evidence are checked each as what its ``kind`` says."""

    schema_: Literal["nemo.eval_author.audit.v1"] = Field(alias="schema")
    agent: Text
    status: Literal["draft", "approved"]
    items: list[Any] = Field(min_length=1)
    sources: list[SourceForm] = []


ITEM_FORMS: Final[dict[str, type[AuditForm]]] = {
    "tool": ToolItem,
    "capability": CapabilityItem,
    "failure_case": FailureCaseItem,
}
EVIDENCE_FORMS: Final[dict[str, type[AuditForm]]] = {
    "tool_call": ToolCallEvidence,
    **dict.fromkeys(
        (
            "environment_state",
            "outcome",
            "output",
            "policy_boundary",
            "state_change",
            "trace_span",
            "user_intent",
            "verifier",
        ),
        JudgedEvidence,
    ),
}


def audit_schema() -> dict[str, Json]:
    """The JSON Schema (draft 2020-12) of the block in ``audit.md``.

    It says what can be checked in one place of the block. Whether names are unique, tools and capabilities are
    declared and the digests of sources are right is told when the audit is read.
    """
    forms: list[type[BaseModel]] = [TopForm, *ITEM_FORMS.values(), ToolCallEvidence, JudgedEvidence]
    references, schema = models_json_schema([(form, "validation") for form in forms])
    definitions = schema["$defs"]
    names = {form: str(references[form, "validation"]["$ref"]).removeprefix(_REF) for form in forms}
    for definition in definitions.values():
        for entry in definition.get("properties", {}).values():
            entry.pop("title", None)  # the key in other letters
    evidence = [{"$ref": f"{_REF}{names[form]}"} for form in (ToolCallEvidence, JudgedEvidence)]
    for form in ITEM_FORMS.values():
        definitions[names[form]]["properties"]["evidence_required"]["items"] = {"anyOf": evidence}
    top = definitions.pop(names[TopForm])
    top["properties"]["items"]["items"] = {"anyOf": [{"$ref": f"{_REF}{names[form]}"} for form in ITEM_FORMS.values()]}
    return {
        "$schema": DIALECT,
        "title": "Audit of an agent",
        "description": "The fenced YAML block of audit.md: the tools, capabilities and failure cases of an agent.",
        **{key: top[key] for key in ("type", "properties", "required", "additionalProperties")},
        "$defs": dict(sorted(definitions.items())),
    }
