"""The agent, verifier and coverage of the known answers: everything comes from the table in ``outcomes.json``."""

import json
import pathlib

DATA = json.loads((pathlib.Path(__file__).parent / "outcomes.json").read_text())


def run(request):
    value = DATA["outcomes"][request.variant.id][request.task.id][request.attempt - 1]
    if value is None:
        raise RuntimeError("the agent crashed")
    return value


def verify(request, output):
    if output == "unmeasured":
        raise ValueError("the judge failed")
    return {"reward": output}


def measure(request):
    covered = set().union(*(DATA["goals"][task] for task in request.tasks))
    return len(covered) / 20
