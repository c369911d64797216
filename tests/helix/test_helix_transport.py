"""A server that is out of reach, overloaded or refuses, and answers that no Helix server gives."""

import email.utils
import time
from pathlib import Path

import pytest

from tests.helix.helix_lab import SCORED, Ask, Make, Perform, error_of, message_of
from tests.helix.helix_server import HelixServer

EVERYWHERE = "^/apis/jobs"


# ---------------------------------------------------------------- what is tried again


@pytest.mark.parametrize("kind", ["cut", "status"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "execution-profiles"),
        ("POST", "/jobs$"),
        ("GET", "/status$"),
        ("GET", "/results$"),
        ("GET", "/download$"),
        ("POST", "/results/metricbench-taken$"),
    ],
)
def test_a_request_that_does_not_get_through_is_sent_again(
    perform: Perform, server: HelixServer, method: str, path: str, kind: str
) -> None:
    server.fail(method, path, kind, times=2, value=503)
    assert perform().scores == {"reward": 1.0}
    assert server.count(method, path) >= 3


def test_a_job_is_submitted_once_though_the_answer_is_lost(perform: Perform, server: HelixServer) -> None:
    server.fail("POST", "/jobs$", "done", times=1)
    assert perform().kind == "scored"
    assert len(server.jobs) + len(server.deleted) == 1


def test_a_result_that_is_marked_as_taken_though_the_answer_is_lost_runs_again(
    perform: Perform, server: HelixServer
) -> None:
    server.fail("POST", "/results/metricbench-taken$", "done", times=1)
    outcome = perform()
    assert outcome.kind == "scored"
    assert (outcome.trial_name or "").endswith("-r2"), "nobody knows who has the first one's result"


def test_half_a_result_is_fetched_again(perform: Perform, server: HelixServer) -> None:
    server.fail("GET", "/download$", "half", times=1)
    assert perform("head -c 100000 /dev/urandom > noise; " + SCORED).scores == {"reward": 1.0}
    assert server.count("GET", "/download$") == 2


def test_what_a_job_hands_back_is_sent_again(perform: Perform, server: HelixServer) -> None:
    server.fail("PUT", "/filesets/", "status", times=1, value=500)
    server.fail("POST", "/results/metricbench$", "done", times=1)
    assert perform().scores == {"reward": 1.0}


def test_the_pause_is_the_one_that_the_server_asks_for(perform: Perform, server: HelixServer) -> None:
    server.fail("POST", "/jobs$", "status", times=1, value=429, Retry_After="0.4")
    assert perform().kind == "scored"
    first, second = [moment for method, path, moment in server.requests if method == "POST" and path.endswith("/jobs")]
    assert second - first >= 0.4


def test_the_pause_may_be_given_as_a_date(perform: Perform, server: HelixServer) -> None:
    date = email.utils.formatdate(time.time() + 2, usegmt=True)
    server.fail("POST", "/jobs$", "status", times=1, value=503, Retry_After=date)
    assert perform().kind == "scored"
    first, second = [moment for method, path, moment in server.requests if method == "POST" and path.endswith("/jobs")]
    assert 0.5 < second - first < 3


@pytest.mark.parametrize("value", ["soon", "-5", "nan", "Mon, 99 Foo"])
def test_a_pause_that_makes_no_sense_is_none(perform: Perform, server: HelixServer, value: str) -> None:
    server.fail("POST", "/jobs$", "status", times=1, value=429, Retry_After=value)
    assert perform().kind == "scored"


# ---------------------------------------------------------------- what is given up


@pytest.mark.parametrize(
    ("kind", "said"), [("cut", "RemoteProtocolError"), ("status", "HTTP 500: told to fail; tried 3 times")]
)
def test_a_server_that_stays_out_of_reach(perform: Perform, server: HelixServer, kind: str, said: str) -> None:
    server.fail("POST", "/jobs$", kind, value=500)
    outcome = perform()
    assert error_of(outcome) == ("unmeasured", "HelixUnreachable", "setup")
    assert said in message_of(outcome)
    assert f"POST {server.url}/apis/jobs/v2/workspaces/default/jobs: " in message_of(outcome)
    assert server.count("POST", "/jobs$") == 3


