"""Two kinds of our own: agents behind an HTTP endpoint, and the sections of a policy that their answers cite."""

import json
from pathlib import Path
from typing import Annotated, Literal
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pytest_metricbench import AttemptRequest, CoverageRequest, CoverageSystem, Goals, Outcome, Role, Runner, Score


class Endpoint(Runner):
    """Posts a task's question, and the variant's settings, to a URL; the words that it must contain decide."""

    kind: Literal["endpoint"] = "endpoint"
    url: Annotated[str, Role.NEITHER]  # where an agent runs shapes no result: another URL runs nothing again
    timeout: Annotated[float, Role.NEITHER] = 30

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        asked = {"question": request.task.params["question"], "seed": request.seed, **request.variant.params}
        post = Request(self.url, json.dumps(asked).encode(), {"Content-Type": "application/json"})
        try:
            with urlopen(post, timeout=self.timeout) as response:
                answer = str(json.load(response)["answer"])
        except HTTPError as error:  # it is there and fails: that is about the agent
            return Outcome.died("HTTPError", f"the agent answered with status {error.code}")
        except OSError as error:  # nobody is there: that says nothing about the agent
            return Outcome.unmeasured("Unreachable", f"{self.url}: {error}", "setup")
        (workspace / "answer.txt").write_text(answer, encoding="utf-8")  # evidence, for coverage systems
        return Outcome.scored({"reward": all(word in answer for word in request.task.params["expected"])})


class Sections(CoverageSystem):
    """Share of the policy's sections that the answers cite."""

    kind: Literal["sections"] = "sections"
    sections: tuple[str, ...]

    def measure(self, request: CoverageRequest, workspace: Path) -> Score:
        cited = {}
        for task, files in request.evidence.items():
            said = "\n".join(file.read_text("utf-8") for file in files)
            cited[task] = tuple(section for section in self.sections if section in said)
        covered = set().union(*cited.values())
        return Score(len(covered) / len(self.sections), goals=Goals(self.sections, cited))


def pytest_metricbench_runners():
    return [Endpoint]


def pytest_metricbench_coverage_systems():
    return [Sections]
