"""A store opened, filled, read again, found damaged, and kept aside."""

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from pytest_metricbench.contracts import AttemptRecord, CoverageRecord, Goals
from pytest_metricbench.store.journal import DiskError, Journal, StoreError
from pytest_metricbench.store.reading import read_store
from pytest_metricbench.store.writing import StoreWriter
from tests.store.store_files import everything, fill

Attempt = Callable[..., AttemptRecord]
Coverage = Callable[..., CoverageRecord]


# ---------------------------------------------------------------- writing and reading


def test_a_folder_that_does_not_exist_is_an_empty_store(root: Path) -> None:
    contents = read_store(root)
    assert (contents.attempts, contents.coverage, contents.warnings) == ({}, {}, [])
    assert not root.exists()


def test_records_come_back_under_their_keys(root: Path, attempt: Attempt, coverage: Coverage) -> None:
    first, second = attempt(), attempt(task="early", attempt=2, scores={"reward": float("inf")})
    request = coverage(goals=Goals(("a", "b"), {"late": ("a",)}))
    fill(root, first, second, request)
    contents = read_store(root)
    assert contents.attempts == {
        ("refunds", "baseline", "late", 1): first,
        ("refunds", "baseline", "early", 2): second,
    }
    assert contents.coverage == {("refunds", "tools", "s1"): request}
    assert contents.warnings == []


def test_the_last_record_of_a_key_counts_and_no_line_is_rewritten(root: Path, attempt: Attempt) -> None:
    fill(root, attempt(outcome="unmeasured", scores={}), attempt(attempt=2))
    before = (root / "attempts.jsonl").read_bytes()
    later = attempt(trial_id="later", supersedes="a1b2c3")
    fill(root, later)
    assert (root / "attempts.jsonl").read_bytes().startswith(before)
    assert read_store(root).attempts["refunds", "baseline", "late", 1] == later
    assert len(read_store(root).attempts) == 2


def test_what_is_written_is_known_at_once_to_the_writer_and_to_readers(
    root: Path, attempt: Attempt, coverage: Coverage
) -> None:
    writer = StoreWriter(root)
    writer.add_attempt(attempt())
    writer.add_coverage(coverage())
    for contents in (writer.contents, read_store(root)):
        assert list(contents.attempts.values()) == [attempt()]
        assert list(contents.coverage.values()) == [coverage()]
    writer.close()


def test_a_store_is_found_again_with_what_it_holds(root: Path, attempt: Attempt) -> None:
    fill(root, attempt())
    writer = StoreWriter(root)
    assert list(writer.contents.attempts.values()) == [attempt()]
    writer.close()


def test_the_summary_of_a_part_has_a_file_of_its_own(root: Path) -> None:
    writer = StoreWriter(root)
    assert writer.write_summary("part", partial=True) == root / "summary.partial.json"
    assert not (root / "summary.json").exists()
    assert writer.write_summary("whole", partial=False) == root / "summary.json"
    assert not (root / "summary.partial.json").exists()
    writer.write_summary("part again", partial=True)
    assert (root / "summary.json").read_text() == "whole"
    writer.close()


def test_a_whole_summary_needs_no_part_before_it(root: Path) -> None:
    writer = StoreWriter(root)
    assert writer.write_summary("whole", partial=False) == root / "summary.json"
    assert (root / "summary.json").read_text() == "whole"
    (root / "summary.partial.json").mkdir()
    with pytest.raises(StoreError, match=r"summary\.partial\.json: cannot be written"):
        writer.write_summary("whole again", partial=False)
    writer.close()


def test_what_was_run_is_described_with_the_version(root: Path) -> None:
    fill(root)
    assert json.loads((root / "experiment.json").read_text()) == {"metricbench": 1, "experiment": "refund-agent"}


def test_closing_again_does_nothing(root: Path) -> None:
    writer = StoreWriter(root)
    writer.close()
    other = StoreWriter(root)
    writer.close()
    with pytest.raises(StoreError, match="another run"):
        StoreWriter(root)
    other.close()


def test_no_descriptor_is_left_open(root: Path, attempt: Attempt) -> None:
    fill(root, attempt())
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        fill(root)
    (root / "coverage.jsonl").unlink()
    (root / "coverage.jsonl").mkdir()
    for _ in range(5):
        with pytest.raises(StoreError):
            StoreWriter(root)
    assert len(os.listdir("/dev/fd")) == before


