"""Every file of a store, damaged in every way: an error that names it, or something is missing and said so.

Never a figure that is another one without a word.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_metricbench import load_experiment, open_store
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.stages import gather
from pytest_metricbench.store.journal import StoreError
from tests.durability.durability_lab import Lab, no_fault

DEFINITION = {"case": {"tasks": [{"id": "t1"}, {"id": "t2"}], "mutants": [{"id": "m1"}], "subsets": []}, "attempts": 1}
JOURNALS = ("attempts.jsonl", "coverage.jsonl")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A small store that is complete. Each attempt is there twice: the first time its verifier was another one."""
    lab = Lab(tmp_path_factory.mktemp("measured"))
    lab.make(**json.loads(json.dumps(DEFINITION)))
    right = (lab.path / "verify.sh").read_text()
    lab.write("verify.sh", right.replace("reward", "wrong"))
    assert lab.run().status == 0
    lab.write("verify.sh", right)
    assert lab.run().status == 0
    assert lab.count() == 8
    assert lab.count("coverage.jsonl") == 1
    return lab


@pytest.fixture
def lab(measured: Lab, tmp_path: Path, pytester: pytest.Pytester) -> Lab:
    shutil.copytree(measured.path, tmp_path / "lab")
    return Lab(tmp_path / "lab", pytester)


@pytest.fixture
def experiment(lab: Lab) -> Experiment:
    return load_experiment(lab.path / "experiment.yml")


def known(lab: Lab, experiment: Experiment) -> tuple[Results, list[str]]:
    contents = open_store(lab.store)
    return gather(experiment, contents), contents.warnings


def judged(lab: Lab, experiment: Experiment, whole: Results, path: Path) -> str:
    """What a damage led to: ``error``, ``missing`` or ``none``; fails where a figure became another one."""
    try:
        found, _ = known(lab, experiment)
    except StoreError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert f"{path}:" in said
        return "error"
    assert found.attempts.items() <= whole.attempts.items()
    assert found.coverage.items() <= whole.coverage.items()
    gone = whole.attempts.keys() - found.attempts.keys()
    assert gone == found.outside - whole.outside
    unanswered = whole.coverage.keys() - found.coverage.keys()
    assert unanswered <= found.coverage_absent.keys()
    return "missing" if gone or unanswered else "none"


def each(path: Path, contents: Iterator[bytes], judge: Callable[[], str]) -> list[str]:
    """What each of these contents of a file led to; the file is as it was afterwards."""
    original = path.read_bytes()
    found = []
    try:
        for content in contents:
            assert content != original
            path.write_bytes(content)
            found.append(judge())
    finally:
        path.write_bytes(original)
    return found


