"""What runs inside a Helix job: the request handed to the agent, the agent run, what it left handed back.

The source of this file is sent in the step's config and run there by whatever ``python3`` the job has, so it uses the
standard library only (Python 3.8 or later) and nothing of this package. It ends with the agent's exit status; 128 + N
when signal N killed it, 124 at its time limit, 127 when it could not be started, and 70 when what it left could not
be handed back.

Handing back is one file of the job's fileset, registered as a result of the job: a ``tar.gz`` with ``report.json``
first and the workspace under ``workspace/`` after it.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import suppress
from io import BytesIO
from typing import IO, Any

STEP_CONFIG = "NEMO_JOB_STEP_CONFIG_FILE_PATH"
SCRATCH = "NEMO_JOB_EPHEMERAL_TASK_STORAGE_PATH"
TOKEN_FILE = "NHX_WORKLOAD_IDENTITY_TOKEN_FILE"
GRACE = 2.0
LOG_LIMIT = 1 << 20
OUTPUT_LIMIT = 256 << 20
NOT_STARTED, TIMED_OUT, NOT_HANDED_BACK = 127, 124, 70
PAUSES = (1, 2, 4, 8, 16, 0)
"""Seconds between the tries of a request; after the last there is none."""


def main() -> int:
    """Run the agent that the step's config names and hand back what it left; gives the exit status of the job."""
    with open(os.environ[STEP_CONFIG], encoding="utf-8") as file:
        config = json.load(file)
    scratch = os.environ.get(SCRATCH, "")
    folder = tempfile.mkdtemp(prefix="metricbench-", dir=scratch if os.path.isdir(scratch) else None)
    try:
        workspace, files = os.path.join(folder, "workspace"), os.path.join(folder, "files")
        command = lay_out(config, workspace, files)
        report = run_agent(command, workspace, config["timeout"], {"METRICBENCH_FILES": files})
        print("metricbench:", in_words(report), flush=True)
        try:
            archive = os.path.join(folder, "result.tar.gz")
            pack(archive, report, workspace, config["workspace_limit"])
            hand_back(archive, config["result"])
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            print("metricbench: what the agent left could not be handed back:", said, file=sys.stderr, flush=True)
            return NOT_HANDED_BACK
        return exit_status(report)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lay_out(config: dict[str, Any], workspace: str, files: str) -> list[str]:
    """Write the request and the files that came with it; gives the command, with the paths that they have here."""
    os.mkdir(workspace)
    os.mkdir(files)
    there = {}
    for name, sent in config["files"].items():
        path = there[name] = os.path.join(files, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(sent["content"]))
        os.chmod(path, 0o755 if sent["executable"] else 0o644)
    with open(os.path.join(workspace, "request.json"), "w", encoding="ascii") as text:
        json.dump({**config["request"], "workspace": workspace}, text, indent=1)
    return [there.get(argument, argument) for argument in config["command"]]


# ---------------------------------------------------------------- the agent


