"""``docs/store.md``: its commands run, and its tables have the fields that are written."""

import dataclasses
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from pytest_metricbench.contracts import AttemptRecord, CoverageRecord
from tests.durability.durability_lab import Lab

PAGE = Path(__file__).parents[2] / "docs" / "store.md"
TEXT = PAGE.read_text(encoding="utf-8")
SHELL = re.findall(r"^```sh\n(.*?)^```", TEXT, re.S | re.M)
WITH_PANDAS, WITH_OPEN_STORE = re.findall(r"^```python\n(.*?)^```", TEXT, re.S | re.M)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = Lab(tmp_path_factory.mktemp("page"))
    lab.make()
    assert lab.run().status == 0
    return lab.store


def fields_after(heading: str) -> set[str]:
    """The names in the first column of the table after a sentence."""
    table = TEXT.partition(heading)[2].partition("\n\n")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize(
    ("heading", "record"),
    [("A line of `attempts.jsonl`", AttemptRecord), ("A line of `coverage.jsonl`", CoverageRecord)],
)
def test_every_field_is_explained(heading: str, record: type) -> None:
    assert fields_after(heading) == {field.name for field in dataclasses.fields(record)} | {"check"}


def test_the_checksum_is_what_the_page_says(store: Path) -> None:
    lines = (store / "attempts.jsonl").read_bytes().splitlines()
    assert len(lines) == 24
    for line in lines:
        before, _, after = line.rpartition(b',"check":')
        assert after == b'"%08x"}' % zlib.crc32(before)


def test_every_place_is_one_of_a_store(store: Path) -> None:
    listed = TEXT.partition("```\n")[2].partition("```")[0]
    names = {line.split()[0].split("/")[0] for line in listed.splitlines()}
    assert {path.name for path in store.iterdir()} <= names
    assert {"stale", "interrupted"} <= names


@pytest.mark.parametrize("number", range(len(SHELL)))
def test_commands(store: Path, number: int) -> None:
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    ended = subprocess.run(["/bin/sh", "-ec", SHELL[number]], cwd=store, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    expected = [
        "baseline\tscored\t8\nm1\tscored\t8\nm2\tdied\t2\nm2\tscored\t6\n",
        "t1\t1\nt2\t1\nt3\t1\nt4\t1\n",
        None,
        "share\tpool\t0.5\nshare\ts1\t0.5\nshare\ts2\t0.5\nshare\ts3\t0.5\n",
    ]
    assert len(SHELL) == len(expected)
    if expected[number] is not None:
        assert ended.stdout == expected[number]
        return
    rows = [line.split("\t") for line in ended.stdout.splitlines()]
    assert [row[:2] for row in rows] == [["agent", "AgentFailed"]] * 2
    assert all((store / row[2]).is_dir() for row in rows)


def test_pandas(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(store)
    exec(compile(WITH_PANDAS, str(PAGE), "exec"), {})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["variant", "baseline", "m1", "m2"] in lines
    assert ["t2", "1.0", "0.0", "1.0"] in lines
    assert ["t3", "1.0", "1.0", "NaN"] in lines


def test_open_store(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store)
    exec(compile(WITH_OPEN_STORE, str(PAGE), "exec"), {})
    *died, last = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in died[::2]] == [["m2", "t3"]] * 2
    assert all(line.startswith("its files: ") and line.endswith(" as they were") for line in died[1::2])
    assert re.fullmatch(r"\d+\.\d s of agents and verifiers", last)
