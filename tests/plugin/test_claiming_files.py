"""Which files are experiments: by name, by key, and what is left to others."""

from types import SimpleNamespace

import pytest

from pytest_metricbench import plugin
from tests.plugin.plugin_lab import Lab, node_ids

LOOK = """
import pathlib, sys

OPENED = []
sys.addaudithook(lambda event, args: event == "open" and OPENED.append(str(args[0])))


def pytest_unconfigure():
    names = {pathlib.Path(name).name for name in OPENED if name.endswith((".yml", ".yaml"))}
    print("opened:", *sorted(names))
"""

OTHER_PLUGIN = """
import pytest


class Compose(pytest.File):
    def collect(self):
        yield Service.from_parent(self, name="service")


class Service(pytest.Item):
    def runtest(self):
        pass


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".yml" and "metricbench" not in file_path.read_text():
        return Compose.from_parent(parent, path=file_path)
"""


def collected_files(lab: Lab, *args: str) -> set[str]:
    return {nodeid.partition("::")[0] for nodeid in node_ids(lab.run("--collect-only", "-q", *args))}


def test_where_there_are_no_process_groups_it_says_so(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.make()
    monkeypatch.setattr(plugin, "sys", SimpleNamespace(platform="win32"))
    result = lab.run("experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: metricbench: process groups are needed; on Windows, run under WSL"])
    assert lab.calls() == []
    assert not lab.store().exists()


def test_default_names_in_a_folder(lab: Lab) -> None:
    for name in ("experiment.yml", "refunds.experiment.yml", "mine.yml", "experiment.yaml", "myexperiment.yml"):
        lab.make(name)
    assert collected_files(lab) == {"experiment.yml", "refunds.experiment.yml"}


def test_names_from_the_ini_file(lab: Lab) -> None:
    lab.write("pytest.ini", "[pytest]\nmetricbench_files = bench-*.yaml other.yml\n")
    for name in ("experiment.yml", "bench-a.yaml", "other.yml"):
        lab.make(name)
    lab.make("deep/bench-b.yaml", module="deep_agent")
    assert collected_files(lab) == {"bench-a.yaml", "deep/bench-b.yaml", "other.yml"}


@pytest.mark.parametrize("name", ["mine.yml", "mine.yaml", "deep/mine.yml"])
def test_any_name_on_the_command_line(lab: Lab, name: str) -> None:
    lab.make(name)
    assert collected_files(lab, name) == {name}


def test_another_suffix_is_not_ours(lab: Lab) -> None:
    lab.make("experiment.json")
    assert lab.run("experiment.json").ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.skipif(pytest.version_tuple < (9,), reason="pytest 8 collects only the file, of any kind")
def test_a_file_named_beside_its_folder(lab: Lab, workers: list[str]) -> None:
    lab.make()
    lab.make("mine.yml", name="mine")
    result = lab.run(".", "mine.yml", *workers)
    assert result.parseoutcomes() == {"passed": 32, "missed": 10, "died": 2}
    assert lab.summary("mine")["complete"]


