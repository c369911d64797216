"""When the short protocol is taken, and by what it is switched off."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_metricbench.pytest_side import protocol, protocol_choice
from tests.plugin.plugin_lab import OTHER_PLUGINS
from tests.protocol.protocol_lab import SHORT, STANDARD, Lab

ATTEMPT = "experiment.yml::shop::baseline::fine[1]"
LISTENING = "import pytest\n\n@pytest.hookimpl(wrapper=True)\ndef {hook}():\n    return (yield)\n"


@pytest.mark.parametrize("workers", [[], ["-n0"], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=" ".join)
def test_an_attempt_has_one_report_and_a_coverage_request_three(lab: Lab, workers: list[str]) -> None:
    lab.make()
    phases = lab.phases("experiment.yml", *workers)
    requests = {nodeid for nodeid in phases if "::coverage::" in nodeid}
    assert len(requests) == 4
    assert len(phases) == 22
    assert {nodeid: SHORT if nodeid not in requests else STANDARD for nodeid in phases} == phases


@pytest.mark.parametrize("unit", ["task", "variant"])
def test_so_has_a_group_of_attempts(lab: Lab, unit: str) -> None:
    lab.make(items=unit, coverage=None)
    assert set(map(tuple, lab.phases("experiment.yml").values())) == {("call",)}


@pytest.mark.parametrize(
    "options",
    [
        "--metricbench-protocol=standard",
        "-ometricbench_protocol=standard",
        "--setup-show",
        "--junit-xml=junit.xml",
        "--log-cli-level=INFO",
        "-olog_cli=true",
        "--pdb",
    ],
)
def test_what_asks_for_the_standard_protocol(lab: Lab, options: str) -> None:
    lab.make_noisy("fine")
    assert lab.phases("experiment.yml", options)[ATTEMPT] == STANDARD


@pytest.mark.parametrize("option", ["--setup-plan", "--setup-only"])
def test_options_that_run_nothing_get_their_phases(lab: Lab, option: str) -> None:
    lab.make_noisy("fine")
    assert lab.phases("experiment.yml", option)[ATTEMPT] == ["setup", "teardown"]
    assert lab.calls() == []


@pytest.mark.parametrize("hook", sorted(protocol_choice._KNOWN))
def test_whoever_else_listens_gets_the_standard_protocol(lab: Lab, hook: str) -> None:
    lab.make_noisy("fine")
    lab.write("conftest.py", LISTENING.format(hook=hook))
    assert lab.phases("experiment.yml")[ATTEMPT] == STANDARD


def test_a_conftest_beside_the_experiment_counts_too(lab: Lab) -> None:
    lab.make_noisy("fine", file="below/experiment.yml")
    lab.write("below/conftest.py", LISTENING.format(hook="pytest_runtest_call"))
    assert lab.phases("below")[f"below/{ATTEMPT}"] == STANDARD


LATE = """\
import pytest


class Listener:
    def pytest_runtest_teardown(self, item):
        print("heard", item.name)


@pytest.fixture(autouse=True)
def listener(request):
    request.config.pluginmanager.register(Listener())
