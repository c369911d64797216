"""The pages of docs/reference are what the code says, and leave nothing out.

METRICBENCH_WRITE_DOCS=1 pytest tests/docs/test_reference_pages.py writes them again (as docs/make_reference.py does).
"""

import ast
import json
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import pytest_metricbench

PACKAGE = Path(pytest_metricbench.__file__).parent
REMEDY = "it is written again by: python docs/make_reference.py"


def making(name: str) -> Any:
    """A module of docs/making, imported when a test needs it: the folder is no package of the project's."""
    return import_module(f"making.{name}")


@pytest.fixture(scope="module", autouse=True)
def rewritten(scripts: Path) -> None:
    if os.environ.get("METRICBENCH_WRITE_DOCS"):
        import_module("make_reference").main()


@pytest.mark.parametrize("name", ["keys", "options", "hooks", "api", "summary-fields"])
def test_a_page_is_current(name: str, scripts: Path) -> None:
    pages = import_module("make_reference").PAGES
    text = (scripts / "reference" / f"{name}.md").read_text("utf-8")
    assert pages[f"{name}.md"]() == text, f"docs/reference/{name}.md is not what the code says; {REMEDY}"


def test_there_are_no_other_pages(scripts: Path) -> None:
    names = {path.name for path in (scripts / "reference").glob("*.md")}
    assert names == set(import_module("make_reference").PAGES)


# ---------------------------------------------------------------- keys


def test_every_mapping_has_its_section_and_every_key_its_meaning() -> None:
    keys = making("keys")
    assert set(keys.definitions()) == set(keys.TITLES), "name it in SECTIONS of docs/making/keys.py"
    undescribed = [f"{key.mapping}.{key.name}" for key in keys.every_key() if len(key.meaning) < 4 or not key.type]
    assert undescribed == []
    assert len(list(keys.every_key())) > 200


def test_no_type_says_nothing() -> None:
    vague = {(key.mapping, key.name) for key in making("keys").every_key() if key.type == "anything"}
    assert vague == set()


def test_the_examples_of_a_mapping_are_right_and_use_every_key() -> None:
    keys = making("keys")
    shown = keys.examples()
    assert set(shown) == set(keys.definitions())
    for name, text in shown.items():
        validator = jsonschema.Draft202012Validator(keys.schema_of(name))
        used = set()
        for example in yaml.safe_load_all(text):
            assert [error.message for error in validator.iter_errors(example)] == [], name
            used |= set(example)
        assert set(keys.definitions()[name]["properties"]) - used == set(), f"no example of a key of {name}"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1}, "whole number from 1"),
        ({"type": "integer", "minimum": 0, "maximum": 3}, "whole number, 0 to 3"),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "number above 0 and below 1"),
        ({"type": "array", "items": {"type": "string"}}, "list of texts"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "list of `a` and `b`"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, "text"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5}, "whole number or null"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "mapping of names to texts"),
        ({"$ref": "#/$defs/Some"}, "[a thing](#a-thing)"),
    ],
)
def test_types_in_words(schema: dict[str, Any], words: str, scripts: Path) -> None:
    assert making("words").type_words(schema, {"Some": "A thing"}) == words


# ---------------------------------------------------------------- options, ini values, the environment


def test_every_option_has_a_meaning_and_an_example() -> None:
    options = making("options")
    found = options.recorded()
    assert set(found.options) == set(options.EXAMPLES), "docs/making/options.py has an example of each option"
    assert all(len(given["help"]) > 10 for given in found.options.values())
    assert all(option in example for option, example in options.EXAMPLES.items())


def test_every_ini_value_has_a_meaning_and_an_example() -> None:
    options = making("options")
    found = options.recorded()
    assert all(len(given["help"]) > 10 for given in found.inis.values())
    assert all(options.ini_example(name) for name in found.inis)


def test_the_options_are_those_that_pytest_shows(pytester: pytest.Pytester) -> None:
    shown = pytester.runpytest("--help").stdout.str()
    assert set(re.findall(r"^ +(--metricbench-[a-z-]+)", shown, re.M)) == set(making("options").recorded().options)
    assert set(re.findall(r"^ +(metricbench_\w+) ", shown, re.M)) >= set(making("options").recorded().inis)


def test_every_variable_that_is_read_is_on_the_page() -> None:
    found = set().union(*(variables_read(path) for path in set(PACKAGE.rglob("*.py")) - {IN_A_JOB}))
    assert {"METRICBENCH_HARBOR", "GITHUB_STEP_SUMMARY", "PATH"} <= found
    assert found - set(making("options").ENVIRONMENT) - OF_CHILDREN == set()
    assert set(making("options").ENVIRONMENT) - found == BY_LIBRARIES


