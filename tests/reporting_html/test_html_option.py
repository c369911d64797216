"""``--metricbench-html``: the page of a run, from the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reporting_html.html_lab import read

OTHERS = (
    *("randomly", "rerunfailures", "repeat", "timeout", "html", "metadata", "pytest_cov", "sugar"),
    "hypothesispytest",
)


EXPERIMENT = """\
metricbench: 1
name: {name}
attempts: 2
runner: {{kind: python, agent: "agent:run", verifier: "agent:verify"}}
cases:
  - id: shop
    description: Sells <b>lamps</b>.
    tasks: [{{id: a}}, {{id: b}}, {{id: c}}]
    mutants:
      - {{id: no-a, description: Forgets a., params: {{damage: a}}}}
      - {{id: nothing, description: Nothing that a task sees., params: {{damage: elsewhere}}}}
    subsets:
      - {{id: s1, tasks: [a]}}
      - {{id: s2, tasks: [b]}}
      - {{id: s3, tasks: [a, b]}}
coverage:
  - {{id: half, kind: python, measure: "agent:measure"}}
gates: [mutation_score >= 0.5]
"""

MODULE = """\
def run(request):
    return request.variant.params.get("damage")

def verify(request, output):
    return {"reward": float(output != request.task.id)}

def measure(request):
    return len(request.tasks) / 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(MODULE)
    (tmp_path / "experiment.yml").write_text(EXPERIMENT.format(name="lamps"))
    return tmp_path


def run(folder: Path, *arguments: str, expect: int = 0) -> str:
    argv = [sys.executable, "-m", "pytest", *(f"-pno:{name}" for name in OTHERS), *arguments]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])
def test_a_run_leaves_its_page(folder: Path, workers: list[str]) -> None:
    said = run(folder, "experiment.yml", "--metricbench-html", "report.html", *workers)
    path = folder / "report.html"
    assert f"note: wrote {path}" in said
    page = read(path.read_text(encoding="utf-8"))
    words = page.words
    assert "The tasks catch 1 of 2 mutants: a mutation score of 0.50" in words
    assert "Every gate holds." in words
    assert "Sells <b>lamps</b>." in words
    assert "Nothing that a task sees." in words
    again = page.with_id("again").parent
    assert again is not None
    assert f"pytest experiment.yml --metricbench-html report.html{' -n2' if workers else ''}" in again.words.replace(
        " ".join(f"-pno:{name}" for name in OTHERS) + " ", ""
    )
    journal = (folder / ".metricbench/lamps/attempts.jsonl").read_text().splitlines()
    trials = [json.loads(line)["trial_id"] for line in journal]
    assert len(trials) == 18
    assert all(trial in words for trial in trials)


def test_the_page_of_a_run_that_is_over_is_made_from_its_store(folder: Path) -> None:
    run(folder, "experiment.yml", "--metricbench-html", "first.html")
    (folder / "agent.py").rename(folder / "gone.py")
    run(folder, "experiment.yml", "--metricbench-cached-only", "--metricbench-html", "second.html")
    first, second = (read((folder / name).read_text(encoding="utf-8")) for name in ("first.html", "second.html"))
    assert first.all("article")[0].words == second.all("article")[0].words
    digests = [page.all("code", "digest")[0].words for page in (first, second)]
    assert digests[0] == digests[1] != ""
    assert digests[0].startswith("sha256:")


def test_a_part_of_the_experiment_says_so_on_the_page(folder: Path) -> None:
    run(folder, "experiment.yml", "-k", "baseline", "--metricbench-html", "report.html")
    words = read((folder / "report.html").read_text(encoding="utf-8")).words
    assert "This run was about a part of the experiment: 6 of 18 attempts selected." in words


def test_each_of_several_experiments_has_a_page(folder: Path) -> None:
    (folder / "other.yml").write_text(EXPERIMENT.format(name="chairs"))
    run(folder, "experiment.yml", "other.yml", "--metricbench-html", "report.html")
    for name in ("lamps", "chairs"):
        page = read((folder / f"report-{name}.html").read_text(encoding="utf-8"))
        assert page.all("h1")[0].words == name
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none/report.html", "the folder {folder}/none does not exist; make it first"),
        (".", "{folder} is a folder; name a file in it"),
    ],
)
def test_what_cannot_be_written_ends_the_run_before_anything_runs(folder: Path, name: str, message: str) -> None:
    said = run(folder, "experiment.yml", "--metricbench-html", name, expect=4)
    assert f"metricbench: --metricbench-html: {message.format(folder=folder)}" in said
    assert not (folder / ".metricbench").exists()


def test_without_the_extra_the_run_ends_before_anything_runs(folder: Path) -> None:
    (folder / "no_extra.py").write_text("import sys\nsys.modules['jinja2'] = None\n")
    said = run(folder, "-p", "no_extra", "experiment.yml", "--metricbench-html", "report.html", expect=4)
    assert "--metricbench-html: jinja2 cannot be imported; pip install 'pytest-metricbench[report]'" in said
    assert not (folder / ".metricbench").exists()


def test_a_page_that_cannot_be_written_in_the_end_makes_the_run_fail(folder: Path) -> None:
    (folder / "conftest.py").write_text(
        "import pathlib\n\ndef pytest_runtest_logfinish():\n    pathlib.Path('out').rename('moved') if "
        "pathlib.Path('out').exists() else None\n"
    )
    (folder / "out").mkdir()
    said = run(folder, "experiment.yml", "--metricbench-html", "out/report.html", expect=1)
    assert f"--metricbench-html: {folder}/out/report.html cannot be written: No such file or directory" in said
