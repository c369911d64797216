"""The keys of the ``helix`` runner that say where a job runs and what it runs, checked when the file is collected."""

import base64
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from pytest_metricbench.argv import PYTHON, Argv, file_beside
from pytest_metricbench.contracts import Json
from pytest_metricbench.named_files import NamedFile
from pytest_metricbench.plain_files import open_regular, strays
from pytest_metricbench.runners.helix.client import HelixError

FILES_LIMIT: Final = 512 << 10
"""Bytes of the files that are sent with a job: they stand in its step's config, which a cluster keeps at 1 MiB."""
_SCRIPTS: Final = (".py", ".sh")
_START: Final = "import json,os;c=json.load(open(os.environ['NEMO_JOB_STEP_CONFIG_FILE_PATH']));exec(c['program'])"
"""What the job is started with: the program is in its config, where there is room for it."""


def problem(message: str, remedy: str) -> PydanticCustomError:
    """An error of validation in the words of the experiment file."""
    return PydanticCustomError("helix", "{message}; {remedy}", {"message": message, "remedy": remedy})


# ---------------------------------------------------------------- the command


@dataclass(frozen=True, slots=True)
class JobArgv(Argv):
    """A command line that is run elsewhere: what it names beside the YAML is sent along, the rest is there already.

    ``resolved`` is as written; the job puts the paths that sent files have there in their place.
    """

    @classmethod
    def checked(cls, written: list[str], info: ValidationInfo) -> "JobArgv":
        """The command line of a list of texts.

        Raises:
            PydanticCustomError: it cannot be sent, or would not be found in the job.
        """
        return _checked_command(written, info)


def _checked_command(written: list[str], info: ValidationInfo) -> JobArgv:
    context: dict[str, Any] = info.context or {}
    folder: Path | None = context.get("folder")
    files = []
    for argument in written:
        if "\0" in argument:
            raise problem(f"{argument!r} has a null character", "no argument can hold one")
        if PYTHON in argument:
            raise problem(
                f"{PYTHON} is the interpreter here, and this runs in the job", "write python3, or its path there"
            )
        path = _beside(argument, folder)
        if path is not None:
            files.append((argument, path))
        elif folder is not None and _is_missing_script(argument) and not context.get("cached_only"):
            message = f"the script {argument!r} does not exist beside the file"
            raise problem(message, "a script that the job has already is named by its whole path there")
    return JobArgv(tuple(written), tuple(written), tuple(files))


def _beside(argument: str, folder: Path | None) -> Path | None:
    """The file beside the YAML that an argument names."""
    path = file_beside(argument, folder)
    if path is not None and folder is not None:
        _refuse_detour(argument)
        if strays(argument, path, folder) or ".." in Path(argument).parts:
            raise problem(f"{argument!r} leaves the experiment's folder", "copy the file into it")
    return path


def _refuse_detour(name: str) -> None:
    """Refuse a name that goes up and comes back: a job has no such folders.

    Raises:
        PydanticCustomError: it does.
    """
    direct = os.path.normpath(name)
    if ".." in Path(name).parts and ".." not in Path(direct).parts:
        raise problem(f"{name!r} has a .. in it, and the job has no such folder", f"write {direct}")


def _is_missing_script(argument: str) -> bool:
    """Whether an argument can only be a script that is sent: the job begins in an empty folder."""
    is_path = not argument.startswith("-") and not os.path.isabs(argument) and "=" not in argument
    return is_path and argument.endswith(_SCRIPTS) and not any(map(str.isspace, argument))


def name_in_job(written: str) -> str:
    """Under which name, below the folder of sent files, a file arrives: as beside the YAML, or its last part."""
    return Path(written).name if os.path.isabs(written) else Path(written).as_posix()


def check_sent(files: Iterable[tuple[str, Path]]) -> None:
    """Refuse files that cannot be sent together.

    Raises:
        PydanticCustomError: they are too large, or two of them would arrive under one name.
    """
    arriving: dict[str, Path] = {}
    size = 0
    for written, path in files:
        name = name_in_job(written)
        _refuse_detour(name)
        if ".." in Path(name).parts:
            raise problem(f"{written!r} leaves the experiment's folder", "copy the file into it, or name it absolutely")
        other = arriving.setdefault(name, path)
        if other.absolute() != path.absolute():
            raise problem(f"{other} and {path} would both arrive as {name!r}", "rename one of the two files")
    for path in arriving.values():
        try:
            size += path.stat().st_size
        except OSError:  # absent where only what is in the store counts
            continue
    if size > FILES_LIMIT:
        message = f"the files that are sent with each job have {size} bytes; at most {FILES_LIMIT} are sent"
        raise problem(message, "put large ones into the job's image, or where it can fetch them")


