"""Judgment files as the stand-in scripts read them: bound to a trace, one for each piece of evidence at most."""

import json

SCHEMAS = {
    "capability": "nemo.eval_author.audit_capability_judgments.v1",
    "failure_case": "nemo.eval_author.audit_failure_case_judgments.v1",
}
STATUSES = ("satisfied", "missing", "unclear")
CONFIDENCES = ("low", "medium", "high")


class JudgmentError(Exception):
    pass


class Judgments:
    def __init__(self, document=None):
        self.document = document
        self.by_target = {}

    def summary(self):
        if self.document is None:
            return {"provided": False, "judgment_count": 0}
        named = {key: self.document[key] for key in ("schema", "trace_sha256", "judged_by") if key in self.document}
        return {"provided": True, "judgment_count": len(self.by_target), **named}


def read_judgments(path, kind, audit, trace):
    if path is None:
        return Judgments()
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise JudgmentError(f"{path} cannot be read as judgments: {error}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMAS[kind]:
        raise JudgmentError(f"{path}: schema is not {SCHEMAS[kind]}")
    if document.get("trace_sha256") != trace.digest:
        raise JudgmentError(
            f"{path}: trace_sha256 {document.get('trace_sha256')} is not that of the trace, {trace.digest}"
        )
    if not isinstance(document.get("judgments"), list):
        raise JudgmentError(f"{path}: judgments is no list")
    judgments = Judgments(document)
    items = {item["name"]: item for item in audit.of_kind(kind)}
    for number, entry in enumerate(document["judgments"]):
        target = check(entry, kind, items, f"{path}: judgments[{number}]")
        if target in judgments.by_target:
            raise JudgmentError(f"{path}: judgments[{number}]: {target[0]} evidence {target[1]} is judged twice")
        judgments.by_target[target] = entry
    return judgments


def check(entry, kind, items, where):
    if not isinstance(entry, dict) or entry.get(kind) not in items:
        raise JudgmentError(f"{where}: unknown {kind} {entry.get(kind) if isinstance(entry, dict) else entry!r}")
    evidence, index = items[entry[kind]]["evidence_required"], entry.get("evidence_index")
    if not isinstance(index, int) or not 0 <= index < len(evidence):
        raise JudgmentError(f"{where}: {entry[kind]} has no evidence {index!r}")
    if evidence[index]["kind"] == "tool_call":
        raise JudgmentError(f"{where}: tool_call evidence is deterministic and cannot be judged")
    if any(entry.get(key) != evidence[index][key] for key in ("kind", "description")):
        raise JudgmentError(f"{where}: kind and description must be those of evidence {index} of {entry[kind]}")
    if entry.get("status") not in STATUSES or entry.get("confidence") not in CONFIDENCES:
        raise JudgmentError(f"{where}: status or confidence is not one of those there are")
    return entry[kind], index