def flipped(
    content: bytes, start: int = 0, end: int | None = None, step: int = 1, masks: tuple[int, ...] = (1, 0x20)
) -> Iterator[bytes]:
    """The content with one byte changed, for each byte, in two ways: a digit stays a digit, a letter a letter."""
    for index in range(start, len(content) if end is None else end, step):
        for mask in masks:
            yield content[:index] + bytes([content[index] ^ mask]) + content[index + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("name", JOURNALS)
def test_a_flipped_byte_of_a_line_is_always_found(lab: Lab, experiment: Experiment, name: str) -> None:
    path = lab.store / name
    whole, warnings = known(lab, experiment)
    assert not warnings
    content = path.read_bytes()
    start = content.rstrip().rfind(b"\n") + 1
    outcomes = each(path, flipped(content, start, len(content) - 1), lambda: judged(lab, experiment, whole, path))
    assert set(outcomes) == {"error"}
    last = each(path, flipped(content, len(content) - 1), lambda: judged(lab, experiment, whole, path))
    assert set(last) == {"missing"}
    if name == "attempts.jsonl":
        end = content.find(b"\n") + 1
        outcomes = each(path, flipped(content, 0, end, masks=(1,)), lambda: judged(lab, experiment, whole, path))
        assert set(outcomes) == {"error"}


@pytest.mark.slow
@pytest.mark.parametrize("name", JOURNALS)
def test_a_journal_that_is_cut_off_at_every_byte_of_its_last_record(
    lab: Lab, experiment: Experiment, name: str
) -> None:
    path = lab.store / name
    whole, _ = known(lab, experiment)
    content = path.read_bytes()
    start = content.rstrip().rfind(b"\n") + 1
    cuts = (content[:length] for length in range(start, len(content)))
    assert set(each(path, cuts, lambda: judged(lab, experiment, whole, path))) == {"missing"}
    path.write_bytes(content[: start + 40])
    assert any("torn" in warning and str(path) in warning for warning in known(lab, experiment)[1])
    ended = lab.run_here()
    assert ended.status == 0, ended
    assert "torn" in ended.out
    assert lab.summary()["complete"] is True


def test_a_flipped_byte_of_what_was_run(lab: Lab, experiment: Experiment) -> None:
    path = lab.store / "experiment.json"
    whole, _ = known(lab, experiment)
    outcomes = each(path, flipped(path.read_bytes(), step=5), lambda: judged(lab, experiment, whole, path))
    assert set(outcomes) <= {"error", "none"}
    assert "error" in outcomes


def test_what_was_run_cut_off_anywhere(lab: Lab, experiment: Experiment) -> None:
    path = lab.store / "experiment.json"
    whole, _ = known(lab, experiment)
    content = path.read_bytes()
    cuts = (content[:length] for length in range(0, len(content.rstrip()), 7))
    assert set(each(path, cuts, lambda: judged(lab, experiment, whole, path))) == {"error"}


@pytest.mark.parametrize("name", ["receipt.json", "response.json", "request.json", "seen.txt"])
def test_a_flipped_byte_of_what_a_request_left(lab: Lab, experiment: Experiment, name: str) -> None:
    path = lab.store / "coverage/c/share/pool" / name
    whole, _ = known(lab, experiment)
    content = path.read_bytes()
    outcomes = each(path, flipped(content, step=3), lambda: judged(lab, experiment, whole, path))
    cuts = (content[:length] for length in range(0, len(content) - 1, 5))
    outcomes += each(path, cuts, lambda: judged(lab, experiment, whole, path))
    if name == "receipt.json":  # white space between its words says nothing
        assert set(outcomes) <= {"missing", "none"}
        assert outcomes.count("missing") > len(outcomes) // 2
    else:
        assert set(outcomes) == {"missing"}


@pytest.mark.parametrize("name", ["trace.txt", "response.json", "request.json", "answer.txt"])
def test_a_flipped_byte_of_what_an_attempt_left(lab: Lab, experiment: Experiment, name: str) -> None:
    path = next(lab.store.glob(f"attempts/c/baseline/t1/*/{name}"))
    whole, _ = known(lab, experiment)
    outcomes = each(path, flipped(path.read_bytes(), step=3), lambda: judged(lab, experiment, whole, path))
    assert set(outcomes) == {"missing"}


def test_a_damaged_workspace_runs_again_and_that_is_said(lab: Lab) -> None:
    lab.forget()
    path = next(lab.store.glob("attempts/c/baseline/t1/*/trace.txt"))
    path.write_text("other")
    ended = lab.run_here()
    assert ended.status == 0, ended
    assert lab.noted().total() == 1
    assert "files that it had left were missing or had changed" in " ".join(ended.out.split())
    assert "c::baseline::t1[1]" in ended.out
    assert next((lab.store / "stale").rglob("trace.txt"))
    lab.forget()
    ended = lab.run_here()
    assert lab.noted().total() == 0
    assert "had changed" not in ended.out


# ---------------------------------------------------------------- emptied, gone, a folder in its place


def files_of(store: Path) -> dict[str, Path]:
    attempt = next(store.glob("attempts/c/baseline/t1/*/trace.txt"))
    receipt = "coverage/c/share/pool/receipt.json"
    names = ("experiment.json", "attempts.jsonl", "coverage.jsonl", "summary.json", receipt)
    return {**{Path(name).name: store / name for name in names}, "trace.txt": attempt}


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def missing(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    other = path.with_name("somewhere-else")
    other.write_bytes(content)
    path.symlink_to(other)


SAID: dict[tuple[str, Callable[[Path], None]], tuple[int, str | None]] = {
    ("experiment.json", emptied): (4, "experiment.json: cannot be read"),
    ("experiment.json", missing): (0, None),
    ("experiment.json", folder): (4, "experiment.json: cannot be read"),
    ("experiment.json", link): (4, "experiment.json: cannot be read"),
    ("attempts.jsonl", emptied): (0, "all of them run again"),
    ("attempts.jsonl", missing): (0, "all of them run again"),
    ("attempts.jsonl", folder): (4, "attempts.jsonl: cannot be read"),
    ("attempts.jsonl", link): (4, "attempts.jsonl: cannot be read"),
    ("coverage.jsonl", emptied): (0, "all of them are measured again"),
    ("coverage.jsonl", missing): (0, "all of them are measured again"),
    ("coverage.jsonl", folder): (4, "coverage.jsonl: cannot be read"),
    ("coverage.jsonl", link): (4, "coverage.jsonl: cannot be read"),
    ("summary.json", emptied): (0, None),
    ("summary.json", missing): (0, None),
    ("summary.json", folder): (3, "summary.json: cannot be written"),
    ("summary.json", link): (0, None),
    ("receipt.json", emptied): (0, "measured again, since files that it had left"),
    ("receipt.json", missing): (0, "measured again, since files that it had left"),
    ("receipt.json", folder): (0, "measured again, since files that it had left"),
    ("receipt.json", link): (0, "measured again, since files that it had left"),
    ("trace.txt", emptied): (0, "were missing or had changed"),
    ("trace.txt", missing): (0, "were missing or had changed"),
    ("trace.txt", folder): (0, "were missing or had changed"),
    ("trace.txt", link): (0, "were missing or had changed"),
}


@pytest.mark.parametrize(("name", "damage"), SAID)
def test_a_file_that_is_something_else(lab: Lab, name: str, damage: Callable[[Path], None]) -> None:
    expected = lab.answer()
    damage(files_of(lab.store)[name])
    ended = lab.run_here()
    status, said = SAID[name, damage]
    assert ended.status == status, ended
    no_fault(ended.out)
    assert said is None or said in " ".join(ended.out.split()) or said in ended.out.replace("\n", "")
    if status == 0:
        assert lab.answer() == expected
        again = lab.run_here()
        assert again.status == 0, again
        assert lab.answer() == expected
        assert said is None or said not in " ".join(again.out.split())


@pytest.mark.parametrize("name", ["summary.partial.json"])
def test_a_folder_in_the_place_of_the_partial_summary(lab: Lab, name: str) -> None:
    (lab.store / name).mkdir()
    ended = lab.run_here()
    assert ended.status == 3, ended
    no_fault(ended.out)
    assert f"{name}: cannot be written" in ended.out.replace("\n", "")


@pytest.mark.parametrize("name", ["attempts", "stale", "interrupted", "coverage"])
def test_a_file_in_the_place_of_a_folder(lab: Lab, name: str) -> None:
    shutil.rmtree(lab.store / name, ignore_errors=True)
    (lab.store / name).write_text("a file")
    (lab.path / "agent.sh").write_text((lab.path / "agent.sh").read_text() + "true\n")
    ended = lab.run_here()
    assert ended.status in ((0, 1) if name in ("attempts", "interrupted") else (3,)), ended
    assert "INTERNALERROR" not in ended.out
    if ended.status:
        assert str(lab.store / name) in ended.out.replace("\n", "")
