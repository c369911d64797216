"""Every option says its default and can be set in the ini file, where the command line does not set it."""

import re
from pathlib import Path

import pytest

from pytest_metricbench.pytest_side.options import OPTIONS, WITHOUT_TWIN, settle


def options_seen(folder: pytest.Pytester, *args: str) -> dict[str, object]:
    """The options of a session with these arguments, as its plugins see them once they are settled."""
    config = folder.parseconfig(*args)
    settle(config)
    return {name: value for name, value in vars(config.option).items() if name.startswith("metricbench_")}


def an_ini_value(name: str) -> tuple[str, object]:
    """Something to write for an option, and what comes of it."""
    option = OPTIONS[name]
    if option.default is False:
        return "true", True
    if isinstance(option.default, list):
        return "one two", ["one", "two"]
    if option.choices is not None:
        chosen = next(choice for choice in option.choices if choice != option.default)
        return chosen, chosen
    return "some", "some"


def test_the_options_without_a_twin_are_options_of_ours() -> None:
    unknown = set(WITHOUT_TWIN) - set(OPTIONS)
    assert not unknown, f"{unknown} cannot lack a twin: there are no such options"


def test_every_option_has_a_twin_that_is_heard(folder: pytest.Pytester) -> None:
    """In an ini file above the folder in which pytest is started; a path is taken from there."""
    values = {name: an_ini_value(name) for name in OPTIONS if name not in WITHOUT_TWIN}
    folder.makeini("\n".join(["[pytest]", *(f"{name} = {text}" for name, (text, _) in values.items())]))
    folder.mkdir("below")
    seen = options_seen(folder, "below")
    for name, (_, expected) in values.items():
        assert seen[name] == (str(folder.path / "some") if OPTIONS[name].is_path else expected), name


def test_the_default_where_nobody_says_anything(folder: pytest.Pytester) -> None:
    seen = options_seen(folder)
    for name, option in OPTIONS.items():
        assert seen[name] == option.default, name


def test_the_command_line_wins(folder: pytest.Pytester) -> None:
    folder.makeini("[pytest]\nmetricbench_store = from-ini\nmetricbench_coverage = tools\n")
    assert folder.runpytest_inprocess("experiment.yml").ret == 0
    assert (folder.path / "from-ini/shop/summary.json").is_file()
    assert folder.runpytest_inprocess("experiment.yml", "--metricbench-store", "given").ret == 0
    assert (folder.path / "given/shop/summary.json").is_file()


