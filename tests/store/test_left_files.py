"""The files that an attempt leaves: listed, digested and copied without being led astray."""

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.digests import digest_bytes
from pytest_metricbench.plain_files import write_whole
from pytest_metricbench.store import files as files_module
from pytest_metricbench.store.files import (
    LITTLE_ROOM,
    copy_file,
    digest_folder,
    files_match,
    no_room,
    regular_files,
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with two files, and a secret beside it."""
    workspace = tmp_path / "workspace"
    (workspace / "trace").mkdir(parents=True)
    (workspace / "trace" / "t.json").write_bytes(b"{}")
    (workspace / "log").write_bytes(b"log")
    (tmp_path / "secret").write_text("password")
    return workspace


DIGESTS = {"log": digest_bytes(b"log"), "trace/t.json": digest_bytes(b"{}")}


# ---------------------------------------------------------------- listing


def test_every_regular_file_is_listed(workspace: Path) -> None:
    (workspace / ".hidden").write_bytes(b"")
    (workspace / "trace" / "deeper" / "still").mkdir(parents=True)
    (workspace / "trace" / "deeper" / "still" / "caf\u00e9 \u2603\n.txt").write_bytes(b"x")
    names = [name for name, _ in regular_files(workspace)]
    assert sorted(names) == [".hidden", "log", "trace/deeper/still/caf\u00e9 \u2603\n.txt", "trace/t.json"]
    assert all(path == workspace / name for name, path in regular_files(workspace))
    assert digest_folder(workspace).items() >= DIGESTS.items()


def test_no_folder_is_empty(tmp_path: Path) -> None:
    assert digest_folder(tmp_path / "missing") == {}
    (tmp_path / "file").write_text("x")
    assert digest_folder(tmp_path / "file") == {}


def test_a_workspace_full_of_links_and_devices(workspace: Path, tmp_path: Path) -> None:
    leads = {
        "secret": "../secret",
        "passwd": "/etc/passwd",
        "loop": "loop",
        "dangling": "nowhere",
        "up": "..",
        "here": ".",
        "root": "/",
        "zero": "/dev/zero",
        "inside": "log",
    }
    for name, target in leads.items():
        (workspace / name).symlink_to(target)
        (workspace / "trace" / name).symlink_to(target)
    os.mkfifo(workspace / "pipe")
    server = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(workspace)
    server.bind("socket")
    os.chdir(here)
    server.close()
    assert digest_folder(workspace) == DIGESTS


def test_thousands_of_links(workspace: Path) -> None:
    for number in range(2000):
        (workspace / f"link{number}").symlink_to("..")
    assert digest_folder(workspace) == DIGESTS


def test_a_name_that_is_no_text_is_left_out(workspace: Path) -> None:
    """No JSON can hold it; were it changed to fit, the file would never be found again."""
    with open(os.fsencode(workspace) + b"/caf\xe9", "wb") as file:
        file.write(b"x")
    os.mkdir(os.fsencode(workspace) + b"/dir\xff")
    with open(os.fsencode(workspace) + b"/dir\xff/inner", "wb") as file:
        file.write(b"x")
    assert digest_folder(workspace) == DIGESTS
    assert files_match(workspace, digest_folder(workspace))


@pytest.fixture
def _removed_with_rm(workspace: Path) -> Iterator[None]:
    """Nested too deep for pytest to remove it."""
    yield
    subprocess.run(["/bin/rm", "-rf", str(workspace)], check=True)


@pytest.mark.usefixtures("_removed_with_rm")
def test_folders_nested_deeper_than_a_path_can_be_long(workspace: Path) -> None:
    name = "d" * 200
    descriptor = os.open(workspace, os.O_RDONLY)
    for _ in range(30):
        os.mkdir(name, dir_fd=descriptor)
        inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("deepest", os.O_WRONLY | os.O_CREAT, dir_fd=descriptor))
    os.close(descriptor)
    assert digest_folder(workspace) == DIGESTS


@pytest.mark.usefixtures("_removed_with_rm")
def test_hundreds_of_levels(workspace: Path) -> None:
    folder = workspace
    for _ in range(300):
        folder /= "d"
        os.mkdir(folder)
    (folder / "deep").write_bytes(b"x")
    assert len(digest_folder(workspace)) == 3


def test_what_may_not_be_read_is_left_out(
    unprivileged: tuple[Path, Callable[[], AbstractContextManager[None]]],
) -> None:
    folder, as_nobody = unprivileged
    with as_nobody():
        (folder / "fine").write_bytes(b"x")
        (folder / "closed").write_bytes(b"x")
        (folder / "closed").chmod(0)
        (folder / "shut").mkdir()
        (folder / "shut" / "inner").write_bytes(b"x")
        (folder / "shut").chmod(0)
        assert digest_folder(folder) == {"fine": digest_bytes(b"x")}
        assert files_match(folder, {"fine": digest_bytes(b"x")})
        assert not files_match(folder, {"closed": digest_bytes(b"x")})
        assert not files_match(folder, {"shut/inner": digest_bytes(b"x")})


def test_files_that_come_and_go_meanwhile(workspace: Path) -> None:
    """A process that escaped the agent's group goes on writing."""
    stop = threading.Event()

    def flicker() -> None:
        number = 0
        while not stop.is_set():
            path = workspace / "trace" / f"{number % 50}"
            path.write_bytes(b"x")
            path.unlink()
            path.symlink_to("/dev/zero")
            path.unlink()
            number += 1

    thread = threading.Thread(target=flicker)
    thread.start()
    try:
        for _ in range(100):
            assert digest_folder(workspace).items() >= DIGESTS.items()
    finally:
        stop.set()
        thread.join()


# ---------------------------------------------------------------- as they were


def test_files_as_they_were_match(workspace: Path) -> None:
    assert files_match(workspace, DIGESTS)
    assert files_match(workspace, {})
    assert files_match(workspace / "missing", {})
    (workspace / "more").write_text("a new file changes nothing")
    assert files_match(workspace, DIGESTS)


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "log").write_bytes(b"lag"),
        lambda folder: (folder / "log").write_bytes(b"log "),
        lambda folder: (folder / "log").unlink(),
        lambda folder: ((folder / "log").unlink(), (folder / "log").mkdir()),
        lambda folder: ((folder / "log").rename(folder / "real"), (folder / "log").symlink_to("real")),
        lambda folder: ((folder / "log").unlink(), (folder / "log").symlink_to("log")),
        lambda folder: ((folder / "log").unlink(), (folder / "log").symlink_to("/dev/zero")),
        lambda folder: replaced_by_a_pipe(folder / "log"),
        lambda folder: ((folder / "trace").rename(folder / "real"), (folder / "trace").symlink_to("real")),
        lambda folder: folder.rename(folder.with_name("elsewhere")),
    ],
    ids=["changed", "grown", "gone", "folder", "link", "loop", "zero", "pipe", "linked folder", "moved"],
)
def test_any_damage_is_noticed(workspace: Path, damage: Callable[[Path], object]) -> None:
    damage(workspace)
    assert not files_match(workspace, DIGESTS)


