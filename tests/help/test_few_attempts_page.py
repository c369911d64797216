"""The tables of docs/few_attempts.md, computed by the code that decides kills.

METRICBENCH_WRITE_TABLES=1 writes them into the page.
"""

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pytest_metricbench.analysis.detection import Tallies, exact, fisher_p, flip_kills
from pytest_metricbench.analysis.pass_at_k import pass_at_k
from pytest_metricbench.analysis.proportions import wilson
from pytest_metricbench.analysis.reach import attempts_needed, smallest_p

PAGE = Path(__file__).parents[2] / "docs/few_attempts.md"
COUNTS = (1, 3, 5, 10)
TASKS = 20
"""Of the pool that the page speaks of."""


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


# ---------------------------------------------------------------- what decides


@cache
def flips(n: int) -> frozenset[tuple[int, int]]:
    """Passes of the baseline and of the mutant, of n each, that ``flip`` calls a kill."""
    counts = np.arange(n + 1)
    mutant, base = np.meshgrid(counts, counts, indexing="ij")
    tallies = Tallies(
        counts.astype(np.int64), np.full(n + 1, n, np.int64), mutant.astype(np.int64), np.full_like(mutant, n)
    )
    killed = flip_kills(tallies)
    return frozenset((int(b), int(m)) for m, b in zip(mutant[killed], base[killed], strict=True))


@cache
def reached(n: int, alpha: Fraction) -> frozenset[tuple[int, int]]:
    """The same of ``fisher`` at ``alpha``."""
    return frozenset((b, m) for b in range(n + 1) for m in range(n + 1) if fisher_p(b, n, m, n) <= alpha)


def chance(n: int, passes: int, rate: Fraction) -> Fraction:
    return math.comb(n, passes) * rate**passes * (1 - rate) ** (n - passes)


def kill_chance(killed: frozenset[tuple[int, int]], n: int, base: Fraction, mutant: Fraction) -> Fraction:
    """The chance of a kill where the two sides pass at these rates: exact, over both binomials."""
    return sum((chance(n, b, base) * chance(n, m, mutant) for b, m in killed), Fraction(0))


def percent(share: Fraction) -> str:
    if share in (0, 1):
        return "100 %" if share else "0"
    value = float(100 * share)
    if value >= 99.5:
        return "> 99 %"
    return "< 0.1 %" if value < 0.1 else f"{value:.1f} %" if value < 10 else f"{value:.0f} %"


# ---------------------------------------------------------------- the tables


