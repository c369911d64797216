"""Each example runs to its end as it is written, and docs/start.md shows the very screens.

METRICBENCH_WRITE_DOCS=1 pytest tests/starting/test_start_examples.py writes the screens on the page again; Harbor's
where METRICBENCH_HARBOR names its executable.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import pytest
import yaml

from pytest_metricbench.starting.filling import templates
from pytest_metricbench.starting.finding import KINDS
from pytest_metricbench.starting.start import BY_OPTION, start
from tests.present import present
from tests.starting.starting_lab import begin

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "start.md"
_HAS_HARBOR = find_spec("harbor") is not None or bool(os.environ.get("METRICBENCH_HARBOR"))
RUN = [pytest.param(kind, marks=[pytest.mark.slow]) for kind in KINDS if kind != "harbor"]
RUN.append(
    pytest.param(
        "harbor",
        marks=[
            pytest.mark.slow,
            pytest.mark.harbor,
            pytest.mark.skipif(not _HAS_HARBOR, reason="Harbor is neither installed nor named"),
        ],
    )
)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, str, str]]:
    """Gives the folder of an example, what was said when it was written, and what its run printed; each once."""
    top = tmp_path_factory.mktemp("examples")
    known = {}

    def of(kind: str) -> tuple[Path, str, str]:
        if kind not in known:
            said = "\n".join(start(kind, top, kind, BY_OPTION))
            known[kind] = (top / kind, said, _run(top, kind))
        return known[kind]

    return of


def _run(top: Path, kind: str) -> str:
    """What `pytest kind/experiment.yml` prints, without what differs between two runs of the same."""
    unset = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")
    variables = {name: value for name, value in os.environ.items() if name not in unset and not name.startswith("COV_")}
    variables |= {"COLUMNS": "80", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PY_COLORS": "0"}
    command = [sys.executable, "-m", "pytest", "-p", "metricbench", "-p", "no:cacheprovider", f"{kind}/experiment.yml"]
    done = subprocess.run(command, cwd=top, env=variables, capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    begins = next(number for number, line in enumerate(lines) if line.startswith("collected"))
    shown = "\n".join(lines[begins:]).replace(f"{top}{os.sep}", "")
    return re.sub(r"=* (.+) in [\d.]+s( \(.*\))? =*$", lambda found: f" {found[1]} ".center(80, "="), shown).strip()


@pytest.mark.parametrize("kind", RUN)
def test_a_baseline_that_passes_a_mutant_that_is_caught_and_one_that_survives(
    examples: Callable[[str], tuple[Path, str, str]], kind: str
) -> None:
    folder, _, _ = examples(kind)
    summary = json.loads((folder / ".metricbench" / kind / "summary.json").read_text())
    assert summary["complete"]
    assert summary["counts"]["unmeasured"] == summary["counts"]["missing"] == 0
    assert all(gate["holds"] for gate in summary["gates"])
    (case,) = summary["cases"].values()
    killed = {mutant: "killed" in cells.values() for mutant, cells in case["kills"].items()}
    assert set(killed.values()) == {True, False}
    (coverage,) = case["pool"]["coverage"].values()
    assert 0 < coverage["value"] <= 1
    values = {
        subset["coverage"][system]["value"] for subset in case["subsets"].values() for system in subset["coverage"]
    }
    assert len(values) > 1
    (correlation,) = case["correlation"].values()
    assert correlation["kill_share"]["overall"]["kendall"]["value"] is not None


@pytest.mark.parametrize("kind", RUN)
def test_the_page_shows_what_is_said_written_and_printed(
    examples: Callable[[str], tuple[Path, str, str]], kind: str
) -> None:
    folder, said, printed = examples(kind)
    shown = {"said": said, "written": (folder / "experiment.yml").read_text("utf-8").strip(), "printed": printed}
    page = PAGE.read_text("utf-8")
    for what, text in shown.items():
        place = re.compile(rf"(<!-- {kind} {what} -->\n```\w+\n).*?(\n```)", re.S)
        assert place.search(page), f"docs/start.md has no place for what is {what} for {kind}"
        if os.environ.get("METRICBENCH_WRITE_DOCS"):
            found = present(place.search(page))
            page = page[: found.start()] + found[1] + text + found[2] + page[found.end() :]
        elif kind != "harbor" or what != "said":  # what is said of Harbor depends on where it is
            assert present(place.search(page))[0].partition("\n")[2].partition("\n")[2] == f"{text}\n```"
    if os.environ.get("METRICBENCH_WRITE_DOCS"):
        PAGE.write_text(page, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_clean(examples: Callable[[str], tuple[Path, str, str]], tmp_path: Path, kind: str) -> None:
    """Against the schema that is written beside it, and by ruff."""
    if kind == "harbor":
        begin(tmp_path, kind)
    folder = tmp_path if kind == "harbor" else examples(kind)[0]
    text = (folder / "experiment.yml").read_text("utf-8")
    assert text.startswith("# yaml-language-server: $schema=experiment.schema.json\n")
    jsonschema.Draft202012Validator(json.loads((folder / "experiment.schema.json").read_text())).validate(
        yaml.safe_load(text)
    )
    assert not re.search("<<|FILL IN|CHECK", text)
    assert max(map(len, text.splitlines())) <= 120
    if any(folder.rglob("*.py")) and shutil.which("ruff", path=str(Path(sys.executable).parent)):
        ruff = [sys.executable, "-m", "ruff"]
        options = ["--isolated", "--no-cache", "--line-length=120", str(folder)]
        assert subprocess.run([*ruff, "format", "--check", *options], capture_output=True, text=True).returncode == 0
        checked = subprocess.run([*ruff, "check", "--select=E,F,I,B,UP", *options], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout


def test_the_environment_without_docker_is_the_one_of_the_harbor_example() -> None:
    kept = (ROOT / "examples" / "harbor" / "local_environment.py").read_text("utf-8")
    assert templates("harbor")["local_environment.py"] == kept


def test_the_harbor_example_is_collected_without_running_it(
    tmp_path: Path, alone: Callable[..., pytest.RunResult], monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester
) -> None:
    monkeypatch.setenv("METRICBENCH_HARBOR", "/bin/true")  # is asked nothing before an attempt begins
    begin(pytester.path / "new", "harbor", here=pytester.path)
    result = alone("new/experiment.yml", "--collect-only", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["new/experiment.yml::notes::baseline::count-notes?1?", "15 tests collected*"])
    alone("new/experiment.yml", "--metricbench-show", "plan").stdout.fnmatch_lines(
        ["attempts * 15 attempts: 15 to run"]
    )
