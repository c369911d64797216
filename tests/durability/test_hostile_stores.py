"""A store that somebody else made is only data: whatever it says, nothing outside it is read, written or run."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench import analyze, load_experiment, open_store
from pytest_metricbench.digests import digest_file
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.records import seal
from tests.durability.durability_lab import AGENT, Lab, no_fault

DEFINITION: dict[str, Any] = {
    "case": {"tasks": [{"id": "t1"}, {"id": "t2"}], "mutants": [{"id": "m1"}], "subsets": []},
    "attempts": 1,
}
SECRET = "the content of a file outside"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    lab = Lab(tmp_path_factory.mktemp("measured"))
    lab.make(**json.loads(json.dumps(DEFINITION)))
    assert lab.run().status == 0
    return lab


@pytest.fixture
def lab(measured: Lab, tmp_path: Path, pytester: pytest.Pytester) -> Lab:
    shutil.copytree(measured.path, tmp_path / "lab")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text(SECRET)
    return Lab(tmp_path / "lab", pytester)


@pytest.fixture
def outside(lab: Lab) -> Path:
    return lab.path.parent / "outside"


def untouched(outside: Path) -> None:
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"secret.txt": SECRET}


def leaked(lab: Lab) -> list[str]:
    """Files of the experiment's folder that hold what stands in the file outside."""
    paths = [path for path in lab.path.rglob("*") if path.is_file() and not path.is_symlink()]
    return [str(path) for path in paths if SECRET.encode() in path.read_bytes()]


def plant(lab: Lab, name: str, changed: dict[str, Any], line: int = 0) -> None:
    """Change fields of a line of a journal, with a checksum that is right."""
    path = lab.store / name
    lines = path.read_text().splitlines()
    record = {**json.loads(lines[line]), **changed}
    record.pop("check")
    lines[line] = seal(json.dumps(record, separators=(",", ":")))
    path.write_text("".join(text + "\n" for text in lines))


TEXTS = ["..", "../../../outside", "/etc", "a/b", "a\\b", "", ".", "\0", "x" * 5000, "\n", "a\r", "é", "\x1b[2J", "-r"]
OTHERS: list[Any] = [None, 1, -1, 1.5, True, [], {}, ["../x"], {"a": {"b": {}}}, 10**400]
FIELDS = {
    "attempts.jsonl": ["case", "variant", "task", "trial_id", "folder"],
    "coverage.jsonl": ["case", "system", "subset"],
}
REST = {
    "attempts.jsonl": (
        *("attempt", "outcome", "scores", "error", "time_limit", "fingerprint", "verifier", "seed", "started"),
        *("duration", "files", "supersedes"),
    ),
    "coverage.jsonl": (
        *("outcome", "value", "reason", "goals", "error", "request_digest", "settings_digest", "started", "duration"),
        "files",
    ),
}


def harmless(lab: Lab, outside: Path) -> None:
    """The store is refused by name of its file and line, or analysed without reaching outside."""
    experiment = load_experiment(lab.path / "experiment.yml")
    before = set(lab.path.rglob("*"))
    said = ".jsonl:1: "
    try:
        analyze(experiment, open_store(lab.store))
    except StoreError as error:
        said = str(error)
    assert ".jsonl:1: " in said
    assert len(said) < 1500
    assert set(lab.path.rglob("*")) == before
    untouched(outside)
    assert not leaked(lab)


@pytest.mark.parametrize(("journal", "field"), [(name, field) for name, fields in FIELDS.items() for field in fields])
def test_names_that_lead_elsewhere(lab: Lab, outside: Path, journal: str, field: str) -> None:
    original = (lab.store / journal).read_bytes()
    for value in [*TEXTS, *OTHERS]:
        if field == "folder" and value is None:
            continue
        plant(lab, journal, {field: value})
        with pytest.raises(StoreError, match=rf"{journal}:1: {field}"):
            open_store(lab.store)
        harmless(lab, outside)
        (lab.store / journal).write_bytes(original)


