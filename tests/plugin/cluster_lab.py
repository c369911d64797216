"""A runner that begins attempts before their turn."""

CONFTEST = """
import json
import pathlib
from typing import Literal

from pytest_metricbench import Outcome, Runner

HERE = pathlib.Path(__file__).parent


class Cluster(Runner):
    kind: Literal["cluster"] = "cluster"
    flight: int = 3
    fails: bool = False

    @property
    def ahead(self):
        return self.flight

    def note(self, what, request=None):
        where = "" if request is None else f" {request.variant.id}::{request.task.id}[{request.attempt}]"
        with open(HERE / "log.txt", "a") as log:
            log.write(f"{what}{where}\\n")

    def begin(self, request, workspace):
        if self.fails:
            raise RuntimeError("the cluster is away")
        self.note("begin", request)
        (workspace / "job.txt").write_text(request.trial_id)

    def run(self, request, workspace):
        self.note("run", request)
        job = workspace / "job.txt"
        if not self.fails and job.read_text() != request.trial_id:
            raise AssertionError("another attempt was begun")
        if (HERE / "stop").exists():
            raise KeyboardInterrupt
        return Outcome.scored({"reward": 1.0})

    def close(self):
        self.note("close")


def pytest_metricbench_runners():
    return [Cluster]
"""
