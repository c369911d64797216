"""Every command, YAML and program that the documentation shows is tried, or stands in tried_elsewhere.py."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_metricbench import coverage, runners
from pytest_metricbench.definition.schema import experiment_schema
from pytest_metricbench.generating.builtin import BUILTIN as GENERATORS
from tests.docs import block_lab
from tests.docs.block_lab import ROOT, Block, pytest_words, without_workers
from tests.docs.tried_elsewhere import ELSEWHERE, Elsewhere

with suppress(ImportError):  # nor can what draws be imported twice
    import jinja2  # noqa: F401

    import pytest_metricbench.reporting.html
    import pytest_metricbench.reporting.plots

BLOCKS = block_lab.blocks()
SCHEMA = experiment_schema(runners.BUILTIN, coverage.BUILTIN, GENERATORS)


def elsewhere(block: Block) -> Elsewhere | None:
    """The entry of a block that is not tried here as it stands."""
    for entry in ELSEWHERE:
        is_there = (entry.page, entry.language) == (block.page, block.language)
        if is_there and any(line.startswith(entry.start) for line in block.text.splitlines()):
            return entry
    return None


def shown(language: str, *, tried_here: bool = True) -> list[Block]:
    return [block for block in BLOCKS if block.language == language and (elsewhere(block) is None or not tried_here)]


def ids(block: object) -> str:
    return f"{block.page}-{block.line}" if isinstance(block, Block) else str(block)


def test_every_block_is_tried() -> None:
    """A block in a language that only an entry can be about has one."""
    own_entry = {"python", "csv", "json", "toml", "ini", "diff", "mermaid"}
    known = {"text", "sh", "yaml"} | own_entry
    assert [f"{block.page}:{block.line} ({block.language})" for block in BLOCKS if block.language not in known] == []
    untried = [ids(block) for block in BLOCKS if block.language in own_entry and elsewhere(block) is None]
    assert untried == [], "have a test try it, and name that in tests/docs/tried_elsewhere.py"
    assert len(BLOCKS) > 100


@pytest.mark.parametrize("entry", ELSEWHERE, ids=lambda entry: f"{entry.page}-{entry.start}-{entry.language}")
def test_what_is_tried_elsewhere(entry: Elsewhere) -> None:
    found = [block for block in BLOCKS if elsewhere(block) == entry]
    assert found, "no block is like this any more: remove the entry"
    assert [bool(entry.by), bool(entry.in_ci), bool(entry.why)].count(True) == 1
    if entry.by:
        path, _, test = entry.by.partition("::")
        source = (ROOT / path).read_text("utf-8")
        assert not test or re.search(rf"^\s*(async )?def {test}\b", source, re.M), f"{entry.by} is gone"
    if entry.in_ci:
        script = (ROOT / ".ci" / entry.in_ci).read_text("utf-8")
        words = {word for block in found for word in shlex.split(block.text, comments=True)}
        paths = {word for word in words if word.endswith((".py", "experiment.yml"))}
        is_extracted = entry.page == "README.md" and "command_of" in script
        named = [path for path in paths if any(str(place) in script for place in (path, *Path(path).parents[:-1]))]
        assert is_extracted or (paths and sorted(named) == sorted(paths)), f".ci/{entry.in_ci} runs not all of {paths}"


# ---------------------------------------------------------------- YAML

CASE = SCHEMA["$defs"]["CaseForm"]


def wrong(document: object, definition: dict[str, Any]) -> list[str]:
    """What a mapping has that the definition does not allow, whatever it lacks."""
    schema = {"properties": definition["properties"], "additionalProperties": False, "$defs": SCHEMA["$defs"]}
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(document)]


@pytest.mark.parametrize("block", shown("yaml"), ids=ids)
def test_yaml(block: Block, tmp_path: Path) -> None:
    document = block_lab.document(block)
    if "metricbench" in document:
        assert [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)] == []
    elif steps := steps_of(document):
        for command in steps:
            check_command(command)
    elif set(document) <= set(SCHEMA["properties"]):
        assert wrong(document, SCHEMA) == []
    else:
        assert wrong(document, CASE) == []


@pytest.mark.parametrize("entry", [entry for entry in ELSEWHERE if entry.part_of], ids=lambda entry: entry.page)
def test_a_part_of_a_mapping(entry: Elsewhere) -> None:
    for block in (block for block in BLOCKS if elsewhere(block) == entry):
        document = block_lab.document(block)
        inner = document["runner"] if entry.part_of.endswith("Runner") else document
        allowed = SCHEMA["$defs"][entry.part_of]["properties"]
        assert set(inner) <= set(allowed), f"{block.page}:{block.line}"


def steps_of(document: object) -> list[str]:
    """The commands of a workflow of GitHub's, a list of its steps, or a job of GitLab's; none of anything else."""
    if not isinstance(document, list | dict):
        return []
    if isinstance(document, list):
        return [line for step in document for line in str(step.get("run", "")).splitlines() if line.strip()]
    if isinstance(document.get("jobs"), dict):
        return [line for job in document["jobs"].values() for line in steps_of(job["steps"])]
    scripts = [job["script"] for job in document.values() if isinstance(job, dict) and "script" in job]
    return [line for script in scripts for line in ([script] if isinstance(script, str) else script)]


# ---------------------------------------------------------------- commands

EXPERIMENT = """\
metricbench: 1
name: refund-agent
attempts: 2
runner: {kind: python, agent: "quick_agent:answer", thread_safe: true}
score: {outputs: {reward: continuous, cost: measurement}}
cases:
  - id: refunds
    description: Answers refund requests.
    tasks:
      - {id: late-purchase, tags: [policy]}
      - {id: no-receipt}
      - {id: greeting}
    mutants:
      - {id: skips-eligibility, description: Never checks the date.}
      - {id: rude, description: Says no greeting.}
      - {id: silent, description: Leaves no log.}
    subsets: {sizes: [1, 2], per_size: 3, seed: 7}