def test_no_server_at_all(make: Make, ask: Ask) -> None:
    request = ask()
    outcome = make(base_url="http://127.0.0.1:9").run(request, request.workspace)
    assert error_of(outcome) == ("unmeasured", "HelixUnreachable", "setup")
    assert "http://127.0.0.1:9/apis/jobs/v2/execution-profiles: ConnectError" in message_of(outcome)


def test_once_the_server_is_down_the_next_attempts_find_out_soon(make: Make, ask: Ask, server: HelixServer) -> None:
    runner = make()
    server.fail("GET", "execution-profiles", "cut")
    for slot in (1, 2, 3):
        request = ask(slot=slot)
        assert runner.run(request, request.workspace).kind == "unmeasured"
    assert server.count("GET", "execution-profiles") == 3 + 1 + 1
    server.heal()
    request = ask(slot=4)
    assert runner.run(request, request.workspace).kind == "scored"
    server.fail("POST", "/jobs$", "status", times=2, value=502)
    request = ask(slot=5)
    assert runner.run(request, request.workspace).kind == "scored", "it is up, and patience is back"


def test_a_result_that_cannot_be_fetched_stays_for_the_next_run(make: Make, ask: Ask, server: HelixServer) -> None:
    server.fail("GET", "/download$", "status", value=503)
    request = ask()
    outcome = make().run(request, request.workspace)
    assert error_of(outcome) == ("unmeasured", "HelixUnreachable", "setup")
    server.heal()
    again = make().run(request, request.workspace)
    assert again.kind == "scored"
    assert again.trial_name == outcome.trial_name
    assert len(server.deleted) == 1


def test_a_job_whose_status_cannot_be_had_runs_on_for_the_next_try(make: Make, ask: Ask, server: HelixServer) -> None:
    runner = make(f"sleep 0.5; {SCORED}")
    server.fail("GET", "/status$", "status", times=3, value=503)
    requests = [ask(), ask()]
    outcomes = [runner.run(request, request.workspace) for request in requests]
    assert error_of(outcomes[0]) == ("unmeasured", "HelixUnreachable", "setup")
    assert outcomes[1].kind == "scored"
    assert outcomes[0].trial_name == outcomes[1].trial_name
    assert server.count("POST", "/cancel$") == 0
    assert len(server.jobs) + len(server.deleted) == 1


def test_a_slow_server_is_waited_for(perform: Perform, server: HelixServer) -> None:
    server.fail("GET", "/status$", "slow", times=1, value=0.5)
    assert perform().kind == "scored"


