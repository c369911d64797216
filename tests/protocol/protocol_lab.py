"""Sessions of an experiment under the short protocol and under pytest's own, and what differs between them."""

import re
import shutil
from typing import Any, Final

import pytest

from tests.plugin import plugin_lab

NOISY: Final = '''\
"""An agent that prints, logs and warns; what its verifier says stands in the task's params."""

import logging
import os
import threading
import warnings


def run(request):
    what = request.task.params.get("what", "")
    print("printed by", request.task.id)
    os.write(2, b"written to descriptor 2\\n")
    logging.getLogger("agent").warning("logged by %s", request.task.id)
    if what == "warns":
        warnings.warn("the agent warns", UserWarning)
    if what in ("thread", "thread-unmeasured"):
        thread = threading.Thread(target=int, args=("no number",))
        thread.start()
        thread.join()
    if what == "interrupt":
        raise KeyboardInterrupt
    if what == "dies":
        raise RuntimeError("the agent crashed")
    with open(os.path.join(os.path.dirname(__file__), "current.txt"), "a") as file:
        file.write(os.environ.get("PYTEST_CURRENT_TEST", "none") + "\\n")
    return what


def verify(request, output):
    if output in ("unmeasured", "thread-unmeasured"):
        raise ValueError("the judge failed")
    return {"reward": 1.0}
'''

SHORT: Final = ["call"]
STANDARD: Final = ["setup", "call", "teardown"]


def task(what: str) -> dict[str, Any]:
    """A task at which that happens."""
    return {"id": what, "params": {"what": what}}


class Lab(plugin_lab.Lab):
    """Runs one experiment under either protocol."""

    def make_noisy(self, *what: str, file: str = "experiment.yml", **keys: Any) -> None:
        """An experiment with a task for each thing that happens; the baseline alone, one attempt each."""
        case = {"tasks": [task(name) for name in what], "mutants": None, "subsets": None}
        self.make(file, agent=NOISY, case=case, **{"attempts": 1, "coverage": None, **keys})

    def phases(self, *args: str) -> dict[str, list[str]]:
        """Node id -> the phases that were reported, in order, on the controller."""
        off = [part for plugin in plugin_lab.OTHER_PLUGINS for part in ("-p", f"no:{plugin}")]
        recorder = self.pytester.inline_run(*off, *args, no_reraise_ctrlc=True)
        phases: dict[str, list[str]] = {}
        for report in recorder.getreports("pytest_runtest_logreport"):
            phases.setdefault(report.nodeid, []).append(report.when)
        return phases

    def both(self, *args: str) -> tuple[pytest.RunResult, pytest.RunResult]:
        """The same run under the short protocol and under the standard one, each with a new store."""
        results = []
        for protocol in ("auto", "standard"):
            for folder in [*self.path.rglob(".metricbench"), self.path / ".pytest_cache"]:
                shutil.rmtree(folder, ignore_errors=True)
            results.append(self.run(*args, f"--metricbench-protocol={protocol}"))
        return results[0], results[1]


def shown(result: pytest.RunResult) -> list[str]:
    """What the terminal showed, without what is another at each run, and without the line that names the protocol."""
    lines = [*result.outlines, "---", *result.errlines]
    text = "\n".join(line for line in lines if not line.startswith("metricbench: three reports an attempt"))
    text = re.sub(r"\b\d+(\.\d+)?( ?ms|s)\b", "TIME", text)
    return re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{32}\b|Thread-\d+", "ID", text).splitlines()
