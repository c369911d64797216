"""A checkout with the package alone, as after the first command of the README: pytest says what it lacks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITHOUT_HYPOTHESIS = "import sys; sys.modules['hypothesis'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--help"], 0, "--metricbench-init=[DIR]"),
        (["tests/help"], 4, "the tests need more than the package: pip install -e '.[dev]'"),
    ],
)
def test_without_what_the_tests_need(words: list[str], status: int, said: str) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_HYPOTHESIS, "-p", "metricbench", "-p", "no:cacheprovider", *words],
        cwd=ROOT,
        env={**variables, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
