"""What becomes of an attempt that runs as a job, outcome by outcome, with real jobs on a server of our own."""

import json
from pathlib import Path

import pytest

from tests.helix.helix_lab import SCORED, Ask, Make, Perform, error_of, message_of
from tests.helix.helix_server import HelixServer

SCORE = """import json, pathlib
said = pathlib.Path("said.txt").read_text()
request = json.loads(pathlib.Path("request.json").read_text())
scores = {"reward": float(said == "hello"), "n": request["task"]["params"]["n"]}
pathlib.Path("response.json").write_text(json.dumps({"scores": scores}))
"""


# ---------------------------------------------------------------- scored


def test_a_job_is_scored_by_what_its_agent_wrote(perform: Perform, server: HelixServer) -> None:
    outcome = perform("""printf '{"scores": {"reward": 0.5, "tone": "dry"}}' > response.json""")
    assert outcome.kind == "scored"
    assert outcome.scores == {"reward": 0.5, "tone": "dry"}
    assert outcome.error is None
    assert outcome.trial_name == "mb-ab12ab12ab12ab12-" + (outcome.trial_name or "")[20:30] + "-1"
    assert list(server.deleted) == [outcome.trial_name]


def test_the_agent_reads_its_request_and_what_it_leaves_comes_back(make: Make, ask: Ask, folder: Path) -> None:
    (folder / "agent.py").write_text(
        "import json, os, pathlib, sys\n"
        "request = json.load(open('request.json'))\n"
        "assert request['workspace'] == os.getcwd()\n"
        "pathlib.Path('deep/er').mkdir(parents=True)\n"
        "pathlib.Path('deep/er/trace.json').write_text(json.dumps([request['variant'], sys.argv[1:]]))\n"
        "os.link('deep/er/trace.json', 'again.json')\n"
        "os.symlink('/etc/passwd', 'link')\n"
        "os.mkfifo('pipe')\n"
        "print('out'); print('err', file=sys.stderr)\n"
        "json.dump({'scores': {'reward': 1}}, open('response.json', 'w'))\n"
    )
    request = ask()
    outcome = make(["python3", "agent.py", "--fast"]).run(request, request.workspace)
    assert outcome.scores == {"reward": 1}
    left = {str(path.relative_to(request.workspace)) for path in request.workspace.rglob("*") if path.is_file()}
    assert left == {"deep/er/trace.json", "again.json", "agent.stdout", "agent.stderr", "response.json"}
    trace = json.loads((request.workspace / "deep/er/trace.json").read_text())
    assert trace == [{"id": "no-date", "params": {"drop": "date"}}, ["--fast"]]
    assert (request.workspace / "again.json").read_text() == (request.workspace / "deep/er/trace.json").read_text()
    assert (request.workspace / "agent.stdout").read_text() == "out\n"


def test_files_are_sent_with_the_job_in_their_places(make: Make, ask: Ask, folder: Path) -> None:
    (folder / "lib").mkdir()
    (folder / "lib" / "words.py").write_text("REWARD = 0.25\n")
    (folder / "run.sh").write_text(
        '#!/bin/sh\ntest -f "$METRICBENCH_FILES/lib/words.py" || exit 9\n'
        'cd "$METRICBENCH_FILES/lib" && python3 -c \'import words; print(words.REWARD)\' > "$OLDPWD/said"\n'
        'cd "$OLDPWD" && printf \'{"scores": {"reward": %s}}\' "$(cat said)" > response.json\n'
    )
    (folder / "run.sh").chmod(0o755)
    request = ask()
    outcome = make(["run.sh"], files=["lib/words.py"]).run(request, request.workspace)
    assert outcome.scores == {"reward": 0.25}, message_of(outcome)


def test_environment_and_secrets_reach_the_agent(perform: Perform, server: HelixServer) -> None:
    server.secrets["model-key"] = "s3cr3t"
    command = """printf '{"scores": {"reward": 1, "seen": "%s %s"}}' "$MODE" "$KEY" > response.json"""
    outcome = perform(command, env={"MODE": "fast"}, secrets={"KEY": "model-key"})
    assert outcome.scores["seen"] == "fast s3cr3t"