coverage:
  - {id: tools, kind: python, measure: "quick_agent:covered"}
analysis: {resamples: 99}
gates:
  - baseline pass@1 >= 0.9
"""

AGENT = """\
KILLS = {"skips-eligibility": {"late-purchase"}, "rude": {"greeting"}}


def answer(request):
    killed = request.task.id in KILLS.get(request.variant.id, ())
    return {"reward": float(not killed), "cost": 0.01}


def covered(request):
    tools = {"late-purchase": ["date"], "no-receipt": ["receipt"], "greeting": []}
    by_task = {task: tools[task] for task in request.tasks}
    found = set().union(*by_task.values())
    return {"value": len(found) / 2, "goals": {"universe": ["date", "receipt"], "by_task": by_task}}
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every command finds what it names: an experiment, its store, earlier stores and summaries."""
    folder = tmp_path_factory.mktemp("stage")
    (folder / "experiment.yml").write_text(EXPERIMENT)
    (folder / "quick_agent.py").write_text(AGENT)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "metricbench", "experiment.yml"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    store = folder / ".metricbench/refund-agent"
    for name in ("main", "earlier"):
        (folder / name).mkdir()
        shutil.copy(store / "summary.json", folder / name / "summary.json")
    shutil.copytree(folder / ".metricbench", folder / "main/.metricbench")
    for name in ("A", "B", "C", "other", *(f"m{number}/out" for number in range(1, 6))):
        shutil.copytree(folder / ".metricbench", folder / name)
    shutil.copy(store / "attempts.jsonl", folder / "attempts.jsonl")
    return folder


@pytest.fixture
def desk(stage: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, unasked: None) -> pytest.Pytester:
    """A copy of the stage, in which one command is run."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    shutil.copytree(stage, pytester.path, dirs_exist_ok=True)
    return pytester


def commands() -> dict[str, Block]:
    """The different commands of all blocks that are tried here, each with the first block that shows it."""
    found: dict[str, Block] = {}
    for block in shown("sh"):
        for command in block.commands:
            if re.match(rf"(?:[A-Z_]+=\S+ )?({'|'.join(block_lab.PROGRAMS)})\b", command):
                found.setdefault(command.replace("pytest -p metricbench ", "pytest "), block)
    for block in shown("yaml"):
        for command in steps_of(block_lab.document(block)):
            if pytest_words(command) and "${{" not in command:
                found.setdefault(command.replace("pytest -p metricbench ", "pytest "), block)
    return found


