"""The ``helix`` runner: one job an attempt on the jobs API of a NeMo Helix server, submitted ahead of its turn."""

import importlib.util
import re
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pytest_metricbench.answers import plain_text, read_scores
from pytest_metricbench.argv import Argv
from pytest_metricbench.bases import Role, Runner
from pytest_metricbench.contracts import RESPONSE_FILE, TIME_OUT, AttemptRequest, ContractError, Json, Outcome, Seconds
from pytest_metricbench.digests import PREFIX, digest_value
from pytest_metricbench.named_files import NamedFile
from pytest_metricbench.processes import env_problem, log_tail
from pytest_metricbench.runners.command import CommandRunner
from pytest_metricbench.runners.helix.client import HelixClient, HelixError
from pytest_metricbench.runners.helix.forms import Executor, JobArgv, as_sent, check_sent, problem, sent_files
from pytest_metricbench.runners.helix.jobs import RESULT, TAKEN, Job, Jobs
from pytest_metricbench.runners.helix.results import WORKSPACE_LIMIT, Report, ResultError, clear, unpack

SOURCE: Final = "metricbench"
"""What jobs of ours are said to come from."""
LOOK_FURTHER: Final = 4
"""How many times ``max_in_flight`` attempts are begun: one slow job at the front must not idle the cluster."""
_VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"
_ADDRESS: Final = r"^https?://[^/?#@\s]+(/[^?#@\s]*)?$"
_RESERVED: Final = ("NEMO_JOB_", "NHX_")
_TOKEN: Final = "leave it out, and name the variable that holds a token with token_env"
_MAKING: Final = threading.RLock()
_PROGRAM: Final = Path(__file__).with_name("job.py")
EnvName: TypeAlias = Annotated[str, Field(pattern=_VARIABLE)]


