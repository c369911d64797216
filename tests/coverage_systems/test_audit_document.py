"""``audit.md``: its one block, its forms, its references, each mistake with its line in the Markdown file."""

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_metricbench.coverage.audit.document import BEGIN, END, Audit, read_audit
from pytest_metricbench.coverage.audit.forms import audit_schema
from pytest_metricbench.coverage.audit.system import AuditCoverage
from pytest_metricbench.definition.problems import ProblemList
from pytest_metricbench.definition.schema import schema_text

SAMPLES = Path(__file__).parent / "samples" / "audit"
MIXED = (SAMPLES / "audit-mixed.md").read_text("utf-8")
LAST_EVIDENCE = "    evidence_required:\n      - kind: output\n        description: Agent refuses direct recovery.\n"
SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "audit.schema.json"
HEAD = ["schema: nemo.eval_author.audit.v1", "agent: a", "status: draft", "items:"]
TOOL = [
    "  - kind: tool",
    "    name: look",
    "    description: Looks.",
    "    expected_use: Often.",
    "    expected_failure_behavior: Says so.",
    "    evidence_required: [{kind: tool_call, tool: look, description: A call.}]",
]


def marked(*lines: str) -> str:
    """An audit whose block begins in line 5."""
    return "\n".join(["# Audit", "", BEGIN, "```yaml", *lines, "```", END, ""])


def read(folder: Path, text: str | bytes, **keys: Any) -> tuple[Audit | None, list[str]]:
    path = folder / "audit.md"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    problems = ProblemList()
    audit = read_audit(path, "audit.md", problems, **keys)
    return audit, [str(problem).removeprefix(f"{path}:") for problem in problems.found]


# ---------------------------------------------------------------- the block


@pytest.mark.parametrize("name", ["audit-mixed.md", "audit-tool-only.md"])
def test_the_samples_are_right(name: str) -> None:
    problems = ProblemList()
    audit = read_audit(SAMPLES / name, name, problems)
    assert audit is not None
    assert (audit.agent, audit.status) == ("sample-agent", "approved")
    assert {item.name for item in audit.of_kind("tool")} == {"customer.lookup", "ticket.create"}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("```yaml", "````yaml").replace("\n```\n", "\n````\n"),
        lambda text: text.replace("```yaml", "``` yaml"),
        lambda text: f"```python\nprint()\n```\n\n{text}\n```yaml\nother: block\n```\n",
        lambda text: text.replace(BEGIN, f"  {BEGIN}  ").replace("```yaml", "Some words.\n\n```yaml"),
    ],
    ids=["crlf", "bom", "long fence", "blank", "other fences outside", "words inside"],
)
def test_ways_to_write_the_same_block(tmp_path: Path, change: Any) -> None:
    audit, problems = read(tmp_path, change(MIXED))
    assert problems == []
    assert audit is not None
    assert len(audit.items) == 4


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1: has no marked block; put the audit's fenced ```yaml block between"),
        ("# Audit\n```yaml\nschema: x\n```\n", "1:1: has no marked block; put"),
        (
            MIXED + MIXED,
            "56:1: a second marked block begins here, the first in line 5; an audit has one",
        ),
        (f"\n{BEGIN}\n```yaml\n", f"2:1: the marked block is not whole: {END} is missing after this line; put"),
        (f"\n\n{END}\n", f"3:1: the marked block is not whole: {BEGIN} is missing before this line; put"),
        (f"{END}\n{BEGIN}\n", f"2:1: the marked block is not whole: {END} is missing after this line; put"),
        (f"{BEGIN}\n{END}\n{END}\n", "3:1: a second marked block ends here, the first in line 2; an audit has one"),
        (f"{BEGIN}\nschema: x\n{END}\n", "1:1: the marked block holds no fenced block; begin it with ```yaml, end it"),
        (f"{BEGIN}\n```yaml\na: 1\n{END}\n```\n", "2:1: the fenced block has no end; end it with ``` before the end"),
        (f"{BEGIN}\n```json\n[]\n```\n{END}\n", "2:1: the fenced block is of the language 'json'; begin it with"),
        (
            f"{BEGIN}\n```yaml\na: 1\n```\n\n```yaml\nb: 1\n```\n{END}\n",
            "6:1: a second fenced block, the first is in line 2; an audit has one",
        ),
        (marked("a: [1", "b: 2"), "6:2: is no YAML: did not find expected ',' or ']'"),
        (marked("a: 1", "a: 2"), "6:1: a: the key 'a' stands twice, first in line 5"),
        (marked("- a"), "5:1: is a list; a mapping is expected"),
        (marked(), "1:1: is null; a mapping is expected"),
        (marked("a: &x [*x]"), "5:4: a[0]: holds an alias of itself; write the value out"),
        (marked("a: b\x07"), "is no YAML: "),
    ],
)
def test_a_block_that_is_none(tmp_path: Path, text: str, problem: str) -> None:
    audit, problems = read(tmp_path, text)
    assert audit is None
    assert problem in problems[0]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    _, problems = read(tmp_path, marked("agent: X").encode().replace(b"X", b"\xff\xfe"))
    assert len(problems) == 1
    assert problems[0].startswith("5:8: is no YAML: ")


