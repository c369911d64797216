"""Jobs submitted ahead, found again by a later run, and cancelled when nobody will ask for them."""

import itertools
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.contracts import AttemptRequest
from pytest_metricbench.runners.command import CommandRunner
from pytest_metricbench.runners.helix.client import HelixClient
from pytest_metricbench.runners.helix.runner import HelixRunner, _job_name
from tests.helix.helix_lab import SCORED, Ask, Make, error_of, message_of
from tests.helix.helix_server import ENDED, NAME, HelixServer


def begin(runner: HelixRunner, requests: list[AttemptRequest]) -> None:
    for request in requests:
        runner.begin(request, request.workspace)


# ---------------------------------------------------------------- ahead


def test_attempts_begun_ahead_run_together(make: Make, ask: Ask, server: HelixServer) -> None:
    runner = make(f"sleep 0.5; {SCORED}", max_in_flight=4)
    requests = [ask(slot=slot) for slot in range(1, 5)]
    started = time.monotonic()
    begin(runner, requests)
    assert all(runner.run(request, request.workspace).kind == "scored" for request in requests)
    assert time.monotonic() - started < 4 * 0.5 + 1
    assert server.busiest == 4


@pytest.mark.benchmark
def test_the_server_is_kept_busy_and_not_overrun(make: Make, ask: Ask, server: HelixServer) -> None:
    """A slow job at the front does not idle the others: what waits is submitted while it is waited for."""
    slow = ask(task="slow")
    requests = [slow, *(ask(slot=slot) for slot in range(1, 9))]
    command = f'grep -q \'"id": "slow"\' request.json && sleep 3; {SCORED}'
    runner = make(command, max_in_flight=3)
    assert runner.ahead == 12
    begin(runner, requests)
    assert len(server.jobs) == 3
    assert runner.run(slow, slow.workspace).kind == "scored"
    assert all(job.status in ENDED for job in server.jobs.values())
    assert len(server.jobs) + len(server.deleted) == 9, "all others went through beside it"
    assert server.busiest == 3
    assert [runner.run(request, request.workspace).kind for request in requests[1:]] == ["scored"] * 8


def test_each_attempt_has_its_own_result(make: Make, ask: Ask) -> None:
    command = "n=$(grep -o '\"attempt\": [0-9]*' request.json | grep -o '[0-9]*'); "
    command += """printf '{"scores": {"reward": %s}}' "$n" > response.json"""
    runner = make(command, max_in_flight=3)
    requests = [ask(slot=slot) for slot in range(1, 6)]
    begin(runner, requests)
    found = [runner.run(request, request.workspace).scores["reward"] for request in reversed(requests)]
    assert found == [5, 4, 3, 2, 1]


def test_one_that_was_not_begun_is_submitted_first(make: Make, ask: Ask, server: HelixServer) -> None:
    runner = make(f"sleep 0.2; {SCORED}", max_in_flight=1)
    others = [ask(slot=slot) for slot in (1, 2, 3)]
    begin(runner, others)
    urgent = ask(task="urgent")
    assert runner.run(urgent, urgent.workspace).kind == "scored"
    assert len(server.jobs) + len(server.deleted) <= 3
    assert server.busiest == 1


def test_trouble_ahead_is_told_in_its_turn(make: Make, ask: Ask, server: HelixServer) -> None:
    runner = make(max_in_flight=2)
    requests = [ask(slot=slot) for slot in (1, 2)]
    server.fail("POST", "/jobs$", "cut", times=1)
    begin(runner, requests)
    assert not server.jobs
    assert server.count("POST", "/jobs$") == 1, "a server that is out of reach is left alone for a while"
    assert [runner.run(request, request.workspace).kind for request in requests] == ["scored", "scored"]


def test_a_job_that_is_refused_does_not_keep_others_from_the_server(make: Make, ask: Ask, server: HelixServer) -> None:
    runner = make(f"sleep 0.5; {SCORED}", max_in_flight=3)
    requests = [ask(slot=slot) for slot in (1, 2, 3)]
    server.fail("POST", "/jobs$", "status", times=1, value=422)
    begin(runner, requests)
    assert [name[-1] for name in server.jobs] == ["2", "3"]
    for request in reversed(requests):
        assert runner.run(request, request.workspace).kind == "scored"
    assert server.count("POST", "/jobs$") == 4, "the refused one was asked for again in its turn, and not before"