def of_intervals() -> str:
    def rows() -> Iterator[list[str]]:
        for n in (*COUNTS, 20):
            cells = []
            for passes in (n, n - 1, n // 2):
                low, high = wilson(passes, n)
                cells.append(f"{low:.2f} to {high:.2f}" if n > 1 or passes == n else "")
            yield [str(n), *cells]

    return table(["attempts", "all pass", "all but one pass", "half pass (rounded down)"], rows())


def of_pass_at_k() -> str:
    def rows() -> Iterator[list[str]]:
        for n in COUNTS:
            cells = [pass_at_k(n, max(1, n // 3), k) for k in (1, 3, 5)]
            yield [
                str(n),
                str(max(1, n // 3)),
                *("unavailable" if cell is None else f"{float(cell):.2f}" for cell in cells),
            ]

    return table(["attempts", "passes", "pass@1", "pass@3", "pass@5"], rows())


def of_fisher() -> str:
    def most(n: int, alpha: str) -> str:
        passes = [m for b, m in reached(n, Fraction(alpha)) if b == n]
        return f"at most {max(passes)} of {n}" if passes else "never"

    def rows() -> Iterator[list[str]]:
        for n in (3, 4, 5, 6, 8, 10):
            p = smallest_p(n, n)
            yield [
                str(n),
                f"1/{p.denominator:,} = {float(p):.2g}",
                *(most(n, alpha) for alpha in ("1/20", "1/100", "1/1000")),
            ]

    return table(["attempts", "smallest p", "alpha: 0.05", "alpha: 0.01", "alpha: 0.001"], rows())


def of_families() -> str:
    def rows() -> Iterator[list[str]]:
        for cells in (20, 200, 2_000, 20_000):
            shares = [Fraction(1, cells), Fraction(1, 100), Fraction(1, 10)]
            yield [f"{cells:,}", *(str(fewest(share / 20)) if share * cells >= 1 else "" for share in shares)]

    def fewest(limit: Fraction) -> int:
        return next(n for n in range(1, 100) if smallest_p(n, n) <= limit)

    return table(["cells", "one of them", "one in a hundred", "one in ten"], rows())


def of_luck() -> str:
    def rows() -> Iterator[list[str]]:
        for rate in ("1", "0.99", "0.95", "0.9", "0.8", "0.7", "0.6", "0.5"):
            cells = [kill_chance(flips(n), n, exact(float(rate)), exact(float(rate))) for n in COUNTS]
            yield [rate, *map(percent, cells), *(percent(1 - (1 - cell) ** TASKS) for cell in (cells[0], cells[2]))]

    counts = ["1 attempt", *(f"{n} attempts" for n in COUNTS[1:])]
    pool = [f"{TASKS} tasks, 1 attempt", f"{TASKS} tasks, 5 attempts"]
    return table(["pass rate of both", *counts, *pool], rows())


def of_power() -> str:
    rules: list[tuple[str, Callable[[int], frozenset[tuple[int, int]]]]] = [
        ("flip", flips),
        ("fisher, alpha: 0.05", lambda n: reached(n, Fraction(1, 20))),
        ("fisher, alpha: 0.001", lambda n: reached(n, Fraction(1, 1000))),
    ]

    def rows() -> Iterator[list[str]]:
        for base, mutant in (("1.0", "0.0"), ("0.95", "0.05"), ("0.9", "0.3"), ("0.9", "0.5"), ("0.9", "0.7")):
            for name, killed in rules:
                cells = [kill_chance(killed(n), n, exact(float(base)), exact(float(mutant))) for n in COUNTS]
                yield [f"{base} to {mutant}", f"`{name}`", *map(percent, cells)]

    return table(["pass rate", "rule", "1 attempt", "3", "5", "10"], rows())


TABLES: dict[str, Callable[[], str]] = {
    "intervals": of_intervals,
    "pass-at-k": of_pass_at_k,
    "fisher": of_fisher,
    "families": of_families,
    "luck": of_luck,
    "power": of_power,
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_says_what_the_code_does(name: str) -> None:
    text = PAGE.read_text("utf-8")
    place = re.compile(rf"(<!-- table: {name} -->\n)((?:\|.*\n)*)")
    found = place.search(text)
    assert found is not None, f"docs/few_attempts.md has no place for the table {name}"
    computed = TABLES[name]()
    if os.environ.get("METRICBENCH_WRITE_TABLES"):
        PAGE.write_text(place.sub(lambda at: f"{at[1]}{computed}\n", text, count=1), "utf-8")
    else:
        assert found[2] == f"{computed}\n", "METRICBENCH_WRITE_TABLES=1 writes it"


def test_the_page_has_no_other_table_of_figures() -> None:
    assert set(re.findall(r"<!-- table: ([\w-]+) -->", PAGE.read_text("utf-8"))) == set(TABLES)


def test_the_figures_in_the_sentences() -> None:
    text = " ".join(PAGE.read_text("utf-8").split())
    half, nine = Fraction(1, 2), Fraction(9, 10)
    said = [
        f"{percent(kill_chance(flips(1), 1, half, half))} with one attempt",
        "{} attempts for `alpha: 0.05`, {} for 0.01 and {} for 0.001".format(
            *(attempts_needed(Fraction(alpha)) for alpha in ("1/20", "1/100", "1/1000"))
        ),
        "4 of 5 killed is {:.2f} to {:.2f}, 40 of 50 is {:.2f} to {:.2f}".format(*wilson(4, 5), *wilson(40, 50)),
        f"a copy of an agent that passes 90 % of the time is killed by some task in "
        f"{percent(1 - (1 - kill_chance(flips(1), 1, nine, nine)) ** TASKS)} of the runs",
        f"{float(smallest_p(3, 3)):.2f}, and no smaller",
    ]
    assert [sentence for sentence in said if sentence not in text] == []