# ---------------------------------------------------------------- forms


def changed(old: str, new: str) -> str:
    assert old in MIXED
    return MIXED.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            changed("kind: failure_case", "kind: failure_cases"),
            "40:11: items[3].kind: is the text 'failure_cases'; did you mean 'failure_case'? the kinds are tool, "
            "capability, failure_case",
        ),
        (
            changed("kind: user_intent", "kind: intent"),
            "35:15: items[2].evidence_required[0].kind: is the text 'intent'; did you mean 'user_intent'? the kinds "
            "are tool_call, environment_state, outcome, output, policy_boundary, state_change, trace_span, "
            "user_intent, verifier",
        ),
        (
            changed("    expected_use: Used when self-service cannot proceed.\n", ""),
            "20:5: items[1].expected_use: is missing; the key expected_use is needed",
        ),
        (
            changed("required_tools:", "required_tool:"),
            "32:5: items[2].required_tool: is an unknown key; did you mean 'required_tools'?",
        ),
        (
            changed("applies_to: [account_recovery]", "applies_to: []"),
            "42:17: items[3].applies_to: is empty; at least one entry is expected",
        ),
        (
            changed(LAST_EVIDENCE, "    evidence_required: []\n"),
            "47:24: items[3].evidence_required: is empty; at least one entry is expected",
        ),
        (
            changed(LAST_EVIDENCE, ""),
            "40:5: items[3].evidence_required: is missing; the key evidence_required is needed",
        ),
        (
            changed("name: ticket.create", "name: 1ticket"),
            "21:11: items[1].name: is '1ticket'; a letter, then letters, digits and _ . : / -, is expected",
        ),
        (changed("status: approved", "status: final"), "9:9: status: is the text 'final'; 'draft' or 'approved'"),
        (changed("audit.v1\nagent", "audit.v2\nagent"), "7:9: schema: is the text 'nemo.eval_author.audit.v2'; "),
        (changed("agent: sample-agent\n", ""), "7:1: agent: is missing; the key agent is needed"),
        (
            changed("name: ticket.create", "name: account_recovery"),
            "30:11: items[2].name: the item 'account_recovery' stands twice, first in line 20; each name is one item",
        ),
        (
            changed("required_tools: [customer.lookup]", "required_tools: [customer.look]"),
            "32:22: items[2].required_tools[0]: the tool 'customer.look' is no item of this audit; did you mean "
            "'customer.lookup'? add an item of the kind tool with that name",
        ),
        (
            changed("        tool: ticket.create", "        tool: password.reset"),
            "27:15: items[1].evidence_required[0].tool: the tool 'password.reset' is no item of this audit; add",
        ),
        (
            changed("applies_to: [account_recovery]", "applies_to: [customer.lookup]"),
            "42:18: items[3].applies_to[0]: the capability 'customer.lookup' is no item of this audit; add",
        ),
        (
            changed("    prohibited_tools:", "    expected_tools: [password.reset]\n    prohibited_tools:"),
            "46:22: items[3].expected_tools[0]: the tool 'password.reset' is no item of this audit; add",
        ),
        (
            changed("- kind: output\n        description", "- kind: output\n        tool: x\n        description"),
            "49:9: items[3].evidence_required[0].tool: is an unknown key; the keys here are kind, description",
        ),
        (marked(*HEAD[:3], "items: []"), "8:8: items: is empty; at least one entry is expected"),
        (marked(*HEAD, "  - look"), "9:5: items[0]: is the text 'look'; an item is a mapping with a kind"),
        (marked(*HEAD, "  - name: look"), "9:5: items[0].kind: is missing; the kinds are tool, capability, "),
    ],
)
def test_a_mistake_is_told_with_its_line_in_the_markdown_file(tmp_path: Path, text: str, problem: str) -> None:
    audit, problems = read(tmp_path, text)
    assert audit is None
    assert any(found.startswith(problem) for found in problems), problems


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = changed("status: approved", "status: final").replace("kind: failure_case", "kind: failure")
    _, problems = read(tmp_path, text.replace("applies_to", "applies"))
    assert len(problems) == 2
    _, problems = read(tmp_path, text.replace("required_tools: [customer.lookup]", "required_tools: [x, y]"))
    assert len(problems) == 4