def sent_files(files: Iterable[tuple[str, Path]]) -> dict[str, Json]:
    """The files as the step's config carries them: name in the job -> content (base64), and whether it is executable.

    Raises:
        HelixError: one cannot be read, or has grown too large since it was checked.
    """
    sent: dict[str, Json] = {}
    left = FILES_LIMIT
    for written, path in files:
        try:
            with open_regular(path.resolve()) as file:
                content = file.read(left + 1)
        except OSError as error:
            raise HelixError("SentFileError", f"the file {written!r} cannot be sent: {error.strerror}") from error
        left -= len(content)
        if left < 0:
            raise HelixError(
                "SentFileError", f"the file {written!r} cannot be sent: it has grown to more than may be sent"
            )
        text = base64.b64encode(content).decode("ascii")
        sent[name_in_job(written)] = {"content": text, "executable": os.access(path, os.X_OK)}
    return sent


# ---------------------------------------------------------------- where it runs


class Form(BaseModel):
    """A mapping below the runner's keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Quantities(Form):
    """Amounts as Kubernetes writes them."""

    cpu: str | None = Field(default=None, min_length=1, description="Processors, as in '500m' or '2'.")
    memory: str | None = Field(default=None, min_length=1, description="Memory, as in '512Mi' or '4Gi'.")


class Resources(Form):
    """What a job of a cluster asks for."""

    requests: Quantities = Field(Quantities(), description="What a job needs at least.")
    limits: Quantities = Field(Quantities(), description="What a job may use at most.")
    num_gpus: int | None = Field(None, ge=1, description="GPUs of each node.")
    num_nodes: int = Field(1, ge=1, description="Nodes.")
    shm_size: str | None = Field(
        None, pattern=r"^\d+(\.\d+)?(Mi|Gi|M|G)$", description="Size of /dev/shm, as in '2Gi'."
    )


class Executor(Form):
    """Which of a server's execution profiles a job runs under, and in what."""

    provider: Literal["subprocess", "docker", "kubernetes_job", "volcano_job"] = Field(
        description="The backend of the server's profile: processes of the server's host, or containers."
    )
    profile: str = Field("default", min_length=1, max_length=100, description="Name of the server's execution profile.")
    compute: Literal["cpu", "gpu", "gpu_distributed"] | None = Field(
        None, description="Which of the profiles of that name, where the server has several."
    )
    image: str | None = Field(None, min_length=1, description="Container image; the profile's own without it.")
    resources: Resources | None = Field(None, description="What each job asks the cluster for.")
    python: str = Field("python3", min_length=1, description="A Python 3.8 or later in the job; it starts the agent.")

    @model_validator(mode="after")
    def _containers_only(self) -> Self:
        if self.provider == "subprocess":
            given = [name for name in ("compute", "image", "resources") if getattr(self, name) is not None]
            if given:
                remedy = "leave it out, or name a provider that runs containers"
                raise problem(f"{given[0]} is for containers, and subprocess runs on the server's host", remedy)
        return self

    def to_step(self, compute: str) -> dict[str, Json]:
        """The executor of a step, as the jobs API wants it, under the profile's own word for its compute."""
        start = {"provider": compute, "profile": self.profile}
        if self.provider == "subprocess":
            return {**start, "command": [self.python, "-c", _START]}
        container: dict[str, Json] = {"entrypoint": [self.python], "command": ["-c", _START]}
        if self.image is not None:
            container["image"] = self.image
        step: dict[str, Json] = {**start, "container": container}
        if self.resources is not None:
            step["resources"] = self.resources.model_dump(exclude_none=True)
        return step


def as_sent(command: JobArgv, files: Iterable[NamedFile]) -> list[tuple[str, Path]]:
    """The files that go with a job, each once: what its command names, and what is listed."""
    listed = [*command.files, *((file.written, file.path) for file in files)]
    return list(dict(listed).items())