class HelixRunner(Runner):
    """Runs the agent as a job of a cluster, and the verifier here on what the job handed back.

    The agent is started in a new folder that holds ``request.json``; an exit status other than 0 and running out of
    time mean that it died. Every file that it leaves there comes back as a result of the job. Then the verifier runs
    on them, as it does for the ``command`` runner; without one, ``response.json`` is the agent's.
    """

    kind: Literal["helix"] = "helix"
    base_url: Annotated[str, Role.NEITHER] = Field(
        description="Where the server is: http://host:port.", json_schema_extra={"pattern": _ADDRESS}
    )
    workspace: Annotated[str, Role.NEITHER] = Field(
        "default", min_length=1, max_length=100, description="The workspace of its jobs."
    )
    executor: Executor = Field(description="Under which of the server's execution profiles a job runs, and in what.")
    command: JobArgv = Field(
        description="The agent's command line in the job. What it names beside the file is sent along."
    )
    files: list[NamedFile] = Field([], description="Other files that the agent needs beside those, sent with each job.")
    env: dict[EnvName, str] = Field({}, description="Environment variables of the job.")
    secrets: dict[EnvName, Annotated[str, Field(min_length=1)]] = Field(
        {}, description="Environment variables of the job that take the value of a secret of the server: its name."
    )
    timeout: Annotated[Seconds, Role.NEITHER] = Field(
        600, description="Seconds that the agent may take once its job runs; and that the verifier may take."
    )
    verifier: Annotated[Argv | None, Role.VERIFIER] = Field(
        None, description="The verifier's command line, run here when the agent ended with exit status 0."
    )
    verifier_env: Annotated[dict[EnvName, str | None], Role.VERIFIER] = Field(
        {}, description="Its environment beside PATH, HOME and LANG. null takes the value from the environment."
    )
    token_env: Annotated[EnvName | None, Role.NEITHER] = Field(
        None, description="The environment variable that holds the server's token."
    )
    max_in_flight: Annotated[int, Role.NEITHER] = Field(
        8, ge=1, le=10_000, description="How many jobs each process of pytest has on the server at a time."
    )
    poll: Annotated[Seconds, Role.NEITHER] = Field(
        1, description="Seconds between two looks at a job, at first; up to 15 times as many while nothing changes."
    )
    job_timeout: Annotated[Seconds | None, Role.NEITHER] = Field(
        None, description="Seconds after which a job is given up, its time in the queue included; none without it."
    )
    transport_retries: Annotated[int, Role.NEITHER] = Field(
        8, ge=0, le=100, description="How often a request is tried again that did not get through."
    )
    keep_jobs: Annotated[bool, Role.NEITHER] = Field(
        False, description="Leave jobs on the server whose attempts were measured; others always stay there."
    )

    # ------------------------------------------------------------ checks

    @field_validator("base_url", mode="after")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if "@" in value:
            raise problem("is an address with a user in it, and this file is no place for that", _TOKEN)
        if re.match(_ADDRESS, value) is None or not _has_a_host(value):
            raise problem(f"{value[:100]!r} is no address of a server", "http://host:port or https://host is expected")
        return value

    @field_validator("env", "secrets", mode="after")
    @classmethod
    def _no_reserved_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if name.startswith(_RESERVED):
                raise problem(f"{name} is a name of the server's own", "take another one")
        return value

    @model_validator(mode="after")
    def _fits(self, info: ValidationInfo) -> Self:
        twice = sorted(self.env.keys() & self.secrets.keys())
        if twice:
            raise problem(f"env and secrets both give {twice[0]}", "name it once")
        check_sent(as_sent(self.command, self.files))
        context: Mapping[str, Any] = info.context or {}
        if importlib.util.find_spec("httpx") is None and not context.get("cached_only"):
            raise problem("the runner helix needs httpx", "pip install 'pytest-metricbench[helix]'")
        return self

    # ------------------------------------------------------------ attempts

    @property
    def time_limit(self) -> float | None:
        """Seconds after which an agent is stopped."""
        return self.timeout

    @property
    def concurrent(self) -> bool:
        """Those that wait for their jobs share the connection, and what is submitted."""
        return True

    @property
    def ahead(self) -> int:
        """How many attempts are begun before their turn: no more than ``max_in_flight`` of them are on the server."""
        return self.max_in_flight * LOOK_FURTHER

    def begin(self, request: AttemptRequest, workspace: Path) -> None:
        """Submit the attempt's job as soon as there is room for it."""
        self._jobs.begin(self._job(request))

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        """Wait for the attempt's job, and score what it handed back."""
        with _MAKING:  # one connection and one list of jobs, whatever the number of threads
            jobs = self._jobs
        job = jobs.expect(self._job(request))
        try:
            while True:
                jobs.wait(job)
                outcome = self._collect(job, request, workspace)
                jobs.forget(job)
                if outcome is not None:
                    return replace(outcome, trial_name=job.name)
                job = jobs.expect(self._job(request))
        except HelixError as error:  # whatever runs on there is found again by the next try
            jobs.forget(job)
            return Outcome.unmeasured(error.kind, plain_text(str(error)), "setup", trial_name=job.name or None)
        except BaseException:  # Ctrl-C, and the time-outs of others
            with suppress(HelixError):
                jobs.drop(job)
            raise

    def rescore(self, request: AttemptRequest, workspace: Path) -> Outcome | None:
        """Run the verifier on what an earlier attempt left; None without a verifier: the agent wrote the response."""
        return None if self._local is None else self._local.rescore(request, workspace)

    def close(self) -> None:
        """Have the jobs cancelled that are still running. What has ended stays on the server for the next run."""
        jobs, client = self.__dict__.pop("_jobs", None), self.__dict__.pop("_client", None)
        if jobs is not None:
            jobs.close()
        if client is not None:
            client.close()

    # ------------------------------------------------------------ jobs

    @cached_property
    def _client(self) -> HelixClient:
        return HelixClient(self.base_url, self.workspace, token_env=self.token_env, retries=self.transport_retries)

    @cached_property
    def _jobs(self) -> Jobs:
        return Jobs(self._client, limit=self.max_in_flight, poll=self.poll, patience=self.job_timeout)

    @cached_property
    def _compute(self) -> str:
        """The server's word for the compute of the execution profile that jobs run under.

        Raises:
            HelixError: it has no such profile.
        """
        wanted = self.executor
        listed = [entry for entry in self._client.profiles() if entry.get("backend") == wanted.provider]
        found = [str(entry.get("provider")) for entry in listed if entry.get("profile") == wanted.profile]
        if wanted.compute is not None:
            found = [compute for compute in found if compute == wanted.compute]
        if found:
            return "cpu" if "cpu" in found else found[0]
        have = ", ".join(f"{entry.get('profile')} ({entry.get('provider')})" for entry in listed) or "none"
        name = f"{wanted.profile} ({wanted.compute})" if wanted.compute else wanted.profile
        message = f"{self.base_url} has no execution profile {name} of the provider {wanted.provider}; it has {have}"
        raise HelixError("NoSuchProfile", message)

    def _job(self, request: AttemptRequest) -> Job:
        return Job(_job_name(request, self.command.written), lambda: self._content(request))

    def _content(self, request: AttemptRequest) -> dict[str, Json]:
        """What is submitted for an attempt."""
        config = {
            "metricbench": 1,
            "program": _PROGRAM.read_text("utf-8"),
            "request": {**request.to_json(), "workspace": ""},  # the job has its own
            "command": list(self.command.written),
            "files": sent_files(as_sent(self.command, self.files)),
            "timeout": self.timeout,
            "workspace_limit": WORKSPACE_LIMIT,
            "result": RESULT,
        }
        given = [{"name": name, "value": value} for name, value in self.env.items()]
        secret = [{"name": name, "from_secret": {"name": value}} for name, value in self.secrets.items()]
        step = {
            "name": "attempt",
            "executor": self.executor.to_step(self._compute),
            "environment": given + secret,
            "config": config,
        }
        names = (request.experiment, request.case.id, request.variant.id, f"{request.task.id}[{request.attempt}]")
        return {
            "description": "::".join(names),
            "source": SOURCE,
            "spec": {},
            "platform_spec": {"steps": [step]},
        }

    # ------------------------------------------------------------ answers

    def _collect(self, job: Job, request: AttemptRequest, workspace: Path) -> Outcome | None:
        """What became of the attempt of a job that has ended; None where another run took its result.

        Raises:
            HelixError: its result cannot be fetched.
        """
        results = self._client.results(job.name) or {}
        if RESULT not in results:
            return self._without_result(job)
        if TAKEN in results:
            return None
        try:
            report = self._fetch(job, workspace)
            outcome = None if report is None else self._outcome(report, request, workspace)
        except ResultError as error:
            clear(workspace)
            message = plain_text(f"the result of the job {job.name}: {error}")
            outcome = Outcome.unmeasured("ResultDamaged", message, "setup")
        if outcome is None:
            return self._without_result(job)
        # Only now: a run that is killed while it verifies leaves the result to the next one.
        if not self._client.register_result(job.name, TAKEN, results[RESULT]):
            clear(workspace)
            return None
        if outcome.kind != "unmeasured" and not self.keep_jobs:
            with suppress(HelixError):  # it is marked as taken, and may as well stay
                self._client.delete(job.name)
        return outcome

    def _fetch(self, job: Job, workspace: Path) -> Report | None:
        """Lay out here what a job handed back; None where the server no longer has it.

        Raises:
            ResultError: it is damaged.
            HelixError: it cannot be fetched, or this machine cannot take it: it stays on the server.
        """
        try:
            with tempfile.TemporaryFile() as archive:
                return unpack(archive, workspace) if self._client.download(job.name, RESULT, archive) else None
        except OSError as error:
            clear(workspace)
            message = f"what the job {job.name} handed back cannot be written here, and stays on the server: {error}"
            raise HelixError("CannotBeWritten", message) from None

    def _without_result(self, job: Job) -> Outcome:
        """A job that has ended and handed nothing back: nobody knows what the agent did."""
        details = job.details.get("error_details")
        said = details.get("message") if isinstance(details, dict) else None
        status = f"{job.status} ({said})" if isinstance(said, str) and said else job.status
        code = f", exit status {job.exit_code}" if job.exit_code and str(job.exit_code) not in status else ""
        message = f"the job {job.name} ended as {status}{code} and handed nothing back"
        tail = self._client.log_tail(job.name)
        message += f"; the end of its log:\n{tail}" if tail else "; it has no log"
        kinds = {"completed": "ResultMissing", "cancelled": "JobCancelled"}
        return Outcome.unmeasured(kinds.get(job.status, "JobFailed"), plain_text(message), "setup")

    def _outcome(self, report: Report, request: AttemptRequest, workspace: Path) -> Outcome:
        stderr = workspace / "agent.stderr"
        not_started = report.not_started or env_problem(self.command.written, report.ended, stderr)
        if not_started is not None:
            return Outcome.unmeasured("CannotStartError", plain_text(f"in the job: {not_started}"), "setup")
        how = report.ended.describe(report.timeout)
        if how is not None:
            limit = report.timeout if report.timed_out else None
            tail = log_tail(stderr)
            told = f"; the end of its stderr:\n{tail}" if tail else "; it wrote nothing to stderr"
            return Outcome.died(TIME_OUT if limit else "AgentFailed", f"the agent {how}{told}", time_limit=limit)
        if report.too_large is not None:
            message = f"the agent left {report.too_large} bytes; at most {WORKSPACE_LIMIT} are handed back"
            return Outcome.unmeasured("WorkspaceTooLarge", message, "agent")  # nothing is left to score again
        return self._score(request, workspace)

    def _score(self, request: AttemptRequest, workspace: Path) -> Outcome:
        verified = self.rescore(request, workspace)
        if verified is not None:
            return verified
        try:
            return Outcome.scored(read_scores(workspace / RESPONSE_FILE))
        except ContractError as error:
            return Outcome.unmeasured("ContractError", f"the agent's answer: {error}", "contract")

    @cached_property
    def _local(self) -> CommandRunner | None:
        """What runs the verifier: it does the same for the ``command`` runner."""
        if self.verifier is None:
            return None
        return CommandRunner.model_construct(
            agent=self.verifier, verifier=self.verifier, timeout=self.timeout, env=self.verifier_env
        )


def _has_a_host(address: str) -> bool:
    """Whether an address names a host, and a port that there can be."""
    try:
        parts = urlsplit(address)
        return bool(parts.hostname and parts.hostname.encode("idna")) and parts.port != 0
    except ValueError:  # of a port, of brackets, or of what no host can be called
        return False


def _job_name(request: AttemptRequest, command: Sequence[str]) -> str:
    """The name of an attempt's jobs: the fingerprint, what else tells the attempt apart, and the slot.

    It holds to the server's rules for names: lower case, no two hyphens in a row, at most 51 characters
    (what it makes of them for the job's files must have room in 63).
    """
    key = [request.experiment, request.case.id, request.variant.id, request.task.id, request.seed]
    fingerprint = request.fingerprint or digest_value([request.variant.params, request.task.params, list(command)])
    digest = digest_value(key).removeprefix(PREFIX)
    shown = re.sub("[^0-9a-f]", "", fingerprint.removeprefix(PREFIX).lower())[:16] or "0"
    return f"mb-{shown}-{digest[:10]}-{request.attempt}"
