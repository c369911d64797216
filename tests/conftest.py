"""For all tests."""

import os
import pkgutil
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

import numpy  # noqa: F401  (pytester forgets what an in-process run imported, and numpy cannot be imported twice)
import pytest

import pytest_metricbench

with suppress(ImportError):
    import httpcore  # noqa: F401  (nor can what httpx imports late: it would not know the errors of a second one)
    import httpx  # noqa: F401

# A shell without job control starts what it puts in the background deaf to Ctrl-C, and so would be what tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests start some thousand processes, and each would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Every change is judged by the same examples, enough to find what was broken today; .ci/full looks longer, and anew.
# How long an example takes to draw or to run says how busy the machine is; no fixture here is changed by an example.
try:
    from hypothesis import HealthCheck, settings
except ImportError:  # pytest's --help and the like are asked for in a checkout too

    def pytest_collection() -> None:
        """Say what is missing, and not once in each file."""
        raise pytest.UsageError("the tests need more than the package: pip install -e '.[dev]' (no hypothesis here)")

else:
    patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
    settings.register_profile("short", patient, max_examples=40, derandomize=True)
    settings.register_profile("long", patient, max_examples=200)
    settings.load_profile(os.environ.get("METRICBENCH_HYPOTHESIS", "short"))

collect_ignore = ["known_answers"]  # an experiment that tests run in a folder of their own, not a test

# Where these are set pytest prints messages whole, and so a second time, in its short summary.
# A run under test does not write into the job summary of the run that tests it.
for name in ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
    os.environ.pop(name, None)

if find_spec("xdist") is None:  # one of the combinations of .ci/matrix: the plugin works without it
    collect_ignore.append("scheduling")

    @pytest.fixture(autouse=True)
    def without_xdist(monkeypatch: pytest.MonkeyPatch) -> None:
        """Skip a test where it asks for workers."""
        for name in ("runpytest_inprocess", "runpytest_subprocess", "runpytest"):
            run: Callable[..., pytest.RunResult] = getattr(pytest.Pytester, name)

            def asked(
                self: pytest.Pytester,
                *args: object,
                run: Callable[..., pytest.RunResult] = run,
                **kwargs: object,
            ) -> pytest.RunResult:
                if any(
                    str(arg).startswith(("-n", "--dist", "--tx", "--maxprocesses")) or arg == "xdist" for arg in args
                ):
                    pytest.skip("needs pytest-xdist")
                return run(self, *args, **kwargs)

            monkeypatch.setattr(pytest.Pytester, name, asked)


@pytest.fixture(scope="session")
def imported_once() -> None:
    """Every module of the package is imported, which a session in this process would do and forget again."""
    with warnings.catch_warnings(action="ignore"):
        for module in pkgutil.walk_packages(pytest_metricbench.__path__, "pytest_metricbench."):
            with suppress(ImportError):  # it needs what is not installed here
                import_module(module.name)
        with suppress(ImportError):  # imported late by reports, and not fit to be half forgotten
            import_module("matplotlib.backends.backend_svg")
            import_module("matplotlib.pyplot")


@pytest.fixture
def pytester(imported_once: None, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """pytest's own, once everything is imported; its sessions write lines of 80 characters, wherever they run."""
    monkeypatch.setenv("COLUMNS", "80")
    return pytester


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions under test are not asked for what the environment of this one asks of pytest."""
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that is rewritten within a second must not be taken from its compiled file."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
