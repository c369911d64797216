"""The ``harbor`` runner: one Harbor trial an attempt, in this process or by another interpreter's Harbor."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, ValidationInfo, model_validator

from pytest_metricbench.bases import Role, Runner
from pytest_metricbench.contracts import AttemptRequest, Json, Outcome, Seconds
from pytest_metricbench.digests import digest_value
from pytest_metricbench.interop.harbor.jobs import EVIDENCE
from pytest_metricbench.processes import (
    CannotStartError,
    MissingVariableError,
    clean_environment,
    run_process,
)
from pytest_metricbench.runners.harbor import variants as harbor_variants
from pytest_metricbench.runners.harbor.config import (
    FIXED_ENV,
    EnvironmentKey,
    Factor,
    HarborEnvironment,
    HarborRetry,
    HarborVerifier,
    OutcomeName,
    Text,
    VerifierKey,
    job_config,
    job_name,
    known_types,
    retry_config,
    trial_config,
)
from pytest_metricbench.runners.harbor.found import absolute, chosen_executable, command_of, problem, require_harbor
from pytest_metricbench.runners.harbor.in_process import Ended, Scene, run_in_process
from pytest_metricbench.runners.harbor.modules import code_files, is_import_path
from pytest_metricbench.runners.harbor.outcomes import advised, as_text, late_outcome, result_outcome, told
from pytest_metricbench.runners.harbor.tasks import HarborTask, HarborTasks, checked_task, folder_files, located
from pytest_metricbench.runners.harbor.trials import (
    find_trial,
    harbor_version,
    keep_files,
    read_about,
    write_about,
)
from pytest_metricbench.runners.harbor.variants import HarborVariant
from pytest_metricbench.sources import SourceError

_JOBS: Final = "jobs"
_CONFIG: Final = "job.json"
_ALWAYS_SEEN: Final = frozenset({"PATH", "HOME", "LANG", "PYTHONPATH", *FIXED_ENV})
"""Names of environment variables of Harbor that no experiment has to name."""


GRACE: Final = 30.0
"""Seconds that an executable may take to remove an environment: ``docker compose down`` waits ten for a container.
A Harbor that is killed leaves its containers behind. Asked with SIGTERM, and not its children, which it needs for that,
it cancels the trial, removes the environment and writes the trial's result."""


