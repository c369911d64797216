"""What README and docs show is run, not believed."""

import re
from pathlib import Path

import pytest

from pytest_metricbench import analyze, load_experiment, measure_coverage, open_store

ROOT = Path(__file__).parents[2]

EXPERIMENT = """\
metricbench: 1
name: echo
attempts: 2
{shown}
cases:
  - id: shop
    description: Echoes.
    tasks:
      - {{id: refund, params: {{words: refund please, worth: 2}}}}
      - {{id: greeting, params: {{words: hello, worth: 2}}}}
    mutants:
      - {{id: crashes, description: Crashes., params: {{crash: true}}}}
    subsets:
      - {{id: one, tasks: [refund]}}
"""


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


@pytest.fixture
def shown_runner(pytester):
    """A folder with the runner and the coverage system of docs/extending.md, and an experiment that uses them."""
    (conftest,) = blocks("docs/extending.md", "python")
    (shown,) = blocks("docs/extending.md", "yaml")
    (pytester.path / "conftest.py").write_text(conftest)
    (pytester.path / "experiment.yml").write_text(EXPERIMENT.format(shown=shown))
    return pytester


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])
def test_a_runner_and_a_coverage_system_in_a_conftest(shown_runner, workers):
    result = shown_runner.runpytest_subprocess("experiment.yml", "-v", *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*experiment.yml::shop::coverage::words?pool?*"])
    assert result.parseoutcomes() == {"passed": 6, "died": 4}
    assert len(blocks("docs/extending.md", "python")[0].splitlines()) < 60


def test_a_misspelt_field_of_such_a_runner_is_told_with_its_place(shown_runner):
    path = shown_runner.path / "experiment.yml"
    path.write_text(path.read_text().replace("factor:", "facter:"))
    result = shown_runner.runpytest_subprocess("experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*experiment.yml:4:*runner.facter*did you mean 'factor'*"])


def test_the_readmes_experiment_is_one(tmp_path):
    (text,) = blocks("README.md", "yaml")
    (tmp_path / "experiment.yml").write_text(text)
    for name in ("agent.py", "verify.py", "policy.md"):
        (tmp_path / name).write_text("")
    experiment = load_experiment(tmp_path / "experiment.yml")
    assert [task.id for task in experiment.cases[0].tasks] == ["late-purchase", "no-receipt", "greeting"]
    assert len(experiment.gates) == 2


def test_every_option_is_on_the_usage_page(pytester):
    page = (ROOT / "docs/usage.md").read_text("utf-8")
    shown = pytester.runpytest("--help").stdout.str()
    options = set(re.findall(r"--metricbench-[a-z-]+", shown))
    assert len(options) >= 10
    assert {option for option in options if f"`{option}" not in page} == set()
    assert set(re.findall(r"`(--metricbench-[a-z-]+)", page)) <= options


def test_the_stages_as_the_usage_page_shows_them(shown_runner, monkeypatch):
    text = (ROOT / "docs/usage.md").read_text("utf-8")
    assert "from pytest_metricbench import load_experiment, open_store, measure_coverage, analyze" in text
    (shown_runner.path / "agent.py").write_text("def run(request):\n    return 1\n")
    path = shown_runner.path / "plain.experiment.yml"
    path.write_text(
        "metricbench: 1\nname: plain\nrunner: {kind: python, agent: 'agent:run'}\n"
        "cases: [{id: c, description: d, tasks: [{id: t}]}]\n"
    )
    assert shown_runner.runpytest_subprocess(path.name).ret == 0
    experiment = load_experiment(path)
    store = open_store(shown_runner.path / ".metricbench/plain")
    assert measure_coverage(experiment, store) == {}
    assert analyze(experiment, store).counts.passed == 1


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text("utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", prose)
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not ((ROOT / page).parent / target).exists()]
    assert missing == []
