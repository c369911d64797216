"""A dataset's folder expanded to its tasks: which there are, what they are called, and what is told of broken ones."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.definition.ids import id_problem
from pytest_metricbench.runners.harbor.tasks import HarborTasks, folder_files
from pytest_metricbench.sources import SourceError
from tests.harbor_runner.harbor_runner_lab import TASK_TOML, make_runner, write_dataset, write_task


def ids(folder: Path, **keys: object) -> list[str]:
    return [entry["id"] for entry in HarborTasks.model_validate({"harbor": "ds", **keys}).expand(folder)]


def refusal(folder: Path, **keys: object) -> tuple[str, str]:
    with pytest.raises(SourceError) as caught:
        HarborTasks.model_validate({"harbor": "ds", **keys}).expand(folder)
    return caught.value.message, caught.value.remedy


# ---------------------------------------------------------------- what there is


def test_every_folder_is_a_task_in_the_order_of_names(tmp_path: Path) -> None:
    write_dataset(tmp_path / "ds", "beta", "alpha", "gamma")
    (tmp_path / "ds" / "README.md").write_text("about it")
    (tmp_path / "ds" / ".git").mkdir()
    (tmp_path / "ds" / "__pycache__").mkdir()
    entries = HarborTasks(harbor="ds").expand(tmp_path)
    assert list(entries) == [
        {"id": "alpha", "params": {"path": "ds/alpha"}},
        {"id": "beta", "params": {"path": "ds/beta"}},
        {"id": "gamma", "params": {"path": "ds/gamma"}},
    ]


def test_names_and_descriptions_come_from_the_task(tmp_path: Path) -> None:
    about = '[task]\nname = "org/late"\ndescription = " Too late. "\nkeywords = ["policy", "two words", "slow"]\n'
    write_task(tmp_path / "ds" / "a", toml=about + TASK_TOML)
    assert list(HarborTasks(harbor="ds/").expand(tmp_path)) == [
        {
            "id": "org-late-257566",
            "name": "org/late",
            "description": "Too late.",
            "tags": ["policy", "slow"],
            "params": {"path": "ds/a"},
        }
    ]


def test_names_with_two_underscores_are_names(tmp_path: Path) -> None:
    write_dataset(tmp_path / "my__ds", "one__two", "one__three")
    entries = HarborTasks(harbor="my__ds").expand(tmp_path)
    assert [entry["id"] for entry in entries] == ["one__three", "one__two"]
    assert all("name" not in entry for entry in entries)


def test_names_that_are_no_ids_become_some(tmp_path: Path) -> None:
    write_dataset(tmp_path / "ds", "a task", "baseline?", "not")
    found = HarborTasks(harbor="ds").expand(tmp_path)
    assert [entry["name"] for entry in found] == ["a task", "baseline?", "not"]
    assert all(id_problem(entry["id"]) is None for entry in found)


@given(st.lists(st.text("ab_. -é", min_size=1, max_size=12), min_size=1, max_size=6, unique=True))
def test_every_task_of_a_dataset_has_an_id_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    names = [name for name in names if not name.startswith(".") and name.strip()]
    if not names:
        return
    folder = tmp_path_factory.mktemp("dataset")
    write_dataset(folder / "ds", *names)
    found = ids(folder)
    assert len(set(found)) == len(names)
    assert all(id_problem(name) is None for name in found)


def test_include_and_exclude_go_by_the_names_of_folders(tmp_path: Path) -> None:
    write_dataset(tmp_path / "ds", "refund-late", "refund-early", "parcel")
    assert ids(tmp_path, include=["refund-*"]) == ["refund-early", "refund-late"]
    assert ids(tmp_path, exclude=["*-late"]) == ["parcel", "refund-early"]
    assert ids(tmp_path, include=["refund-*"], exclude=["*-late"]) == ["refund-early"]
    assert refusal(tmp_path, include=["nope*"]) == (
        "no folder of ds matches 'nope*'",
        "there are parcel, refund-early, refund-late",
    )
    assert refusal(tmp_path, exclude=["*"]) == ("exclude leaves no task of ds", "a task is a folder with a task.toml")


def test_a_folder_that_is_excluded_need_not_be_a_task(tmp_path: Path) -> None:
    write_dataset(tmp_path / "ds", "alpha")
    (tmp_path / "ds" / "shared").mkdir()
    assert ids(tmp_path, exclude=["shared"]) == ["alpha"]
    assert refusal(tmp_path) == (
        "ds/shared has no task.toml",
        "a folder of a dataset that is no task is named under exclude",
    )


def test_a_dataset_may_be_named_absolutely(tmp_path: Path) -> None:
    write_dataset(tmp_path / "elsewhere", "alpha")
    entries = HarborTasks(harbor=str(tmp_path / "elsewhere")).expand(tmp_path / "here")
    assert [entry["params"]["path"] for entry in entries] == [f"{tmp_path}/elsewhere/alpha"]


# ---------------------------------------------------------------- what is told


def test_a_single_task_is_no_dataset(tmp_path: Path) -> None:
    write_task(tmp_path / "ds" / "alpha")
    with pytest.raises(SourceError) as caught:
        HarborTasks(harbor="ds/alpha").expand(tmp_path)
    assert str(caught.value) == "ds/alpha is a single task, not a dataset: it holds a task.toml"
    assert caught.value.remedy == "name the folder that it is in, as in {harbor: ds, include: [alpha]}"


def test_a_dataset_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refusal(tmp_path) == ("the dataset 'ds' does not exist", f"it is looked for in {tmp_path}")
    (tmp_path / "ds").mkdir()
    assert refusal(tmp_path) == ("ds holds no task", "a task is a folder with a task.toml")
    for written, message in (
        ("file", "the dataset 'file' is no folder"),
        ("../ds", "'../ds' leaves the experiment's folder"),
        ("a\0b", "'a\\x00b' is no name of a folder"),
    ):
        with pytest.raises(SourceError) as caught:
            HarborTasks(harbor=written).expand(tmp_path)
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        (
            "[agent\n",
            "ds/bad/task.toml is broken: Expected ']' at the end of a table declaration (at line 1, column 7)",
        ),
        (
            "\udcff",
            "ds/bad/task.toml is broken: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
        ("agent = 3\n" + TASK_TOML.replace("[agent]", "[a]"), "ds/bad/task.toml: agent is no table"),
        ("[task]\n" + TASK_TOML, "ds/bad/task.toml is broken: task.name is missing"),
        ('[task]\nname = "late"\n' + TASK_TOML, "ds/bad/task.toml is broken: task.name is 'late'"),
        (TASK_TOML.replace("20.0", '"long"', 1), "ds/bad/task.toml is broken: agent.timeout_sec is 'long'"),
        ("steps = 3\n" + TASK_TOML, "ds/bad/task.toml: steps is no list of tables"),
    ],
)
def test_a_broken_task_is_named(tmp_path: Path, toml: str, message: str) -> None:
    write_dataset(tmp_path / "ds", "alpha", "bad")
    (tmp_path / "ds" / "bad" / "task.toml").write_bytes(toml.encode("utf-8", "surrogateescape"))
    assert refusal(tmp_path)[0] == message


LEFT_OUT = "Harbor would leave it out; add {}, or leave the task out with exclude"


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("task.toml", ("ds/bad has no task.toml", "a folder of a dataset that is no task is named under exclude")),
        ("instruction.md", ("the task ds/bad has no instruction.md", LEFT_OUT.format("the file"))),
        ("tests/test.sh", ("the task ds/bad has no tests/test.sh", LEFT_OUT.format("the file"))),
    ],
)
def test_a_task_that_lacks_a_part_is_named(tmp_path: Path, gone: str, message: tuple[str, str]) -> None:
    write_dataset(tmp_path / "ds", "alpha", "bad")
    (tmp_path / "ds" / "bad" / gone).unlink()
    assert refusal(tmp_path) == message


def test_a_task_without_an_environment(tmp_path: Path) -> None:
    write_task(tmp_path / "ds" / "bad", toml="")
    assert ids(tmp_path) == ["bad"]
    (tmp_path / "ds" / "bad" / "environment").rmdir()
    message = "the task ds/bad has neither a folder environment nor a docker_image in its task.toml"
    assert refusal(tmp_path) == (message, LEFT_OUT.format("one of them"))


def test_a_task_with_a_verifier_of_its_own_needs_no_script(tmp_path: Path) -> None:
    write_task(tmp_path / "ds" / "judged", toml='[verifier]\nenvironment_mode = "separate"\n')
    (tmp_path / "ds" / "judged" / "tests" / "test.sh").unlink()
    assert ids(tmp_path) == ["judged"]


def test_the_steps_of_a_task_are_looked_at(tmp_path: Path) -> None:
    task = write_task(tmp_path / "ds" / "long", toml='[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n')
    (task / "instruction.md").unlink()
    for step in ("one", "two"):
        (task / "steps" / step).mkdir(parents=True)
        (task / "steps" / step / "instruction.md").write_text("Go on.")
    assert ids(tmp_path) == ["long"]
    (task / "tests" / "test.sh").unlink()
    where = "it would be ds/long/steps/one/tests/test.sh, or ds/long/tests/test.sh for all steps"
    assert refusal(tmp_path) == ("the step 'one' of the task ds/long has no test script", where)
    (task / "tests" / "test.sh").write_text("")
    (task / "steps" / "two" / "instruction.md").unlink()
    assert refusal(tmp_path)[0] == "the task ds/long has no steps/two/instruction.md"
    (task / "task.toml").write_text('[[steps]]\nname = "../out"\n')
    assert refusal(tmp_path)[0] == "ds/long/task.toml: a step is called '../out', which is no name of a folder"


def test_two_tasks_with_one_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_task(tmp_path / "ds" / name, toml='[task]\nname = "org/same"\n')
    message, remedy = refusal(tmp_path)
    assert message == "ds/b and ds/a are both called 'org/same'"
    assert remedy == "give one of them another name in its task.toml, or leave it out with exclude"


def test_a_pipe_in_place_of_a_task_toml_is_not_waited_for(tmp_path: Path) -> None:
    task = write_task(tmp_path / "ds" / "bad")
    (task / "task.toml").unlink()
    os.mkfifo(task / "task.toml")
    assert refusal(tmp_path)[0] == "ds/bad/task.toml cannot be read: not a regular file"


# ---------------------------------------------------------------- what it depends on


def test_the_listing_changes_with_names_and_not_with_contents(tmp_path: Path) -> None:
    source = HarborTasks(harbor="ds")
    write_dataset(tmp_path / "ds", "alpha")
    before = source.state(tmp_path)
    assert before == source.state(tmp_path)
    (tmp_path / "ds" / "alpha" / "instruction.md").write_text("Something else.")
    (tmp_path / "ds" / "alpha" / "task.toml").write_text("[agent]\ntimeout_sec = 5\n")
    assert source.state(tmp_path) == before
    write_task(tmp_path / "ds" / "beta")
    assert source.state(tmp_path) != before


def test_every_file_of_a_task_is_part_of_it(tmp_path: Path) -> None:
    write_task(tmp_path / "ds" / "alpha")
    (tmp_path / "ds" / "alpha" / "environment" / "deep").mkdir()
    (tmp_path / "ds" / "alpha" / "environment" / "deep" / "data.csv").write_text("1")
    (tmp_path / "ds" / "alpha" / "tests" / "__pycache__").mkdir()
    (tmp_path / "ds" / "alpha" / "tests" / "__pycache__" / "x.pyc").write_text("")
    (tmp_path / "shared.csv").write_text("2")
    (tmp_path / "ds" / "alpha" / "environment" / "link.csv").symlink_to(tmp_path / "shared.csv")
    files = make_runner(tmp_path, checked=False).task_files({"path": "ds/alpha"}, tmp_path)
    assert {name: path.read_text() for name, path in files.items() if "environment" in name} == {
        "ds/alpha/environment/deep/data.csv": "1",
        "ds/alpha/environment/link.csv": "2",
    }
    assert set(files) - {name for name in files if "environment" in name} == {
        "ds/alpha/instruction.md",
        "ds/alpha/task.toml",
        "ds/alpha/tests/test.sh",
    }


def test_a_task_that_is_damaged_after_the_lock_was_written(tmp_path: Path) -> None:
    write_task(tmp_path / "ds" / "alpha")
    runner = make_runner(tmp_path, checked=False)
    (tmp_path / "ds" / "alpha" / "instruction.md").unlink()
    with pytest.raises(SourceError, match=r"^the task ds/alpha has no instruction\.md$"):
        runner.task_files({"path": "ds/alpha"}, tmp_path)
    with pytest.raises(SourceError, match=r"^the task 'ds/beta' does not exist$"):
        runner.task_files({"path": "ds/beta"}, tmp_path)


def test_links_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path / "a")
    with pytest.raises(SourceError, match="leads in a circle"):
        folder_files(tmp_path / "a", "a")


def test_the_code_of_a_custom_environment_and_verifier_is_part_of_every_task(tmp_path: Path) -> None:
    write_task(tmp_path / "ds" / "alpha")
    (tmp_path / "local.py").write_text("class Local:\n    pass\n")
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge" / "__init__.py").write_text("class Judge:\n    pass\n")
    (tmp_path / "judge" / "words.txt").write_text("x")
    runner = make_runner(tmp_path, checked=False, environment="local:Local", verifier={"type": "judge:Judge"})
    files = runner.task_files({"path": "ds/alpha"}, tmp_path)
    assert {"local.py", "judge/__init__.py", "judge/words.txt"} < set(files)
