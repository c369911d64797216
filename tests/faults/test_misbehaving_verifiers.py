"""A verifier that answers in any wrong way leaves its attempt unmeasured, with words that say what was wrong."""

import math

import pytest

from tests.faults.session_lab import Lab, no_fault, words

AGENT = """
import json
from pathlib import Path

Path("output.txt").write_text("what the agent did")
Path("response.json").write_text('{"scores": {"reward": 1}}')  # not its to write: there is a verifier
"""
VERIFIER = r"""
import json, os, signal, sys, time
from pathlib import Path

response = Path("response.json")
task = json.loads(Path("request.json").read_text())["task"]["id"]

TEXTS = {
    "empty": "",
    "blank": " \n ",
    "huge": '{"scores": {"reward": 1}, "padding": "' + "x" * (2 << 20) + '"}',
    "no-json": "reward: 1",
    "torn": '{"scores": {"reward": 1',
    "list": "[1]",
    "number": "1",
    "null": "null",
    "no-scores": '{"reward": 1}',
    "unknown-key": '{"scores": {"reward": 1}, "note": "well done"}',
    "scores-list": '{"scores": [1]}',
    "no-score": '{"scores": {}}',
    "number-as-text": '{"scores": {"reward": "1.0"}}',
    "nested": '{"scores": {"reward": {"value": 1}}}',
    "primary-missing": '{"scores": {"tokens": 3, "tone": "dry"}}',
    "tokens-as-text": '{"scores": {"reward": 1, "tokens": "many"}}',
    "digits": '{"scores": {"reward": ' + "9" * 5000 + "}}",
    "deep": '{"scores": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "long-name": '{"scores": {"reward": 1, "' + "n" * 300 + '": 1}}',
    "nan": '{"scores": {"reward": NaN}}',
    "infinity": '{"scores": {"reward": Infinity}}',
    "null-score": '{"scores": {"reward": null}}',
    "true": '{"scores": {"reward": true}}',
    "false": '{"scores": {"reward": false}}',
    "surrogate-label": '{"scores": {"reward": 1, "tone": "\\udcff"}}',
    "good": '{"scores": {"reward": 1.0}}',
}
if task in TEXTS:
    response.write_text(TEXTS[task])
elif task == "binary":
    response.write_bytes(b"\xff\xfe\x00\x80")
elif task == "link":
    Path("../../../../../../outside.json").resolve().write_text('{"scores": {"reward": 1}}')
    response.symlink_to(Path("../../../../../../outside.json").resolve())
elif task == "self-link":
    response.symlink_to(response)
elif task == "zero":
    response.symlink_to("/dev/zero")
elif task == "pipe":
    os.mkfifo(response)
elif task == "folder":
    response.mkdir()
elif task == "exit":
    response.write_text('{"scores": {"reward": 1}}')
    sys.exit("the judge is out")
elif task == "killed":
    response.write_text('{"scores": {"reward": 1}}')
    os.kill(os.getpid(), signal.SIGKILL)
elif task == "slow":
    response.write_text('{"scores": {"reward": 1}}')
    time.sleep(60)
"""
UNMEASURED = {
    "nothing": ("ContractError", "contract", "response.json was not written"),
    "empty": ("ContractError", "contract", "response.json is empty"),
    "blank": ("ContractError", "contract", "response.json is empty"),
    "huge": ("ContractError", "contract", "bytes; at most 1048576 are read"),
    "no-json": ("ContractError", "contract", "response.json is not JSON"),
    "torn": ("ContractError", "contract", "response.json is not JSON"),
    "list": ("ContractError", "contract", "a list [1]"),
    "number": ("ContractError", "contract", "is expected"),
    "null": ("ContractError", "contract", "null"),
    "no-scores": ("ContractError", "contract", "is expected"),
    "unknown-key": ("ContractError", "contract", "'note'"),
    "scores-list": ("ContractError", "contract", "the scores are a list [1]"),
    "no-score": ("ContractError", "contract", "the mapping of scores is empty"),
    "number-as-text": ("ContractError", "contract", "'reward' is the text '1.0'; a number or a boolean is expected"),
    "nested": ("ContractError", "contract", "'reward' is a mapping"),
    "primary-missing": ("ContractError", "contract", "the primary score 'reward' is missing"),
    "digits": ("ContractError", "contract", ""),
    "deep": ("ContractError", "contract", "response.json is not JSON"),
    "long-name": ("ContractError", "contract", "no name of a score"),
    "binary": ("ContractError", "contract", "response.json is not JSON"),
    "link": ("ContractError", "contract", "regular file"),
    "self-link": ("ContractError", "contract", "regular file"),
    "zero": ("ContractError", "contract", "regular file"),
    "pipe": ("ContractError", "contract", "regular file"),
    "folder": ("ContractError", "contract", "regular file"),
    "exit": ("VerifierFailed", "verifier", "the judge is out"),
    "killed": ("VerifierFailed", "verifier", "SIGKILL"),
    "slow": ("TimeOut", "verifier", "ran longer than 2 s"),
}
WORDS = {
    "nan": "MISSED",
    "infinity": "PASSED",
    "null-score": "DIED",
    "true": "PASSED",
    "false": "MISSED",
    "surrogate-label": "PASSED",
    "good": "PASSED",
}


