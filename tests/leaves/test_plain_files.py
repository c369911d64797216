"""Files that may have been replaced: only regular ones are opened."""

import os
import socket
from pathlib import Path

import pytest

from pytest_metricbench.plain_files import open_regular, replace_file


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with open_regular(tmp_path / "file") as file:
        assert file.read() == b"content"


def test_nothing_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "file")


@pytest.mark.parametrize("kind", ["link", "dangling", "loop", "zero", "pipe", "socket", "folder", "null"])
def test_anything_else_is_refused_at_once_and_leaves_nothing_open(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text("password")
    path, server = Path(kind), None
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
    elif kind == "null":
        path = Path("/dev/null")
    else:
        path.symlink_to({"link": "secret", "dangling": "nowhere", "loop": "loop", "zero": "/dev/zero"}[kind])
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(OSError, match="not a regular file"):
        open_regular(path)
    assert len(os.listdir("/dev/fd")) == before
    if server is not None:
        server.close()


def test_a_replaced_file_is_new(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for name, make in (("link", "symlink_to"), ("hard", "hardlink_to")):
        getattr(tmp_path / name, make)(precious)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "hard", "pipe", "absent", "twice", "twice"):
        descriptor = replace_file(tmp_path / name)
        os.write(descriptor, b"new")
        os.close(descriptor)
        assert (tmp_path / name).read_text() == "new"
    assert precious.read_text() == "mine"


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=tmp_path.name):
        replace_file(tmp_path)
