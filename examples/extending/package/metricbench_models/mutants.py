"""One mutant for each smaller model, and one for each emphasis that a prompt loses."""

import re
from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from pytest_metricbench import Generator, Proposal, TextChange, TextOperator
from pytest_metricbench.generating.base import Context


class Models(Generator):
    """``generate: {from: models, names: [...]}``: the baseline with another model each."""

    origin: ClassVar[str] = "models"

    names: list[str] = Field(min_length=1, description="The models to run the agent with.")
    param: str = Field("model", description="The name of the param that says which model it is.")

    def generate(self, context: Context) -> Iterator[Proposal]:
        before = context.baseline.get(self.param, "its own model")
        for name in self.names:
            params = {**context.baseline, self.param: name}
            yield Proposal("model", name, f"runs on {name} in place of {before}", params=params)


def calm(text: str) -> Iterator[TextChange]:
    """Every word in capitals, in small letters."""
    for found in re.finditer(r"\b[A-Z]{3,}\b", text):
        changed = f"{text[: found.start()]}{found[0].lower()}{text[found.end() :]}"
        yield TextChange(changed, found[0], f"{found[0]!r} is not emphasised")


CALM = TextOperator("calm", calm)