ARGUMENTS = {
    tuple(without_workers(words)): command
    for command in reversed(commands())
    if (words := pytest_words(command)) is not None
}
"""Arguments -> the first command that has them: what differs in ``-n`` only is run once."""
RUN = {command: commands()[command] for command in reversed(ARGUMENTS.values())}
OTHER = {command: block for command, block in commands().items() if pytest_words(command) is None}


@pytest.mark.parametrize("command", RUN, ids=lambda command: f"{RUN[command].page}: {command}")
def test_a_command_that_runs_pytest(desk: pytest.Pytester, command: str) -> None:
    words = without_workers(pytest_words(command) or [])
    has_experiment = any(".yml" in word or word == "--metricbench-init" for word in words)
    assert has_experiment, "it runs something else: say in tried_elsewhere.py who tries it"
    if "--metricbench-html" in words:
        pytest.importorskip("jinja2", reason="needs the extra `report`")
    result = desk.runpytest_inprocess("-p", "no:randomly", "-p", "no:sugar", *words)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("command", OTHER, ids=lambda command: f"{OTHER[command].page}: {command}")
def test_another_command(command: str) -> None:
    check_command(command, OTHER[command])


@pytest.mark.parametrize("block", [b for b in shown("sh", tried_here=False) if elsewhere(b)], ids=ids)
def test_options_of_commands_that_are_run_elsewhere(block: Block) -> None:
    for command in block.commands:
        if re.search(r"\b(pytest|pip)\b", command):
            check_command(command, block)


