"""The keys of ``kind: eval-author``: what is told when the experiment is collected, and what is part of the digest."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.coverage.eval_author.system import EvalAuthorCoverage
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.runners import BUILTIN
from tests.coverage_systems.eval_author_lab import MIXED, SCRIPTS, digest

Load = Callable[..., Experiment]


@pytest.fixture
def load(folder: Path) -> Load:
    """Loads an experiment with one system of these keys, beside the stand-in's scripts and the mixed audit."""
    shutil.copytree(SCRIPTS, folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(MIXED, folder / "audit.md")

    def run(*, cached_only: bool = False, **keys: Any) -> Experiment:
        given = {"audit": "audit.md", "scripts": "scripts", "interpreter": "{python}", **keys}
        entry = {"id": "e", "kind": "eval-author", **{key: value for key, value in given.items() if value is not None}}
        lines = "".join(f"    {key}: {json.dumps(value)}\n" for key, value in entry.items())
        (folder / "experiment.yml").write_text(
            "metricbench: 1\nname: x\nrunner: {kind: command, agent: [/bin/true]}\n"
            "cases:\n  - id: c\n    tasks: [{id: t}]\ncoverage:\n  -\n" + lines
        )
        systems = {"eval-author": EvalAuthorCoverage}
        return load_experiment(folder / "experiment.yml", runners=BUILTIN, systems=systems, cached_only=cached_only)

    return run


def settings(experiment: Experiment, known: dict[str, str] | None = None) -> str:
    return Fingerprints(experiment, known).coverage_settings(experiment.coverage[0])


VENV = (
    "make one with Python 3.12 or newer: python3 -m venv VENV && VENV/bin/pip install 'harbor>=0.16.1' "
    "'jsonschema>=4.0' 'PyYAML>=6.0', and write VENV/bin/python here, VENV as its whole path"
)
INSIDE = "skills/eval-author-audit/scripts/audit_spec of an Eval Author checkout, absolute or beside this file"


@pytest.mark.parametrize(
    ("keys", "where", "says"),
    [
        ({"interpreter": "python3"}, "interpreter",
         "'python3' is not an absolute path; write its whole path, or {python} for the running interpreter"),
        ({"interpreter": "/bin/py\0thon"}, "interpreter",
         "'/bin/py\\x00thon' has a null character; no path can hold one"),
        ({"scripts": "scr\0ipts"}, "scripts", "'scr\\x00ipts' has a null character; no path can hold one"),
        ({"interpreter": "/nowhere/python"}, "interpreter",
         f"the interpreter /nowhere/python does not exist; {VENV}"),
        ({"interpreter": "/etc"}, "interpreter", f"the interpreter /etc is a folder; {VENV}"),
        ({"interpreter": "/etc/passwd"}, "interpreter", f"the interpreter /etc/passwd is not executable; {VENV}"),
        ({"scripts": "/nowhere/audit_spec"}, "scripts",
         f"the folder /nowhere/audit_spec does not exist; get Eval Author's audit skill and name {INSIDE}"),
        ({"scripts": "../elsewhere"}, "scripts",
         "'../elsewhere' leaves the experiment's folder; name it absolutely"),
        ({"scripts": "audit.md"}, "scripts",
         f"FOLDER/audit.md is no folder; name the folder of measure.py and report.py: {INSIDE}"),
        ({"scripts": "/etc"}, "scripts",
         f"the folder /etc has no measure.py and no report.py; name {INSIDE}"),
        ({"scripts": "x" * 300}, "scripts",
         f"the folder cannot be looked at; File name too long: FOLDER/{'x' * 300}"),
        ({"audit": "absent.md"}, "audit", "'absent.md' does not exist; it is looked for in FOLDER"),
        ({"audit": "../audit.md"}, "audit",
         "'../audit.md' leaves the experiment's folder; copy the file into it, or name it absolutely"),
        ({"audit": None}, "",
         "names no audit; audit names an audit.md, author a command that writes one; one of the two is needed"),
        ({"audit": None, "author": ["author.py"]}, "author",
         "'author.py' is not an absolute path; write its whole path, or /usr/bin/env followed by author.py"),
        ({"audit": None, "author": ["{python}", "author.py"]}, "author",
         "the script 'author.py' does not exist beside the file"),
        ({"methods": []}, "methods", "is empty; at least one entry is expected"),
        ({"methods": ["tool_calls", "tool_calls"]}, "methods", "tool_calls is listed twice"),
        ({"methods": ["trace_tools"]}, "methods[0]",
         "is the text 'trace_tools'; 'tool_calls', 'capabilities' or 'failure_cases' is expected"),
        ({"score_scope": "tools"}, "score_scope",
         "is the text 'tools'; 'overall', 'tool', 'capability' or 'failure_case' is expected; did you mean 'tool'?"),
        ({"judgments": ["absent.json"]}, "judgments[0]", "'absent.json' does not exist; it is looked for in FOLDER"),
        ({"timeout": 0}, "timeout", "is the number 0; a number above 0 is expected"),
        ({"score_scopes": "tool"}, "score_scopes", "is an unknown key; did you mean 'score_scope'?"),
    ],
)  # fmt: skip
def test_what_is_told_when_the_file_is_collected(
    load: Load, folder: Path, keys: dict[str, Any], where: str, says: str
) -> None:
    with pytest.raises(DefinitionError) as failed:
        load(**keys)
    (found,) = failed.value.problems
    text = str(found).replace(str(folder), "FOLDER")
    print(text)
    assert says in text
    assert f"coverage[0]{'.' if where else ''}{where}" in text


def test_a_missing_key_is_named(load: Load) -> None:
    with pytest.raises(DefinitionError) as failed:
        load(scripts=None, interpreter=None)
    texts = sorted(map(str, failed.value.problems))
    assert len(texts) == 2
    assert "the key interpreter is needed" in texts[0]
    assert "the key scripts is needed" in texts[1]


@pytest.mark.parametrize("inside", ["skills/eval-author-audit/scripts/audit_spec", "scripts/audit_spec", "audit_spec"])
def test_a_folder_above_the_scripts(load: Load, folder: Path, inside: str) -> None:
    shutil.copytree(SCRIPTS, folder / "checkout" / inside)
    with pytest.raises(DefinitionError) as failed:
        load(scripts="checkout")
    assert f"has no measure.py and no report.py; did you mean {folder}/checkout/{inside}?" in str(failed.value)


def test_absent_things_are_fine_where_nothing_is_run(load: Load, folder: Path) -> None:
    whole = load()
    known = Fingerprints(whole)
    digest_then = known.coverage_settings(whole.coverage[0])
    (folder / "scripts/measure.py").unlink()
    assert settings(load(cached_only=True), known.files) == digest_then
    shutil.rmtree(folder / "scripts")
    (folder / "audit.md").unlink()
    today = load(cached_only=True)
    assert settings(today, known.files) == digest_then
    with pytest.raises(DefinitionError):
        load()
    elsewhere = load(cached_only=True, interpreter="/nowhere/python", scripts="/nowhere/scripts")
    assert elsewhere.coverage[0].system.model_dump()["scripts"] == "/nowhere/scripts"


# ---------------------------------------------------------------- the digest


def test_what_changes_the_digest(load: Load, folder: Path) -> None:
    (folder / "author.py").write_text("1")
    (folder / "j.json").write_text("{}")
    keys: dict[str, Any] = {"author": ["{python}", "author.py"], "judgments": ["j.json"]}
    base = settings(load(**keys))
    assert settings(load(**keys)) == base
    assert settings(load(**keys, timeout=5)) == base
    changes: list[dict[str, Any]] = [
        {"methods": ["tool_calls"]}, {"score_scope": "tool"}, {"env": {"A": "1"}}, {"judgments": []},
    ]  # fmt: skip
    for change in changes:
        assert settings(load(**{**keys, **change})) != base, change
    assert settings(load(**keys, interpreter=sys.executable)) != base  # another word, maybe another Python
    for name in ("author.py", "j.json", "audit.md", "scripts/measure.py", "scripts/report.py"):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(before + b"\n")
        assert settings(load(**keys)) != base, name
        (folder / name).write_bytes(before)
    assert settings(load(**keys)) == base


def with_source(folder: Path, path: str, content: bytes) -> None:
    block = f'sources:\n  - {{name: ethos, path: {path}, sha256: "{digest(content)}"}}\nitems:'
    (folder / "audit.md").write_text(MIXED.read_text().replace("items:", block, 1))


def test_a_source_of_the_audit_is_part_of_it(load: Load, folder: Path) -> None:
    (folder / "docs").mkdir()
    (folder / "docs/ETHOS.md").write_bytes(b"kind")
    with_source(folder, "docs/ETHOS.md", b"kind")
    base = settings(load())
    (folder / "docs/ETHOS.md").write_bytes(b"cruel")
    assert settings(load()) != base


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("ETHOS.md", "audit.md names the source ETHOS.md, which is no file beside it (FOLDER/ETHOS.md); put it there, "
                     "or take its sha256 out of the audit"),
        ("../ETHOS.md", "audit.md names the source ../ETHOS.md, which is outside the experiment's folder; copy the "
                        "source into it, or name the audit by its absolute path"),
        ("scripts/../../x/ETHOS.md", "which is outside the experiment's folder"),
        ("link/ETHOS.md", "which is outside the experiment's folder"),
        ("x" * 300, "which is no file beside it"),
        ("evidence/ETHOS.md", "a copy of evidence/ETHOS.md would take a name of the request's own folder; move "
                              "audit.md and its sources into a folder of another name"),
        ("audit.md", "a copy of audit.md would take a name of the request's own folder"),
    ],
)  # fmt: skip
def test_sources_that_cannot_be_taken_along(load: Load, folder: Path, source: str, says: str) -> None:
    (folder / "link").symlink_to("/etc")
    (folder / "evidence").mkdir()
    (folder / "evidence/ETHOS.md").write_bytes(b"kind")
    with_source(folder, source, b"kind")
    with pytest.raises(DefinitionError) as failed:
        load()
    assert says in str(failed.value).replace(str(folder), "FOLDER")


@pytest.mark.parametrize(
    "text",
    ["", "\xff", "no block", "<!-- BEGIN:nemo-eval-author-audit:v1 -->\n```yaml\n[\n```", "a: &a [*a]"],
)
def test_an_audit_that_is_none_is_left_to_the_scripts(load: Load, folder: Path, text: str) -> None:
    (folder / "audit.md").write_bytes(text.encode("latin-1"))
    assert settings(load())


def test_it_stands_in_the_schema_as_it_is_written() -> None:
    schema = EvalAuthorCoverage.model_json_schema()
    assert schema["properties"]["scripts"]["type"] == "string"
    assert schema["properties"]["interpreter"]["type"] == "string"
    assert schema["properties"]["audit"]["anyOf"][0]["type"] == "string"
    assert sorted(schema["required"]) == ["interpreter", "scripts"]
