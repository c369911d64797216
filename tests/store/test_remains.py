"""What attempts that never ended have left: moved aside, counted, and never taken for results."""

from collections.abc import Callable
from pathlib import Path

from pytest_metricbench.contracts import AttemptRecord
from pytest_metricbench.store.layout import Layout
from pytest_metricbench.store.remains import set_aside_interrupted, set_aside_stale


def workspace(layout: Layout, task: str, folder: str) -> Path:
    made = layout.workspace("c", "baseline", task, folder)
    made.mkdir(parents=True)
    (made / "trace.txt").write_text(folder)
    return made


def test_unknown_workspaces_are_set_aside_and_named(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    workspace(layout, "t1", "known")
    workspace(layout, "t1", "in-flight")
    moved = set_aside_interrupted(layout, {"known"})
    assert moved == [layout.interrupted / "c/baseline/t1/in-flight"]
    assert (moved[0] / "trace.txt").read_text() == "in-flight"
    assert set_aside_interrupted(layout, {"known"}) == []


def test_workspaces_of_superseded_attempts_are_stale_and_not_interrupted(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for folder in ("known", "old", "in-flight", "in-flight-too"):
        workspace(layout, "t1", folder)
    moved = set_aside_interrupted(layout, {"known"}, {"old"})
    assert moved == [layout.interrupted / "c/baseline/t1" / name for name in ("in-flight", "in-flight-too")]
    assert (layout.stale / "c/baseline/t1/old/trace.txt").read_text() == "old"
    assert [path.name for path in (layout.workspaces / "c/baseline/t1").iterdir()] == ["known"]


def test_a_file_in_place_of_a_folder_holds_no_workspaces(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.workspaces.write_text("x")
    assert set_aside_interrupted(layout, ()) == []


def test_names_that_are_taken_get_a_number(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for _ in range(3):
        workspace(layout, "t1", "x")
        set_aside_interrupted(layout, ())
    assert sorted(path.name for path in (layout.interrupted / "c/baseline/t1").iterdir()) == ["x", "x-2", "x-3"]


def test_links_are_neither_followed_nor_moved(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "store")
    elsewhere = tmp_path / "elsewhere/deep/down"
    elsewhere.mkdir(parents=True)
    layout.workspaces.mkdir(parents=True)
    (layout.workspaces / "c").symlink_to(tmp_path / "elsewhere")
    assert set_aside_interrupted(layout, ()) == []
    assert elsewhere.is_dir()


def test_an_empty_store(tmp_path: Path) -> None:
    assert set_aside_interrupted(Layout(tmp_path / "none"), ()) == []


def test_stale_workspaces_stay_readable(tmp_path: Path, record: Callable[..., AttemptRecord]) -> None:
    layout = Layout(tmp_path)
    made = record("t1")
    workspace(layout, "t1", made.trial_id)
    set_aside_stale(layout, made)
    assert (layout.stale / "c/baseline/t1" / made.trial_id / "trace.txt").is_file()
    assert not layout.workspace("c", "baseline", "t1", made.trial_id).exists()
    set_aside_stale(layout, made)  # nothing left: nothing to do
