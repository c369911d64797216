"""Edits of JSON and YAML files: the value becomes what was meant, and everything else stays as it was written."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_metricbench.generating.structured import Put, Remove, Rename, edited, read_structured
from pytest_metricbench.sources import SourceError

YAML = """\
# tools of the desk
tools:
  - name: find_order   # by number
    description: >
      Look up
      an order.
    parameters:
      properties: {order_id: {type: string}, deep: {type: boolean}}
      required: [order_id, deep]

  # money
  - name: 'refund'
    description: Pay back.
"""


def test_a_text_in_yaml_is_put_where_it_stands() -> None:
    read = read_structured("tools.yml", YAML)
    assert read.edited([Put(("tools", 1, "name"), 'pay "x"')]) == YAML.replace("'refund'", '"pay \\"x\\""')
    folded = read.edited([Put(("tools", 0, "description"), "")])
    assert folded == YAML.replace(">\n      Look up\n      an order.\n", '""\n')


def test_entries_are_taken_out_of_yaml_with_their_lines() -> None:
    read = read_structured("tools.yml", YAML)
    assert read.edited([Remove(("tools", 1))]) == YAML.partition("  - name: 'refund'")[0]
    assert (
        read.edited([Remove(("tools", 0))])
        == "# tools of the desk\ntools:\n  - name: 'refund'\n    description: Pay back.\n"
    )
    parts = ("tools", 0, "parameters")
    without = read.edited([Remove((*parts, "properties", "order_id")), Remove((*parts, "required", 0))])
    assert without == YAML.replace("order_id: {type: string}, ", "").replace("[order_id, deep]", "[deep]")


def test_keys_are_renamed_and_json_keeps_its_layout() -> None:
    text = '{\n\t"a": {"x": 1},\n\t"b": [1, {"d": "e"}]\n}\n'
    read = read_structured("t.json", text)
    assert read.edited([Rename(("a",), "z")]) == text.replace('"a"', '"z"')
    spaced = text.replace("\t", "  ")
    assert read_structured("t.json", spaced).edited([Remove(("b", 0))]) == spaced.replace("1, {", "{")


def test_what_cannot_be_edited_in_place_is_written_anew() -> None:
    read = read_structured("t.yml", "only:\n  - one\n# end\n")
    assert yaml.safe_load(read.edited([Remove(("only", 0))])) == {"only": []}
    anchored = read_structured("t.yml", "a: &x {k: v}\nb: *x\n")
    assert yaml.safe_load(anchored.edited([Put(("b", "k"), "w")])) == {"a": {"k": "v"}, "b": {"k": "w"}}
    adding = read_structured("t.json", '[\n    {"a": 1}\n]\n')
    assert adding.edited([Put((0, "b"), "c")]) == '[\n    {\n        "a": 1,\n        "b": "c"\n    }\n]\n'


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def paths(value: object, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        found = list(value.items())
    else:
        found = list(enumerate(value)) if isinstance(value, list) else []
    for key, entry in found:
        yield (*above, key)
        yield from paths(entry, (*above, key))


@settings(max_examples=200)
@given(
    value=st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=3)
    | st.lists(VALUES, min_size=1, max_size=3),
    data=st.data(),
    indent=st.sampled_from([None, 1, 2]),
    name=st.sampled_from(["t.json", "t.yml"]),
)
def test_any_edit_of_any_file_comes_to_what_was_meant(
    value: dict[str, Any], data: st.DataObject, indent: int | None, name: str
) -> None:
    if name == "t.json":
        text = json.dumps(value, indent=indent, ensure_ascii=data.draw(st.booleans()))
    else:
        text = yaml.safe_dump(
            value, allow_unicode=data.draw(st.booleans()), default_flow_style=data.draw(st.booleans())
        )
        assume(yaml.safe_load(text) == value)  # PyYAML does not read back every key that it writes
    path = data.draw(st.sampled_from(list(paths(value))))
    kinds: list[Remove | Put] = [Remove(path), Put(path, data.draw(st.text(max_size=5)))]
    edit = data.draw(st.sampled_from(kinds))
    before = copy.deepcopy(value)
    read = read_structured(name, text)
    new = read.edited([edit])
    wanted = edited(value, [edit])
    assert (json.loads(new) if name == "t.json" else yaml.safe_load(new)) == wanted
    assert value == before


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.json", '{\n"a": }', "line 2 of the file 't.json' is no JSON: Expecting value"),
        ("t.yml", "a: [1\nb: 2\n", "line 2 of the file 't.yml' is no YAML: expected ',' or ']', but got ':'"),
    ],
)
def test_a_broken_file_is_told_with_its_line(name: str, text: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_structured(name, text)
    assert caught.value.message == message


def test_aliases_that_multiply_or_bite_their_tail_are_refused() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    with pytest.raises(SourceError, match="aliases make more than 100000 values of it"):
        read_structured("t.yml", bomb)
    with pytest.raises(SourceError, match=r"the file 't.yml' is nested too deeply|aliases make more than"):
        read_structured("t.yml", "a: &a [*a]\n")
