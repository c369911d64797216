"""The marked YAML block of an ``audit.md``, read and checked for the stand-in scripts."""

import hashlib
import re
import sys

try:
    import yaml
except ImportError:
    import json

    print(
        json.dumps({
            "valid": None, "written": False, "error_type": "environment",
            "error": "PyYAML is required to parse audit specs",
        })
    )  # fmt: skip
    sys.exit(2)

BEGIN = "<!-- BEGIN:nemo-eval-author-audit:v1 -->"
END = "<!-- END:nemo-eval-author-audit:v1 -->"
SCHEMA = "nemo.eval_author.audit.v1"
KINDS = ("capability", "failure_case", "tool")
JUDGED_KINDS = {
    "environment_state", "outcome", "output", "policy_boundary", "state_change", "trace_span", "user_intent",
    "verifier",
}  # fmt: skip
COMMON = {"kind", "name", "description", "evidence_required"}
NEEDED = {
    "tool": COMMON | {"expected_use", "expected_failure_behavior"},
    "capability": COMMON | {"required_tools", "expected_behavior"},
    "failure_case": COMMON | {"applies_to", "trigger", "expected_behavior"},
}
ALLOWED = {
    "tool": {"source_refs"},
    "capability": {"source_refs"},
    "failure_case": {"source_refs", "expected_tools", "prohibited_tools", "prohibited_outputs"},
}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:/-]*")


class AuditError(Exception):
    pass


class Audit:
    def __init__(self, spec):
        self.spec = spec
        self.items = spec["items"]

    def of_kind(self, kind):
        return [item for item in self.items if item["kind"] == kind]

    def counts(self):
        return {kind: len(self.of_kind(kind)) for kind in KINDS}

    def identity(self, path):
        return {
            "path": str(path),
            "schema": self.spec["schema"],
            "agent": self.spec["agent"],
            "status": self.spec["status"],
            "item_count": len(self.items),
        }


def read_audit(path):
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise AuditError(f"{path} cannot be read: {error}") from None
    begins = [number for number, line in enumerate(lines) if line.strip() == BEGIN]
    ends = [number for number, line in enumerate(lines) if line.strip() == END]
    if len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
        raise AuditError(f"{path} must have exactly one block from {BEGIN} to {END}")
    block = "\n".join(lines[begins[0] + 1 : ends[0]])
    fences = re.findall(r"```ya?ml[ \t]*\n(.*?)\n```", block, re.DOTALL)
    if len(fences) != 1:
        raise AuditError(f"{path}: the marked block must have exactly one fenced yaml block")
    try:
        spec = yaml.safe_load(fences[0])
    except yaml.YAMLError as error:
        raise AuditError(f"audit YAML does not parse: {error}") from None
    faults = list(structure(spec)) or list(sources(spec, path)) or list(references(spec))
    if faults:
        raise AuditError("\n".join(faults))
    return Audit(spec)


def structure(spec):
    if not isinstance(spec, dict):
        yield "audit: not a mapping"
        return
    yield from keys("audit", spec, {"schema", "agent", "status", "items"}, {"sources"})
    if spec.get("schema") != SCHEMA:
        yield f"audit.schema: {spec.get('schema')!r} is not {SCHEMA!r}"
    if spec.get("status") not in ("draft", "approved"):
        yield f"audit.status: {spec.get('status')!r} is neither 'draft' nor 'approved'"
    if not isinstance(spec.get("agent"), str) or not spec.get("agent"):
        yield "audit.agent: not a text"
    if not isinstance(spec.get("items"), list) or not spec["items"]:
        yield "audit.items: at least one item is needed"
        return
    for number, item in enumerate(spec["items"]):
        yield from item_faults(f"audit.items[{number}]", item)


def item_faults(where, item):
    kind = item.get("kind") if isinstance(item, dict) else None
    if kind not in KINDS:
        yield f"{where}.kind: {kind!r} is not one of {', '.join(KINDS)}"
        return
    yield from keys(where, item, NEEDED[kind], ALLOWED[kind])
    if not isinstance(item.get("name"), str) or not NAME.fullmatch(item["name"]):
        yield f"{where}.name: {item.get('name')!r} is no name"
    for key in ("required_tools", "applies_to", "expected_tools", "prohibited_tools"):
        value = item.get(key, [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            yield f"{where}.{key}: not a list of names"
        elif key == "applies_to" and key in item and not value:
            yield f"{where}.{key}: at least one capability is needed"
    evidence = item.get("evidence_required")
    if not isinstance(evidence, list) or not evidence:
        yield f"{where}.evidence_required: at least one entry is needed"
        return
    for number, entry in enumerate(evidence):
        inner = f"{where}.evidence_required[{number}]"
        found = entry.get("kind") if isinstance(entry, dict) else None
        if found == "tool_call":
            yield from keys(inner, entry, {"kind", "tool", "description"}, set())
        elif found in JUDGED_KINDS:
            yield from keys(inner, entry, {"kind", "description"}, set())
        else:
            yield f"{inner}.kind: {found!r} is no kind of evidence"


def keys(where, mapping, needed, allowed):
    for name in sorted(needed - set(mapping)):
        yield f"{where}: {name!r} is a required property"
    for name in sorted(set(map(str, mapping)) - needed - allowed):
        yield f"{where}: additional properties are not allowed ({name!r})"


def sources(spec, path):
    for number, source in enumerate(spec.get("sources") or []):
        digest, place = source.get("sha256"), path.parent / str(source.get("path"))
        if digest is None:
            continue
        try:
            actual = "sha256:" + hashlib.sha256(place.read_bytes()).hexdigest()
        except OSError as error:
            yield f"audit.sources[{number}].path: {place} cannot be read: {error}"
            continue
        if actual != digest:
            yield f"audit.sources[{number}].sha256: {place} has {actual}, not {digest}"


def references(spec):
    items = spec["items"]
    names = [item["name"] for item in items]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"audit.items: the name {name!r} is duplicated"
    tools = {item["name"] for item in items if item["kind"] == "tool"}
    capabilities = {item["name"] for item in items if item["kind"] == "capability"}
    for number, item in enumerate(items):
        wanted = [*item.get("required_tools", []), *item.get("expected_tools", [])]
        wanted += [entry["tool"] for entry in item["evidence_required"] if "tool" in entry]
        for name in wanted:
            if name not in tools:
                yield f"audit.items[{number}]: unknown tool name {name!r}"
        for name in item.get("applies_to", []):
            if name not in capabilities:
                yield f"audit.items[{number}].applies_to: unknown capability name {name!r}"