def test_a_workspace_that_is_a_link_is_not_as_it_was(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)
    assert not files_match(tmp_path / "link", DIGESTS)
    assert not files_match(tmp_path / "link", {})


@pytest.mark.parametrize(
    "name", ["../secret", "trace/../../secret", "/etc/passwd", "", ".", "..", "trace", "trace/", "./log", "a\0b", "LOG"]
)
def test_names_that_lead_elsewhere_are_never_there(workspace: Path, name: str) -> None:
    secret = digest_bytes((workspace.parent / "secret").read_bytes())
    for digest in (secret, digest_bytes(b"log"), digest_bytes(Path("/etc/passwd").read_bytes())):
        assert not files_match(workspace, {name: digest})


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..") and len(name.encode()) < 200
)


@given(st.dictionaries(NAMES, st.binary(max_size=20), max_size=5))
def test_what_was_digested_matches(tmp_path_factory: pytest.TempPathFactory, contents: dict[str, bytes]) -> None:
    folder = tmp_path_factory.mktemp("left")
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    digests = digest_folder(folder)
    assert digests == {name: digest_bytes(content) for name, content in contents.items()}
    assert files_match(folder, digests)


# ---------------------------------------------------------------- copying


def test_a_copy_has_the_content_and_its_folders(workspace: Path, tmp_path: Path) -> None:
    copy_file(workspace / "trace" / "t.json", tmp_path / "a" / "b" / "t.json")
    assert (tmp_path / "a" / "b" / "t.json").read_bytes() == b"{}"


@pytest.mark.parametrize("kind", ["gone", "link", "loop", "zero", "pipe", "folder"])
def test_only_regular_files_are_copied(workspace: Path, tmp_path: Path, kind: str) -> None:
    source, target = workspace / "source", tmp_path / "copies" / "target"
    if kind == "pipe":
        os.mkfifo(source)
    elif kind == "folder":
        source.mkdir()
    elif kind != "gone":
        source.symlink_to({"link": "log", "loop": "source", "zero": "/dev/zero"}[kind])
    with pytest.raises(OSError, match="source"):
        copy_file(source, target)
    assert not target.exists()