@pytest.mark.parametrize("page", block_lab.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_option_that_is_mentioned_exists(page: Path) -> None:
    named = set(re.findall(r"--metricbench-[a-z]+(?:-[a-z]+)*", page.read_text("utf-8")))
    assert named - known_options() == set()


@cache
def known_options() -> set[str]:
    """The options of this pytest, with those of the plugins that are installed here; asked for once."""
    done = subprocess.run([sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True, check=True)
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", done.stdout))


def check_command(command: str, block: Block | None = None) -> None:
    """What can be said of a command without running it: its options exist, its extras and its files too."""
    for part in re.split(r"\s*(?:&&|;|\|\|)\s*", command):
        words = shlex.split(part.removeprefix("until "), comments=True)
        if (arguments := pytest_words(part.removeprefix("until "))) is not None:
            given = {word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)}
            known = known_options()
            unknown = {word for word in given if word not in known and word[:2] not in known}
            assert unknown == set(), command
        if "pip" in (word.rpartition("/")[2] for word in words[:3]):
            check_installed(words, block)


def check_installed(words: list[str], block: Block | None) -> None:
    """The extras of ours that a command installs exist, and the files of requirements."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for word in words:
        if extra := re.fullmatch(r"(?:pytest-metricbench|\.)\[([\w,]+)\]", word):
            assert set(extra[1].split(",")) <= set(project["optional-dependencies"]), word
    for flag, name in pairwise(words):
        if flag == "-r":
            beside = (ROOT / block.page).parent / name if block else ROOT / name
            assert (ROOT / name).exists() or beside.exists(), name


# ---------------------------------------------------------------- programs


def code(page: str, start: str) -> str:
    """The one block of Python of a page that begins so."""
    (text,) = [
        block.text
        for block in BLOCKS
        if (block.page, block.language) == (page, "python") and block.text.startswith(start)
    ]
    return text


def test_the_python_agent_of_the_agents_page(desk: pytest.Pytester) -> None:
    desk.path.joinpath("quick_agent.py").write_text(code("docs/agents.md", "def agent(request)") + AGENT)
    text = EXPERIMENT.replace("quick_agent:answer", "quick_agent:agent").replace(
        "description: Says no", "params: {without: a}, description: Says no"
    )
    desk.path.joinpath("experiment.yml").write_text(text)
    result = desk.runpytest_inprocess("-p", "no:randomly", "-p", "no:sugar", "experiment.yml")
    assert result.ret == 0, result.stdout.str()
    assert result.parseoutcomes()["missed"] == 6  # every attempt of the mutant that goes without


def test_the_stages_of_the_usage_page(desk: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk.path)
    names: dict[str, Any] = {}
    exec(compile(code("docs/usage.md", "from pytest_metricbench"), "docs/usage.md", "exec"), names)
    assert names["summary"].complete


@pytest.mark.benchmark  # two processes of pytest
def test_until_the_budget_suffices(desk: pytest.Pytester) -> None:
    (block,) = [block for block in BLOCKS if block.page == "docs/usage.md" and block.text.startswith("until ")]
    command = re.sub(r" -n \d", "", block.commands[0]).replace("sleep 3600", "echo again")
    desk.path.joinpath("experiment.yml").write_text("budget: {attempts: 16}\n" + EXPERIMENT)
    python = f"PATH={shlex.quote(str(desk.path / 'bin'))}:$PATH; "
    (desk.path / "bin").mkdir()
    (desk.path / "bin/pytest").write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest -q -p no:sugar "$@"\n')
    (desk.path / "bin/pytest").chmod(0o755)
    shutil.rmtree(desk.path / ".metricbench")
    done = subprocess.run(
        ["/bin/sh", "-c", python + command], cwd=desk.path, capture_output=True, text=True, check=False
    )
    assert done.stdout.count("again\n") == 1  # 24 attempts
    assert (desk.path / ".metricbench/refund-agent/summary.json").exists()


def test_the_jq_of_the_summary_page(stage: Path) -> None:
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    (block,) = [block for block in BLOCKS if block.page == "docs/summary.md" and block.language == "sh"]
    folder = stage / ".metricbench/refund-agent"
    done = subprocess.run(["/bin/sh", "-ec", block.text], cwd=folder, capture_output=True, text=True, check=True)
    assert re.fullmatch(r'0.6666666\d+\n"silent: Leaves no log."\n', done.stdout)


def test_imports_of_what_needs_others() -> None:
    for block in (block for block in BLOCKS if block.page == "docs/harbor.md" and block.language == "python"):
        for line in re.findall(r"^from (pytest_metricbench[\w.]*) import (.+)$", block.text, re.M):
            module = __import__(line[0], fromlist=["x"])
            assert all(hasattr(module, name.strip()) for name in line[1].split(","))


HOOK_EXPERIMENT = """\
metricbench: 1
name: hooks
runner: {kind: echo}
cases:
  - id: c
    tasks: [{id: t, params: {reward: 1}}]
    inputs: [prompt.md]
    mutants: {generate: [{from: personas, names: [a pirate]}, {from: text, files: [prompt.md], operators: [shout]}]}
    subsets: [{id: s, tasks: [t]}]
coverage:
  - {id: words, kind: words, vocabulary: [hello, bye]}
"""


def test_the_examples_of_the_hooks(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """All four together make a conftest.py with which an experiment runs."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = ", ".join(pytest_metricbench.__all__)
    parts = [block.text for block in BLOCKS if (block.page, block.language) == ("docs/reference/hooks.md", "python")]
    assert len(parts) >= 4
    imports = f"import re\nfrom typing import ClassVar, Literal\nfrom pytest_metricbench import {names}\n"
    (pytester.path / "conftest.py").write_text("\n\n".join([imports, *parts]))
    (pytester.path / "prompt.md").write_text("Please answer politely.\n")
    (pytester.path / "experiment.yml").write_text(HOOK_EXPERIMENT)
    result = pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:sugar", "-v", "experiment.yml")
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines_random(["*::persona-a-pirate::t*", "*::shout-answer::t*", "*::coverage::words?s?*"])


def test_what_tells_blocks_apart() -> None:
    block = Block("p", 1, "sh", "$ pytest a.yml \\\n    -n 2  # why\nsome output\n")
    assert block.commands == ["pytest a.yml -n 2"]
    assert pytest_words("X=1 .venv/bin/pytest a.yml -k 'b c'") == ["a.yml", "-k", "b c"]
    assert without_workers(["a.yml", "-n", "2", "-k", "x"]) == ["a.yml", "-k", "x"]
    assert without_workers(["-n2", "a.yml"]) == ["a.yml"]
    assert steps_of(yaml.safe_load("{jobs: {a: {steps: [{run: 'x\ny'}]}}}")) == ["x y"]
    assert wrong({"attempts": 0}, SCHEMA)
    with pytest.raises(AssertionError):
        check_command("pytest experiment.yml --metricbench-nonsense")
