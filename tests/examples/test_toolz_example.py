"""The toolz example: its patches, its runner's care not to take one thing for another, its coverage, its result."""

import ast
import importlib
import importlib.util
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import coverage
import pytest
import yaml

EXAMPLE = Path(__file__).parents[2] / "examples" / "toolz"
EXPERIMENT = yaml.safe_load((EXAMPLE / "experiment.yml").read_text(encoding="utf-8"))
CASE = EXPERIMENT["cases"][0]
TASKS = {task["id"]: task["params"] for task in CASE["tasks"]}
MUTANTS = {mutant["id"]: mutant["params"] for mutant in CASE["mutants"]}
REQUIREMENT = EXPERIMENT["runner"]["agent"][2]
MODULES = ("itertoolz", "functoolz", "dicttoolz")


def load(name: str) -> ModuleType:
    """A script of the example under a module name of its own: other examples have scripts of the same names."""
    spec = importlib.util.spec_from_file_location(f"toolz_example_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


patched_import = load("patched_import")
line_coverage = load("line_coverage")


def installed(file: str) -> Path:
    spec = importlib.util.find_spec("toolz")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parents[1] / file


def read_patch(mutant: str) -> Any:
    file = MUTANTS[mutant]["patch"]
    return patched_import.Patch((EXAMPLE / file).read_text(encoding="utf-8"), file)


def functions(source: str) -> dict[str, str]:
    """Every function of a module and every method of its classes, as what it does: no comments, no line numbers."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = ast.dump(node)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}": ast.dump(each) for each in node.body if hasattr(each, "name")}
    return found


def changed_functions(mutant: str) -> list[tuple[str, str]]:
    patch = read_patch(mutant)
    source = installed(patch.file).read_text(encoding="utf-8")
    before, after = functions(source), functions(patch.apply(source))
    assert before.keys() == after.keys()
    return [(patch.module, name) for name in before if before[name] != after[name]]


class Workspace:
    """An attempt's folder, and the two steps run in it as the runner would."""

    def __init__(self, folder: Path, example: Path = EXAMPLE) -> None:
        self.folder = folder
        self.example = example
        folder.mkdir()

    def agent(self, variant: dict[str, Any], task: str, requirement: str = REQUIREMENT) -> int:
        request = {"variant": {"id": "v", "params": variant}, "task": {"id": task, "params": TASKS[task]}}
        (self.folder / "request.json").write_text(json.dumps(request))
        return self._step([sys.executable, str(self.example / "run_test.py"), requirement]).returncode

    def verifier(self) -> subprocess.CompletedProcess[str]:
        return self._step([sys.executable, "-I", "-S", str(self.example / "verify.py")])

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def _step(self, argv: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


# ---------------------------------------------------------------- what the experiment is made of


def test_size() -> None:
    assert len(TASKS) >= 25
    assert {params["module"] for params in TASKS.values()} == set(MODULES)
    assert len(MUTANTS) >= 20
    assert CASE["subsets"] == {"sizes": [3, 6, 12], "per_size": 20, "seed": 2014}


def test_patches_and_mutants_belong_together() -> None:
    named = [params["patch"] for params in MUTANTS.values()]
    assert named == [f"mutants/{mutant}.patch" for mutant in MUTANTS]
    assert sorted(named) == sorted(f"mutants/{file.name}" for file in (EXAMPLE / "mutants").iterdir())


@pytest.mark.parametrize("mutant", MUTANTS)
def test_patch_changes_one_function(mutant: str) -> None:
    assert len(changed_functions(mutant)) == 1
    assert CASE["mutants"][list(MUTANTS).index(mutant)]["description"]


def test_each_mutant_is_in_a_function_of_its_own() -> None:
    places = [place for mutant in MUTANTS for place in changed_functions(mutant)]
    assert len(set(places)) == len(MUTANTS)
    assert {module for module, _ in places} == {f"toolz.{module}" for module in MODULES}


@pytest.mark.parametrize("task", TASKS)
def test_task_can_be_called_directly(task: str) -> None:
    owner: Any = importlib.import_module(f"toolz.tests.test_{TASKS[task]['module']}")
    *classes, name = TASKS[task]["test"].split(".")
    for cls in classes:
        owner = getattr(owner, cls)()
    test = getattr(owner, name)
    assert not inspect.signature(test).parameters, "it wants a fixture"
    assert not getattr(test, "pytestmark", []), "a mark would have no effect"
    assert not hasattr(owner, "setup_method")


def test_requirements_ask_for_the_version_of_the_patches() -> None:
    assert REQUIREMENT in (EXAMPLE / "requirements.txt").read_text().split()
    assert f"toolz=={EXPERIMENT['coverage'][0]['settings']['toolz']}" == REQUIREMENT


# ---------------------------------------------------------------- patches

SOURCE = "one\ntwo\nthree\nfour\nfive\n"
HEAD = "--- a/pkg/mod.py\n+++ b/pkg/mod.py\n"


def test_patch_with_two_hunks() -> None:
    patch = patched_import.Patch(f"{HEAD}@@ -1,2 +1,3 @@\n one\n+new\n two\n@@ -4,2 +5,1 @@\n-four\n five\n", "p")
    assert (patch.module, patch.apply(SOURCE)) == ("pkg.mod", "one\nnew\ntwo\nthree\nfive\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("just text\n", r"p: no '--- a/FILE' line"),
        ("--- a/pkg/mod.py\n+++ b/pkg/other.py\n@@ -1 +1 @@\n-one\n+uno\n", r"p: changes 'pkg/mod.py' to"),
        (f"{HEAD}not a hunk\n", r"p, line 3: '@@ -N,N \+N,N @@' is expected"),
        (f"{HEAD}@@ -1,2 +1,2 @@\n-one\n+uno\n", r"p, hunk @@ -1,2 \+1,2 @@: the number of its lines"),
        (f"{HEAD}@@ -2,1 +2,1 @@\n-one\n+uno\n", r"p, hunk @@ -2,1 \+2,1 @@: line 2 of pkg/mod.py is 'two', .* 'one'"),
        (f"{HEAD}@@ -5,2 +5,2 @@\n five\n-six\n+sei\n", r"hunk @@ -5,2 \+5,2 @@: line 6 of pkg/mod.py is None"),
        (f"{HEAD}@@ -2,1 +3,1 @@\n-two\n+due\n", r"hunk @@ -2,1 \+3,1 @@: its new lines start at 2"),
        (f"{HEAD}@@ -2,1 +2,1 @@\n-two\n+two\n", r"p: changes nothing"),
    ],
)
def test_patch_that_does_not_fit(text: str, message: str) -> None:
    with pytest.raises(patched_import.PatchError, match=message):
        patched_import.Patch(text, "p").apply(SOURCE)


def test_patched_copy_that_was_not_loaded_is_noticed() -> None:
    tests = importlib.import_module("toolz.tests.test_itertoolz")
    patch = read_patch("topk-key-zero")
    copy = patched_import.PatchedModule(patch, installed(patch.file))
    with pytest.raises(patched_import.PatchError, match=r"toolz was imported before the patched copy"):
        copy.install()
    with pytest.raises(patched_import.PatchError, match=r"toolz\.itertoolz in this process is not the patched copy"):
        copy.prove_loaded(tests)


# ---------------------------------------------------------------- attempts


def test_baseline_attempt_passes_and_leaves_its_lines(workspace: Workspace) -> None:
    assert workspace.agent({"measure_coverage": True}, "itertoolz.test_topk") == 0
    assert workspace.verifier().returncode == 0
    assert workspace.read("response.json") == {"scores": {"passed": True}}
    assert workspace.read("result.json") == {"passed": True, "patched": None}
    files = {file.name for file in workspace.folder.iterdir()}
    assert files == {"request.json", "result.json", "response.json", "coverage.sqlite"}


@pytest.mark.parametrize(("task", "passed"), [("itertoolz.test_topk", False), ("itertoolz.test_get", True)])
def test_mutant_attempt_runs_the_patched_source(workspace: Workspace, task: str, passed: bool) -> None:
    assert workspace.agent(MUTANTS["topk-key-zero"], task) == 0
    assert workspace.verifier().returncode == 0
    assert workspace.read("response.json") == {"scores": {"passed": passed}}
    patched = workspace.read("result.json")["patched"]
    source = read_patch("topk-key-zero").apply(installed("toolz/itertoolz.py").read_text(encoding="utf-8"))
    digest = importlib.util.source_hash(source.encode("utf-8")).hex()
    assert patched == {"module": "toolz.itertoolz", "source_hash": digest}
    assert {file.name for file in workspace.folder.iterdir()} == {"request.json", "result.json", "response.json"}


def test_measuring_lines_does_not_change_the_outcome(workspace: Workspace) -> None:
    assert workspace.agent(MUTANTS["topk-key-zero"] | {"measure_coverage": True}, "itertoolz.test_topk") == 0
    assert workspace.read("result.json")["passed"] is False


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "toolz-example", ignore=shutil.ignore_patterns(".metricbench")))