def test_nothing_is_overwritten_or_followed_at_the_target(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("secret")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("secret", "link", "dangling"):
        with pytest.raises(FileExistsError):
            copy_file(workspace / "log", tmp_path / name)
    assert (tmp_path / "secret").read_text() == "password"
    assert not (tmp_path / "nowhere").exists()


def test_half_a_copy_is_removed(workspace: Path, tiny_disk: Path) -> None:
    (workspace / "big").write_bytes(b"x" * 200_000)
    with pytest.raises(OSError, match="No space left"):
        copy_file(workspace / "big", tiny_disk / "big")
    assert not (tiny_disk / "big").exists()


def test_half_a_copy_is_removed_when_an_interrupt_comes(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(reader: object, writer: object, length: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files_module, "shutil", SimpleNamespace(copyfileobj=interrupted))
    with pytest.raises(KeyboardInterrupt):
        copy_file(workspace / "log", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(("mode", "copied"), [(0o755, 0o755), (0o511, 0o711), (0o601, 0o601), (0o4711, 0o711)])
def test_what_can_be_executed_can_be_in_the_copy_too(workspace: Path, tmp_path: Path, mode: int, copied: int) -> None:
    """Its owner can write it whatever the source says, and nobody runs it as somebody else."""
    (workspace / "log").chmod(mode)
    copy_file(workspace / "log", tmp_path / "copy")
    assert (tmp_path / "copy").stat().st_mode & 0o7777 == copied


def test_what_cannot_be_executed_is_a_file_like_any_other(workspace: Path, tmp_path: Path) -> None:
    (workspace / "log").chmod(0o444)
    copy_file(workspace / "log", tmp_path / "copy")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "copy").stat().st_mode == (tmp_path / "other").stat().st_mode


# ---------------------------------------------------------------- a disk without room


class Disk(SimpleNamespace):
    """What the system says of a disk: by default one with room for everybody."""

    def __init__(self, **changed: int) -> None:
        plenty = {"f_flag": 0, "f_bavail": 1000, "f_bfree": 2000, "f_frsize": 4096, "f_files": 100, "f_ffree": 50}
        super().__init__(**(plenty | changed))


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets every folder be on a disk, looked at by a user."""

    def on(disk: Disk | None, user: int = 1000) -> None:
        def statvfs(folder: Path) -> Disk:
            if disk is None:
                raise PermissionError
            return disk

        monkeypatch.setattr(
            files_module, "os", SimpleNamespace(statvfs=statvfs, geteuid=lambda: user, ST_RDONLY=os.ST_RDONLY)
        )

    return on


ENOUGH = LITTLE_ROOM // 4096
"""Blocks that are room enough, and not one more."""


@pytest.mark.parametrize(
    ("disk", "user", "why"),
    [
        (Disk(), 1000, None),
        (Disk(f_flag=os.ST_NOSUID), 1000, None),
        (Disk(f_flag=os.ST_RDONLY), 1000, "the file system is read-only"),
        (Disk(f_flag=os.ST_RDONLY | os.ST_NOSUID, f_bavail=0), 1000, "the file system is read-only"),
        (Disk(f_bavail=ENOUGH), 1000, None),
        (Disk(f_bavail=ENOUGH - 1), 1000, "no space is left on the disk"),
        (Disk(f_bavail=0, f_bfree=ENOUGH), 0, None),
        (Disk(f_bavail=ENOUGH, f_bfree=ENOUGH - 1), 0, "no space is left on the disk"),
        (Disk(f_bavail=ENOUGH // 2, f_frsize=8192), 1000, None),
        (Disk(f_ffree=0), 1000, "the disk can hold no more files"),
        (Disk(f_ffree=1), 1000, None),
        (Disk(f_files=0, f_ffree=0), 1000, None),
        (None, 1000, None),
    ],
    ids=[
        "room",
        "no set-uid",
        "read-only",
        "read-only and full",
        "just enough",
        "a block too few",
        "kept for root",
        "full for root",
        "large blocks",
        "no more files",
        "one more file",
        "files are not counted",
        "unknown",
    ],
)
def test_why_nothing_can_be_written(
    tmp_path: Path, on_disk: Callable[..., None], disk: Disk | None, user: int, why: str | None
) -> None:
    on_disk(disk, user)
    said = None if why is None else f"{tmp_path}: {why}"
    assert no_room(tmp_path) == said
    assert no_room(tmp_path / "not" / "made" / "yet") == said, "the folder that is there counts"


# ---------------------------------------------------------------- whole or not at all


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_whole(path, "caf\u00e9\n")
    write_whole(path, "tea\n")
    assert path.read_text(encoding="utf-8") == "tea\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["summary.json"]


def test_the_old_file_stays_when_the_new_one_does_not_fit(tiny_disk: Path) -> None:
    path = tiny_disk / "summary.json"
    write_whole(path, "old\n")
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "x" * 200_000)
    assert path.read_text() == "old\n"
    assert [entry.name for entry in tiny_disk.iterdir()] == ["summary.json"]


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("password")
    for name in ("summary.json", f".summary.json.{os.getpid()}"):
        (tmp_path / name).symlink_to("secret")
    write_whole(tmp_path / "summary.json", "new\n")
    assert (tmp_path / "secret").read_text() == "password"
    assert (tmp_path / "summary.json").read_text() == "new\n"
    assert not (tmp_path / "summary.json").is_symlink()


def test_a_folder_in_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "summary.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "summary.json", "new\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["summary.json"]
