"""Packs of files: the same files come out, or nothing at all."""

import zipfile
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.digests import digest_bytes
from pytest_metricbench.executors.dask_packs import PackError, pack, unpack
from pytest_metricbench.store.files import digest_folder

LIMIT = 1 << 20
parts = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda part: part not in (".", "..") and len(part.encode()) < 100
)
trees = st.dictionaries(st.lists(parts, min_size=1, max_size=3).map(tuple), st.binary(max_size=400), max_size=6).filter(
    lambda tree: not any(one != other and other[: len(one)] == one for one in tree for other in tree)
)


def written(folder: Path, tree: Mapping[tuple[str, ...], bytes]) -> dict[str, Path]:
    files = {}
    for names, content in tree.items():
        path = folder.joinpath(*names)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files["/".join(names)] = path
    return files


def digests_of(files: Mapping[str, Path]) -> dict[str, str]:
    return {name: digest_bytes(path.read_bytes()) for name, path in files.items()}


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def zipped(entries: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


@given(trees)
def test_what_is_packed_comes_out_as_it_was(tree: dict[tuple[str, ...], bytes]) -> None:
    with TemporaryDirectory() as name:
        home = Path(name)
        files = written(home / "source", tree)
        content = pack(files, LIMIT, "it")
        assert content == pack(files, LIMIT, "it")
        unpack(content, home / "target", digests_of(files), LIMIT)
        assert digest_folder(home / "target") == digests_of(files)


@given(st.data())
def test_a_damaged_pack_leaves_nothing_or_the_same_files(data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        home = Path(name)
        files = written(home / "source", {("a.txt",): b"some text " * 9, ("b", "c.bin"): bytes(range(90))})
        content = bytearray(pack(files, LIMIT, "it"))
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] ^= data.draw(st.integers(1, 255))
        if data.draw(st.booleans()):
            del content[position:]
        try:
            unpack(bytes(content), home / "target", digests_of(files), LIMIT)
        except PackError:
            assert left_in(home) == ["source"]
        else:
            assert digest_folder(home / "target") == digests_of(files)


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out", "a//b", "./a", "", "a/"])
def test_no_file_leaves_the_folder(tmp_path: Path, name: str) -> None:
    home = tmp_path / "inner"
    home.mkdir()
    with pytest.raises(PackError, match="no file below its folder"):
        unpack(zipped([(name, b"x")]), home / "target", {name: digest_bytes(b"x")}, LIMIT)
    assert left_in(home) == []
    assert left_in(tmp_path) == ["inner"]


@pytest.mark.parametrize(
    ("entries", "digests", "said"),
    [
        ([("a", b"x")], {}, "^what arrived is not what was announced; the first difference is 'a'$"),
        ([], {"a": digest_bytes(b"x")}, "first difference is 'a'"),
        ([("a", b"x")], {"a": digest_bytes(b"y")}, "^a arrived with another content than was announced$"),
        ([("a", b"x" * (LIMIT + 1))], {"a": digest_bytes(b"x" * (LIMIT + 1))}, "larger than 1 MiB"),
    ],
    ids=["too many", "too few", "other content", "too large"],
)
def test_only_what_was_announced_is_unpacked(
    tmp_path: Path, entries: list[tuple[str, bytes]], digests: dict[str, str], said: str
) -> None:
    with pytest.raises(PackError, match=said):
        unpack(zipped(entries), tmp_path / "target", digests, LIMIT)
    assert left_in(tmp_path) == []


def test_one_name_twice_is_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = zipped([("a", b"x"), ("a", b"x")])
    with pytest.raises(PackError, match="first difference"):
        unpack(content, tmp_path / "target", {"a": digest_bytes(b"x")}, LIMIT)


def test_more_than_the_limit_is_not_packed(tmp_path: Path) -> None:
    files = written(tmp_path, {("a",): b"x" * 600_000, ("b",): b"y" * 600_000})
    with pytest.raises(PackError, match="the evidence: larger than 1 MiB, the limit"):
        pack(files, LIMIT, "the evidence")


def test_what_can_be_executed_still_can(tmp_path: Path) -> None:
    files = written(tmp_path / "source", {("run.sh",): b"#!/bin/sh\n"})
    files["run.sh"].chmod(0o700)
    unpack(pack(files, LIMIT, "it"), tmp_path / "target", digests_of(files), LIMIT)
    assert (tmp_path / "target" / "run.sh").stat().st_mode & 0o111


def test_a_link_is_not_packed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(PackError, match="link cannot be read"):
        pack({"link": tmp_path / "link"}, LIMIT, "the evidence")