def test_a_path_is_relative_to_the_ini_file(folder: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.makeini("[pytest]\nmetricbench_store = kept\nmetricbench_markdown = answer.md\n")
    below = folder.mkdir("below")
    monkeypatch.chdir(below)
    assert folder.runpytest_inprocess("../experiment.yml").ret == 0
    assert (folder.path / "kept/shop/summary.json").is_file()
    assert (folder.path / "answer.md").is_file()
    assert not list(below.iterdir())


def test_toml(folder: pytest.Pytester) -> None:
    folder.makepyprojecttoml(
        '[tool.pytest.ini_options]\nmetricbench_cached_only = true\nmetricbench_coverage = ["tools"]\n'
    )
    seen = options_seen(folder)
    assert seen["metricbench_cached_only"] is True
    assert seen["metricbench_coverage"] == ["tools"]


@pytest.mark.slow
def test_workers_hear_it_too(folder: pytest.Pytester) -> None:
    folder.makeini("[pytest]\nmetricbench_store = kept\n")
    assert folder.runpytest_subprocess("experiment.yml", "-n2").ret == 0
    assert (folder.path / "kept/shop/summary.json").is_file()
    assert not (folder.path / ".metricbench").exists()


def test_a_contradiction_says_where_the_other_half_stands(folder: pytest.Pytester) -> None:
    folder.makeini("[pytest]\nmetricbench_cached_only = true\n")
    result = folder.runpytest_inprocess("experiment.yml", "--metricbench-fresh")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: metricbench: --metricbench-cached-only *; leave one of them out (metricbench_cached_only in tox.ini)"]
    )
    overridden = folder.runpytest_inprocess(
        "experiment.yml", "--metricbench-fresh", "-o", "metricbench_cached_only=false"
    )
    assert overridden.ret == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "metricbench_stroe = x",
            "*tox.ini: there is no ini value metricbench_stroe; did you mean 'metricbench_store'?",
        ),
        ("metricbench_show = plan", "*there is no ini value metricbench_show: --metricbench-show has none, it shows *"),
        (
            "metricbench_retry_died = maybe",
            "*metricbench: tox.ini: metricbench_retry_died: invalid truth value 'maybe'",
        ),
        ('metricbench_coverage = "a', "*metricbench: tox.ini: metricbench_coverage: No closing quotation"),
        ('metricbench_files = "a', "*metricbench: tox.ini: metricbench_files: No closing quotation"),
        ("metricbench_coverage = nothing", "*: there is no coverage system *(metricbench_coverage in tox.ini)"),
        ("metricbench_compare = nothing", "*: there is no such file or folder (metricbench_compare in tox.ini)"),
    ],
    ids=["misspelt", "no-twin", "bool", "list", "files", "coverage", "compare"],
)
def test_names_and_values_that_are_none(folder: pytest.Pytester, line: str, said: str) -> None:
    folder.makeini(f"[pytest]\n{line}\n")
    result = folder.runpytest_inprocess("experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_a_value_of_the_command_line_is_not_said_to_stand_in_the_file(folder: pytest.Pytester) -> None:
    folder.makeini("[pytest]\nmetricbench_store = kept\n")
    result = folder.runpytest_inprocess("experiment.yml", "-o", "metricbench_protocol=fast")
    result.stderr.fnmatch_lines(["*metricbench: -o: metricbench_protocol = fast: choose one of *"])


def test_a_plan_says_which_ini_value_leaves_nothing_to_plan(folder: pytest.Pytester) -> None:
    folder.makeini("[pytest]\nmetricbench_cached_only = true\n")
    result = folder.runpytest_inprocess("experiment.yml", "--metricbench-show", "plan")
    result.stderr.fnmatch_lines(["*; leave one of them out (metricbench_cached_only in tox.ini)"])


def test_durations_in_the_ini_file_are_for_sessions_with_a_shard(folder: pytest.Pytester) -> None:
    folder.makeini("[pytest]\nmetricbench_durations = nothing.jsonl\n")
    assert folder.runpytest_inprocess("experiment.yml", "--collect-only").ret == 0
    result = folder.runpytest_inprocess("experiment.yml", "--metricbench-shard", "1/2")
    result.stderr.fnmatch_lines(["*there is no such file*(metricbench_durations in tox.ini)"])


def test_another_plugins_ini_value_is_left_alone(folder: pytest.Pytester) -> None:
    folder.makeini("[pytest]\nmetricbench_house_style = plain\n")
    folder.makeconftest("def pytest_addoption(parser):\n    parser.addini('metricbench_house_style', 'of the house')\n")
    assert folder.runpytest_inprocess("experiment.yml", "--collect-only").ret == 0


# ---------------------------------------------------------------- --help


def test_help_has_one_group_with_every_option_its_default_and_its_twin(folder: pytest.Pytester) -> None:
    text = folder.runpytest_inprocess("--help").stdout.str()
    assert text.count("metricbench: benchmark cases as tests:") == 1
    group = text.split("metricbench: benchmark cases as tests:")[1].split("\n\n")[0]
    entries = {
        found[1]: " ".join(found[2].split()) for found in re.finditer(r"\n  (--[\w-]+)((?:(?!\n  --).)*)", group, re.S)
    }
    assert set(entries) == {option.flag for option in OPTIONS.values()}
    for name, option in OPTIONS.items():
        twin = "" if option.ini is None else f"; ini: {name}"
        assert re.search(rf"\(default: [^()]+(\([^()]*\))?{twin}\)$", entries[option.flag]), entries[option.flag]
        listed = re.search(rf"\n  {name} \(\w+\):\s+Sets {option.flag}\n", text) is not None
        assert listed == (option.ini is not None), name


def test_the_ini_file_of_the_usage_page(folder: pytest.Pytester) -> None:
    page = (Path(__file__).parents[2] / "docs/usage.md").read_text("utf-8")
    (text,) = re.findall(r"^```ini\n(.*?)^```$", page, re.M | re.S)
    folder.makeini(text)
    seen = options_seen(folder)
    assert seen["metricbench_store"] == str(folder.path / "build/metricbench")
    assert seen["metricbench_markdown"] == str(folder.path / "build/answer.md")
    assert seen["metricbench_coverage"] == ["tools", "policy"]
    without = page.split("There is no ini value for")[1].split("A misspelt")[0]
    named = set(re.findall(r"`(--metricbench-[\w-]+)`", without))
    assert named == {OPTIONS[name].flag for name in WITHOUT_TWIN if name != "metricbench_init_kind"}


def test_settling_twice_changes_nothing(folder: pytest.Pytester) -> None:
    config = folder.parseconfig("-o", "metricbench_store=kept", "--metricbench-coverage", "tools")
    settle(config)
    once = dict(vars(config.option))
    settle(config)
    assert vars(config.option) == once
    assert once["metricbench_coverage"] == ["tools"]