def test_a_slow_answer_ends_with_the_clock(
    perform: Perform, server: HelixServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_metricbench.runners.helix.client.ANSWER_TIME", 0.2)
    server.fail("POST", "/jobs$", "slow", value=1)
    outcome = perform(transport_retries=0)
    assert error_of(outcome) == ("unmeasured", "HelixUnreachable", "setup")
    assert "ReadTimeout" in message_of(outcome)


# ---------------------------------------------------------------- jobs that go wrong on the server


def test_a_job_that_the_server_loses(make: Make, ask: Ask, server: HelixServer) -> None:
    runner, request = make("sleep 5"), ask()
    runner.begin(request, request.workspace)
    (name,) = server.jobs
    server.jobs.pop(name).cancel()
    outcome = runner.run(request, request.workspace)
    assert error_of(outcome) == ("unmeasured", "JobLost", "setup")
    gone = f"the job {name} is gone from the server: it was deleted there, or the server lost it"
    assert message_of(outcome).startswith(gone)


def test_a_job_that_ends_well_and_left_no_result(perform: Perform, server: HelixServer) -> None:
    server.fail("GET", "/results$", "text", value={"data": []})
    outcome = perform("echo seen by all")
    assert error_of(outcome) == ("unmeasured", "ResultMissing", "setup")
    assert "ended as completed and handed nothing back; the end of its log:" in message_of(outcome)
    assert "the agent ended with status 0" in message_of(outcome)


def test_a_result_whose_content_is_gone(perform: Perform, server: HelixServer) -> None:
    server.fail("GET", "/download$", "status", value=404)
    assert error_of(perform()) == ("unmeasured", "ResultMissing", "setup")


def test_a_status_that_nobody_knows(perform: Perform, server: HelixServer) -> None:
    server.say_all = "meditating"
    outcome = perform("sleep 5")
    assert error_of(outcome) == ("unmeasured", "UnknownStatus", "setup")
    assert "has the status 'meditating', which is none of active, cancelled, " in message_of(outcome)
    assert server.count("POST", "/cancel$") == 1


@pytest.mark.parametrize("answer", [{}, {"status": None}, {"status": 7}, {"status": ["active"]}])
def test_a_status_of_another_form(perform: Perform, server: HelixServer, answer: object) -> None:
    server.fail("GET", "/status$", "text", value=answer)
    assert error_of(perform("sleep 5")) == ("unmeasured", "UnknownStatus", "setup")


def test_details_of_another_form_are_left_out(perform: Perform, server: HelixServer) -> None:
    answer = {"status": "error", "status_details": ["?"], "error_details": "?"}
    server.fail("GET", "/status$", "text", value=answer)
    server.fail("GET", "/results$", "text", value={"data": ["?", {"no": "name"}]})
    server.fail("GET", "/logs", "text", value={"data": "?"})
    outcome = perform("sleep 1")
    assert error_of(outcome) == ("unmeasured", "JobFailed", "setup")
    assert message_of(outcome).endswith("ended as error and handed nothing back; it has no log")


def test_half_characters_of_a_server_reach_no_report(perform: Perform, server: HelixServer) -> None:
    server.fail("GET", "execution-profiles", "text", value=[{"backend": "subprocess", "profile": "\ud800"}])
    outcome = perform()
    assert error_of(outcome) == ("unmeasured", "NoSuchProfile", "setup")
    message_of(outcome).encode("utf-8")


# ---------------------------------------------------------------- refused


def test_a_workspace_that_is_not_there(perform: Perform) -> None:
    outcome = perform(workspace="nowhere")
    assert error_of(outcome) == ("unmeasured", "HelixRefused", "setup")
    assert "HTTP 422: Workspace 'nowhere' does not exist. Please create the workspace first." in message_of(outcome)


def test_a_secret_that_is_not_there(perform: Perform, server: HelixServer) -> None:
    """The server says so with the status of a name that is taken."""
    outcome = perform(secrets={"KEY": "no-such"})
    assert error_of(outcome) == ("unmeasured", "HelixRefused", "setup")
    assert "HTTP 409: Unable to create job because one or more referenced secrets were not found" in message_of(outcome)
    assert server.count("POST", "/jobs$") == 3


def test_a_profile_that_the_server_does_not_have(perform: Perform, server: HelixServer) -> None:
    outcome = perform(executor={"provider": "kubernetes_job", "profile": "big"})
    assert error_of(outcome) == ("unmeasured", "NoSuchProfile", "setup")
    wanted = "has no execution profile big of the provider kubernetes_job; it has default (gpu), default (cpu)"
    assert wanted in message_of(outcome)
    none = perform(executor={"provider": "volcano_job"})
    assert message_of(none).endswith("no execution profile default of the provider volcano_job; it has none")


@pytest.mark.parametrize(("keys", "compute"), [({}, "cpu"), ({"compute": "gpu"}, "gpu")])
def test_a_container_goes_to_the_profile_of_its_backend(
    perform: Perform, server: HelixServer, keys: dict[str, str], compute: str
) -> None:
    resources = {"limits": {"memory": "1Gi"}, "num_gpus": 2, "shm_size": "2Gi"}
    executor = {"provider": "kubernetes_job", "image": "agents:1", "resources": resources, **keys}
    assert perform(executor=executor, keep_jobs=True).kind == "scored"
    (job,) = server.jobs.values()
    sent = job.body["platform_spec"]["steps"][0]["executor"]
    assert (sent["provider"], sent["profile"]) == (compute, "default")
    assert sent["container"]["image"] == "agents:1"
    assert sent["container"]["entrypoint"] == ["python3"]
    wanted = {"requests": {}, "limits": {"memory": "1Gi"}, "num_gpus": 2, "num_nodes": 1, "shm_size": "2Gi"}
    assert sent["resources"] == wanted


def test_a_refused_token_names_its_variable_and_not_itself(
    perform: Perform, server: HelixServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.token = "the-right-one"
    monkeypatch.setenv("HELIX_TOKEN", "quite-wrong")
    outcome = perform(token_env="HELIX_TOKEN")
    assert error_of(outcome) == ("unmeasured", "TokenRefused", "setup")
    assert "HTTP 401: the token is not valid: Bearer ***; " in message_of(outcome)
    assert message_of(outcome).endswith("it refuses the token in the variable HELIX_TOKEN")
    assert "quite-wrong" not in repr(outcome)


def test_a_server_that_wants_a_token(perform: Perform, server: HelixServer) -> None:
    server.token = "the-right-one"
    outcome = perform()
    assert error_of(outcome) == ("unmeasured", "TokenRefused", "setup")
    assert message_of(outcome).endswith("it wants a token: name the variable that holds one with token_env")


def test_a_token_that_is_not_set(perform: Perform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HELIX_TOKEN", raising=False)
    outcome = perform(token_env="HELIX_TOKEN")
    assert error_of(outcome) == ("unmeasured", "MissingVariableError", "setup")
    assert message_of(outcome) == "token_env names HELIX_TOKEN, and it is not set in the environment"


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ümlaut"])
def test_a_token_that_no_header_can_hold_is_not_repeated(
    perform: Perform, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("HELIX_TOKEN", token)
    outcome = perform(token_env="HELIX_TOKEN")
    assert error_of(outcome) == ("unmeasured", "TokenRefused", "setup")
    assert token not in repr(outcome)
    assert message_of(outcome) == "the variable HELIX_TOKEN has characters that no token has"


def test_a_token_is_sent_and_stands_in_no_job(
    make: Make, ask: Ask, server: HelixServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.token = "the-right-one"
    monkeypatch.setenv("HELIX_TOKEN", "the-right-one\n")
    request = ask()
    outcome = make("env > seen; " + SCORED, token_env="HELIX_TOKEN", keep_jobs=True).run(request, request.workspace)
    assert outcome.kind == "scored"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"the-right-one" in path.read_bytes()]
    assert "the-right-one" not in str([job.body for job in server.jobs.values()])


# ---------------------------------------------------------------- something else under that address


def test_a_page_in_place_of_an_answer(perform: Perform, server: HelixServer) -> None:
    server.fail("GET", "execution-profiles", "text", value=b"<html>Please log in</html>")
    outcome = perform()
    assert error_of(outcome) == ("unmeasured", "UnexpectedAnswer", "setup")
    assert "answers with text/html, not as a Helix server does; is base_url right?" in message_of(outcome)


def test_another_server_that_answers_with_json(perform: Perform, server: HelixServer) -> None:
    server.fail("GET", "/status$", "text", value=["not", "a", "status"])
    assert error_of(perform()) == ("unmeasured", "UnexpectedAnswer", "setup")


def test_an_address_that_has_moved(perform: Perform, server: HelixServer) -> None:
    server.fail("GET", "execution-profiles", "status", value=308, Location="https://elsewhere.example/apis")
    outcome = perform()
    assert error_of(outcome) == ("unmeasured", "UnexpectedAnswer", "setup")
    assert "HTTP 308, elsewhere: https://elsewhere.example/apis; set base_url to where the server is" in message_of(
        outcome
    )


def test_a_server_below_a_path(make: Make, ask: Ask, server: HelixServer) -> None:
    request = ask()
    outcome = make(base_url=f"{server.url}/helix/").run(request, request.workspace)
    assert error_of(outcome) == ("unmeasured", "HelixRefused", "setup")
    assert f"GET {server.url}/helix/apis/jobs/v2/execution-profiles: HTTP 404: Not Found" in message_of(outcome)