IN_A_JOB = PACKAGE / "runners/helix/job.py"
"""Runs on a Helix server, which sets what it reads."""
BY_LIBRARIES = {"DASK_SCHEDULER_ADDRESS"}
"""Read by the packages that are used: Dask reads its own."""
OF_CHILDREN = {"TMPDIR", "PWD", "PYTEST_DEBUG_TEMPROOT", "PYTEST_CURRENT_TEST", "PYTHONPATH"}
"""Set for others: the processes of a tested project, or those who look at which test runs."""


def variables_read(path: Path) -> set[str]:
    """The names by which a module looks something up in what is called an environment."""
    source = path.read_text("utf-8")
    if "environ" not in source and "getenv" not in source:
        return set()
    tree = ast.parse(source)
    constants = dict(assigned(tree))
    listed = {
        str(word.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Tuple | ast.List)
        for word in node.elts
        if isinstance(word, ast.Constant) and re.fullmatch(r"[A-Z][A-Z_]+", str(word.value))
    }
    names: set[str] = set()
    for node in ast.walk(tree):
        key: ast.expr | None
        if isinstance(node, ast.Subscript) and is_environment(node.value):
            key = node.slice
        elif isinstance(node, ast.Call) and asks_environment(node.func) and node.args:
            key = node.args[0]
        elif isinstance(node, ast.Compare) and is_environment(node.comparators[0]):
            key = node.left
        else:
            continue
        key = constants.get(key.id, key) if isinstance(key, ast.Name) else key
        if isinstance(key, ast.Constant) and re.fullmatch(r"[A-Z][A-Z0-9_]+", str(key.value)):
            names.add(str(key.value))
        elif isinstance(key, ast.Name):  # of a loop: the names that the module lists
            names |= listed
    return names


def assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    for node in tree.body:
        if not isinstance(node, ast.AnnAssign | ast.Assign):
            continue
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        if isinstance(target, ast.Name):
            yield target.id, node.value


def is_environment(node: ast.AST) -> bool:
    return ast.unparse(node) in ("os.environ", "environ", "environment", "self._environment")


def asks_environment(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute) and function.attr in ("get", "pop", "setdefault"):
        return is_environment(function.value)
    return ast.unparse(function) in ("os.getenv", "getenv")


def test_the_exit_statuses_are_all_told(scripts: Path) -> None:
    table = (scripts / "usage.md").read_text("utf-8").partition("## Exit status")[2].partition("\n## ")[0]
    told = {int(number) for number in re.findall(r"^\| (\d+) \|", table, re.M)}
    own = {
        node.value.value
        for path in PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.AnnAssign)
        and ast.unparse(node.target) in ("BUDGET_REACHED", "STORE_FAILED")
        and isinstance(node.value, ast.Constant)
    }
    assert own == {3, 6}
    assert told == {int(status) for status in pytest.ExitCode} | own


# ---------------------------------------------------------------- hooks and names


def test_every_hook_has_an_example() -> None:
    for name, hook in making("hooks").hooks().items():
        assert "Example" in hook.__doc__, name
        assert f"## `{name}`" in making("hooks").page()
    assert len(making("hooks").hooks()) >= 4


def test_every_public_name_is_told_once() -> None:
    api = making("api")
    told = [name for _, names in api.CHAPTERS for name in names]
    assert sorted(told) == sorted(pytest_metricbench.__all__), "name it in CHAPTERS of docs/making/api.py"
    page = api.page()
    for name in told:
        text = page.partition(f"### `{name}`\n")[2].partition("\n##")[0]
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        assert len(prose.strip()) > 20, f"{name} has no docstring"


def test_every_attribute_of_an_exported_class_has_its_meaning() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `.*?` \|(.*)\|$", making("api").page(), re.M)
    assert len(rows) > 100
    assert [name for name, meaning in rows if len(meaning.strip()) < 4] == []


# ---------------------------------------------------------------- the summary


def test_every_field_of_a_summary_has_an_example() -> None:
    fields = making("fields")
    kept = json.loads(fields.KEPT.read_text("utf-8"))
    told = {f"{model}.{name}" for model, (_, rows) in fields.meanings().items() for name in rows}
    assert len(told) > 200
    assert set(kept) == told, REMEDY
    assert all(len(meaning) > 3 for _, rows in fields.meanings().values() for _, meaning in rows.values())
    assert {key for key in fields.BY_HAND if kept[key] == list(fields.BY_HAND[key])} == set(fields.BY_HAND)


@pytest.mark.benchmark
def test_the_examples_of_a_summary_are_of_its_experiment() -> None:
    fields = making("fields")
    found = fields.examples_of_a_run()
    kept = json.loads(fields.KEPT.read_text("utf-8"))
    assert set(kept) - set(found) == set(fields.BY_HAND), REMEDY
    assert {key for key in found if kept[key][0] != found[key][0]} == set(), REMEDY
