"""Nothing is overwritten, nothing is half written, and what is in the way is named."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.starting import placing
from pytest_metricbench.starting.placing import StartError, place
from pytest_metricbench.starting.start import BY_COMMAND, start
from tests.starting.starting_lab import TABLE, begin, make


def everything(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(folder: Path, *args: Any, **kwargs: Any) -> str:
    """What is said where nothing is written; and that nothing is."""
    before = everything(folder)
    with pytest.raises(StartError) as error:
        begin(folder, *args, **kwargs)
    assert everything(folder) == before
    return str(error.value)


def test_an_experiment_that_is_there(tmp_path: Path) -> None:
    begin(tmp_path, "table")
    said = refused(tmp_path)
    assert said.startswith("experiment.yml")
    assert "nothing was written. There is an experiment already: run it (pytest experiment.yml), move it" in said


def test_a_file_that_the_example_has_too(tmp_path: Path) -> None:
    make(tmp_path, {"agent.py": "x = 1\n", "tools.json": ""})
    assert refused(tmp_path, "python") == (
        "agent.py, tools.json exist; nothing was written. The example of an agent that is a Python function has files "
        "of that name: name a new folder, or another kind with --kind"
    )
    begin(tmp_path, "table")


def test_a_file_that_goes_beside_what_was_found(tmp_path: Path) -> None:
    make(tmp_path, {**TABLE, "experiment.schema.json": "{}"})
    assert refused(tmp_path) == "experiment.schema.json exists; nothing was written. Move what is there"


def test_a_link_that_leads_nowhere_is_in_the_way_too(tmp_path: Path) -> None:
    make(tmp_path, TABLE)
    (tmp_path / "experiment.yml").symlink_to("elsewhere.yml")
    assert "experiment.yml exists; nothing was written" in refused(tmp_path)
    assert not (tmp_path / "elsewhere.yml").exists()


def test_the_same_schema_the_ignored_files_and_another_workflow_stay(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    begin(tmp_path / "one", "table", here=tmp_path)
    schema = (tmp_path / "one/experiment.schema.json").read_text()
    make(tmp_path / "two", {"experiment.schema.json": schema, ".gitignore": "mine\n"})
    said = begin(tmp_path / "two", "table", here=tmp_path)
    assert "left .gitignore as it is" in said
    assert (tmp_path / "two/.gitignore").read_text() == "mine\n"
    workflows = sorted(path.name for path in (tmp_path / ".github/workflows").iterdir())
    assert workflows == ["metricbench-two.yml", "metricbench.yml"]
    (tmp_path / "two/experiment.yml").unlink()
    for name in ("results.csv", "topics.py"):
        (tmp_path / "two" / name).unlink()
    assert "left the CI workflows as they are" in begin(tmp_path / "two", "table", here=tmp_path)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("file", "file is no folder; nothing was written. Name a folder"),
        ("file/below", "file exists; nothing was written. Move it, or name another folder"),
        ("nul\0", "a folder has no null character in its name; nothing was written. Name a folder"),
        ("x" * 300, ": File name too long; nothing was written"),
    ],
)
def test_folders_that_cannot_be(tmp_path: Path, where: str, said: str) -> None:
    make(tmp_path, {"file": ""})
    with pytest.raises(StartError) as error:
        begin(Path(where), "table", here=tmp_path)
    assert said in str(error.value)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_file_in_the_way_of_a_folder_further_down(tmp_path: Path) -> None:
    make(tmp_path, {"there/file": "mine"})
    with pytest.raises(StartError) as error:
        place({tmp_path / "there/new.txt": "text", tmp_path / "there/file/below.txt": "text"})
    assert str(error.value) == f"{tmp_path / 'there/file'} exists; nothing was written. Move it, or name another folder"
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["file"]
    (tmp_path / "there/file").unlink()
    (tmp_path / "there/file").symlink_to("nowhere")
    with pytest.raises(StartError, match="file exists; nothing was written"):
        place({tmp_path / "there/file/below.txt": "text"})


def test_a_file_in_the_way_that_came_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the folders and the writing: the folder is a file by then."""
    (tmp_path / "there").mkdir()

    def replaced(path: str, *args: Any, **keys: Any) -> Any:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))

    monkeypatch.setattr(placing, "open", replaced, raising=False)
    with pytest.raises(StartError) as error:
        place({tmp_path / "there/new.txt": "text"})
    way = "a file is in the way where a folder is needed; nothing was written. Name another folder"
    assert str(error.value) == f"{tmp_path / 'there/new.txt'}: {way}"
    assert list((tmp_path / "there").iterdir()) == []


def test_a_folder_without_permission(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    root = os.geteuid() == 0
    if root:  # may write anywhere, so as somebody else
        for folder in (tmp_path, *list(tmp_path.parents)[:3]):
            folder.chmod(folder.stat().st_mode | 0o055)
        os.seteuid(65534)
    try:
        with pytest.raises(StartError, match=r"nothing was written. Name a folder that you may write to"):
            place({closed / "a/b.txt": "text"})
    finally:
        if root:
            os.seteuid(0)
    assert list(closed.iterdir()) == []


def test_what_was_written_before_a_fault_is_taken_back(tmp_path: Path) -> None:
    make(tmp_path, {"there/last.txt": "mine"})
    with pytest.raises(StartError, match=r"last.txt exists; nothing was written"):
        place({tmp_path / "new/deep/first.txt": "text", tmp_path / "there/last.txt": "text"})
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert (tmp_path / "there/last.txt").read_text() == "mine"


@pytest.mark.parametrize(("kind", "hint"), [("tables", "did you mean 'table'? "), ("xyz", "")])
def test_a_kind_that_there_is_not(tmp_path: Path, kind: str, hint: str) -> None:
    assert (
        refused(tmp_path, kind) == f"--kind: {kind!r} is no kind; {hint}there are python, command, harbor, suite, table"
    )


def test_a_new_folder_in_a_project_gets_an_example_of_its_kind_and_the_way_to_more(tmp_path: Path) -> None:
    make(tmp_path, TABLE)
    said = begin(tmp_path / "bench", here=tmp_path)
    assert said.startswith("table: an example of a table of results, since this is in ")
    assert "  an experiment about that stands beside it: python -m pytest_metricbench init .\n" in said
    assert (tmp_path / "bench/results.csv").exists()
    said = begin(tmp_path / "other", "python", here=tmp_path)
    assert said.startswith("python: an example of an agent that is a Python function (others: --kind command|")


def test_where_nothing_was_found_it_says_so(tmp_path: Path) -> None:
    make(tmp_path, {"notes.txt": "", "bot.py": "class Agent:\n    def run(self, asked):\n        return asked\n"})
    said = "\n".join(start(".", tmp_path, None, BY_COMMAND))
    found = "no agent, Harbor dataset, tests or table of results was found in ."
    assert said.startswith(f"python: an example of an agent that is a Python function, since {found} (others: --kind ")
    make(tmp_path / "other", {"notes.txt": ""})
    said = "\n".join(start("other", tmp_path, "command", BY_COMMAND))
    assert said.startswith("command: an example of an agent that is a command, since none was found in other (others")
