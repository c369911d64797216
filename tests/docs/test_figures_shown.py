"""Figures that the pages give as facts are computed."""

import re
from math import comb

import pytest

from tests.docs.block_lab import ROOT

FLAKY = (ROOT / "docs/how-to/flaky.md").read_text("utf-8")


def passes_mostly(attempts: int, rate: float) -> float:
    """The chance that more than half of the attempts pass."""
    return sum(
        comb(attempts, passed) * rate**passed * (1 - rate) ** (attempts - passed)
        for passed in range(attempts // 2 + 1, attempts + 1)
    )


def test_how_often_luck_kills() -> None:
    heading, *rows = (
        line.strip("| ").split(" | ") for line in FLAKY.splitlines() if re.match(r"\| (attempts a|\d)", line)
    )
    rates = [float(title.removeprefix("passes ")) for title in heading[1:]]
    assert len(rows) == 5
    for attempts, *shown in rows:
        for rate, figure in zip(rates, shown, strict=True):
            chance = passes_mostly(int(attempts), rate)
            assert float(figure) == pytest.approx(chance * (1 - chance), abs=0.00051), (attempts, rate)