def test_tools_whose_kind_is_misspelt_are_not_called_undeclared_too(tmp_path: Path) -> None:
    _, problems = read(tmp_path, changed("kind: tool", "kind: tol"))
    assert len(problems) == 1


def test_prohibited_tools_need_not_be_items(tmp_path: Path) -> None:
    audit, problems = read(tmp_path, MIXED)
    assert problems == []
    assert audit is not None
    item = audit.item("unverified_identity")
    assert item is not None
    assert item.texts("prohibited_tools") == ("password.reset",)
    assert item.texts("expected_tools") == ()


# ---------------------------------------------------------------- sources


def with_source(path: str, digest: str) -> str:
    source = f"sources: [{{name: policy, path: {path}, description: Rules., sha256: '{digest}'}}]"
    return marked(*HEAD, *TOOL, source)


def sha(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def test_a_source_whose_digest_is_right(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_bytes(b"rules")
    audit, problems = read(tmp_path, with_source("policy.md", sha(b"rules")))
    assert problems == []
    assert audit is not None


def test_a_source_that_changed_makes_the_audit_stale(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_bytes(b"new rules")
    _, problems = read(tmp_path, with_source("policy.md", sha(b"rules")))
    assert problems == [
        f"15:72: sources[0].sha256: is not the digest of policy.md, which is {sha(b'new rules')}; the file has changed "
        "since the audit was written: review the audit"
    ]
    audit, problems = read(tmp_path, with_source("policy.md", sha(b"rules")), sources=False)
    assert problems == []
    assert audit is not None


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("none.md", "'none.md' does not exist; it is looked for in"),
        ("../other.md", "'../other.md' leaves the experiment's folder; copy the file into it, or name it absolutely"),
        (".", "'.' is a folder; name a file"),
    ],
)
def test_a_source_that_is_none(tmp_path: Path, path: str, problem: str) -> None:
    folder = tmp_path / "experiment"
    folder.mkdir()
    (tmp_path / "other.md").write_text("")
    _, problems = read(folder, with_source(path, sha(b"")))
    assert problem in problems[0]
    assert "sources[0].path" in problems[0]


@pytest.mark.parametrize("digest", ["", "abc", "sha256:" + "A" * 64, "sha256:" + "0" * 63])
def test_a_digest_that_is_none(tmp_path: Path, digest: str) -> None:
    (tmp_path / "p").write_bytes(b"")
    _, problems = read(tmp_path, with_source("p", digest))
    assert "sha256: and 64 hexadecimal digits is expected" in problems[0] or "is empty" in problems[0]


# ---------------------------------------------------------------- the JSON Schema


def test_the_schema_file_is_current() -> None:
    assert SCHEMA_FILE.read_text("utf-8") == schema_text(audit_schema())


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(audit_schema())


NAMES = st.sampled_from(["look", "a.b:c/d-e", "1x", "", "a b", "x"])
TEXTS = st.sampled_from(["Words.", "", "x"]) | st.just(3)
EVIDENCE = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["tool_call", "output", "verifier", "none"]),
        "tool": NAMES,
        "description": TEXTS,
    },
)
KEYS: dict[str, Any] = {
    "description": TEXTS,
    "expected_use": TEXTS,
    "expected_failure_behavior": TEXTS,
    "expected_behavior": TEXTS,
    "trigger": TEXTS,
    "required_tools": st.lists(NAMES, max_size=2),
    "applies_to": st.lists(NAMES, max_size=2),
    "expected_tools": st.lists(NAMES, max_size=1),
    "prohibited_tools": st.lists(NAMES, max_size=1) | st.none(),
    "prohibited_outputs": st.lists(TEXTS, max_size=1),
    "source_refs": st.lists(TEXTS, max_size=1),
    "evidence_required": st.lists(EVIDENCE, max_size=2),
    "other": TEXTS,
}


