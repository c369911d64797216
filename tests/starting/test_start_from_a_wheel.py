"""The templates are in the wheel: installed in a new environment, an experiment is begun and run."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.benchmark
def test_a_wheel_in_a_new_environment(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT), folder=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    templates = ROOT / "pytest_metricbench" / "starting" / "templates"
    there = {path.relative_to(ROOT).as_posix() for path in templates.rglob("*.in")}
    assert len(there) > 30
    assert there <= set(zipfile.ZipFile(wheel).namelist())
    run(sys.executable, "-m", "venv", "venv", folder=tmp_path)
    python = str(tmp_path / "venv" / "bin" / "python")
    run(python, "-m", "pip", "install", "-q", str(wheel), folder=tmp_path)
    for kind in ("python", "table"):
        said = run(python, "-m", "pytest", "--metricbench-init", kind, "--metricbench-init-kind", kind, folder=tmp_path)
        assert "before it can run" not in said
        assert " killed = " in run(python, "-m", "pytest", f"{kind}/experiment.yml", folder=tmp_path)
    said = run(python, "-m", "pytest_metricbench", "init", "suite", "--kind", "suite", folder=tmp_path)
    assert "pip install 'pytest-metricbench[suite]'" in said.partition("what it needs before it can run")[2]