def write_patch(example: Path, old: str, new: str) -> dict[str, str]:
    """A patch of one line of itertoolz, the first that reads ``old``."""
    number = installed("toolz/itertoolz.py").read_text(encoding="utf-8").splitlines().index(old) + 1
    head = f"--- a/toolz/itertoolz.py\n+++ b/toolz/itertoolz.py\n@@ -{number} +{number} @@\n"
    (example / "mutants" / "own.patch").write_text(f"{head}-{old}\n+{new}\n")
    return {"patch": "mutants/own.patch"}


def test_library_that_cannot_be_imported_died(tmp_path: Path, example: Path) -> None:
    workspace = Workspace(tmp_path / "workspace", example)
    variant = write_patch(example, "import heapq", "import heapqueue")
    assert workspace.agent(variant, "itertoolz.test_get") == 1


@pytest.mark.parametrize(
    ("variant", "requirement", "problem"),
    [
        ({}, "toolz==0.1", r"is not toolz==0\.1, for which the patches were made; pip install toolz==0\.1"),
        ({}, "no-such-library==1.0", r"no-such-library is not installed; pip install no-such-library==1\.0"),
        ({"patch": "mutants/none.patch"}, REQUIREMENT, r"the patch mutants/none\.patch cannot be read: No such file"),
        ({"patch": "misfit"}, REQUIREMENT, r"misfit, hunk @@ -1 \+1 @@: line 1 of toolz/itertoolz\.py is 'import "),
    ],
)
def test_what_is_not_the_librarys_doing_is_unmeasured(
    tmp_path: Path, example: Path, variant: dict[str, str], requirement: str, problem: str
) -> None:
    head = "--- a/toolz/itertoolz.py\n+++ b/toolz/itertoolz.py\n"
    (example / "misfit").write_text(f"{head}@@ -1 +1 @@\n-nothing like it\n+x\n")
    workspace = Workspace(tmp_path / "workspace", example)
    assert workspace.agent(variant, "itertoolz.test_get", requirement) == 0, "the agent must not count as died"
    verified = workspace.verifier()
    assert verified.returncode == 1
    assert re.search(problem, verified.stderr)
    assert not (workspace.folder / "response.json").exists()


