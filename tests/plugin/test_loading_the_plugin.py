"""The ways to load the plugin, and what it costs where there is no experiment."""

import pytest

from tests.plugin.plugin_lab import Lab

PASSED_HERE = {"passed": 16, "missed": 5, "died": 1}

PLAIN_TEST = """
import sys

def test_nothing_heavy():
    heavy = {"numpy", "scipy", "pydantic", "yaml"} & set(sys.modules)
    ours = {name for name in sys.modules if name.startswith("pytest_metricbench")}
    assert not heavy
    light = {"plugin", "hookspecs", "private_names", "workers", "pytest_side"}
    light |= {f"pytest_side.{name}" for name in ("option_list", "options", "protocol_choice")}
    assert ours - {"pytest_metricbench"} <= {f"pytest_metricbench.{name}" for name in light}
"""


@pytest.mark.parametrize(
    "args",
    [["experiment.yml"], ["-p", "metricbench", "experiment.yml"], ["-p", "metricbench", "-p", "metricbench", "."]],
    ids=["autoloaded", "named", "named-twice"],
)
def test_both_spellings(lab: Lab, args: list[str]) -> None:
    lab.make()
    result = lab.run(*args)
    assert result.ret == 0
    assert result.parseoutcomes() == PASSED_HERE


@pytest.mark.slow
@pytest.mark.parametrize("args", [[], ["-p", "metricbench"]], ids=["autoloaded", "named"])
def test_both_spellings_with_workers(lab: Lab, args: list[str]) -> None:
    lab.make()
    result = lab.run(*args, "-n2", "experiment.yml", apart=True)
    assert result.ret == 0
    assert result.parseoutcomes() == PASSED_HERE


@pytest.mark.slow
@pytest.mark.parametrize(
    "args", [["-p", "metricbench"], ["-p", "metricbench", "-p", "xdist", "-n2"]], ids=["plain", "n2"]
)
def test_without_autoloading(lab: Lab, monkeypatch: pytest.MonkeyPatch, args: list[str]) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    lab.make()
    result = lab.run(*args, "experiment.yml", apart=True)
    assert result.ret == 0
    assert result.parseoutcomes() == PASSED_HERE


@pytest.mark.slow
def test_without_xdist(lab: Lab) -> None:
    lab.make()
    result = lab.run("-p", "no:xdist", "experiment.yml", apart=True)
    assert result.ret == 0
    assert result.parseoutcomes() == PASSED_HERE


def test_a_conftest_may_name_it(lab: Lab) -> None:
    lab.make()
    lab.write("conftest.py", "pytest_plugins = ['metricbench']\n")
    assert lab.run("experiment.yml").parseoutcomes() == PASSED_HERE


def test_switched_off(lab: Lab) -> None:
    lab.make()
    lab.write("test_plain.py", "def test_plain(): pass\n")
    result = lab.run("-p", "no:metricbench", ".")
    assert result.parseoutcomes() == {"passed": 1}
    named = lab.run("-p", "no:metricbench", "experiment.yml")
    assert named.ret == pytest.ExitCode.USAGE_ERROR
    assert not lab.store().exists()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["plain", "n1"])
def test_nothing_heavy_is_imported_without_an_experiment(lab: Lab, workers: list[str]) -> None:
    lab.write("test_plain.py", PLAIN_TEST)
    for name in ("docker-compose.yml", "deep/.github.yaml", "experiments.yml"):
        lab.write(name, "services: {}\n")
    result = lab.run(*workers, apart=True)
    assert result.parseoutcomes() == {"passed": 1}
    result.stdout.no_fnmatch_line("*metricbench:*")


def test_help_explains_the_options(lab: Lab) -> None:
    result = lab.run("--help")
    result.stdout.fnmatch_lines(["metricbench: benchmark cases as tests:", "*--metricbench-store*DIR*"])
    result.stdout.fnmatch_lines(["*metricbench_files*"])


def test_the_header_says_what_will_run_and_where(lab: Lab) -> None:
    lab.make()
    result = lab.run("experiment.yml", "--collect-only")
    result.stdout.fnmatch_lines(["metricbench: shop: 18 attempts, 4 coverage requests, store: .metricbench/shop"])


IMPORTED = """

def pytest_sessionfinish(session):
    import sys

    ours = sorted(name for name in sys.modules if name.startswith("pytest_metricbench."))
    (session.config.rootpath / "imported.txt").write_text("\\n".join(ours))
"""


@pytest.mark.slow
def test_kinds_and_reports_that_nobody_asks_for_are_not_imported(lab: Lab) -> None:
    """Each process would pay for them before its first attempt."""
    lab.make()
    lab.write("conftest.py", IMPORTED)
    assert lab.run("experiment.yml", apart=True).ret == 0
    imported = (lab.path / "imported.txt").read_text().split()
    assert "pytest_metricbench.runners.python" in imported
    others = ("command", "harbor", "helix", "recorded", "suite")
    unwanted = [f"pytest_metricbench.runners.{name}" for name in others]
    unwanted += [f"pytest_metricbench.coverage.{name}" for name in ("audit", "eval_author", "line", "tool_calls")]
    unwanted += [
        "pytest_metricbench.reporting.html",
        "pytest_metricbench.running.earlier",
        "pytest_metricbench.generating.text",
    ]
    assert [name for name in unwanted if name in imported] == []