@st.composite
def near_audits(draw: st.DrawFn) -> Any:
    """A sample audit with one thing changed: a key added, taken away or given another value, at any level."""
    value = yaml.safe_load(MIXED.split("```yaml\n")[1].split("```")[0])
    level = draw(
        st.sampled_from(
            [value, *value["items"], *[entry for it in value["items"] for entry in it["evidence_required"]]]
        )
    )
    for _ in range(draw(st.integers(0, 2))):
        key = draw(st.sampled_from([*level, *KEYS]))
        if draw(st.booleans()):
            level.pop(key, None)
        else:
            level[key] = draw(KEYS.get(key, TEXTS | NAMES | st.sampled_from(["tool", "capability", "output", None])))
    return value


@given(near_audits())
@settings(max_examples=120)
def test_schema_and_reader_refuse_the_same(tmp_path: Path, value: Any) -> None:
    """Except for what one place cannot tell: names that stand twice, and tools and capabilities that are no items."""
    valid = jsonschema.Draft202012Validator(audit_schema()).is_valid(value)
    _, problems = read(tmp_path, marked(*json.dumps(value, indent=1).splitlines()))
    formal = [text for text in problems if "is no item of this audit" not in text and "stands twice" not in text]
    assert valid == (not formal), formal


@given(st.data())
@settings(max_examples=150)
def test_whatever_is_done_to_an_audit_there_is_no_traceback(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(MIXED.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        end = at + data.draw(st.integers(0, 40))
        content[at:end] = data.draw(
            st.binary(max_size=6) | st.sampled_from([b"- ", b"&a ", b"*a ", b"<<: ", b"```\n", b"!!"])
        )
    audit, problems = read(tmp_path, bytes(content))
    assert (audit is None) == bool(problems)


def test_every_problem_is_told_where_the_experiment_collects_them(tmp_path: Path) -> None:
    text = changed("status: approved", "status: final").replace("kind: failure_case", "kind: failure")
    (tmp_path / "audit.md").write_text(text)
    problems = ProblemList()
    AuditCoverage.model_validate({"audit": "audit.md"}, context={"folder": tmp_path, "problems": problems})
    assert [(problem.line, problem.key) for problem in problems.found] == [(9, "status"), (40, "items[3].kind")]
    with pytest.raises(ValidationError, match=r"audit\.md:9:9: status: .* \(and 1 more problem in that file\)"):
        AuditCoverage.model_validate({"audit": "audit.md"}, context={"folder": tmp_path})
