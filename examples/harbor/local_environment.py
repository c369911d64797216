"""A Harbor environment without Docker: commands run as processes of this machine, below a folder of their own.

It isolates nothing. It is for agents and tasks that one wrote oneself, for tests, and for machines without Docker.
The folders that Harbor knows (/app, /logs, /tests, /solution, /runtime) are folders below the trial's; in a command
they are rewritten, and a script finds them through ``${HARBOR_ROOT:-}``, which is empty in a container.
"""

import asyncio
import os
import re
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

ROOTED = re.compile(r"(?<![\w./\-])/(logs|tests|solution|app|runtime)(?=$|[/\s'\";:)])")

WATCH = 'read -r _; kill -s KILL -- "-$1"'
"""Ends a command's processes when whoever started it is gone, even if that was killed: its input ends then."""


class LocalEnvironment(BaseEnvironment):
    """The trial's folder in place of a container."""

    _root: Path | None = None

    @staticmethod
    def type() -> str:
        return "local-process"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities()

    def _validate_definition(self) -> None:
        """Any task will do: what it asks of an image is not looked at."""

    async def start(self, force_build: bool) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="harbor-local-"))
        for folder in [*self._mount_targets(writable_only=True), self._workdir()]:
            self._here(folder).mkdir(parents=True, exist_ok=True)
        await self._upload_environment_dir_after_start()

    async def stop(self, delete: bool) -> None:
        if delete and self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    async def upload_file(self, source_path: Any, target_path: str) -> None:
        target = self._here(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, target)

    async def upload_dir(self, source_dir: Any, target_dir: str) -> None:
        shutil.copytree(source_dir, self._here(target_dir), dirs_exist_ok=True, symlinks=True)

    async def download_file(self, source_path: str, target_path: Any) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self._here(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Any) -> None:
        shutil.copytree(self._here(source_dir), target_dir, dirs_exist_ok=True, symlinks=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            ROOTED.sub(lambda found: f"{self._root}/{found[1]}", command),
            cwd=self._here(cwd or self._workdir()),
            env=self._variables(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        watch = None
        try:
            watch = await asyncio.create_subprocess_exec(
                "sh", "-c", WATCH, "watch", str(process.pid), stdin=asyncio.subprocess.PIPE, start_new_session=True
            )
            stdout, stderr = await asyncio.wait_for(process.communicate(), timeout_sec)
        finally:  # also when Harbor cancels this: the agent or the verifier ran out of time
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if watch is not None:
                with suppress(ProcessLookupError):
                    watch.kill()
                await watch.wait()
            await process.wait()
        return ExecResult(
            stdout=stdout.decode(errors="replace"),
            stderr=stderr.decode(errors="replace"),
            return_code=process.returncode or 0,
        )

    def _workdir(self) -> str:
        return self.task_env_config.workdir or "/app"

    def _variables(self, env: dict[str, str] | None) -> dict[str, str]:
        own = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._root), "HARBOR_ROOT": str(self._root)}
        return {**own, **(self._merge_env(env) or {})}

    def _here(self, path: Any) -> Path:
        """Where a path of the container is on this machine."""
        if self._root is None:
            raise RuntimeError("the environment is not started")
        named = Path(path)
        return named if named.is_relative_to(self._root) else self._root / str(path).lstrip("/")
