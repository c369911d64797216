"""An agent that follows a prompt as well as its model can: capitals are heard by every model, small letters by few."""

import re
from pathlib import Path

from pytest_metricbench import text_of

ATTENTION = {"large": 3, "medium": 2, "small": 1}
PROMPT = Path(__file__).with_name("prompt.md")


def answer(request):
    rules = text_of(request.variant.params, "prompt.md", PROMPT.parent).splitlines()
    heeded = [rule for rule in rules if re.search(r"\b[A-Z]{3,}\b", rule)]
    heeded += [rule for rule in rules if rule not in heeded][: ATTENTION[request.variant.params["model"]] - 1]
    return float(any(request.task.params["about"] in rule for rule in heeded))