@pytest.mark.slow
def test_every_wrong_answer_and_some_right_ones(lab: Lab) -> None:
    lab.write("verify.py", VERIFIER)
    lab.make(
        AGENT,
        command=True,
        runner={"verifier": ["{python}", "verify.py"], "timeout": 2},
        tasks=[*UNMEASURED, *WORDS],
        mutants=[],
        score={"primary": "reward"},
    )
    result = lab.run("experiment.yml", "-v")
    output = result.stdout.str()
    assert result.ret == 1
    no_fault(output)
    shown = {slot.removeprefix("baseline::").removesuffix("[1]"): word for slot, word in words(output).items()}
    assert shown == {**dict.fromkeys(UNMEASURED, "FAILED"), **WORDS}

    kept = {record["task"]: record for record in lab.attempts().values()}
    for task, (kind, phase, said) in UNMEASURED.items():
        record = kept[task]
        assert record["outcome"] == "unmeasured", task
        assert (record["error"]["type"], record["error"]["phase"]) == (kind, phase), task
        assert said in record["error"]["message"], task
        assert record["scores"] == ({"tokens": 3, "tone": "dry"} if task == "primary-missing" else {}), task
        assert f"unmeasured ({phase}): {kind}" in output
        assert (lab.workspace(record) / "output.txt").read_text() == "what the agent did"  # nothing is lost
    assert kept["nan"]["scores"] == {"reward": {"number": "NaN"}}
    assert isinstance(kept["surrogate-label"]["scores"]["tone"], str)

    counts = {"declared": 35, "passed": 4, "missed": 2, "died": 1, "unmeasured": 28}
    assert lab.counts() == counts
    listed = lab.summary()["cases"]["c"]["variants"]["baseline"]["attempts"]
    assert listed["nan"]["reward"][0]["value"] == "NaN"
    assert listed["nan"]["reward"][0]["value_type"] == "number"
    assert listed["null-score"]["reward"][0]["value_type"] == "missing"
    assert all(not listed[task].get("reward") for task in UNMEASURED)
    assert not math.isnan(lab.summary()["cases"]["c"]["variants"]["baseline"]["pass_at_k"]["reward"]["1"]["value"])


def test_answers_of_another_kind_than_declared(lab: Lab) -> None:
    lab.write("verify.py", VERIFIER)
    lab.make(
        AGENT,
        command=True,
        runner={"verifier": ["{python}", "verify.py"]},
        tasks=["tokens-as-text", "true", "number-as-text", "surrogate-label", "null-score", "good"],
        mutants=[],
        score={"outputs": {"reward": "continuous", "tokens": "measurement", "tone": "label"}},
    )
    result = lab.run("experiment.yml")
    assert result.ret == 1
    assert lab.counts() == {"declared": 6, "passed": 2, "died": 1, "unmeasured": 3}
    said = {record["task"]: (record["error"] or {}).get("message") for record in lab.attempts().values()}
    assert said["tokens-as-text"] == "score 'tokens' is 'many'; it is declared as measurement, which is a number"
    assert said["true"] == "score 'reward' is True; it is declared as continuous, which is a number"
    assert said["number-as-text"] == "score 'reward' is '1.0'; it is declared as continuous, which is a number"


def test_a_second_run_asks_again_only_where_nothing_is_known(lab: Lab) -> None:
    lab.write("verify.py", VERIFIER)
    lab.make(AGENT, command=True, runner={"verifier": ["{python}", "verify.py"]}, tasks=["torn", "good"], mutants=[])
    lab.run("experiment.yml")
    first = lab.attempts()
    result = lab.run("experiment.yml", "-v")
    assert words(result.stdout.str()) == {"baseline::torn[1]": "FAILED", "baseline::good[1]": "REUSED"}
    second = lab.attempts()
    assert second["baseline::good[1]"] == first["baseline::good[1]"]
    assert second["baseline::torn[1]"]["supersedes"] == first["baseline::torn[1]"]["trial_id"]
    left = lab.store.glob(f"**/{first['baseline::torn[1]']['trial_id']}*/output.txt")
    assert [path.read_text() for path in left][:1] == ["what the agent did"]  # the first is still there
