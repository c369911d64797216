"""A Harbor environment that runs commands as local processes (no Docker, no isolation)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

_ROOTED = re.compile(r"(?<![\w./\-])/(logs|tests|solution|app|runtime)(?=$|[/\s'\";:)])")


class LocalProcessEnvironment(BaseEnvironment):
    @staticmethod
    def type() -> str:
        return "local-process"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities()

    def _validate_definition(self) -> None:
        pass

    # -- helpers
    def _host(self, path) -> Path:
        p = str(path)
        if p.startswith(str(self._root)):
            return Path(p)
        if p.startswith("/tmp/"):
            return Path(p)
        return self._root / p.lstrip("/")

    def _rewrite(self, command: str) -> str:
        return _ROOTED.sub(lambda m: f"{self._root}/{m.group(1)}", command)

    async def start(self, force_build: bool) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="hlocal-"))
        for d in [*self._mount_targets(writable_only=True), self.task_env_config.workdir or "/app"]:
            self._host(d).mkdir(parents=True, exist_ok=True)
        await self._upload_environment_dir_after_start()

    async def stop(self, delete: bool) -> None:
        root = getattr(self, "_root", None)
        if delete and root is not None:
            shutil.rmtree(root, ignore_errors=True)

    async def upload_file(self, source_path, target_path: str) -> None:
        t = self._host(target_path)
        t.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, t)

    async def upload_dir(self, source_dir, target_dir: str) -> None:
        shutil.copytree(source_dir, self._host(target_dir), dirs_exist_ok=True, symlinks=True)

    async def download_file(self, source_path: str, target_path) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self._host(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir) -> None:
        shutil.copytree(self._host(source_dir), target_dir, dirs_exist_ok=True, symlinks=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None) -> ExecResult:
        full = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._root),
            "HARBOR_ROOT": str(self._root),
            **(self._merge_env(env) or {}),
        }
        proc = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            self._rewrite(command),
            cwd=self._host(cwd or self.task_env_config.workdir or "/app"),
            env=full,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(proc.communicate(), timeout_sec)
        except BaseException:  # timeout, or Harbor cancelling the agent phase
            with contextlib.suppress(ProcessLookupError):
                os.killpg(proc.pid, signal.SIGKILL)
            await proc.wait()
            raise
        return ExecResult(
            stdout=out.decode(errors="replace"), stderr=err.decode(errors="replace"), return_code=proc.returncode
        )