def test_a_file_named_by_a_path_from_elsewhere(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.make("deep/mine.yml")
    lab.write("pytest.ini", "[pytest]\n")
    (lab.path / "beside").mkdir()
    monkeypatch.chdir(lab.path / "beside")
    assert collected_files(lab, "../deep/mine.yml") == {"deep/mine.yml"}
    assert collected_files(lab, str(lab.path / "deep/mine.yml")) == {"deep/mine.yml"}


def test_a_file_named_by_testpaths(lab: Lab) -> None:
    lab.make("deep/mine.yml")
    lab.write("pytest.ini", "[pytest]\ntestpaths = deep/mine.yml\n")
    assert collected_files(lab) == {"deep/mine.yml"}


@pytest.mark.slow
def test_other_yaml_is_never_opened(lab: Lab) -> None:
    lab.write("conftest.py", LOOK)
    lab.make()
    for name in ("mine.yml", "docker-compose.yml", "deep/mkdocs.yaml"):
        lab.write(name, "metricbench: 1\n")
    result = lab.run("--collect-only", "-q", apart=True)
    assert len(node_ids(result)) == 18
    result.stdout.fnmatch_lines(["opened: experiment.yml"])


# ---------------------------------------------------------------- without the key

NO_KEY = "services: {}\n"
MISSPELT = "metricbnech: 1\nname: shop\n"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("mine.yml", NO_KEY, "*mine.yml:1:1: is no experiment: it lacks the key metricbench; *metricbench: 1"),
        ("experiment.yml", NO_KEY, "*experiment.yml:1:1: is no experiment: it lacks the key metricbench; *"),
        ("mine.yml", MISSPELT, "*mine.yml:1:1: the key 'metricbnech' is unknown; did you mean 'metricbench'?"),
        ("mine.yml", "- 1\n", "*mine.yml:1:1: is no experiment: it holds a list or a single value; *"),
        ("mine.yml", "", "*mine.yml:1:1: is no experiment: it has no keys; *"),
        ("mine.yml", "a: [1\n", "*mine.yml:2:1: *"),
    ],
    ids=["lacking", "lacking-by-name", "misspelt", "list", "empty", "no-yaml"],
)
def test_a_named_file_that_is_none_is_a_usage_error(lab: Lab, name: str, content: str, said: str) -> None:
    lab.write(name, content)
    refused(lab, [name], said)


@pytest.mark.slow
def test_a_named_file_that_is_none_is_a_usage_error_with_workers_too(lab: Lab) -> None:
    lab.write("mine.yml", NO_KEY)
    refused(lab, ["mine.yml", "-n2"], "*mine.yml:1:1: is no experiment: it lacks the key metricbench; *")


def refused(lab: Lab, args: list[str], said: str) -> None:
    lab.write("test_plain.py", "def test_plain(): assert False\n")
    result = lab.run("test_plain.py", *args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.no_fnmatch_line("*test_plain*")
    assert len([line for line in result.errlines if line.startswith("ERROR")]) == 1
    result.stderr.fnmatch_lines([f"ERROR: {said}"])


@pytest.mark.parametrize("content", [NO_KEY, MISSPELT], ids=["lacking", "misspelt"])
def test_a_file_of_our_name_in_a_folder_that_is_none_is_a_collection_error(lab: Lab, content: str) -> None:
    lab.write("experiment.yml", content)
    lab.write("test_plain.py", "def test_plain(): pass\n")
    result = lab.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert result.parseoutcomes() == {"errors": 1}
    result.stdout.fnmatch_lines(["*ERROR collecting experiment.yml*", "*experiment.yml:1:1: *metricbench*"])
    result.stdout.no_fnmatch_line("*Traceback*")


# ---------------------------------------------------------------- beside another plugin


@pytest.mark.parametrize("name", ["compose.yml", "experiment.yml"])
def test_a_named_file_of_another_plugin_is_left_to_it(lab: Lab, name: str) -> None:
    lab.write("conftest.py", OTHER_PLUGIN)
    lab.write(name, NO_KEY)
    result = lab.run(name)
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 1}


def test_the_yaml_of_another_plugin_in_a_folder_is_left_to_it(lab: Lab, workers: list[str]) -> None:
    lab.write("conftest.py", OTHER_PLUGIN)
    lab.write("compose.yml", NO_KEY)
    lab.write("experiment.yml", NO_KEY)
    result = lab.run(".", *workers)
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 2}


def test_ours_beside_the_yaml_of_another_plugin(lab: Lab) -> None:
    lab.write("conftest.py", OTHER_PLUGIN)
    lab.make()
    lab.write("compose.yml", NO_KEY)
    result = lab.run()
    assert result.parseoutcomes() == {"passed": 17, "missed": 5, "died": 1}
