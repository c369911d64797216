"""A small server that speaks the routes of a NeMo Helix server's jobs and files, over real sockets.

It runs what is submitted: each job is a process with the environment that the ``subprocess`` backend gives it. It can
be told to fail in every way a server does (:meth:`HelixServer.fail`), and counts what it sees.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAME = re.compile(r"^[a-z](?!.*--)[a-z0-9\-@.+_]{1,62}(?<!-)$")
ENDED = ("completed", "error", "cancelled")


@dataclass
class Fault:
    """One way to fail: what of, how often, and how."""

    method: str
    path: str
    times: int
    kind: str
    value: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class FakeJob:
    """A job: its process, and what the server says about it."""

    def __init__(self, name: str, body: dict[str, Any], server: "HelixServer") -> None:
        self.name, self.body, self.server = name, body, server
        self.status, self.log = "created", ""
        self.results: dict[str, Any] = {}
        self.details: dict[str, Any] = {}
        self.errors: dict[str, Any] | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.thread = threading.Thread(target=self.work, daemon=True)

    @property
    def config(self) -> dict[str, Any]:
        config: dict[str, Any] = self.body["platform_spec"]["steps"][0]["config"]
        return config

    def work(self) -> None:
        step = self.body["platform_spec"]["steps"][0]
        executor = step["executor"]
        command = executor.get("command") or [*executor["container"]["entrypoint"], *executor["container"]["command"]]
        if command[0] in ("python", "python3"):
            command[0] = sys.executable
        self.turn_from("created", "pending")
        self.server.gate.wait()
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder, "config.json")
            config.write_text(json.dumps(step["config"]))
            env = {"PATH": os.environ["PATH"]}
            env |= {entry["name"]: entry["value"] for entry in step["environment"] if "value" in entry}
            for entry in step["environment"]:
                if "from_secret" in entry:
                    env[entry["name"]] = self.server.secrets[entry["from_secret"]["name"]]
            env |= {
                "NEMO_JOB_ID": self.name,
                "NEMO_JOB_ATTEMPT_ID": f"attempt-of-{self.name}",
                "NEMO_JOB_WORKSPACE": self.server.workspace,
                "NEMO_JOB_FILESET": f"job-fileset-{self.name}",
                "NEMO_JOB_STEP_CONFIG_FILE_PATH": str(config),
                "NEMO_JOB_EPHEMERAL_TASK_STORAGE_PATH": folder,
                "NHX_BASE_URL": self.server.url,
                "NHX_PRINCIPAL": json.dumps({"id": "someone", "groups": ["a", "b"]}),
                **self.server.job_environment,
            }
            with self.server.lock:
                if not self.turn_from("pending", "active"):
                    return
                self.server.note_running()
                try:
                    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
                    self.process = subprocess.Popen(command, cwd=folder, env=env, start_new_session=True, **streams)
                except OSError as error:
                    self.end("error", {"message": f"Failed to start subprocess: {error}"})
                    return
            output, _ = self.process.communicate()
        self.log, code = output.decode(), self.process.returncode
        self.details["exit_code"] = code
        if self.status == "cancelling":
            self.end("cancelled")
        else:
            self.end("error" if code else "completed", {"message": f"Job exited with code {code}"} if code else None)

    def turn_from(self, before: str, status: str) -> bool:
        """Whether it has the new status now; it has not where it was cancelled meanwhile."""
        with self.server.lock:
            if self.status == before:
                self.status = status
            return self.status == status

    def end(self, status: str, errors: dict[str, Any] | None = None) -> None:
        self.status, self.errors = status, errors
        self.server.note_running()

    def cancel(self) -> None:
        with self.server.lock:
            if self.status in ENDED:
                return
            self.status = "cancelling"
            if self.process is None:
                self.end("cancelled")
            else:
                with suppress(ProcessLookupError):  # it ended by itself just now
                    os.killpg(self.process.pid, signal.SIGTERM)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": f"id-{self.name}",
            "name": self.name,
            "status": self.server.said_status.get(self.name, self.server.say_all or self.status),
            "status_details": self.details,
            "error_details": self.errors,
            "fileset": f"job-fileset-{self.name}",
        }


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that are gone are part of the tests."""