def test_mutants_of_equal_length_do_not_share_bytecode(tmp_path: Path, example: Path) -> None:
    """Written within one second at one place, as a copy on disk is in danger to be."""
    results = []
    for number, new in enumerate(["import heapq; 1/0", "import heapq; 1/1", "import heapq; 1/0"]):
        workspace = Workspace(tmp_path / f"workspace-{number}", example)
        variant = write_patch(example, "import heapq", new)
        results.append(workspace.agent(variant, "itertoolz.test_get"))
    assert results == [1, 0, 1]


# ---------------------------------------------------------------- coverage


def measure(folder: Path, tasks: list[str], evidence: dict[str, list[dict[str, str]]]) -> Any:
    settings = EXPERIMENT["coverage"][0]["settings"]
    (folder / "request.json").write_text(json.dumps({"tasks": tasks, "settings": settings, "evidence": evidence}))
    subprocess.run([sys.executable, str(EXAMPLE / "line_coverage.py")], cwd=folder, check=True, timeout=60)
    return json.loads((folder / "response.json").read_text())


def test_lines_are_those_of_coverage_py(tmp_path: Path) -> None:
    """Task by task and for their union, the set of lines that coverage.py's own report would call executed."""
    tasks = ["itertoolz.test_topk", "functoolz.test_memoize_kwargs", "dicttoolz.TestDict.test_update_in"]
    folder = tmp_path / "request"
    expected, evidence = {}, {}
    for task in tasks:
        attempt = Workspace(tmp_path / task)
        assert attempt.agent({"measure_coverage": True}, task) == 0
        expected[task] = executed_by_coverage_py(attempt.folder / "coverage.sqlite")
        file = folder / "evidence" / task / "coverage.sqlite"
        file.parent.mkdir(parents=True)
        shutil.copy(attempt.folder / "coverage.sqlite", file)
        evidence[task] = [{"path": str(file.relative_to(folder)), "name": "coverage.sqlite"}]
    before = files_below(folder / "evidence")

    response = measure(folder, tasks, evidence)

    goals = json.loads((folder / "goals.json").read_text())
    assert {task: set(lines) for task, lines in goals["by_task"].items()} == expected
    assert len(set(goals["universe"])) == len(goals["universe"])
    assert set().union(*expected.values()) < set(goals["universe"])
    assert response == {"value": len(set().union(*expected.values())) / len(goals["universe"])}
    assert files_below(folder / "evidence") == before