# ---------------------------------------------------------------- out of version control


def ignored(folder: Path, path: Path) -> bool:
    return (
        subprocess.run(["/usr/bin/env", "git", "check-ignore", "-q", str(path)], cwd=folder, check=False).returncode
        == 0
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["/usr/bin/env", "git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "agent.py").write_text("")
    return tmp_path


def test_a_store_is_out_of_version_control(repository: Path, root: Path, attempt: Attempt) -> None:
    fill(root, attempt())
    assert ignored(repository, root / "attempts.jsonl")
    StoreWriter(root, fresh=True).close()
    status = subprocess.run(
        ["/usr/bin/env", "git", "status", "--porcelain"], cwd=repository, capture_output=True, text=True, check=True
    )
    assert status.stdout == "?? agent.py\n"


def test_a_store_in_a_folder_of_the_user_ignores_nothing_else(repository: Path, attempt: Attempt) -> None:
    """``--metricbench-store .`` must not hide a whole project."""
    root = repository / "refund-agent"
    fill(root, attempt())
    StoreWriter(root, fresh=True).close()
    assert ignored(repository, root / "attempts.jsonl")
    assert not ignored(repository, repository / "agent.py")
    (aside,) = repository.glob("refund-agent.before-*")
    assert ignored(repository, aside / "attempts.jsonl")


def test_a_gitignore_of_the_user_is_left_alone(root: Path) -> None:
    root.parent.mkdir()
    (root.parent / ".gitignore").write_text("# mine\n")
    fill(root)
    assert (root.parent / ".gitignore").read_text() == "# mine\n"


# ---------------------------------------------------------------- starting over


def test_fresh_keeps_the_old_store_aside(root: Path, attempt: Attempt) -> None:
    fill(root, attempt())
    (root / "attempts" / "refunds").mkdir(parents=True)
    (root / "attempts" / "refunds" / "evidence").write_text("x")
    before = everything(root)
    writer = StoreWriter(root, fresh=True)
    assert writer.contents.attempts == {}
    assert writer.kept_aside is not None
    assert writer.kept_aside.parent == root.parent
    assert writer.kept_aside.name.startswith("refund-agent.before-")
    kept = everything(writer.kept_aside)
    assert {name: kept[name] for name in before if name != "lock"} == {n: c for n, c in before.items() if n != "lock"}
    assert list(read_store(writer.kept_aside).attempts.values()) == [attempt()]
    writer.add_attempt(attempt(trial_id="new"))
    writer.close()
    assert [record.trial_id for record in read_store(root).attempts.values()] == ["new"]


def test_fresh_again_and_again_keeps_each(root: Path, attempt: Attempt) -> None:
    asides = set()
    for number in range(1, 5):
        fill(root, attempt(attempt=number))
        writer = StoreWriter(root, fresh=True)
        asides.add(writer.kept_aside)
        writer.close()
    assert None not in asides
    assert len(asides) == 4
    kept = [record.attempt for aside in asides if aside for record in read_store(aside).attempts.values()]
    assert sorted(kept) == [1, 2, 3, 4]


def test_fresh_without_a_store_keeps_nothing_aside(root: Path) -> None:
    for _ in range(2):
        writer = StoreWriter(root, fresh=True)
        assert writer.kept_aside is None
        writer.close()
        for name in ("attempts.jsonl", "coverage.jsonl"):
            (root / name).unlink()


@pytest.mark.parametrize("fresh", [False, True])
def test_a_folder_that_is_no_store_is_left_alone(tmp_path: Path, fresh: bool) -> None:
    root = tmp_path / "refund-agent"
    root.mkdir()
    (root / "agent.py").write_text("the user's own")
    with pytest.raises(StoreError, match="not empty and no store") as caught:
        StoreWriter(root, fresh=fresh)
    assert str(root) in str(caught.value)
    assert everything(tmp_path) == {"refund-agent/agent.py": b"the user's own"}


@pytest.mark.parametrize("there", ["", "lock", ".gitignore"])
def test_an_empty_folder_becomes_a_store(root: Path, there: str) -> None:
    root.mkdir(parents=True)
    if there:
        (root / there).touch()
    StoreWriter(root).close()
    assert (root / "attempts.jsonl").exists()


def test_fresh_waits_for_the_lock(root: Path, attempt: Attempt) -> None:
    writer = StoreWriter(root)
    writer.add_attempt(attempt())
    with pytest.raises(StoreError, match="another run"):
        StoreWriter(root, fresh=True)
    writer.close()
    assert len(read_store(root).attempts) == 1


@pytest.mark.parametrize("damage", ["attempts.jsonl", "experiment.json"])
def test_fresh_mends_a_damaged_store(root: Path, attempt: Attempt, damage: str) -> None:
    fill(root, attempt())
    (root / damage).write_text("damaged\n")
    with pytest.raises(StoreError):
        StoreWriter(root)
    writer = StoreWriter(root, fresh=True)
    assert writer.kept_aside is not None
    assert (writer.kept_aside / damage).read_text() == "damaged\n"
    writer.close()


# ---------------------------------------------------------------- what cannot be written


@pytest.mark.parametrize("depth", [0, 1])
def test_a_file_in_place_of_the_folder(root: Path, depth: int) -> None:
    in_the_way = root if depth == 0 else root.parent
    in_the_way.parent.mkdir(parents=True, exist_ok=True)
    in_the_way.write_text("mine")
    with pytest.raises(StoreError, match="cannot be written") as caught:
        StoreWriter(root)
    assert str(root) in str(caught.value)
    assert "--metricbench-store" in str(caught.value)
    assert in_the_way.read_text() == "mine"


def test_a_folder_without_rights(
    unprivileged: tuple[Path, Callable[[], AbstractContextManager[None]]], attempt: Attempt
) -> None:
    folder, as_nobody = unprivileged
    fill(folder / "store", attempt())
    folder.chmod(0o555)
    for path in (folder / "store").rglob("*"):
        path.chmod(0o444)
    (folder / "store").chmod(0o555)
    with as_nobody():
        assert len(read_store(folder / "store").attempts) == 1
        for root in (folder / "store", folder / "new"):
            with pytest.raises(StoreError, match="cannot be written: Permission denied"):
                StoreWriter(root)


def test_a_journal_without_rights_leaves_the_lock_to_others(
    unprivileged: tuple[Path, Callable[[], AbstractContextManager[None]]], attempt: Attempt
) -> None:
    folder, as_nobody = unprivileged
    root = folder / "store"
    with as_nobody():
        for name in ("attempts.jsonl", "coverage.jsonl"):
            fill(root, attempt())
            (root / name).chmod(0o444)
            with pytest.raises(StoreError, match=f"^{root}: cannot be written: Permission denied; make room or"):
                StoreWriter(root)
            (root / name).chmod(0o644)
            StoreWriter(root).close()


def test_what_cannot_be_set_aside_is_told(root: Path, attempt: Attempt) -> None:
    writer = StoreWriter(root)
    writer.add_attempt(attempt())
    writer.layout.workspace("refunds", "baseline", "late", "a1b2c3").mkdir(parents=True)
    writer.layout.workspace("refunds", "baseline", "late", "in-flight").mkdir(parents=True)
    for name in ("stale", "interrupted"):
        (root / name).write_text("in the way")
    with pytest.raises(StoreError, match=f"^{root / 'stale'}: cannot be written: Not a directory"):
        writer.set_aside(attempt())
    with pytest.raises(StoreError, match=f"^{root / 'interrupted'}: cannot be written: Not a directory"):
        writer.set_aside_interrupted()
    for name in ("stale", "interrupted"):
        (root / name).unlink()
    assert writer.set_aside_interrupted() == [root / "interrupted" / "refunds" / "baseline" / "late" / "in-flight"]
    writer.set_aside(attempt())
    assert (root / "stale" / "refunds" / "baseline" / "late" / "a1b2c3").is_dir()
    writer.close()


@pytest.mark.parametrize(
    ("number", "of_the_disk"),
    [
        (errno.ENOSPC, True),
        (errno.EDQUOT, True),
        (errno.EROFS, True),
        (errno.EIO, True),
        (errno.EACCES, False),
        (errno.EFBIG, False),
    ],
)
def test_a_failing_disk_is_told_from_what_somebody_can_mend_in_the_store(
    root: Path, attempt: Attempt, coverage: Coverage, monkeypatch: pytest.MonkeyPatch, number: int, of_the_disk: bool
) -> None:
    writer = StoreWriter(root)

    def fail(journal: Journal, line: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Journal, "append", fail)
    said = f"cannot be written: {re.escape(os.strerror(number))}; make room or"
    with pytest.raises(StoreError, match=rf"attempts\.jsonl: {said}") as caught:
        writer.add_attempt(attempt())
    assert isinstance(caught.value, DiskError) == of_the_disk
    with pytest.raises(StoreError, match=rf"coverage\.jsonl: {said}") as caught:
        writer.add_coverage(coverage())
    assert isinstance(caught.value, DiskError) == of_the_disk
    assert (writer.contents.attempts, writer.contents.coverage) == ({}, {}), "what was not kept does not count"
    writer.close()


def test_an_error_without_a_number_is_told_in_its_own_words(
    root: Path, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = StoreWriter(root)

    def fail(journal: Journal, line: str) -> None:
        raise OSError("the cable is out")

    monkeypatch.setattr(Journal, "append", fail)
    with pytest.raises(StoreError, match="cannot be written: the cable is out; make room"):
        writer.add_attempt(attempt())
    writer.close()


def test_a_read_only_file_system(tiny_disk: Path, attempt: Attempt) -> None:
    fill(tiny_disk / "store", attempt())
    subprocess.run(["/usr/bin/env", "mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    for root in (tiny_disk / "store", tiny_disk / "new"):
        with pytest.raises(StoreError, match="cannot be written: Read-only file system"):
            StoreWriter(root)
    assert len(read_store(tiny_disk / "store").attempts) == 1


def test_a_disk_that_runs_full(tiny_disk: Path, attempt: Attempt, coverage: Coverage) -> None:
    root = tiny_disk / "store"
    writer = StoreWriter(root)
    written = 0
    with pytest.raises(StoreError, match=r"attempts\.jsonl: cannot be written: No space left on device"):  # noqa: PT012
        while True:
            writer.add_attempt(attempt(attempt=written + 1, fingerprint="x" * 3000))
            written += 1
    assert written > 3
    assert len(writer.contents.attempts) == written
    with pytest.raises(StoreError, match=r"summary\.json: cannot be written: No space left"):
        writer.write_summary("x" * 100_000, partial=False)
    assert not (root / "summary.json").exists()
    writer.close()
    contents = read_store(root)
    assert sorted(record.attempt for record in contents.attempts.values()) == list(range(1, written + 1))
    assert contents.warnings == []
    resumed = StoreWriter(root)
    resumed.add_attempt(attempt(attempt=written + 1))
    resumed.close()


# ---------------------------------------------------------------- killed


WRITING = """
import sys
from pathlib import Path
from pytest_metricbench.contracts import AttemptRecord
from pytest_metricbench.store.writing import StoreWriter
writer = StoreWriter(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    writer.add_attempt(AttemptRecord("c", "v", "t", number, f"trial{number}", "scored", {"reward": number}, None, None,
                                     "f" * (number % 400), "v", 1, "s", 0.0, {}, None))
    print(number, flush=True)
"""


@pytest.mark.parametrize("after", [1, 40, 400])
def test_what_was_written_outlives_a_killed_writer(root: Path, after: int) -> None:
    process = subprocess.Popen([sys.executable, "-B", "-c", WRITING, str(root)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    seen = 0
    while seen < after:
        seen = int(process.stdout.readline())
    process.kill()
    seen = max([seen, *(int(line) for line in process.stdout if line.endswith("\n"))])
    process.wait()
    process.stdout.close()
    writer = StoreWriter(root)
    numbers = [record.attempt for record in writer.contents.attempts.values()]
    writer.close()
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= seen


# ---------------------------------------------------------------- size


def test_reading_ten_thousand_records(root: Path, attempt: Attempt) -> None:
    fill(root, *(attempt(task=f"t{number % 100}", attempt=number) for number in range(1, 10_001)))
    assert len(read_store(root).attempts) == 10_000