@pytest.mark.parametrize(("journal", "field"), [(name, field) for name, fields in REST.items() for field in fields])
def test_every_other_field(lab: Lab, outside: Path, journal: str, field: str) -> None:
    original = (lab.store / journal).read_bytes()
    values: list[Any] = [*TEXTS, *OTHERS, float("nan"), float("inf"), -1e308, 10**18]
    if field == "files":
        values += [{text: "sha256:0"} for text in TEXTS] + [{"../../../../../../../outside/secret.txt": "sha256:0"}]
    if field == "scores":
        values += [{"reward": value} for value in [*TEXTS, *OTHERS, {"number": "NaN"}, {"number": "4"}, 10**308]]
        values += [{"x" * 10_000: 1}, {str(number): number for number in range(2000)}]
    if field == "goals":
        values += [
            {"universe": ["a"], "by_task": {"unknown": ["a"], "../t1": ["a"]}},
            {"universe": ["a"], "by_task": {"t1": ["b"]}},
            {"universe": [], "by_task": {}},
            {"universe": ["a"] * 5, "by_task": {"t1": ["a"] * 5, "t2": []}},
        ]
    for value in values:
        plant(lab, journal, {field: value})
        harmless(lab, outside)
        (lab.store / journal).write_bytes(original)


def test_deep_nesting_and_a_long_line(lab: Lab) -> None:
    path = lab.store / "attempts.jsonl"
    original = path.read_bytes()
    nested = '{"a":' * 20_000 + "1" + "}" * 20_000
    for text in (nested, "[" * 100_000 + "]" * 100_000, '{"case":"' + "x" * (8 << 20) + '"}'):
        path.write_bytes(seal(text).encode() + b"\n" + original)
        with pytest.raises(StoreError, match=r"attempts\.jsonl:1: ") as error:
            open_store(lab.store)
        assert len(str(error.value)) < 1500
    path.write_bytes(original)


# ---------------------------------------------------------------- links in a store


PLACES = ["attempts", "attempts/c", "attempts/c/m1", "attempts/c/m1/t1", "coverage", "coverage/c", "coverage/c/share"]


@pytest.mark.parametrize("place", [*PLACES, "stale", "interrupted"])
def test_a_folder_of_the_store_that_is_a_link(lab: Lab, outside: Path, place: str) -> None:
    path = lab.store / place
    shutil.rmtree(path, ignore_errors=True)
    path.symlink_to(outside)
    with pytest.raises(StoreError, match="this is a link") as error:
        open_store(lab.store)
    assert str(path) in str(error.value)
    ended = lab.run_here()
    assert ended.status == 4, ended
    no_fault(ended.out)
    assert str(path) in ended.out.replace("\n", "")
    untouched(outside)
    assert lab.run_here("--metricbench-fresh").status == 0
    untouched(outside)


def test_a_workspace_that_is_a_link(lab: Lab, outside: Path) -> None:
    """Its files have the digests that the record says, and are somebody else's all the same."""
    record = next(record for record in lab.lines() if record["variant"] == "baseline")
    line = lab.lines().index(record)
    folder = lab.store / "attempts/c/baseline" / record["task"] / record["trial_id"]
    shutil.rmtree(folder)
    folder.symlink_to(outside)
    plant(lab, "attempts.jsonl", {"files": {"secret.txt": digest_file(outside / "secret.txt")}}, line)
    lab.forget()
    ended = lab.run_here()
    assert ended.status == 0, ended
    assert lab.noted().total() == 1
    untouched(outside)
    assert not leaked(lab)


@pytest.mark.parametrize("name", ["secret.txt", "deep/secret.txt"])
def test_evidence_that_is_a_link(lab: Lab, outside: Path, name: str) -> None:
    record = next(record for record in lab.lines() if record["variant"] == "baseline")
    line = lab.lines().index(record)
    folder = lab.store / "attempts/c/baseline" / record["task"] / record["trial_id"]
    first = name.split("/")[0]
    (folder / first).symlink_to(outside / "secret.txt" if first == name else outside)
    digest = digest_file(outside / "secret.txt")
    plant(lab, "attempts.jsonl", {"files": {**record["files"], name: digest}}, line)
    lab.forget()
    ended = lab.run_here()
    assert ended.status == 0, ended
    assert lab.noted().total() == 1
    untouched(outside)
    assert not leaked(lab)


