"""Whatever stands in a file: an experiment or a list of problems, never another exception."""

import copy
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.definition.claiming import claim
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.definition.problems import DefinitionError
from tests.definition.definition_lab import Folder

TREE = {
    "metricbench": 1,
    "name": "x",
    "seed": 1,
    "attempts": 3,
    "controls": 1,
    "runner": {"kind": "fake", "agent": ["/bin/sh", "-c", "true"], "shape": {"width": 1}, "sizes": [1], "timeout": 5},
    "score": {"primary": "a", "outputs": {"a": "continuous"}},
    "cases": [
        {
            "id": "a",
            "inputs": ["*.txt"],
            "tasks": [{"id": "t", "params": {"x": [1]}, "tags": ["g"]}, {"id": "u", "attempts": 1}],
            "baseline": {"params": {}},
            "mutants": [{"id": "m", "control": False}, {"id": "n", "equivalent": "why"}],
            "subsets": [{"id": "s", "tasks": ["t"]}, {"id": "r", "tasks": ["t", "u"]}],
        },
        {"id": "b", "tasks": [{"id": "t"}], "subsets": {"sizes": [1], "per_size": 2, "seed": 0}},
    ],
    "coverage": [{"id": "tools", "kind": "fake", "settings": {"a": 1}}],
    "analysis": {"pass_at_k": [1], "kill": {"rule": "fisher", "q": 0.1}, "resamples": {"bootstrap": 5}},
    "gates": ["a m pass@1 > 0", "tools coverage > 0"],
}


def paths(node: object, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield way
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in entries:
        yield from paths(value, (*way, key))


PATHS = [way for way in paths(TREE) if way]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.dates()
    | st.binary(max_size=3)
    | st.sampled_from(["t", "a", "m", "tools", "fake", "../x", "a/b", "pass@1 > 0", "a.yml", "baseline", "{python}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(PATHS), VALUES, st.sampled_from(["set", "delete", "rename"])), max_size=3))
def test_a_damaged_experiment(folder: Folder, damages: list[Any]) -> None:
    tree = copy.deepcopy(TREE)
    for way, value, how in damages:
        with suppress(KeyError, IndexError, TypeError):
            node: Any = tree
            for part in way[:-1]:
                node = node[part]
            kept = node[way[-1]]
            if how == "set":
                node[way[-1]] = value
            else:
                del node[way[-1]]
            if how == "rename" and isinstance(node, dict):
                node[str(way[-1]) + "x"] = kept
    folder.write("one.txt", "1")
    problem = None
    try:
        assert Fingerprints(folder.load(yaml.safe_dump(tree))).summary()
    except DefinitionError as error:
        problem = error
    if problem is None:
        return
    lines = str(problem).splitlines()
    assert 0 < len(lines) == min(len(problem.problems), 51)
    assert all(found.message for found in problem.problems)


@settings(max_examples=100)
@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_content(folder: Folder, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    path = folder.write("experiment.yml", data)
    found = claim(path)
    problems = folder.problems(data)
    assert problems
    assert found.ours == (found.message == "")


@settings(max_examples=100)
@given(st.integers(0, 3000), st.integers(0, 255))
def test_a_flipped_byte(folder: Folder, position: int, byte: int) -> None:
    data = bytearray(yaml.safe_dump(TREE).encode())
    data[position % len(data)] = byte
    folder.write("one.txt", "1")
    with suppress(DefinitionError):
        folder.load(bytes(data))