def test_a_status_that_fails_ahead_is_asked_for_again(make: Make, ask: Ask, server: HelixServer) -> None:
    runner = make(f"sleep 0.3; {SCORED}", max_in_flight=2, transport_retries=3)
    requests = [ask(slot=slot) for slot in (1, 2)]
    begin(runner, requests)
    server.fail("GET", "-2/status$", "status", times=3, value=500)
    assert [runner.run(request, request.workspace).kind for request in requests] == ["scored", "scored"]


def test_a_job_is_looked_at_less_and_less_often(make: Make, ask: Ask, server: HelixServer) -> None:
    request = ask()
    assert make(f"sleep 2; {SCORED}", poll=0.1).run(request, request.workspace).kind == "scored"
    looks = [moment for method, path, moment in server.requests if method == "GET" and path.endswith("/status")]
    assert 4 <= len(looks) <= 12, "a look each 0.1 s would be 20"
    pauses = [later - sooner for sooner, later in itertools.pairwise(looks)]
    assert pauses[-1] > 2 * pauses[0]


def test_a_paused_job_is_waited_for(make: Make, ask: Ask, server: HelixServer) -> None:
    runner, request = make(), ask()
    runner.begin(request, request.workspace)
    (name,) = server.jobs
    server.said_status[name] = "paused"
    threading.Timer(0.4, server.said_status.clear).start()
    assert runner.run(request, request.workspace).kind == "scored"
    assert server.count("GET", "/status$") >= 3


# ---------------------------------------------------------------- names


def test_a_name_carries_the_fingerprint_and_the_slot(ask: Ask) -> None:
    name = _job_name(ask(slot=10_000), ["true"])
    assert re.fullmatch(r"mb-ab12ab12ab12ab12-[0-9a-f]{10}-10000", name)
    assert NAME.match(f"{name}-r1000")
    assert len(f"{name}-r1000") <= 51


def test_another_attempt_has_another_name(ask: Ask) -> None:
    requests = [ask(), ask(slot=2), ask(task="other"), ask(fingerprint="sha256:" + "cd" * 32), ask(fingerprint="")]
    names = {_job_name(request, ["true"]) for request in requests}
    assert len(names) == 5
    assert all(NAME.match(name) for name in names)
    assert _job_name(ask(), ["true"]) == _job_name(ask(), ["true"]), "whatever the trial id"


# ---------------------------------------------------------------- resumed


def test_a_job_that_is_still_running_is_not_submitted_twice(make: Make, ask: Ask, server: HelixServer) -> None:
    first = ask()
    make(f"sleep 1; {SCORED}").begin(first, first.workspace)  # and this process is killed
    second = ask()
    outcome = make(f"sleep 1; {SCORED}").run(second, second.workspace)
    assert outcome.kind == "scored"
    assert len(server.jobs) + len(server.deleted) == 1
    assert (second.workspace / "response.json").exists()


@pytest.mark.parametrize(("command", "kind"), [(SCORED, "scored"), ("exit 3", "died")])
def test_a_job_that_ended_in_between_is_collected(
    make: Make, ask: Ask, server: HelixServer, command: str, kind: str
) -> None:
    first = ask()
    make(command).begin(first, first.workspace)
    (job,) = server.jobs.values()
    server.wait_until(lambda: job.status in ENDED)
    second = ask()
    assert make(command).run(second, second.workspace).kind == kind
    assert len(server.jobs) + len(server.deleted) == 1


def test_a_job_that_died_of_an_earlier_limit_keeps_that_limit(make: Make, ask: Ask, server: HelixServer) -> None:
    first = ask()
    make("sleep 9", timeout=0.3).begin(first, first.workspace)
    second = ask()
    outcome = make("sleep 9", timeout=5).run(second, second.workspace)
    assert error_of(outcome)[:2] == ("died", "TimeOut")
    assert outcome.time_limit == 0.3


