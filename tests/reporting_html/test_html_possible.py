"""A page that cannot be written is told before anything runs for it, and never half written."""

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.reporting.html import HtmlError, check_html_possible, html_page, write_html
from pytest_metricbench.reporting.html_origin import experiment_digest, origin_of
from pytest_metricbench.stages import load_experiment
from tests.analysis.results_builder import CaseTable, build
from tests.reporting_html.html_lab import ORIGIN

EXPERIMENT = """\
metricbench: 1
name: small
runner: {kind: command, agent: ["{python}", agent.py]}
cases:
  - id: c
    description: Small.
    tasks: [{id: t}]
    mutants: [{id: m, description: Damaged.}]
"""


def results() -> Results:
    return build(CaseTable({"baseline": {"t": [1.0]}, "m": {"t": [0.0]}}))


def test_nothing_is_wrong_where_the_page_can_be_written(tmp_path: Path) -> None:
    check_html_possible(tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(HtmlError) as caught:
        check_html_possible(tmp_path / "none" / "report.html")
    assert str(caught.value) == f"the folder {tmp_path / 'none'} does not exist; make it first"


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(HtmlError) as caught:
        check_html_possible(tmp_path)
    assert str(caught.value) == f"{tmp_path} is a folder; name a file in it"


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)  # root may write everywhere
    with pytest.raises(HtmlError) as caught:
        check_html_possible(tmp_path / "report.html")
    assert str(caught.value) == f"the folder {tmp_path} cannot be written"


@pytest.mark.parametrize("absent", [["jinja2"], ["matplotlib"], ["jinja2", "matplotlib"]], ids=" and ".join)
def test_an_extra_that_is_not_installed(tmp_path: Path, absent: list[str]) -> None:
    """In a process of its own, where these modules cannot be imported."""
    program = f"""\
import sys
from pathlib import Path
for name in {absent!r}:
    sys.modules[name] = None
from pytest_metricbench.reporting.html import HtmlError, check_html_possible
try:
    check_html_possible(Path("report.html"))
except HtmlError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    said = f"{' and '.join(absent)} cannot be imported; pip install 'pytest-metricbench[report]'"
    assert done.stdout.strip() == said


def test_a_page_without_the_extra_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = results()
    with pytest.raises(HtmlError, match="matplotlib cannot be imported"):
        html_page(found, summarize(found), ORIGIN)


def test_asking_imports_neither(tmp_path: Path) -> None:
    program = """\
import sys
from pathlib import Path
from pytest_metricbench.reporting.html import check_html_possible
check_html_possible(Path("report.html"))
print(sorted({"jinja2", "matplotlib", "numpy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "matplotlib" not in done.stdout
    assert "jinja2" not in done.stdout


def test_a_page_replaces_an_earlier_one_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("the earlier one")
    found = results()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(HtmlError) as caught:
            write_html(path, found, summarize(found), ORIGIN)
    assert str(caught.value) == f"{path} cannot be written: No space left on device"
    assert path.read_text() == "the earlier one"
    assert list(tmp_path.iterdir()) == [path]
    write_html(path, found, summarize(found), ORIGIN)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


# ---------------------------------------------------------------- where it comes from


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "experiment.yml").write_text(EXPERIMENT)
    (tmp_path / "agent.py").write_text("print(1)\n")
    return tmp_path


def digest(folder: Path) -> str | None:
    return experiment_digest(Fingerprints(load_experiment(folder / "experiment.yml")))


def test_the_digest_is_that_of_all_that_results_depend_on(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = digest(folder)
    assert first is not None
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for file in folder.iterdir():
        (elsewhere / file.name).write_bytes(file.read_bytes())
    assert digest(elsewhere) == first
    (folder / "experiment.yml").write_text(EXPERIMENT + "analysis: {seed: 3}\n")
    assert digest(folder) == first, "how results are read is no part of it"
    (folder / "agent.py").write_text("print(2)\n")
    assert digest(folder) != first


def test_without_a_file_there_is_no_digest(folder: Path) -> None:
    experiment = load_experiment(folder / "experiment.yml")
    (folder / "agent.py").unlink()
    assert experiment_digest(Fingerprints(experiment)) is None


def test_the_origin_names_the_kinds_and_versions() -> None:
    origin = origin_of(results(), command="pytest experiment.yml")
    assert origin.command == "pytest experiment.yml"
    assert origin.file_name == "experiment.yml"
    assert origin.kinds == {"runner": "none"}
    assert {"Python", "pytest", "numpy", "scipy"} <= set(origin.versions)
    assert origin.started == ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z")
