"""The journal: whole lines or none, whatever stops the writing."""

import errno
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.store import journal as journal_module
from pytest_metricbench.store.journal import Journal, StoreError, has_torn_line, read_lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "attempts.jsonl"


def lines(path: Path) -> list[str]:
    return [line.decode().rstrip("\n") for _, line in read_lines(path)]


def write(path: Path, *texts: str) -> None:
    journal = Journal(path)
    for text in texts:
        journal.append(text)
    journal.close()


# ---------------------------------------------------------------- whole lines


def test_lines_are_appended_and_numbered(path: Path) -> None:
    write(path, "one", "two")
    write(path, "three")
    assert list(read_lines(path)) == [(1, b"one\n"), (2, b"two\n"), (3, b"three\n")]


def test_a_line_is_there_as_soon_as_it_is_appended(path: Path) -> None:
    journal = Journal(path)
    journal.append("one")
    assert path.read_bytes() == b"one\n"
    journal.close()


def test_nothing_is_an_empty_journal(path: Path) -> None:
    assert lines(path) == []
    assert not has_torn_line(path)
    write(path)
    assert lines(path) == []
    assert not has_torn_line(path)


def test_ten_thousand_lines(path: Path) -> None:
    texts = [f'{{"number":{number},"filler":"{"x" * (number % 300)}"}}' for number in range(10_000)]
    began = time.monotonic()
    write(path, *texts)
    assert lines(path) == texts
    assert time.monotonic() - began < 10


def test_a_line_longer_than_every_buffer(path: Path) -> None:
    texts = ["short", "x" * 5_000_000, "short"]
    write(path, *texts)
    assert lines(path) == texts
    write(path, "more")
    assert lines(path) == [*texts, "more"]


def test_text_beyond_ascii_is_refused_and_nothing_is_written(path: Path) -> None:
    journal = Journal(path)
    with pytest.raises(UnicodeEncodeError):
        journal.append("caf\N{LATIN SMALL LETTER E WITH ACUTE}")
    journal.append("one")
    journal.close()
    assert lines(path) == ["one"]


# ---------------------------------------------------------------- torn lines


@pytest.mark.parametrize("torn", [b"t", b'{"case":', b"\0" * 5000, b"x" * 200_000, b"\xff\xfe"])
@pytest.mark.parametrize("before", [[], ["one"], ["one", "two"]])
def test_a_torn_last_line_is_dropped_and_cut(path: Path, before: list[str], torn: bytes) -> None:
    write(path, *before)
    with path.open("ab") as file:
        file.write(torn)
    assert has_torn_line(path)
    assert lines(path) == before
    write(path, "next")
    assert not has_torn_line(path)
    assert lines(path) == [*before, "next"]


def test_a_journal_cut_at_every_byte_keeps_its_whole_lines(path: Path) -> None:
    texts = ['{"a":1}', '{"b":22}', '{"c":333}']
    content = "".join(f"{text}\n" for text in texts).encode()
    for length in range(len(content) + 1):
        path.write_bytes(content[:length])
        whole = content[:length].count(b"\n")
        assert lines(path) == texts[:whole]
        assert has_torn_line(path) == (length > 0 and content[length - 1 : length] != b"\n")
        write(path, "next")
        assert lines(path) == [*texts[:whole], "next"]


# ---------------------------------------------------------------- writes that fail


class Faults:
    """A stand-in for ``os`` whose next writes do what they are told."""

    def __init__(self, *plan: int | BaseException) -> None:
        self.plan = list(plan)

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def write(self, descriptor: int, content: bytes) -> int:
        step = self.plan.pop(0) if self.plan else len(content)
        if isinstance(step, BaseException):
            raise step
        return os.write(descriptor, content[:step])


class Interrupted(Faults):
    """The interrupt comes when the system call has written everything and its result is not stored yet."""

    def write(self, descriptor: int, content: bytes) -> int:
        written = super().write(descriptor, content)
        if not self.plan:
            self.plan = [len(content)] * 1000
            raise KeyboardInterrupt
        return written


def test_a_write_in_pieces_is_one_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "os", Faults(1, 2, 1))
    write(path, "abcdefgh", "next")
    assert lines(path) == ["abcdefgh", "next"]


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
@pytest.mark.parametrize("plan", [[], [1], [3, 2]])
def test_what_was_written_of_a_line_is_taken_back(
    path: Path, monkeypatch: pytest.MonkeyPatch, plan: list[int], error: BaseException
) -> None:
    write(path, "before")
    journal = Journal(path)
    monkeypatch.setattr(journal_module, "os", Faults(*plan, error))
    with pytest.raises(type(error)):
        journal.append("abcdefgh")
    assert path.read_bytes() == b"before\n"
    journal.append("after")
    journal.close()
    assert lines(path) == ["before", "after"]


