"""Measures whole pytest runs in processes of their own: CPU and peak memory, beside a baseline in the same run."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

# Plugins that an environment for development has beside ours: they cost both sides, and would blur the ratio.
WITHOUT = (
    "randomly",
    "sugar",
    "html",
    "metadata",
    "rerunfailures",
    "repeat",
    "timeout",
    "hypothesispytest",
    "pytest_cov",
)
PYTEST = [sys.executable, "-m", "pytest", "-q", *(f"-pno:{name}" for name in WITHOUT)]


@dataclass(frozen=True)
class Cost:
    """What a process and its children cost."""

    cpu: float
    """Seconds, user and system."""
    peak: int
    """kB of resident memory of the largest process."""


def run_and_measure(argv: list[str], folder: Path, expect: int = 0) -> Cost:
    """Run a command to its end and say what it cost, its children included."""
    # Users' machines keep bytecode; where it is not kept, every run compiles (and rewrites) what it imports.
    unwanted = ("PYTEST_", "COV", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    with subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == expect, output.decode()[-3000:]
    return Cost(
        usage.ru_utime + usage.ru_stime, usage.ru_maxrss if sys.platform != "darwin" else usage.ru_maxrss // 1024
    )


REPORTING = """\
import json, os, resource

def pytest_unconfigure(config):
    used = resource.getrusage(resource.RUSAGE_SELF)
    worker = getattr(config, "workerinput", {}).get("workerid", "controller")
    with open(os.path.join(os.path.dirname(__file__), "costs.jsonl"), "a") as file:
        file.write(json.dumps([worker, used.ru_utime + used.ru_stime, used.ru_maxrss]) + "\\n")
"""
"""A ``conftest.py`` in which every process of a session says at its end what it cost."""


def run_and_measure_each(argv: list[str], folder: Path) -> tuple[Cost, dict[str, Cost]]:
    """Run a session to its end and say what all of it cost, and each of its processes: ``controller``, ``gw0`` ..."""
    (folder / "conftest.py").write_text(REPORTING)
    costs = folder / "costs.jsonl"
    costs.unlink(missing_ok=True)
    whole = run_and_measure(argv, folder)
    unit = 1 if sys.platform != "darwin" else 1024
    said = map(json.loads, costs.read_text().splitlines())
    return whole, {worker: Cost(cpu, peak // unit) for worker, cpu, peak in said}


def write_experiment(folder: Path, attempts: int, runner: str, files: dict[str, str]) -> None:
    """An experiment of ten variants and a hundred tasks (or fewer of both), ``attempts`` attempts in all."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    variants, tasks = (10, 100) if attempts >= 1000 else (2, 20)
    mutants = "".join(f"\n      - {{id: m{number}, description: Damaged.}}" for number in range(1, variants))
    listed = ", ".join(f"{{id: t{number:03d}}}" for number in range(tasks))
    text = f"""\
metricbench: 1
name: bench
attempts: {attempts // (variants * tasks)}
runner: {runner}
cases:
  - id: case
    description: A case that costs nothing.
    tasks: [{listed}]
    baseline: {{}}
    mutants: {mutants}
"""
    (folder / "experiment.yml").write_text(text)
    for name, content in files.items():
        (folder / name).write_text(textwrap.dedent(content))


def write_plain_tests(folder: Path, count: int) -> None:
    """``count`` parametrized tests that do nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "test_plain.py").write_text(
        f"import pytest\n\n@pytest.mark.parametrize('i', range({count}))\ndef test_nothing(i):\n    pass\n"
    )