def files_below(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def executed_by_coverage_py(data_file: Path) -> set[str]:
    copy = data_file.with_name("copy.sqlite")
    shutil.copy(data_file, copy)
    own = coverage.Coverage(data_file=copy, config_file=False)
    own.load()
    executed = set()
    for module in MODULES:
        _, statements, _, missing, _ = own.analysis2(str(installed(f"toolz/{module}.py")))
        executed |= {f"toolz.{module}:{line}" for line in set(statements) - set(missing)}
    return executed


def test_task_without_coverage_data_makes_the_score_null(tmp_path: Path) -> None:
    tasks = ["itertoolz.test_get", "itertoolz.test_topk"]
    response = measure(tmp_path, tasks, {"itertoolz.test_get": [{"path": "x", "name": "x"}], "itertoolz.test_topk": []})
    assert response["value"] is None
    assert response["reason"] == f"no coverage.sqlite among the evidence of {', '.join(tasks)}"
    assert not (tmp_path / "goals.json").exists()


def test_line_coverage_of_another_version_is_refused(tmp_path: Path) -> None:
    request = {"tasks": [], "settings": {"toolz": "0.1", "modules": []}, "evidence": {}}
    (tmp_path / "request.json").write_text(json.dumps(request))
    argv = [sys.executable, str(EXAMPLE / "line_coverage.py")]
    ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "source of toolz 0.1, and another version is installed" in ended.stderr


# ---------------------------------------------------------------- the whole run

README = (EXAMPLE / "README.md").read_text(encoding="utf-8")


def readme_row(name: str) -> list[float]:
    """The figures of one row of the README's table: sizes 3, 6, 12, all."""
    match = re.search(rf"^\| {re.escape(name)} \|(.*)\|$", README, re.MULTILINE)
    assert match is not None
    return [float(cell) for cell in match[1].split("|")]


@pytest.mark.slow
def test_whole_run_ends_as_the_readme_says(example: Path) -> None:
    lock = (example / "experiment.lock.yml").read_bytes()
    argv = [sys.executable, "-m", "pytest", "-p", "metricbench", "experiment.yml", "-n", "2"]
    ended = subprocess.run(argv, cwd=example, capture_output=True, text=True, timeout=400, check=False)
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-5000:]
    assert (example / "experiment.lock.yml").read_bytes() == lock
    summary = json.loads((example / ".metricbench" / "toolz" / "summary.json").read_text())

    counts = summary["counts"]
    assert counts["passed"] + counts["missed"] == len(TASKS) * (1 + len(MUTANTS))
    assert counts["died"] == counts["unmeasured"] == counts["missing"] == 0
    assert summary["complete"] is True
    assert all(gate["holds"] for gate in summary["gates"])

    case = summary["cases"]["toolz"]
    survivors = {mutant for mutant, cells in case["kills"].items() if "killed" not in cells.values()}
    assert survivors == set(re.findall(r"^\| `([\w-]+)` \|", README, re.MULTILINE))
    killed = len(MUTANTS) - len(survivors)
    assert f"**{killed} of the {len(MUTANTS)} mutants**" in README
    assert case["pool"]["kill_share"]["value"] == pytest.approx(killed / len(MUTANTS))

    # Which lines are executable differs a little between Python versions, and the figures with it.
    percent = re.search(r"run \*\*(\d+) %\*\*", README)
    assert percent is not None
    assert case["pool"]["coverage"]["line"]["value"] == pytest.approx(float(percent[1]) / 100, abs=0.03)
    figures = case["correlation"]["line"]["kill_share"]
    scopes = [*(figures["by_size"][size] for size in ("3", "6", "12")), figures["overall"]]
    assert [scope["pairs"] for scope in scopes] == readme_row("pairs")
    for method, name in (("kendall", "Kendall tau-b"), ("spearman", "Spearman"), ("pearson", "Pearson")):
        assert [scope[method]["value"] for scope in scopes] == pytest.approx(readme_row(name), abs=0.08), name

    assert_every_mutant_was_loaded(example / ".metricbench" / "toolz" / "attempts" / "toolz")


def assert_every_mutant_was_loaded(attempts: Path) -> None:
    """What each attempt kept says which source was in force: none in the baseline, one of its own for each mutant."""
    loaded: dict[str, set[str | None]] = {}
    for file in attempts.glob("*/*/*/result.json"):
        patched = json.loads(file.read_text())["patched"]
        loaded.setdefault(file.relative_to(attempts).parts[0], set()).add(patched and patched["source_hash"])
    expected: dict[str, set[str | None]] = {"baseline": {None}}
    for mutant in MUTANTS:
        patch = read_patch(mutant)
        source = patch.apply(installed(patch.file).read_text(encoding="utf-8"))
        expected[mutant] = {importlib.util.source_hash(source.encode("utf-8")).hex()}
    assert loaded == expected
    assert len(set().union(*expected.values())) == 1 + len(MUTANTS)