def test_a_link_in_a_store_that_is_merged(lab: Lab, outside: Path, tmp_path: Path) -> None:
    source = lab.copy("source")
    shutil.rmtree(source.store / "attempts/c/m1")
    (source.store / "attempts/c/m1").symlink_to(outside)
    shutil.rmtree(lab.path / ".metricbench")
    ended = lab.run_here("--metricbench-merge", str(source.store))
    assert ended.status == 4, ended
    assert "this is a link" in ended.out
    untouched(outside)
    assert not leaked(lab)


# ---------------------------------------------------------------- what agents leave


HOSTILE = (
    AGENT
    + """
ln -s "$here/../outside/secret.txt" link.txt
ln -s "$here/../outside" folder
ln -s . itself
ln "$here/../outside/secret.txt" hard.txt 2>/dev/null; rm -f hard.txt
mkfifo pipe
mknod zero c 1 5 2>/dev/null
echo small > name; echo large > NAME
mkdir deep; chmod 700 deep; echo x > 'deep/a file with spaces'
"""
)


@pytest.mark.slow
def test_a_workspace_full_of_traps(lab: Lab, outside: Path) -> None:
    shutil.rmtree(lab.path / ".metricbench")
    lab.write("agent.sh", HOSTILE)
    lab.write("cover.sh", "cat evidence/*/*/* > all.txt; echo '{\"value\": 0.5}' > response.json\n")
    ended = lab.run("-n0")
    assert ended.status == 0, ended
    no_fault(ended.out)
    for record in lab.lines():
        assert {"name", "NAME", "deep/a file with spaces", "trace.txt"} <= set(record["files"])
        assert not {"link.txt", "folder/secret.txt", "pipe", "zero", "itself"} & set(record["files"])
    assert not leaked(lab)
    untouched(outside)
    lab.write("verify.sh", "true\n" + (lab.path / "verify.sh").read_text())  # the copies of the workspaces, too
    ended = lab.run("-n0")
    assert ended.status == 0, ended
    assert not leaked(lab)
    untouched(outside)


# ---------------------------------------------------------------- values of the environment


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_values_of_the_environment_reach_no_file(lab: Lab, workers: int, tmp_path: Path) -> None:
    """A value that is taken from the environment, one that happens to be there, and one of a coverage system."""
    shutil.rmtree(lab.path / ".metricbench")
    environment = {"TOKEN": "s3cr3t-t0ken", "OTHER_TOKEN": "an0ther-one", "COVER_TOKEN": "c0ver-t0ken"}
    cover = {"id": "share", "kind": "command", "command": ["/bin/sh", "cover.sh"], "env": {"COVER_TOKEN": None}}
    lab.define(**{**DEFINITION, "runner": {"env": {"TOKEN": None}}, "coverage": [cover]})
    lab.write("agent.sh", AGENT + '[ "$TOKEN" = s3cr3t-t0ken ] || exit 9\n[ -z "$OTHER_TOKEN" ] || exit 9\n')
    lab.write("cover.sh", '[ -n "$COVER_TOKEN" ] || exit 9\necho \'{"value": 0.5}\' > response.json\n')
    lab.write("verify.sh", (lab.path / "verify.sh").read_text() + '[ -n "$TOKEN" ] || exit 9\n')
    ended = lab.run(f"-n{workers}", "--junit-xml=junit.xml", env=environment)
    assert ended.status == 0, ended
    assert {record["outcome"] for record in lab.lines()} == {"scored"}
    files = [path for path in lab.path.rglob("*") if path.is_file() and path.name not in ("agent.sh", "cover.sh")]
    assert len(files) > 20
    for path in files:
        content = path.read_bytes()
        assert not [name for name, value in environment.items() if value.encode() in content], path
    assert not any(value in ended.out for value in environment.values())
    os.environ.pop("TOKEN", None)
    ended = lab.run(f"-n{workers}", "--metricbench-fresh")
    assert ended.status == 1, ended
    assert "TOKEN" in ended.out