class HelixServer:
    """The server, on a port of its own."""

    def __init__(self) -> None:
        self.workspace = "default"
        self.token: str | None = None
        self.job_environment: dict[str, str] = {}
        self.secrets: dict[str, str] = {}
        self.profiles = [
            {"provider": "subprocess", "profile": "default", "backend": "subprocess"},
            {"provider": "gpu", "profile": "default", "backend": "kubernetes_job"},
            {"provider": "cpu", "profile": "default", "backend": "kubernetes_job"},
        ]
        self.jobs: dict[str, FakeJob] = {}
        self.deleted: dict[str, FakeJob] = {}
        self.files: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.said_status: dict[str, str] = {}
        self.say_all = ""
        self.requests: list[tuple[str, str, float]] = []
        self.headers: list[dict[str, str]] = []
        self.busiest = 0
        self.gate = threading.Event()
        self.gate.set()
        self.lock = threading.RLock()
        self._http = _QuietServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.gate.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        for job in [*self.jobs.values(), *self.deleted.values()]:
            job.cancel()
            job.thread.join(10)

    # ------------------------------------------------------------ told by tests

    def fail(self, method: str, path: str, kind: str, times: int = 10**6, value: Any = None, **headers: str) -> None:
        """Fail the next requests whose path holds a pattern: ``status``, ``cut``, ``slow``, ``text``, ``half``."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        self.faults.append(Fault(method, path, times, kind, value, named))

    def heal(self) -> None:
        self.faults.clear()

    def count(self, method: str, pattern: str) -> int:
        return sum(verb == method and re.search(pattern, path) is not None for verb, path, _ in self.requests)

    def wait_until(self, holds: Callable[[], bool], seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, "it never came to that"
            time.sleep(0.01)

    # ------------------------------------------------------------ noted

    def note_running(self) -> None:
        with self.lock:
            self.busiest = max(self.busiest, sum(job.status not in ENDED for job in self.jobs.values()))

    def fault_for(self, method: str, path: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.times > 0 and fault.method == method and re.search(fault.path, path):
                    fault.times -= 1
                    return fault
        return None

    # ------------------------------------------------------------ routes

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        parts = [urllib.parse.unquote(part) for part in path.partition("?")[0].strip("/").split("/")]
        if parts[:3] == ["apis", "jobs", "v2"] and parts[3:] == ["execution-profiles"] and method == "GET":
            return 200, self.profiles
        if parts[:4] == ["apis", "files", "v2", "workspaces"] and method == "PUT":
            self.files["/".join((parts[4], parts[6])) + "#" + "/".join(parts[8:])] = body
            return 200, {"path": "/".join(parts[8:]), "size": len(body)}
        if parts[:4] != ["apis", "jobs", "v2", "workspaces"] or parts[5:6] != ["jobs"]:
            return 404, {"detail": "Not Found"}
        workspace, rest = parts[4], parts[6:]
        if not rest:
            return self.create(workspace, json.loads(body))
        job = self.jobs.get(rest[0]) if workspace == self.workspace else None
        if job is None:
            return 404, {"detail": f"Job '{rest[0]}' not found in workspace '{workspace}'."}
        return self.of_job(method, job, rest[1:], body)

    def create(self, workspace: str, body: dict[str, Any]) -> tuple[int, Any]:
        if workspace != self.workspace:
            return 422, {"detail": f"Workspace '{workspace}' does not exist. Please create the workspace first."}
        name, step = body["name"], body["platform_spec"]["steps"][0]
        if not NAME.match(name) or len(name) > 51:
            return 422, {"detail": [{"loc": ["body", "name"], "msg": "String should match pattern"}]}
        executor = step["executor"]
        profile = {"provider": executor["provider"], "profile": executor["profile"]}
        if not any(profile.items() <= entry.items() for entry in self.profiles):
            return 422, {
                "detail": f"The execution profile '{executor['provider']}/{executor['profile']}' does not exist."
            }
        wanted = [entry["from_secret"]["name"] for entry in step["environment"] if "from_secret" in entry]
        if not self.secrets.keys() >= set(wanted):
            return 409, {"detail": "Unable to create job because one or more referenced secrets were not found."}
        with self.lock:
            if name in self.jobs:
                return 409, {"detail": f"Job '{name}' already exists in workspace '{workspace}'."}
            job = self.jobs[name] = FakeJob(name, body, self)
        self.note_running()
        job.thread.start()
        return 201, job.to_json()

    def of_job(self, method: str, job: FakeJob, rest: list[str], body: bytes) -> tuple[int, Any]:
        match (method, rest):
            case ("GET", [] | ["status"]):
                return 200, job.to_json()
            case ("POST", ["cancel"]):
                job.cancel()
                return 200, job.to_json()
            case ("DELETE", []):
                if job.status not in ENDED:
                    return 409, {"detail": "Cannot delete job while it is 'active'."}
                self.deleted[job.name] = self.jobs.pop(job.name)
                return 204, None
            case ("GET", ["logs"]):
                return 200, {"data": [{"message": line} for line in job.log.splitlines()[-20:]], "next_page": None}
            case ("GET", ["results"]):
                return 200, {"data": [{"name": name, **kept} for name, kept in job.results.items()]}
            case ("POST", ["results", name]):
                with self.lock:
                    if name in job.results:
                        return 409, {"detail": f"Entity with name '{name}' already exists"}
                    job.results[name] = json.loads(body)
                return 201, {"name": name}
            case ("GET", ["results", name, "download"]):
                content = self.files.get(job.results.get(name, {}).get("artifact_url", ""))
                if content is None:
                    return 404, {"detail": f"Result '{name}' for job '{job.name}' not found."}
                return 200, content
        return 404, {"detail": "Not Found"}


def _handler(server: HelixServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 20

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with server.lock:
                server.requests.append((self.command, self.path, time.monotonic()))
                server.headers.append(dict(self.headers))
            fault = server.fault_for(self.command, self.path)
            if fault is not None and self.fail(fault, body):
                return
            refused = server.token is not None and self.headers.get("Authorization") != f"Bearer {server.token}"
            if refused and "X-NHX-Internal" not in self.headers:
                given = self.headers.get("Authorization", "none")
                self.say(401, {"detail": f"the token is not valid: {given}"})
                return
            self.say(*server.answer(self.command, self.path, body))

        def fail(self, fault: Fault, body: bytes) -> bool:
            """Fail; False where the answer follows all the same."""
            if fault.kind == "slow":
                time.sleep(fault.value)
                return False
            if fault.kind == "status":
                self.say(fault.value, {"detail": "told to fail"}, fault.headers)
            elif fault.kind == "text":
                self.say(200, fault.value, {"Content-Type": "text/html"})
            elif fault.kind == "done":  # it does what is asked, and the answer is lost
                server.answer(self.command, self.path, body)
                self.cut()
            elif fault.kind == "half":
                _, content = server.answer(self.command, self.path, body)
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2])
                self.cut()
            else:
                self.cut()
            return True

        def cut(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def say(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
            data = b"" if content is None else content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815

        def log_message(self, *args: object) -> None:
            """Tests say what they see themselves."""

    return Handler
