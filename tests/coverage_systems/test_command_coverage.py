"""The command coverage system: what is measured, what is null, and every way to fail."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_metricbench import processes
from pytest_metricbench.contracts import CoverageError, CoverageRequest, Goals, Score
from pytest_metricbench.coverage.command import CommandCoverage

EVIDENCE = {"late": {"trace.txt": b"lookup\n", "deep/er.txt": b"x"}, "early": {}}
Measure = Callable[..., Score]


@pytest.fixture
def measure(make: Callable[..., Any], request_for: Callable[..., CoverageRequest], workspace: Path) -> Measure:
    """Measures a request with a command that is given as a shell text."""

    def run(command: str, **keys: Any) -> Score:
        system = make(CommandCoverage, command=["/bin/sh", "-c", command], **({"timeout": 20} | keys))
        score: Score = system.measure(request_for(EVIDENCE, system.request_settings), workspace)
        return score

    return run


def answer(text: str) -> str:
    return f"cat > response.json <<'END'\n{text}\nEND"


ONE, HALF = answer('{"value": 1}'), answer('{"value": 0.5}')


def failure(measure: Measure, command: str, **keys: Any) -> str:
    with pytest.raises(CoverageError) as caught:
        measure(command, **keys)
    return str(caught.value)


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and waits to be reaped does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


# ---------------------------------------------------------------- measured


@pytest.mark.parametrize("value", [0, 1, 0.25, 1e-9])
def test_a_score(measure: Measure, value: float) -> None:
    assert measure(answer(json.dumps({"value": value}))) == Score(value)


def test_null_with_a_reason_is_a_result(measure: Measure) -> None:
    assert measure(answer('{"value": null, "reason": "nothing was judged"}')) == Score(None, "nothing was judged")


def test_goals_are_optional(measure: Measure) -> None:
    goals = """echo '{"universe": ["b", "a"], "by_task": {"late": ["a"], "early": []}}' > goals.json"""
    assert measure(f"{goals}\n{HALF}") == Score(0.5, None, Goals(("a", "b"), {"late": ("a",), "early": ()}))


def test_what_the_command_finds_in_its_folder(measure: Measure, workspace: Path) -> None:
    settings = {"scope": "tool", "nested": {"keep": [1, None]}}
    measure(f"pwd > where; cat evidence/late/trial1/trace.txt > seen; {ONE}", settings=settings)
    request = json.loads((workspace / "request.json").read_text())
    assert request["settings"] == settings
    assert request["case"] == {"id": "refunds", "description": "Answers refund requests."}
    assert request["tasks"] == ["late", "early"]
    assert [file["name"] for file in request["evidence"]["late"]] == ["trace.txt", "deep/er.txt"]
    assert request["evidence"]["early"] == []
    assert (workspace / "seen").read_text() == "lookup\n"
    assert (workspace / "where").read_text().strip() == str(workspace)


def test_output_is_kept_on_success_too(measure: Measure, workspace: Path) -> None:
    measure(f"echo out; echo err >&2; {ONE}")
    assert (workspace / "command.stdout").read_text() == "out\n"
    assert (workspace / "command.stderr").read_text() == "err\n"


def test_a_script_beside_the_yaml(make: Callable[..., Any], folder: Path, request_for: Any, workspace: Path) -> None:
    (folder / "house.py").write_text("import json; json.dump({'value': 0.5}, open('response.json', 'w'))\n")
    system = make(CommandCoverage, command=["{python}", "house.py"])
    assert system.measure(request_for(EVIDENCE), workspace) == Score(0.5)


def test_the_environment_is_clean(measure: Measure, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-x")
    monkeypatch.setenv("TOKEN", "secret")
    measure(f"env > seen; {ONE}", env={"TOKEN": None, "MODE": "test"})
    names = {line.partition("=")[0] for line in (workspace / "seen").read_text().splitlines()}
    assert {"TOKEN", "MODE"} <= names
    assert not [name for name in names if name.startswith("PYTEST")]


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("exit 3", "the command ended with exit status 3"),
        (f"{ONE}\nexit 1", "the command ended with exit status 1"),
        ("echo why >&2; exit 1", "the end of its stderr:\nwhy"),
        ("kill -KILL $$", "the command was killed by SIGKILL"),
        ("true", "the command's answer: response.json was not written"),
        ("touch response.json", "response.json is empty"),
        (answer('{"value": 0.'), "response.json is not JSON"),
        ("head -c 52428800 /dev/zero > response.json", "response.json has 52428800 bytes"),
        ("ln -s response.json response.json", "not a regular file"),
        ("ln -s /dev/zero response.json", "not a regular file"),
        ("ln -s /etc/hostname response.json", "not a regular file"),
        ("mkfifo response.json", "not a regular file"),
        ("mkdir response.json", "not a regular file"),
        (answer("[0.5]"), "response.json holds a list [0.5]"),
        (answer('{"value": "0.5"}'), 'value is the text "0.5"'),
        (answer('{"value": true}'), "value is the boolean true"),
        (answer('{"value": NaN}'), "value is nan"),
        (answer('{"value": -Infinity}'), "value is -inf"),
        (answer('{"value": 1.01}'), "value is 1.01"),
        (answer('{"value": null}'), "no reason is given"),
        (answer('{"value": null, "reason": ""}'), "no reason is given"),
        (answer('{"score": 0.5}'), "'score'"),
        (answer('{"value": 0.5, "extra": 1}'), "'extra'"),
        (answer('{"value": 0.5}') + "\necho '{' > goals.json", "goals.json is not JSON"),
        (answer('{"value": 0.5}') + "\nln -s nowhere goals.json", "goals.json cannot be read as a regular file"),
        (answer('{"value": 0.5}') + "\nmkfifo goals.json", "goals.json cannot be read as a regular file"),
        (answer('{"value": 0.5}') + "\necho null > goals.json", "goals are null"),
        (
            answer('{"value": 0.5}') + """\necho '{"universe": [], "by_task": {"late": ["x"]}}' > goals.json""",
            "the goal 'x', which the universe does not have",
        ),
    ],
)
def test_every_failure_is_an_error_in_words(measure: Measure, command: str, words: str) -> None:
    words = words.replace("cannot be read as a regular file", "cannot be read: not a regular file")
    assert words in failure(measure, command)


def test_a_time_out_with_a_stubborn_grandchild(
    measure: Measure, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.1)
    command = f"{ONE}\n(trap '' TERM; echo up >&2; while :; do sleep 1; done) & echo $! > pid; wait"
    message = failure(measure, command, timeout=0.9)
    assert message == "the command ran longer than 0.9 s and was stopped; the end of its stderr:\nup"
    pid = int((workspace / "pid").read_text())
    assert not alive(pid)


def test_endless_output(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "OUTPUT_LIMIT", 2 << 20)
    assert "printed more than 2 MiB" in failure(measure, "yes")


def test_an_executable_that_vanished(
    make: Callable[..., Any], folder: Path, request_for: Callable[..., CoverageRequest], workspace: Path
) -> None:
    executable = folder / "house"
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    system = make(CommandCoverage, command=[str(executable)])
    executable.unlink()
    with pytest.raises(CoverageError, match="house cannot be started"):
        system.measure(request_for(EVIDENCE), workspace)


def test_a_variable_that_is_not_set(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    assert "TOKEN" in failure(measure, "true", env={"TOKEN": None})


# ---------------------------------------------------------------- its keys


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"command": []},
        {"command": "house.py"},
        {"command": ["python3", "house.py"]},
        {"command": ["/bin/true"], "timeout": 0},
        {"command": ["/bin/true"], "settings": [1]},
        {"command": ["/bin/true"], "cwd": "/"},
    ],
)
def test_wrong_keys_are_refused(make: Callable[..., Any], keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make(CommandCoverage, **keys)


def test_it_may_run_beside_itself_and_is_isolated(make: Callable[..., Any]) -> None:
    assert CommandCoverage.concurrent
    assert CommandCoverage.isolated
    assert make(CommandCoverage, command=["/bin/true"]).request_settings == {}