def test_a_line_that_was_written_whole_stays_when_an_interrupt_comes_right_after(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(path)
    monkeypatch.setattr(journal_module, "os", Interrupted(2, 7))
    with pytest.raises(KeyboardInterrupt):
        journal.append("abcdefgh")
    monkeypatch.setattr(journal_module, "os", Faults(1, OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        journal.append("lost")
    journal.append("after")
    journal.close()
    assert lines(path) == ["abcdefgh", "after"]


def test_a_full_disk_takes_the_line_back(tiny_disk: Path) -> None:
    path = tiny_disk / "attempts.jsonl"
    journal = Journal(path)
    written = 0
    with pytest.raises(OSError, match="No space left"):  # noqa: PT012
        while True:
            journal.append(f"{written:05} {'x' * 3000}")
            written += 1
    assert 5 < written < 25
    assert [line[:5] for line in lines(path)] == [f"{number:05}" for number in range(written)]
    assert not has_torn_line(path)
    journal.append("small")
    journal.close()
    assert lines(path)[-1] == "small"


FILE_LIMIT = """
import sys
from pathlib import Path
from pytest_metricbench.store.journal import Journal
journal = Journal(Path(sys.argv[1]))
try:
    while True:
        journal.append("x" * 999)
except OSError as error:
    print(error.strerror)
journal.append("small")
journal.close()
"""


def test_a_limit_on_the_size_of_files_takes_the_line_back(path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_500, 10_500))

    ended = subprocess.run(
        [sys.executable, "-B", "-c", FILE_LIMIT, str(path)],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "File too large" in ended.stdout
    assert lines(path) == ["x" * 999] * 10 + ["small"]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.text("abc", max_size=8), st.lists(st.integers(0, 5), max_size=3), st.booleans()), max_size=6)
)
def test_any_sequence_of_failures_leaves_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[int], bool]]
) -> None:
    path = tmp_path_factory.mktemp("journal") / "attempts.jsonl"
    expected = []
    journal = Journal(path)
    for text, pieces, fails in steps:
        total = len(text) + 1
        plan: list[int | BaseException] = [min(piece, total) for piece in pieces]
        if fails:
            plan.append(OSError(errno.EIO, "Input/output error"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(journal_module, "os", Faults(*plan))
            try:
                journal.append(text)
                expected.append(text)
            except OSError:
                assert fails
        assert lines(path) == expected
        assert not has_torn_line(path)
    journal.close()
    assert lines(path) == expected


# ---------------------------------------------------------------- syncs


def test_lines_are_synced_at_intervals_and_at_the_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    class Counting(Faults):
        def fsync(self, descriptor: int) -> None:
            synced.append(descriptor)

    monkeypatch.setattr(journal_module, "os", Counting())
    monkeypatch.setattr(journal_module, "SYNC_INTERVAL", 3600)
    Journal(path).close()
    assert synced == [], "nothing was written"
    journal = Journal(path)
    journal.append("one")
    journal.append("two")
    assert synced == []
    monkeypatch.setattr(journal_module, "SYNC_INTERVAL", 0)
    journal.append("three")
    assert len(synced) == 1
    journal.sync()
    assert len(synced) == 1
    monkeypatch.setattr(journal_module, "SYNC_INTERVAL", 3600)
    journal.append("four")
    journal.close()
    assert len(synced) == 2


def test_a_sync_that_fails_is_said_and_tried_again_and_the_line_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    class FailingOnce(Faults):
        def fsync(self, descriptor: int) -> None:
            tried.append(descriptor)
            if len(tried) == 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(journal_module, "os", FailingOnce())
    monkeypatch.setattr(journal_module, "SYNC_INTERVAL", 0)
    journal = Journal(path)
    with pytest.raises(OSError, match="Input/output error"):
        journal.append("one")
    assert lines(path) == ["one"]
    journal.close()
    assert len(tried) == 2
    assert lines(path) == ["one"]


def test_closing_twice_closes_nothing_of_somebody_else(path: Path) -> None:
    journal = Journal(path)
    journal.close()
    other = os.open(path, os.O_RDONLY)
    journal.close()
    os.fstat(other)
    os.close(other)
    with pytest.raises(OSError, match="closed"):
        journal.append("late")


# ---------------------------------------------------------------- what stands in its place


@pytest.mark.parametrize("kind", ["folder", "link", "dangling", "loop", "zero", "pipe"])
def test_something_else_in_its_place_is_an_error(path: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "other.jsonl").write_text("one\n")
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        leads = {"link": "other.jsonl", "dangling": "nowhere", "loop": path.name, "zero": "/dev/zero"}
        path.symlink_to(leads[kind])
    with pytest.raises(StoreError, match="cannot be read: not a regular file") as caught:
        lines(path)
    assert str(path) in str(caught.value)
    with pytest.raises(OSError):  # noqa: PT011
        Journal(path)
    assert (tmp_path / "other.jsonl").read_text() == "one\n"
    assert not (tmp_path / "nowhere").exists()


def test_no_descriptor_is_left_open(path: Path, tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    for _ in range(20):
        write(path, "one")
        lines(path)
        has_torn_line(path)
        for wrong in (tmp_path, tmp_path / "missing" / "x"):
            with pytest.raises(OSError, match=wrong.name):
                Journal(wrong)
    assert len(os.listdir("/dev/fd")) == before


def test_a_journal_that_may_not_be_read_or_written(
    unprivileged: tuple[Path, Callable[[], AbstractContextManager[None]]],
) -> None:
    folder, as_nobody = unprivileged
    path = folder / "attempts.jsonl"
    path.write_text("one\n")
    path.chmod(0)
    with as_nobody():
        with pytest.raises(StoreError, match="Permission denied"):
            lines(path)
        with pytest.raises(PermissionError):
            Journal(path)
