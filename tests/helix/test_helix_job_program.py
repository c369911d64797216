"""The program that runs inside a job: as a process of its own, under several Pythons, with the server it talks to."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.runners.helix import job as helix_job
from tests.present import present

PROGRAM = Path(helix_job.__file__)
Seen = list[tuple[str, str, dict[str, str], bytes]]


class Platform:
    """Takes what is sent, and hands out access tokens for job tokens."""

    def __init__(self) -> None:
        self.seen: Seen = []
        self.refuse: list[int] = []
        self.oidc: dict[str, Any] | None = None
        platform = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                platform.seen.append((self.command, self.path, dict(self.headers), body))
                status = platform.refuse.pop(0) if platform.refuse else 200
                answer: Any = {}
                if self.path == "/apis/auth/discovery":
                    answer = {"auth_enabled": True, "oidc": platform.oidc}
                elif self.path == "/token":
                    answer = {"access_token": "an-access-token"}
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = handle_any  # noqa: N815

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def platform() -> Iterator[Platform]:
    platform = Platform()
    yield platform
    platform.http.shutdown()
    platform.http.server_close()


@pytest.fixture
def environment(platform: Platform, tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "NEMO_JOB_ID": "mb-1",
        "NEMO_JOB_ATTEMPT_ID": "a1",
        "NEMO_JOB_WORKSPACE": "my team",
        "NEMO_JOB_FILESET": "job-fileset-mb-1",
        "NEMO_JOB_STEP_CONFIG_FILE_PATH": str(tmp_path / "config.json"),
        "NEMO_JOB_EPHEMERAL_TASK_STORAGE_PATH": str(tmp_path / "scratch"),
        "NHX_BASE_URL": platform.url,
    }


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts the program for an agent given as a shell text, as a server does: from the step's config."""

    def of(command: str | list[str], python: str = sys.executable, **keys: Any) -> subprocess.Popen[str]:
        config = {
            "program": PROGRAM.read_text("utf-8"),
            "request": {"workspace": "elsewhere", "attempt": 1},
            "command": ["/bin/sh", "-c", command] if isinstance(command, str) else command,
            "files": {},
            "timeout": 20,
            "workspace_limit": 1 << 20,
            "result": "metricbench",
        } | keys
        Path(environment["NEMO_JOB_STEP_CONFIG_FILE_PATH"]).write_text(json.dumps(config))
        Path(environment["NEMO_JOB_EPHEMERAL_TASK_STORAGE_PATH"]).mkdir(exist_ok=True)
        text = "import json,os;c=json.load(open(os.environ['NEMO_JOB_STEP_CONFIG_FILE_PATH']));exec(c['program'])"
        streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([python, "-c", text], env=environment, **streams)

    return of


