"""What README and docs show is run, not believed."""

import re
from pathlib import Path

import pytest

from pytest_metricbench import analyze, load_experiment, measure_coverage, open_store
from tests.docs.block_lab import pages

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def test_the_readmes_experiment_is_one(tmp_path: Path) -> None:
    (text,) = blocks("README.md", "yaml")
    (tmp_path / "experiment.yml").write_text(text)
    for name in ("agent.py", "verify.py", "policy.md"):
        (tmp_path / name).write_text("")
    experiment = load_experiment(tmp_path / "experiment.yml")
    assert [task.id for task in experiment.cases[0].tasks] == ["late-purchase", "no-receipt", "greeting"]
    assert len(experiment.gates) == 2


def test_every_option_is_on_the_usage_page(pytester: pytest.Pytester) -> None:
    page = (ROOT / "docs/usage.md").read_text("utf-8")
    shown = pytester.runpytest("--help").stdout.str()
    options = set(re.findall(r"--metricbench-[a-z-]+", shown))
    assert len(options) >= 10
    assert {option for option in options if f"`{option}" not in page} == set()
    assert set(re.findall(r"`(--metricbench-[a-z-]+)", page)) <= options


def test_the_stages_as_the_usage_page_shows_them(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs/usage.md").read_text("utf-8")
    assert "from pytest_metricbench import load_experiment, open_store, measure_coverage, analyze" in text
    (pytester.path / "agent.py").write_text("def run(request):\n    return 1\n")
    path = pytester.path / "plain.experiment.yml"
    path.write_text(
        "metricbench: 1\nname: plain\nrunner: {kind: python, agent: 'agent:run'}\n"
        "cases: [{id: c, description: d, tasks: [{id: t}]}]\n"
    )
    assert pytester.runpytest_subprocess(path.name).ret == 0
    experiment = load_experiment(path)
    store = open_store(pytester.path / ".metricbench/plain")
    assert measure_coverage(experiment, store) == {}
    assert analyze(experiment, store).counts.passed == 1


@pytest.mark.parametrize("page", [str(path.relative_to(ROOT)) for path in pages()])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    targets = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", prose)
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not ((ROOT / page).parent / target).exists()]
    assert missing == []


def test_nothing_shown_tells_whose_machine_it_was_made_on() -> None:
    shown = [ROOT / page for page in pages()] + sorted((ROOT / "docs/pictures").glob("*.svg"))
    homes = re.compile(r"/root/|/home/(?!runner/|me\b)|/Users/|pyenv/versions/3\.\d")
    assert [str(path) for path in shown if homes.search(path.read_text("utf-8"))] == []