@pytest.mark.parametrize("keep", [True, False])
def test_a_result_is_used_once(make: Make, ask: Ask, server: HelixServer, keep: bool) -> None:
    names = []
    for _ in range(3):
        request = ask()
        outcome = make(keep_jobs=keep).run(request, request.workspace)
        assert outcome.kind == "scored"
        names.append((outcome.trial_name or "")[-3:])
    assert names == (["b-1", "-r2", "-r3"] if keep else ["b-1"] * 3)
    assert server.count("POST", "/jobs$") == (6 if keep else 3)


def test_of_two_runs_that_wait_for_one_job_one_gets_it(make: Make, ask: Ask, server: HelixServer) -> None:
    requests = [ask(), ask()]
    runners = [make(f"sleep 0.5; {SCORED}", keep_jobs=True) for _ in requests]
    outcomes = {}

    def run(number: int) -> None:
        outcomes[number] = runners[number].run(requests[number], requests[number].workspace)

    threads = [threading.Thread(target=run, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [outcomes[number].kind for number in (0, 1)] == ["scored", "scored"]
    assert {outcome.trial_name for outcome in outcomes.values()} == set(server.jobs)
    assert len(server.jobs) == 2


def test_nothing_is_left_of_a_result_that_another_run_took(make: Make, ask: Ask, server: HelixServer) -> None:
    runner, request = make('mkdir "of-$NEMO_JOB_ID"; touch "of-$NEMO_JOB_ID/x" "$NEMO_JOB_ID"; ' + SCORED), ask()
    runner.begin(request, request.workspace)
    (job,) = server.jobs.values()
    server.wait_until(lambda: job.status in ENDED)
    server.fail("POST", "/results/metricbench-taken$", "done", times=1)  # the second try finds it taken
    outcome = runner.run(request, request.workspace)
    assert outcome.trial_name == f"{job.name}-r2"
    left = {path.name for path in request.workspace.iterdir()}
    assert left == {f"{job.name}-r2", f"of-{job.name}-r2", "response.json", "agent.stdout", "agent.stderr"}


def test_a_run_that_is_stopped_while_it_verifies_leaves_the_result(
    make: Make, ask: Ask, server: HelixServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "verify.py").write_text("open('response.json', 'w').write('{\"scores\": {\"reward\": 1}}')")
    runner, request = make("true", verifier=["{python}", "verify.py"]), ask()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(CommandRunner, "rescore", interrupted)
        with pytest.raises(KeyboardInterrupt):
            runner.run(request, request.workspace)
    later = ask()
    outcome = make("true", verifier=["{python}", "verify.py"]).run(later, later.workspace)
    assert outcome.kind == "scored"
    assert server.count("POST", "/jobs$") == 2
    assert len(server.jobs) + len(server.deleted) == 1


@pytest.mark.parametrize("spoil", ["cancelled", "failed", "no result"])
def test_a_job_that_came_to_nothing_is_left_alone(make: Make, ask: Ask, server: HelixServer, spoil: str) -> None:
    first = ask()
    runner = make("sleep 5" if spoil == "cancelled" else SCORED)
    if spoil == "failed":
        server.fail("PUT", "/filesets/", "status", value=400)
    runner.begin(first, first.workspace)
    (job,) = server.jobs.values()
    if spoil == "cancelled":
        server.wait_until(lambda: job.process is not None)
        job.cancel()
    server.wait_until(lambda: job.status in ENDED)
    if spoil == "no result":
        job.results.clear()
    server.heal()
    second = ask()
    outcome = make().run(second, second.workspace)
    assert outcome.kind == "scored"
    assert outcome.trial_name == f"{job.name}-r2"
    assert job.name in server.jobs


def test_a_retry_in_the_same_run_submits_a_new_job(make: Make, ask: Ask, server: HelixServer) -> None:
    runner = make()
    server.fail("PUT", "/filesets/", "status", times=1, value=400)
    outcomes = [runner.run(request, request.workspace) for request in (ask(), ask())]
    assert [outcome.kind for outcome in outcomes] == ["unmeasured", "scored"]
    assert (outcomes[1].trial_name or "").endswith("-r2")


def test_a_name_that_is_taken_by_something_else(make: Make, ask: Ask, server: HelixServer) -> None:
    """Files of a job that is gone may keep its name from being used again."""
    server.fail("POST", "/jobs$", "status", times=1, value=409)
    request = ask()
    outcome = make().run(request, request.workspace)
    assert outcome.kind == "scored"
    assert (outcome.trial_name or "").endswith("-r2")


def test_names_come_to_an_end(make: Make, ask: Ask, server: HelixServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_metricbench.runners.helix.jobs.GENERATIONS", 3)
    for _ in range(3):
        request = ask()
        assert make(keep_jobs=True).run(request, request.workspace).kind == "scored"
    request = ask()
    outcome = make().run(request, request.workspace)
    assert error_of(outcome) == ("unmeasured", "TooManyJobs", "setup")
    assert "there are 3 jobs mb-ab12ab12ab12ab12-" in message_of(outcome)


# ---------------------------------------------------------------- ended


def test_what_was_begun_and_not_asked_for_is_cancelled(make: Make, ask: Ask, server: HelixServer) -> None:
    runner = make("echo $$ > pid; sleep 30", max_in_flight=2)
    begin(runner, [ask(slot=slot) for slot in (1, 2, 3)])
    jobs = list(server.jobs.values())
    assert len(jobs) == 2
    server.wait_until(lambda: all(job.process is not None for job in jobs))
    runner.close()
    server.wait_until(lambda: all(job.status == "cancelled" for job in jobs))
    assert server.count("POST", "/cancel$") == 2
    runner.close()


def test_an_interrupted_attempt_is_cancelled(
    make: Make, ask: Ask, server: HelixServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, request = make("sleep 30"), ask()
    looks = iter(range(100))

    def interrupt(seconds: float) -> None:
        if next(looks) == 3:
            raise KeyboardInterrupt
        time.sleep(seconds)

    monkeypatch.setattr("pytest_metricbench.runners.helix.jobs.pause", interrupt)
    with pytest.raises(KeyboardInterrupt):
        runner.run(request, request.workspace)
    (job,) = server.jobs.values()
    server.wait_until(lambda: job.status == "cancelled")


def test_a_job_whose_submission_is_interrupted_is_cancelled(
    make: Make, ask: Ask, server: HelixServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, request = make("sleep 30"), ask()
    create = HelixClient.create

    def interrupted(client: HelixClient, *args: Any, **keys: Any) -> bool:
        create(client, *args, **keys)
        raise KeyboardInterrupt

    monkeypatch.setattr(HelixClient, "create", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runner.begin(request, request.workspace)
    runner.close()
    (job,) = server.jobs.values()
    server.wait_until(lambda: job.status == "cancelled")


def test_a_server_that_is_gone_does_not_hold_up_the_end(make: Make, ask: Ask, server: HelixServer) -> None:
    runner = make("sleep 30", max_in_flight=5)
    begin(runner, [ask(slot=slot) for slot in range(1, 6)])
    server.fail("POST", "/cancel$", "cut")
    started = time.monotonic()
    runner.close()
    assert time.monotonic() - started < 2
    assert server.count("POST", "/cancel$") == 1


def test_what_has_ended_and_was_not_asked_for_stays_for_the_next_run(make: Make, ask: Ask, server: HelixServer) -> None:
    runner, request = make(), ask()
    runner.begin(request, request.workspace)
    (job,) = server.jobs.values()
    server.wait_until(lambda: job.status in ENDED)
    runner.close()
    later = ask()
    outcome = make().run(later, later.workspace)
    assert outcome.kind == "scored"
    assert outcome.trial_name == job.name


def test_a_runner_may_be_used_again_after_its_end(make: Make, ask: Ask) -> None:
    runner = make()
    for slot in (1, 2):
        request = ask(slot=slot)
        assert runner.run(request, request.workspace).kind == "scored"
        runner.close()