def test_the_verifier_runs_here_on_what_came_back(make: Make, ask: Ask, folder: Path) -> None:
    (folder / "verify.py").write_text(SCORE)
    request = ask()
    runner = make("printf hello > said.txt", verifier=["{python}", "verify.py"])
    assert runner.run(request, request.workspace).scores == {"reward": 1.0, "n": 3}
    (request.workspace / "said.txt").write_text("goodbye")
    again = runner.rescore(request, request.workspace)
    assert again is not None
    assert again.scores == {"reward": 0.0, "n": 3}


def test_the_verifier_has_variables_of_its_own(perform: Perform, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = "{'seen': ' '.join(os.environ.get(name, '-') for name in ('STRICT', 'FROM_HERE', 'MODE'))}"
    (folder / "verify.py").write_text(
        f"import json, os\nscores = {{'reward': 1.0}} | {shown}\n"
        "json.dump({'scores': scores}, open('response.json', 'w'))\n"
    )
    monkeypatch.setenv("FROM_HERE", "here")
    environment = {"STRICT": "yes", "FROM_HERE": None}
    keys = {"verifier": ["{python}", "verify.py"], "verifier_env": environment, "env": {"MODE": "fast"}}
    assert perform("true", **keys).scores["seen"] == "yes here -"
    monkeypatch.delenv("FROM_HERE")
    assert error_of(perform("true", **keys)) == ("unmeasured", "MissingVariableError", "verifier")


def test_a_response_of_the_agent_is_not_the_verifiers_word(perform: Perform, folder: Path) -> None:
    (folder / "verify.py").write_text("")
    outcome = perform(SCORED, verifier=["{python}", "verify.py"])
    assert error_of(outcome) == ("unmeasured", "ContractError", "contract")


def test_without_a_verifier_nothing_is_scored_again(make: Make, ask: Ask) -> None:
    request = ask()
    assert make().rescore(request, request.workspace) is None


# ---------------------------------------------------------------- died, and unmeasured


@pytest.mark.parametrize(
    ("command", "kind", "error", "phase", "said"),
    [
        ("echo oops >&2; exit 7", "died", "AgentFailed", "agent", "the agent ended with exit status 7; the end of its"),
        (f"{SCORED}; exit 1", "died", "AgentFailed", "agent", "exit status 1; it wrote nothing to stderr"),
        ("kill -KILL $$", "died", "AgentFailed", "agent", "was killed by SIGKILL"),
        ("true", "unmeasured", "ContractError", "contract", "the agent's answer: response.json was not written"),
        ("echo no > response.json", "unmeasured", "ContractError", "contract", "response.json is not JSON"),
    ],
)
def test_how_an_agent_ends(perform: Perform, command: str, kind: str, error: str, phase: str, said: str) -> None:
    outcome = perform(command)
    assert error_of(outcome) == (kind, error, phase)
    assert said in message_of(outcome)
    assert outcome.trial_name


def test_an_agent_that_died_left_its_files_and_its_job_is_an_error(make: Make, ask: Ask, server: HelixServer) -> None:
    request = ask()
    outcome = make("echo half > trace.json; exit 3", keep_jobs=True).run(request, request.workspace)
    assert outcome.kind == "died"
    assert (request.workspace / "trace.json").read_text() == "half\n"
    (job,) = server.jobs.values()
    assert (job.status, job.details["exit_code"]) == ("error", 3)


def test_an_agent_that_runs_out_of_time_died_of_it(perform: Perform, server: HelixServer) -> None:
    outcome = perform("(sleep 30 & echo $! > child; sleep 30)", timeout=0.5, keep_jobs=True)
    assert error_of(outcome) == ("died", "TimeOut", "agent")
    assert outcome.time_limit == 0.5
    assert "ran longer than 0.5 s" in message_of(outcome)
    (job,) = server.jobs.values()
    assert job.details["exit_code"] == 124


@pytest.mark.parametrize("command", [["/no/such/agent"], ["/usr/bin/env", "no-such-agent"]])
def test_an_agent_that_is_not_there_never_ran(perform: Perform, command: list[str]) -> None:
    outcome = perform(command)
    assert error_of(outcome) == ("unmeasured", "CannotStartError", "setup")
    assert message_of(outcome).startswith("in the job: ")


def test_a_verifier_that_fails_says_nothing_about_the_agent(perform: Perform, folder: Path) -> None:
    (folder / "verify.py").write_text("raise SystemExit('the judge is ill')")
    outcome = perform("true", verifier=["{python}", "verify.py"])
    assert error_of(outcome) == ("unmeasured", "VerifierFailed", "verifier")
    assert "the judge is ill" in message_of(outcome)
    assert outcome.trial_name


def test_a_job_whose_python_is_missing_is_no_dead_agent(perform: Perform, server: HelixServer) -> None:
    outcome = perform(executor={"provider": "subprocess", "python": "/no/python3"})
    assert error_of(outcome) == ("unmeasured", "JobFailed", "setup")
    assert "Failed to start subprocess" in message_of(outcome)
    assert outcome.trial_name in server.jobs, "it stays there to be looked at"


def test_a_job_that_cannot_hand_back_is_no_dead_agent(perform: Perform, server: HelixServer) -> None:
    server.fail("PUT", "filesets", "status", value=403)
    outcome = perform("exit 5")
    assert error_of(outcome) == ("unmeasured", "JobFailed", "setup")
    said = message_of(outcome)
    assert "ended as error (Job exited with code 70) and handed nothing back; the end of its log:" in said
    assert "HTTP 403" in said


def test_a_job_that_somebody_cancels_is_unmeasured(make: Make, ask: Ask, server: HelixServer) -> None:
    runner, request = make("sleep 30"), ask()
    runner.begin(request, request.workspace)
    (job,) = server.jobs.values()
    server.wait_until(lambda: job.process is not None)
    job.cancel()
    outcome = runner.run(request, request.workspace)
    assert error_of(outcome) == ("unmeasured", "JobCancelled", "setup")
    assert "ended as cancelled" in message_of(outcome)


def test_a_workspace_that_is_too_large_stays_there(perform: Perform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_metricbench.runners.helix.runner.WORKSPACE_LIMIT", 1000)
    outcome = perform(f"{SCORED}; head -c 3000 /dev/zero > big; echo seen")
    assert error_of(outcome) == ("unmeasured", "WorkspaceTooLarge", "agent")
    assert "at most 1000 are handed back" in message_of(outcome)
    died = perform("head -c 3000 /dev/zero > big; echo seen; exit 4")
    assert died.kind == "died"


@pytest.mark.parametrize("content", [b"", b"not an archive", b"\x1f\x8b\x08"])
def test_a_damaged_result_is_neither_scored_nor_read_again(
    make: Make, ask: Ask, server: HelixServer, content: bytes
) -> None:
    server.fail("GET", "/download$", "text", times=1, value=content)
    requests = [ask(), ask()]
    first, second = (make().run(request, request.workspace) for request in requests)
    assert error_of(first) == ("unmeasured", "ResultDamaged", "setup")
    assert message_of(first).startswith(f"the result of the job {first.trial_name}: it ")
    assert not list(requests[0].workspace.iterdir())
    assert second.kind == "scored"
    assert second.trial_name == f"{first.trial_name}-r2"


def test_a_job_carries_no_path_of_this_machine(perform: Perform, server: HelixServer, tmp_path: Path) -> None:
    assert perform(keep_jobs=True).kind == "scored"
    (job,) = server.jobs.values()
    assert str(tmp_path) not in str(job.body)


def test_a_job_that_takes_too_long_is_given_up_and_cancelled(perform: Perform, server: HelixServer) -> None:
    server.gate.clear()  # a queue without end
    outcome = perform(job_timeout=0.3)
    assert error_of(outcome) == ("unmeasured", "JobTimeOut", "setup")
    assert "was pending after 0.3 s, and was given up (job_timeout)" in message_of(outcome)
    assert server.count("POST", "/cancel$") == 1