def handed_back(platform: Platform, tmp_path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The report and the files of the archive that was sent."""
    (body,) = [body for method, _, _, body in platform.seen if method == "PUT"]
    (tmp_path / "sent.tar.gz").write_bytes(body)
    with tarfile.open(tmp_path / "sent.tar.gz") as tar:
        files = {entry.name: present(tar.extractfile(entry)).read() for entry in tar}
    return json.loads(files.pop("report.json")), files


def test_what_is_sent_and_where(
    start: Callable[..., subprocess.Popen[str]], platform: Platform, tmp_path: Path
) -> None:
    sent = {"lib/a.sh": {"content": base64.b64encode(b"#!/bin/sh\necho 5 > left").decode(), "executable": True}}
    process = start(["lib/a.sh"], files=sent)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("metricbench: the agent ended with status 0 after ")
    put, post = platform.seen
    assert put[:2] == ("PUT", "/apis/files/v2/workspaces/my%20team/filesets/job-fileset-mb-1/-/results/a1/metricbench")
    assert post[:2] == ("POST", "/apis/jobs/v2/workspaces/my%20team/jobs/mb-1/results/metricbench")
    assert json.loads(post[3]) == {
        "artifact_url": "my team/job-fileset-mb-1#results/a1/metricbench",
        "artifact_storage_type": "fileset",
    }
    report, files = handed_back(platform, tmp_path)
    assert (report["returncode"], report["timed_out"], report["not_started"], report["too_large"]) == (
        0,
        False,
        None,
        None,
    )
    assert files == {"workspace/left": b"5\n", "workspace/agent.stdout": b"", "workspace/agent.stderr": b""}
    assert not list((tmp_path / "scratch").iterdir()), "nothing is left in the job"


@pytest.mark.parametrize(
    ("command", "keys", "status"),
    [
        ("exit 3", {}, 3),
        ("kill -TERM $$", {}, 143),
        ("trap '' TERM; sleep 20 & wait", {"timeout": 0.3}, 124),
        (["/no/such"], {}, 127),
    ],
)
def test_it_ends_with_the_agents_status(
    start: Callable[..., subprocess.Popen[str]], platform: Platform, command: Any, keys: dict[str, Any], status: int
) -> None:
    process = start(command, **keys)
    process.communicate(timeout=20)
    assert process.returncode == status
    assert [method for method, *_ in platform.seen] == ["PUT", "POST"]


def test_long_output_is_cut_and_a_flood_is_stopped(
    start: Callable[..., subprocess.Popen[str]], platform: Platform, tmp_path: Path
) -> None:
    process = start("echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo end", workspace_limit=10 << 20)
    process.communicate(timeout=20)
    log = handed_back(platform, tmp_path)[1]["workspace/agent.stdout"]
    assert len(log) < (1 << 20) + 100
    assert log.startswith(b"begin\nxx")
    assert log.endswith(b"xend\n")
    assert b"bytes left out" in log


def test_an_agent_that_plays_with_its_logs_harms_nobody(
    start: Callable[..., subprocess.Popen[str]], platform: Platform, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    process = start(f"rm agent.stdout agent.stderr; ln -s {secret} agent.stdout; mkdir agent.stderr; mkfifo p; echo hi")
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert handed_back(platform, tmp_path)[1] == {}


def test_a_cancelled_job_leaves_no_agent_behind(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    process = start(f"(trap '' TERM; echo $$ > {mark}.new; mv {mark}.new {mark}; sleep 60; sleep 60)")
    end = time.monotonic() + 10
    while not mark.exists() and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode == 143
    listed = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    group = mark.read_text().strip()
    left = [line.split() for line in listed.splitlines() if line.split()[0] == group]
    assert all(state.startswith("Z") for _, state in left), "dead ones may wait for somebody to read their status"


def test_overload_is_waited_out_and_a_refusal_is_not(
    start: Callable[..., subprocess.Popen[str]], platform: Platform
) -> None:
    platform.refuse = [503]
    process = start("true")
    process.communicate(timeout=20)
    assert (process.returncode, len(platform.seen)) == (0, 3)
    platform.refuse, platform.seen = [403], []
    process = start("true")
    _, err = process.communicate(timeout=20)
    assert (process.returncode, len(platform.seen)) == (70, 1)
    assert "what the agent left could not be handed back: OSError: PUT" in err
    assert "HTTP 403" in err


def test_it_speaks_as_the_one_who_submitted(
    start: Callable[..., subprocess.Popen[str]], platform: Platform, environment: dict[str, str]
) -> None:
    principal = {"id": "me", "groups": ["a", "b"], "email": "me@x", "on_behalf_of": "you"}
    environment["NHX_PRINCIPAL"] = json.dumps(principal)
    start("true").communicate(timeout=20)
    for _, _, headers, _ in platform.seen:
        named = {name.lower(): value for name, value in headers.items()}
        assert named["x-nhx-principal-id"] == "me"
        assert named["x-nhx-principal-groups"] == "a,b"
        assert named["x-nhx-principal-on-behalf-of"] == "you"
        assert named["x-nhx-internal"] == "true"


@pytest.mark.parametrize(("token", "kind"), [("a.b.c", "oauth:token-type:jwt"), ("nhx_obo_v1.x", "docker-opaque")])
def test_the_token_of_the_job_is_exchanged(
    start: Callable[..., subprocess.Popen[str]],
    platform: Platform,
    environment: dict[str, str],
    tmp_path: Path,
    token: str,
    kind: str,
) -> None:
    (tmp_path / "token").write_text(f"{token}\n")
    environment["NHX_WORKLOAD_IDENTITY_TOKEN_FILE"] = str(tmp_path / "token")
    platform.oidc = {
        "workload_token_exchange_enabled": True,
        "workload_client_id": "jobs",
        "workload_token_endpoint": f"{platform.url}/token",
        "workload_audience": "helix",
    }
    process = start("true")
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert [path.rpartition("/")[2] for _, path, _, _ in platform.seen] == [
        "discovery",
        "token",
        "metricbench",
        "metricbench",
    ]
    form = dict(urllib.parse.parse_qsl(platform.seen[1][3].decode()))
    assert form["subject_token"] == token
    assert kind in form["subject_token_type"]
    assert (form["client_id"], form["audience"]) == ("jobs", "helix")
    assert all(headers["Authorization"] == "Bearer an-access-token" for _, _, headers, _ in platform.seen[2:])


def test_a_token_that_is_not_exchanged_is_told(
    start: Callable[..., subprocess.Popen[str]], platform: Platform, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("secret-token")
    environment["NHX_WORKLOAD_IDENTITY_TOKEN_FILE"] = str(tmp_path / "token")
    process = start("true")
    out, err = process.communicate(timeout=20)
    assert process.returncode == 70
    assert "the server does not exchange the token that it handed to the job" in err
    assert "secret-token" not in out + err


def works(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_it_runs_under_other_pythons(
    start: Callable[..., subprocess.Popen[str]], platform: Platform, tmp_path: Path, version: str
) -> None:
    installed = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    found = next((str(python) for python in installed if python and works(str(python))), None)
    if found is None:
        pytest.skip(f"Python {version} is not here")
    process = start("echo hi; exit 4", python=found)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (4, "")
    assert handed_back(platform, tmp_path)[1]["workspace/agent.stdout"] == b"hi\n"
