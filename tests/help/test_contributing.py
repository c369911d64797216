"""What contributors are told is so: files, commands, the map of the house, versions, and what CI and releases run."""

import re
import shlex
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text("utf-8"))
    return loaded


def supported() -> list[str]:
    """The Python versions that the package says it is for."""
    named = (entry.removeprefix("Programming Language :: Python :: ") for entry in PROJECT["project"]["classifiers"])
    return [version for version in named if re.fullmatch(r"3\.\d+", version)]


def test_the_files_and_folders_that_it_names_are_there() -> None:
    words = [word for code in re.findall(r"`([^`\n]+)`", GUIDE) for word in code.split()]
    named = {
        word for word in words if re.match(r"(tests|docs|\.ci|\.github)/", word) or word.endswith((".md", ".toml"))
    }
    assert len(named) > 15
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
    inside = {
        word
        for word in words
        if re.fullmatch(r"(plugin|(runners|pytest_side)/\w+)\.py|(runners|coverage|analysis|interop)/", word)
    }
    assert [name for name in inside if not (ROOT / "pytest_metricbench" / name).exists()] == []


def test_the_links_of_the_pages_for_contributors_lead_somewhere() -> None:
    for page in ("CONTRIBUTING.md", "SECURITY.md", "examples/extending/README.md"):
        targets = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text("utf-8"))
        missing = [name for name in targets if "://" not in name and not (ROOT / page).parent.joinpath(name).exists()]
        assert missing == [], page


def test_the_map_is_the_page_of_the_architecture() -> None:
    """Which ``tests/test_architecture.py`` holds against the code."""
    section = GUIDE.split("## The map")[1].split("\n## ")[0]
    assert "](docs/architecture.md)" in section
    assert "`tests/test_architecture.py`" in section


def test_its_commands_say_what_is_there() -> None:
    scripts = set(re.findall(r"`(\.ci/\w+)", GUIDE))
    assert scripts == {".ci/run", ".ci/matrix", ".ci/full", ".ci/coverage"}
    tools = {"pytest", "ruff", "mypy", "mkdocs", "pip", "python"}
    commands = [code for code in re.findall(r"`([^`\n]+)`", GUIDE) if ".venv-dev/bin/" in code]
    assert {
        word.removeprefix(".venv-dev/bin/") for code in commands for word in code.split() if "bin/" in word
    } == tools
    selected = re.findall(r"(tests/\S+\.py)((?: -k \w+)?)", GUIDE)
    for path, option in selected:
        wanted = option.removeprefix(" -k ")
        assert re.search(rf"def test_\w*{wanted}", (ROOT / path).read_text("utf-8")), (path, wanted)


def test_what_is_left_out_of_the_measured_coverage_is_there() -> None:
    """A module that has moved would be measured, or left out, by mistake."""
    settings = ConfigParser()
    settings.read_string((ROOT / ".ci/coverage.ini").read_text("utf-8"))
    names = settings["run"]["omit"].split()
    assert len(names) > 5
    assert [name for name in names if not (ROOT / name.removeprefix("*/")).is_file()] == []
    assert settings["run"]["branch"] == "true"
    assert re.search(r"^least=95$", (ROOT / ".ci/coverage").read_text("utf-8"), re.M)
    assert "bash .ci/coverage\n" in (ROOT / ".ci/full").read_text("utf-8")


def test_every_python_is_tested_wherever_pythons_are_named() -> None:
    versions = supported()
    assert versions[0] == PROJECT["project"]["requires-python"].removeprefix(">=")
    matrix = re.search(r"^supported=\((.*)\)$", (ROOT / ".ci/pythons").read_text("utf-8"), re.M)
    assert matrix is not None
    assert matrix[1].split() == versions
    assert workflow("release")["jobs"]["test"]["strategy"]["matrix"]["python"] == versions
    steps = workflow("ci")["jobs"]["everything"]["steps"]
    (listed,) = [step["with"]["python-version"] for step in steps if "python-version" in step.get("with", {})]
    assert sorted(listed.split()) == versions


def test_the_matrix_has_the_oldest_pytest_and_one_without_xdist() -> None:
    text = (ROOT / ".ci/matrix").read_text("utf-8")
    combinations = re.search(r"^combinations=\((.*)\)$", text, re.M)
    assert combinations is not None
    (oldest,) = [
        entry for entry in PROJECT["project"]["dependencies"] if re.match(r"pytest\W", entry) and "xdist" not in entry
    ]
    found = [entry.split() for entry in shlex.split(combinations[1])]
    assert {pytest_range for pytest_range, _ in found} == {f"pytest~={oldest.partition('>=')[2]}.0", "pytest"}
    assert {xdist for _, xdist in found} == {"xdist", "no-xdist"}
    quick = re.search(r"^quick=\((.*?)^\)", text, re.M | re.S)
    assert quick is not None
    assert [path for path in quick[1].split() if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_and_nothing_else(path: Path) -> None:
    found = yaml.safe_load(path.read_text("utf-8"))
    assert found["permissions"] == {"contents": "read"}
    assert "secrets." not in path.read_text("utf-8")
    for job in found["jobs"].values():
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)


def test_a_release_is_tested_checked_and_published_without_a_token() -> None:
    jobs = workflow("release")["jobs"]
    publish = jobs["publish"]
    assert set(publish["needs"]) == {"test", "build"}
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    ran = "\n".join(step.get("run", "") for step in jobs["build"]["steps"])
    assert "bash .ci/release" in ran
    ran += (ROOT / ".ci/release").read_text("utf-8")
    for command in (" -m build", "check --strict", "check-wheel-contents", "CHANGELOG.md"):
        assert command in ran


def test_the_changelog_keeps_its_form() -> None:
    """Keep a Changelog 1.1.0: sections of versions, the newest first, with dates; known kinds of change below them."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert text.startswith("# Changelog\n")
    first, *released = re.findall(r"^## (.*)$", text, re.M)
    assert first == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading) for heading in released)
    kinds = set(re.findall(r"^### (.*)$", text, re.M))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_licence_is_one_and_the_same() -> None:
    assert PROJECT["project"]["license"] == "Apache-2.0"
    text = " ".join((ROOT / "LICENSE").read_text("utf-8").split())
    assert text.startswith("Apache License Version 2.0, January 2004")
    assert not [entry for entry in PROJECT["project"]["classifiers"] if entry.startswith("License ::")]
    assert "Apache-2.0" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["bug", "wish"])
def test_an_issue_form_has_what_github_asks_of_it(name: str) -> None:
    form = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text("utf-8"))
    assert {"name", "description", "body"} <= set(form)
    ids = [entry["id"] for entry in form["body"]]
    assert len(ids) == len(set(ids))
    assert any(entry.get("validations", {}).get("required") for entry in form["body"])
    assert all(entry["type"] == "textarea" and entry["attributes"]["label"] for entry in form["body"])