class HarborRunner(Runner):
    """Runs one Harbor trial for each attempt.

    A variant is the configuration of an agent, a task is a folder. With ``harbor`` the trial is a job of that
    executable's; without it the trial runs in this process, where Harbor must be installed then. What became of it is
    read from the trial's ``result.json`` either way.
    """

    kind: Literal["harbor"] = "harbor"
    harbor: Annotated[str, AfterValidator(absolute), Role.NEITHER] | None = Field(
        None, description="The harbor executable, or its interpreter, as an absolute path; without it, in process."
    )
    environment: EnvironmentKey = Field(
        default_factory=lambda: HarborEnvironment.model_validate({}),
        description="Where the trials run; docker by default.",
    )
    verifier: Annotated[VerifierKey, Role.VERIFIER] = Field(
        default_factory=lambda: HarborVerifier.model_validate({}), description="How they are verified."
    )
    env: dict[str, str | None] = Field(
        {},
        description="Environment variables of Harbor beside PATH, HOME and LANG. null takes the value from the "
        "environment.",
    )
    python_path: list[Text] = Field(["."], description="Folders that hold the modules of agents and environments.")
    artifacts: list[Text] = Field([], description="Paths in the environment that Harbor keeps after a trial.")
    evidence: list[Text] = Field(
        list(EVIDENCE), description="Patterns of the trial's files that are kept as evidence; * stands for slashes too."
    )
    outcomes: Annotated[dict[Text, OutcomeName], AfterValidator(known_types)] = Field(
        {}, description="What a trial with an exception of that type is, in place of what the table says."
    )
    agent_timeout: Seconds | None = Field(None, description="Seconds for the agent, in place of the task's.")
    agent_max_timeout: Seconds | None = Field(None, description="The most seconds that a task may give the agent.")
    timeout_multiplier: Factor | None = Field(None, description="Factor of all limits without one of their own.")
    agent_timeout_multiplier: Factor | None = Field(None, description="Factor of the agent's limit.")
    agent_setup_timeout: Annotated[Seconds | None, Role.NEITHER] = Field(
        None, description="Seconds for installing the agent."
    )
    agent_setup_timeout_multiplier: Annotated[Factor | None, Role.NEITHER] = Field(
        None, description="Factor of the limit for installing the agent."
    )
    verifier_timeout: Annotated[Seconds | None, Role.NEITHER] = Field(
        None, description="Seconds for the verifier, in place of the task's."
    )
    verifier_timeout_multiplier: Annotated[Factor | None, Role.NEITHER] = Field(
        None, description="Factor of the verifier's limit."
    )
    environment_build_timeout_multiplier: Annotated[Factor | None, Role.NEITHER] = Field(
        None, description="Factor of the limit for building the environment."
    )
    timeout: Annotated[Seconds | None, Role.NEITHER] = Field(
        None, description="Seconds that a whole trial may take, whatever its parts may; none without it."
    )
    retry: Annotated[HarborRetry, Role.NEITHER] = Field(
        default_factory=lambda: HarborRetry.model_validate({}), description="How Harbor repeats trials."
    )
    force_build: Annotated[bool, Role.NEITHER] = Field(False, description="Build images anew for every trial.")
    delete: Annotated[bool, Role.NEITHER] = Field(True, description="Remove the environment after a trial.")

    variant_params: ClassVar = HarborVariant
    task_params: ClassVar = HarborTask
    task_sources: ClassVar = (HarborTasks,)

    _folder: Path = PrivateAttr(default_factory=Path.cwd)

    @model_validator(mode="after")
    def _is_ready(self, info: ValidationInfo) -> Self:
        context = info.context or {}
        if context.get("folder") is not None:
            self._folder = Path(context["folder"]).absolute()
        if not context.get("cached_only"):
            require_harbor(self.executable)
            self._check_python_path()
            self._check_code()
        return self

    @property
    def folder(self) -> Path:
        """The experiment's folder, in which the trials' processes start."""
        return self._folder

    @property
    def executable(self) -> str | None:
        """The executable that runs the trials; None where they run in this process."""
        return chosen_executable(self.harbor)

    @property
    def roots(self) -> list[Path]:
        """The folders of ``python_path``."""
        return [Path(os.path.abspath(self.folder / written)) for written in self.python_path]

    @property
    def time_limit(self) -> float | None:
        """Seconds after which a trial is stopped."""
        return self.timeout

    @property
    def concurrent(self) -> bool:
        """An executable's trials are in processes of their own; one in this process takes all of its surroundings."""
        return self.executable is not None

    @property
    def serial_advice(self) -> str:
        """Name an executable."""
        return "name an executable with the key harbor, whose trials are in processes of their own"

    # ------------------------------------------------------------ the definition

    def inherit(self, baseline: Mapping[str, Json], mutant: Mapping[str, Json]) -> Mapping[str, Json]:
        """The baseline's configuration with what the mutant says; ``kwargs`` and ``env`` are merged key by key."""
        return harbor_variants.inherited(baseline, mutant)

    def variant_files(self, params: Mapping[str, Json], folder: Path) -> Mapping[str, Path]:
        """The agent's code beside the experiment, its skills, prompt, instructions and lists of MCP servers."""
        harbor_variants.refuse_unseen(params, _ALWAYS_SEEN | set(self.env))
        return harbor_variants.named_files(params, folder, self._roots_in(folder))

    def variant_warnings(self, params: Mapping[str, Json], folder: Path) -> Sequence[str]:
        """What is allowed about a variant's configuration and probably not meant."""
        found = harbor_variants.unread_kwargs(params, self._roots_in(folder))
        return [
            f"nothing in {found.file} reads the kwarg {name!r} of {params['agent']}, and Harbor passes it on "
            "whatever it is called: a mutant that differs in nothing else survives"
            for name in found.unread
        ]

    def task_files(self, params: Mapping[str, Json], folder: Path) -> Mapping[str, Path]:
        """Every file of the task, and the code of a custom environment and verifier."""
        written = str(params["path"]).rstrip("/")
        task = located(written, folder, "task")
        checked_task(task, written)
        files = dict(folder_files(task, written))
        for name in (self.environment.type, self.verifier.type):
            if name is not None and is_import_path(name):
                files.update(code_files(name, self._roots_in(folder), folder))
        return files

    def _roots_in(self, folder: Path) -> list[Path]:
        return [Path(os.path.abspath(folder / written)) for written in self.python_path]

    def _check_python_path(self) -> None:
        for written, root in zip(self.python_path, self.roots, strict=True):
            if not root.is_dir():
                raise problem(f"the folder {written!r} of python_path does not exist", f"it would be {root}")
            for own in (root / "harbor.py", root / "harbor" / "__init__.py"):
                if own.is_file():
                    raise problem(f"{own} would be taken for Harbor itself", "rename it")

    def _check_code(self) -> None:
        """Look for the classes of environment and verifier once, rather than with every task."""
        try:
            for name in (self.environment.type, self.verifier.type):
                if name is not None and is_import_path(name):
                    code_files(name, self.roots, self.folder)
        except SourceError as error:
            raise problem(error.message, error.remedy) from None

    # ------------------------------------------------------------ running

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        """Run one trial, keep what it left, and say what became of it."""
        workspace = workspace.absolute()
        job = workspace / _JOBS / job_name(request)
        try:
            environment = {**FIXED_ENV, **clean_environment(self.env)}
            try:
                ended = self._run(request, workspace, environment)
                return advised(self._finish(ended, job, workspace), job, self.executable, self.python_path)
            finally:
                shutil.rmtree(workspace / _JOBS, ignore_errors=True)
                (workspace / _CONFIG).unlink(missing_ok=True)
        except (MissingVariableError, CannotStartError) as error:
            return Outcome.unmeasured(type(error).__name__, str(error), "setup")
        except SourceError as error:  # a file is gone since the experiment was collected
            return Outcome.unmeasured("SourceError", f"{error.message}; {error.remedy}", "setup")

    def rescore(self, request: AttemptRequest, workspace: Path) -> Outcome | None:
        """Read the kept result again, which helps where the experiment's ``score`` was wrong.

        None where it has no rewards, or the verifier's settings are others than then.
        """
        about = read_about(workspace)
        if about.get("verifier") != self._verifier_digest():
            return None
        outcome = result_outcome(workspace, as_text(about.get("harbor")), self.outcomes)
        return outcome if outcome is not None and outcome.kind == "scored" else None

    def _run(self, request: AttemptRequest, workspace: Path, environment: dict[str, str]) -> Ended:
        jobs = workspace / _JOBS
        executable = self.executable
        if executable is None:
            config = trial_config(self, request, jobs / job_name(request))
            scene = Scene(environment, self.folder, self.roots)
            return run_in_process(config, retry_config(self), scene, self.timeout)
        config_file = workspace / _CONFIG
        config_file.write_text(json.dumps(job_config(self, request, jobs)), "utf-8")
        search = [*map(str, self.roots), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in search if entry)
        ended = run_process(
            [*command_of(executable), "run", "--config", str(config_file), "--yes"],
            cwd=self.folder,
            env=environment,
            stdout=workspace / "agent.stdout",
            stderr=workspace / "agent.stderr",
            timeout=self.timeout,
            leader_grace=GRACE,
        )
        said = ended.describe(self.timeout)
        problem = None if said is None else f"it {said}{told(workspace)}"
        return Ended(problem, ended.timed_out, harbor_version(jobs / job_name(request)))

    def _finish(self, ended: Ended, job: Path, workspace: Path) -> Outcome:
        """Keep what the trial left, and say what became of it."""
        trial = find_trial(job)
        outcome = None
        if trial is not None:
            if ended.timed_out and self.timeout is not None:
                outcome = late_outcome(trial, ended.version, self.timeout)
            outcome = outcome or result_outcome(trial, ended.version, self.outcomes)
            keep_files(trial, workspace, self.evidence)
        write_about(
            workspace,
            {
                "harbor": ended.version,
                "in_process": self.executable is None,
                "job": job.name,
                "trial": None if trial is None else trial.name,
                "verifier": self._verifier_digest(),
            },
        )
        if outcome is not None:
            return outcome
        if ended.timed_out:
            message = f"the trial ran longer than {self.timeout:g} s and was stopped before it had a result"
            return Outcome.unmeasured("TimeOut", message, "setup")
        problem = ended.problem or f"it ended well{told(workspace)}"
        return Outcome.unmeasured("HarborFailed", f"Harbor left no result of the trial: {problem}", "setup")

    def _verifier_digest(self) -> str:
        return digest_value(self.verifier.model_dump(mode="json"))
