"""``from: tools`` over the forms that lists of tools have."""

import json
from typing import Any

import pytest
import yaml

from pytest_metricbench.generating.base import Proposal
from pytest_metricbench.generating.tools import ToolsGenerator
from pytest_metricbench.sources import SourceError
from tests.generating.generating_lab import Bench


def schema(*required: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"id": {"type": "string"}, "deep": {}}, "required": list(required)}


ANTHROPIC = [
    {"name": "find", "description": "Look up.", "input_schema": schema("id", "gone")},
    {"name": "pay", "description": "Pay back.", "input_schema": schema()},
]
OPENAI = [
    {"type": "function", "function": {"name": "find", "description": "Look up.", "parameters": schema("id", "gone")}},
    {"type": "function", "function": {"name": "pay", "description": "Pay back.", "parameters": schema()}},
]
MCP = {"tools": [{**tool, "inputSchema": tool["input_schema"]} for tool in ANTHROPIC]}
MCP = {"tools": [{key: part for key, part in tool.items() if key != "input_schema"} for tool in MCP["tools"]]}
BY_NAME = {
    "find": {"description": "Look up.", "parameters": schema("id", "gone")},
    "pay": {"description": "Pay back.", "parameters": schema()},
}
FORMS = {"anthropic": ANTHROPIC, "openai": OPENAI, "mcp": MCP, "by-name": BY_NAME}

DECLARED = [
    ("remove-tool", "find"),
    ("remove-tool", "pay"),
    ("rename-tool", "find"),
    ("rename-tool", "pay"),
    ("blank-description", "find"),
    ("blank-description", "pay"),
    ("swap-descriptions", "find pay"),
    ("drop-required-parameter", "find id"),
]


def proposals(bench: Bench, baseline: dict[str, Any] | None = None, **keys: Any) -> list[Proposal]:
    context = bench.context(baseline)
    maker = ToolsGenerator(**keys).bound(context)
    return [found for found in maker.generate(context) if isinstance(found, Proposal)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("where", ["tools.json", "tools.yml", "params"])
def test_every_form_gives_the_same_damage(bench: Bench, form: str, where: str) -> None:
    listed = FORMS[form]
    if where == "params":
        found = proposals(bench, {"tools": listed, "x": 1}, params="tools")
        results = [dict(proposal.params or {})["tools"] for proposal in found[: len(DECLARED)]]
    else:
        text = json.dumps(listed, indent=2) if where.endswith("json") else yaml.safe_dump(listed, sort_keys=False)
        (bench.path / where).write_text(text)
        found = proposals(bench, file=where)
        results = [yaml.safe_load(proposal.files[where]) for proposal in found[: len(DECLARED)]]
    assert [(proposal.operator, proposal.target) for proposal in found[: len(DECLARED)]] == DECLARED
    one = json.dumps(listed)
    texts = [json.dumps(result) for result in results]
    assert '"find"' not in texts[0]
    assert '"pay"' in texts[0]
    assert texts[2] == one.replace('"find"', '"find_v2"')
    assert texts[4] == one.replace("Look up.", "")
    swapped = one.replace("Look up.", "?").replace("Pay back.", "Look up.").replace("?", "Pay back.")
    assert texts[6] == swapped
    assert texts[7] == one.replace('"id": {"type": "string"}, ', "", 1).replace('["id", "gone"]', '["gone"]')


def test_names_alone_can_be_removed_and_renamed(bench: Bench) -> None:
    found = proposals(bench, {"tools": ["a", "a_v2"]}, params="tools", operators=["remove-tool", "rename-tool"])
    assert [dict(proposal.params or {})["tools"] for proposal in found] == [
        ["a_v2"],
        ["a"],
        ["a_v3", "a_v2"],
        ["a", "a_v2_v2"],
    ]


def test_what_a_tool_answers_is_said_in_the_params(bench: Bench) -> None:
    baseline = {"x": 1, "tool_faults": {"other": {"delay": 1}}}
    found = proposals(bench, baseline, names=["find", "pay"], only=["pay"], delay=2.5)
    faults = [dict(proposal.params or {})["tool_faults"]["pay"] for proposal in found]
    assert faults == [{"returns": "error"}, {"returns": "stale"}, {"returns": "empty"}, {"delay": 2.5}]
    assert all(dict(proposal.params or {})["tool_faults"]["other"] == {"delay": 1} for proposal in found)
    assert [proposal.description for proposal in found] == [
        "the tool pay answers with an error",
        "the tool pay answers the same question as it did the first time",
        "the tool pay answers with nothing in it",
        "the tool pay answers 2.5 s late",
    ]


def test_a_param_that_is_in_the_way_of_what_tools_answer(bench: Bench) -> None:
    with pytest.raises(SourceError) as caught:
        proposals(bench, {"tool_faults": "none"}, names=["find"])
    assert (caught.value.message, caught.value.remedy) == (
        "the baseline's params have a key 'tool_faults' that is no mapping",
        "call it otherwise: generated mutants say there which tools answer wrongly",
    )


def test_a_list_further_inside_a_file(bench: Bench) -> None:
    (bench.path / "agent.yml").write_text("agents:\n- kit: [a, b]\n")
    found = proposals(bench, file="agent.yml", at="agents.0.kit", operators=["remove-tool"])
    assert [yaml.safe_load(proposal.files["agent.yml"]) for proposal in found] == [
        {"agents": [{"kit": ["b"]}]},
        {"agents": [{"kit": ["a"]}]},
    ]


@pytest.mark.parametrize(
    ("keys", "message", "remedy"),
    [
        ({}, "from: tools names no list of tools", "write one of file: tools.json, params: tools, names: [a, b]"),
        (
            {"names": ["a"], "params": "x"},
            "from: tools names params and names",
            "write one of file: tools.json, params: tools, names: [a, b]",
        ),
        (
            {"names": ["a"], "at": "x"},
            "at says where in a file the list of tools stands, and there is no file",
            "remove at",
        ),
        (
            {"names": ["a"], "operators": ["delay-tool"]},
            "delay-tool needs to know how long",
            "write delay: seconds; every call of the tool takes it",
        ),
        ({"names": ["a", "b"], "only": ["c"]}, "there is no tool 'c'", "they are a, b"),
        ({"names": ["a", "a"]}, "names has two tools 'a'", "name each tool once"),
        ({"params": "kit"}, "the baseline's params have no 'kit'", "there are x"),
        (
            {"params": "x"},
            "the baseline's param 'x' is no list of tools",
            "a list of names, a list of mappings with name (or function.name), or a mapping of names to mappings "
            "is expected",
        ),
        ({"file": "none.json"}, "the file 'none.json' does not exist", "it would be {folder}/none.json"),
        ({"file": "t.yml", "at": "kit"}, "the file 't.yml' has no 'kit'", "there is tools"),
        (
            {"file": "../t.yml"},
            "'../t.yml' does not name a file of the experiment's folder",
            "write folder/file, relative to it",
        ),
    ],
)
def test_wrong_keys(bench: Bench, keys: dict[str, Any], message: str, remedy: str) -> None:
    (bench.path / "t.yml").write_text("tools: [a]\n")
    with pytest.raises(SourceError) as caught:
        ToolsGenerator(**keys).bound(bench.context({"x": 1}))
    assert (caught.value.message, caught.value.remedy) == (message, remedy.format(folder=bench.path))