def run_agent(command: list[str], workspace: str, timeout: float, environment: dict[str, str]) -> dict[str, Any]:
    """Run the agent in a process group of its own, its output in two files of the workspace; gives the report."""
    report: dict[str, Any] = {"metricbench": 1, "timeout": timeout, "not_started": None, "returncode": None}
    began = time.monotonic()
    out_path, err_path = (os.path.join(workspace, name) for name in ("agent.stdout", "agent.stderr"))
    with open(out_path, "w+b") as out, open(err_path, "w+b") as err:
        try:
            process = subprocess.Popen(
                command,
                cwd=workspace,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            report["not_started"] = f"{command[0]} cannot be started: {error}"
            return {**report, "timed_out": False, "overflowed": False, "duration": 0.0}
        signal.signal(signal.SIGTERM, lambda *_: stop_all(process))  # the job is cancelled
        end = await_end(process, began + timeout, (out, err))
        signal_group(process, signal.SIGKILL)  # what it left running
        report.update(timed_out=end == "timed_out", overflowed=end == "overflowed", returncode=process.wait())
        for log in (out, err):
            bound_log(log)
    return {**report, "duration": time.monotonic() - began}


def await_end(process: subprocess.Popen[bytes], deadline: float, logs: tuple[IO[bytes], ...]) -> str:
    """Wait until the agent ends, or stop it at its limits of time and output."""
    while True:
        try:
            process.wait(min(0.1, max(0.0, deadline - time.monotonic())))
            return "ended"
        except subprocess.TimeoutExpired:
            pass
        end = "timed_out" if time.monotonic() >= deadline else "overflowed"
        if end == "timed_out" or sum(os.fstat(log.fileno()).st_size for log in logs) > OUTPUT_LIMIT:
            signal_group(process, signal.SIGTERM)
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                signal_group(process, signal.SIGKILL)
            return end


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal the agent and whatever it started; nothing where all of it is gone."""
    with suppress(ProcessLookupError, PermissionError):  # macOS refuses for a group of zombies
        os.killpg(process.pid, number)


def stop_all(process: subprocess.Popen[bytes]) -> None:
    """End with the agent: nobody waits for its result."""
    signal_group(process, signal.SIGTERM)
    time.sleep(0.2)
    signal_group(process, signal.SIGKILL)
    os._exit(128 + signal.SIGTERM)


def bound_log(log: IO[bytes]) -> None:
    """Cut a long log to its beginning and its end."""
    size = os.fstat(log.fileno()).st_size
    if size <= LOG_LIMIT:
        return
    head, tail = LOG_LIMIT // 4, LOG_LIMIT - LOG_LIMIT // 4
    log.seek(size - tail)
    end = log.read(tail)
    log.seek(head)
    log.write(b"\n[... %d bytes left out ...]\n" % (size - head - tail) + end)
    log.truncate()


def exit_status(report: dict[str, Any]) -> int:
    """The exit status of the job, as a shell would give that of the agent."""
    if report["not_started"] is not None:
        return NOT_STARTED
    if report["timed_out"]:
        return TIMED_OUT
    status: int = report["returncode"]
    return 128 - status if status < 0 else status or int(report["overflowed"])


def in_words(report: dict[str, Any]) -> str:
    """The last line of the job's log."""
    if report["not_started"] is not None:
        return str(report["not_started"])
    how = "was stopped at its time limit" if report["timed_out"] else f"ended with status {report['returncode']}"
    return f"the agent {how} after {report['duration']:.1f} s"


# ---------------------------------------------------------------- handing back


def pack(archive: str, report: dict[str, Any], workspace: str, limit: int) -> None:
    """Write the archive; of a workspace of more than ``limit`` bytes only the logs, and its size into the report."""
    found, total = [], 0
    for folder, folders, names in os.walk(workspace):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                found.append((path, os.path.relpath(path, workspace).replace(os.sep, "/")))
                total += os.path.getsize(path)
    if total > limit:
        found = [entry for entry in found if entry[1] in ("agent.stdout", "agent.stderr")]
    content = json.dumps({**report, "too_large": total if total > limit else None}).encode("ascii")
    # dereference: a hard link is a file like any other
    with gzip.open(archive, "wb", 5) as packed, tarfile.open(fileobj=packed, mode="w|", dereference=True) as tar:
        entry = tarfile.TarInfo("report.json")
        entry.size = len(content)
        tar.addfile(entry, BytesIO(content))
        for path, name in found:
            if name != "request.json":
                tar.add(path, "workspace/" + name, recursive=False)


def hand_back(archive: str, result: str) -> None:
    """Put the archive into the job's fileset and register it as a result of the job.

    Raises:
        OSError: the server does not take it.
        ValueError: the server gives no token for the one that the job was handed.
    """
    environment, quote = os.environ, urllib.parse.quote
    workspace, job = environment["NEMO_JOB_WORKSPACE"], environment["NEMO_JOB_ID"]
    base = environment["NHX_BASE_URL"].rstrip("/")
    files = (environment.get("NHX_FILES_URL") or base).rstrip("/")
    jobs = (environment.get("NHX_JOBS_URL") or base).rstrip("/")
    fileset = environment.get("NEMO_JOB_FILESET") or f"job-fileset-{job}"
    path = f"results/{environment['NEMO_JOB_ATTEMPT_ID']}/{result}"
    headers = identity(base)
    where = f"{files}/apis/files/v2/workspaces/{quote(workspace)}/filesets/{quote(fileset)}/-/{quote(path)}"
    with open(archive, "rb") as content:
        size = {"Content-Length": str(os.path.getsize(archive)), "Content-Type": "application/octet-stream"}
        send("PUT", where, {**headers, **size}, content)
    where = f"{jobs}/apis/jobs/v2/workspaces/{quote(workspace)}/jobs/{quote(job)}/results/{quote(result)}"
    body = json.dumps({"artifact_url": f"{workspace}/{fileset}#{path}", "artifact_storage_type": "fileset"})
    # 409: a job that its cluster started twice has registered it before
    send("POST", where, {**headers, "Content-Type": "application/json"}, BytesIO(body.encode("ascii")), (409,))


def identity(base: str) -> dict[str, str]:
    """Who this is to the server: by the token that the job was handed, or else as the one who submitted it.

    Raises:
        OSError: the server is out of reach.
        ValueError: it gives no token for the one that the job was handed.
    """
    if os.environ.get(TOKEN_FILE):
        return {"X-NHX-Internal": "true", "Authorization": "Bearer " + exchanged(base, os.environ[TOKEN_FILE])}
    principal = json.loads(os.environ.get("NHX_PRINCIPAL") or "{}")
    headers = {"X-NHX-Internal": "true"}
    names = {
        "id": "X-NHX-Principal-Id",
        "email": "X-NHX-Principal-Email",
        "groups": "X-NHX-Principal-Groups",
        "account_id": "X-NHX-Actor-Account-Id",
        "authz_aliases": "X-NHX-Actor-Aliases",
        "on_behalf_of": "X-NHX-Principal-On-Behalf-Of",
        "on_behalf_of_email": "X-NHX-Principal-On-Behalf-Of-Email",
        "on_behalf_of_groups": "X-NHX-Principal-On-Behalf-Of-Groups",
        "on_behalf_of_account_id": "X-NHX-Subject-Account-Id",
        "on_behalf_of_authz_aliases": "X-NHX-Subject-Aliases",
    }
    for key, header in names.items():
        value = principal.get(key)
        if value:
            headers[header] = value if isinstance(value, str) else ",".join(value)
    return headers


def exchanged(base: str, token_file: str) -> str:
    """An access token for the token that the job was handed (OAuth 2.0 Token Exchange, RFC 8693, section 2.1).

    Raises:
        OSError: the server is out of reach.
        ValueError: the server exchanges none.
    """
    with open(token_file, encoding="utf-8") as file:
        subject = file.read().strip()
    oidc = json.loads(send("GET", base + "/apis/auth/discovery", {}, None)).get("oidc") or {}
    if not oidc.get("workload_token_exchange_enabled"):
        raise ValueError("the server does not exchange the token that it handed to the job")
    kinds = "urn:ietf:params:oauth:token-type:"
    opaque = "urn:nvidia:nemo:params:oauth:token-type:docker-opaque-workload-proof"
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "client_id": oidc["workload_client_id"],
        "subject_token": subject,
        "subject_token_type": opaque if subject.startswith("nhx_obo_v1.") else kinds + "jwt",
        "requested_token_type": kinds + "access_token",
    }
    for key in ("audience", "scope"):
        if oidc.get("workload_" + key):
            form[key] = oidc["workload_" + key]
    body = BytesIO(urllib.parse.urlencode(form).encode("ascii"))
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = json.loads(send("POST", oidc["workload_token_endpoint"], headers, body))
    return str(answer["access_token"])


def send(
    method: str, url: str, headers: dict[str, str], content: IO[bytes] | None, accepted: tuple[int, ...] = ()
) -> bytes:
    """Send a request, again while the server is out of reach or overloaded; gives what it answers.

    Raises:
        OSError: it does not take it.
    """
    for pause in PAUSES:
        data: Any = None
        if content is not None:
            content.seek(0)
            data = content if "Content-Length" in headers else content.read()
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            if error.code in accepted:
                return b""
            if not pause or (error.code != 429 and error.code < 500):
                said = error.read(500).decode("utf-8", "replace")
                raise OSError(f"{method} {url}: HTTP {error.code}: {said}") from None
        except (OSError, http.client.HTTPException) as error:
            if not pause:
                raise OSError(f"{method} {url}: {type(error).__name__}: {error}") from None
        time.sleep(pause)
    raise AssertionError("not reached")


if __name__ == "__main__":
    sys.exit(main())