"""


def test_who_comes_while_attempts_run_is_heeded_from_the_next_one_on(lab: Lab) -> None:
    for folder in ("a", "c"):
        lab.make_noisy("fine", file=f"{folder}/experiment.yml", module=f"agent_{folder}", name=folder)
    lab.write("b/conftest.py", LATE)
    lab.write("b/test_between.py", "def test_it():\n    pass\n")
    phases = lab.phases("a", "b", "c", "--stepwise")  # which keeps the order of the files
    assert [phases[f"{folder}/{ATTEMPT}"] for folder in ("a", "c")] == [SHORT, STANDARD]


def test_hooks_of_another_folder_are_not_called_for_an_attempt(lab: Lab) -> None:
    lab.make_noisy("fine", file="a/experiment.yml")
    lab.write("a/test_beside.py", "def test_it():\n    pass\n")
    lab.write(
        "b/conftest.py",
        "from pathlib import Path\n\n\ndef pytest_runtest_setup(item):\n"
        "    with Path('told.txt').open('a') as file:\n        file.write(f'{item.nodeid}\\n')\n",
    )
    lab.write("b/test_other.py", "def test_it():\n    pass\n")
    assert lab.phases(".")[f"a/{ATTEMPT}"] == STANDARD
    assert (lab.path / "told.txt").read_text().splitlines() == ["b/test_other.py::test_it"]


@pytest.mark.slow
def test_workers_heed_who_listens_on_the_controller_alone(lab: Lab) -> None:
    lab.make_noisy("fine")
    lab.write(
        "conftest.py",
        "class Listener:\n    def pytest_runtest_logreport(self, report):\n        pass\n\n\n"
        "def pytest_configure(config):\n    if not hasattr(config, 'workerinput'):\n"
        "        config.pluginmanager.register(Listener())\n",
    )
    assert lab.phases("experiment.yml", "-n2")[ATTEMPT] == STANDARD


@pytest.mark.parametrize("options", [[], ["-v"]], ids=["", "-v"])
def test_a_worker_says_that_an_attempt_starts_only_where_that_is_shown(options: list[str]) -> None:
    def heard(config: Any) -> bool:
        return protocol_choice.is_start_heard(config)

    reporter = SimpleNamespace(showlongtestinfo=bool(options), showfspath=False, isatty=False)
    plugins = SimpleNamespace(get_plugin={"terminalreporter": reporter}.get)
    assert heard(SimpleNamespace(pluginmanager=plugins)) == bool(options)
    assert not heard(SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin={}.get)))
    told = {"metricbench_protocol": {"is_start_heard": bool(options)}}
    assert heard(SimpleNamespace(workerinput=told)) == bool(options)


@pytest.mark.slow
def test_a_quiet_run_with_workers_is_sent_no_starts(lab: Lab) -> None:
    lab.make(coverage=None)
    off = [part for plugin in OTHER_PLUGINS for part in ("-p", f"no:{plugin}")]
    starts = [
        len(lab.pytester.inline_run(*off, "experiment.yml", "-n1", *more).getcalls("pytest_runtest_logstart"))
        for more in ([], ["-v"])
    ]
    assert starts == [0, 18]
    assert lab.summary()["counts"]["passed"] == 12


def test_hooks_that_say_nothing_about_phases_leave_it_alone(lab: Lab) -> None:
    lab.make_noisy("fine", "unmeasured")
    lab.write(
        "conftest.py",
        "from pathlib import Path\n\n\n"
        "def pytest_exception_interact(node):\n    Path('told.txt').write_text(node.nodeid)\n\n\n"
        "def pytest_terminal_summary():\n    pass\n",
    )
    assert lab.phases("experiment.yml")[ATTEMPT] == SHORT
    assert (lab.path / "told.txt").read_text() == ATTEMPT.replace("fine", "unmeasured")


@pytest.mark.parametrize(
    ("mark", "outcome"),
    [("skip(reason='not today')", "skipped"), ("skipif(True, reason='not here')", "skipped"), ("xfail", "xfailed")],
)
def test_an_attempt_with_a_mark_that_pytest_heeds_in_set_up(lab: Lab, mark: str, outcome: str) -> None:
    lab.make_noisy("fine", "unmeasured")
    lab.write(
        "conftest.py",
        "import pytest\n\n\ndef pytest_collection_modifyitems(items):\n    for item in items:\n"
        f"        if 'unmeasured' in item.name:\n            item.add_marker(pytest.mark.{mark})\n",
    )
    result = lab.run("experiment.yml")
    assert result.parseoutcomes() == {"passed": 1, outcome: 1}


def test_with_v_the_header_says_why(lab: Lab) -> None:
    lab.make_noisy("fine")
    assert "standard protocol" not in lab.run("experiment.yml", "-v").stdout.str()
    lab.write("conftest.py", LISTENING.format(hook="pytest_runtest_setup"))
    assert "standard protocol" not in lab.run("experiment.yml").stdout.str()
    said = "metricbench: three reports an attempt, by pytest's standard protocol: "
    result = lab.run("experiment.yml", "-v")
    assert f"{said}{lab.path / 'conftest.py'} implements pytest_runtest_setup" in result.outlines
    result = lab.run("experiment.yml", "-v", "--metricbench-protocol=standard")
    assert f"{said}it was asked for" in result.outlines


@pytest.mark.parametrize("plugin", ["logging", "capture", "terminal", "warnings", "skipping", "threadexception"])
def test_plugins_of_pytest_may_be_switched_off(lab: Lab, plugin: str) -> None:
    lab.make_noisy("fine", "unmeasured")
    result = lab.run("experiment.yml", "-p", f"no:{plugin}", apart=plugin in ("capture", "terminal"))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert lab.summary()["counts"]["passed"] == lab.summary()["counts"]["unmeasured"] == 1


def test_an_unknown_protocol_is_a_usage_error(lab: Lab) -> None:
    lab.make_noisy("fine")
    assert lab.run("experiment.yml", "--metricbench-protocol=fast").ret == pytest.ExitCode.USAGE_ERROR
    result = lab.run("experiment.yml", "-ometricbench_protocol=fast")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*metricbench_protocol = fast: choose one of auto, standard"])


# ---------------------------------------------------------------- what is asked of pytest


def test_this_pytest_has_what_the_protocol_needs(request: pytest.FixtureRequest) -> None:
    assert protocol.missing(request.session) == []


@pytest.mark.parametrize(("plugin", "attribute"), [(n, a) for n, names in protocol._NEEDED.items() for a in names])
def test_what_is_missing_is_named(request: pytest.FixtureRequest, plugin: str, attribute: str) -> None:
    plugins = {
        name: SimpleNamespace(**{each: None for each in names if (name, each) != (plugin, attribute)})
        for name, names in protocol._NEEDED.items()
    }
    manager = SimpleNamespace(get_plugin=plugins.get)
    session: Any = SimpleNamespace(
        _setupstate=request.session._setupstate, config=SimpleNamespace(pluginmanager=manager)
    )
    assert protocol.missing(session) == [f"{plugin}.{attribute}"]
    del plugins["capturemanager"]
    assert (plugin == "capturemanager") == (protocol.missing(session) == [])  # switched off: not needed


def test_a_session_without_set_up_state_is_named(request: pytest.FixtureRequest) -> None:
    session: Any = SimpleNamespace(config=request.config)
    assert protocol.missing(session) == [
        "session._setupstate.setup",
        "session._setupstate.teardown_exact",
    ]


@pytest.mark.parametrize("name", ["capturemanager", "logging-plugin"])
def test_where_something_is_missing_the_standard_protocol_is_taken(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lab.make_noisy("fine")
    monkeypatch.setitem(protocol._NEEDED, name, ("something_that_pytest_lost",))
    assert lab.phases("experiment.yml")[ATTEMPT] == STANDARD
