"""What a kill rule can show with the attempts asked for: said before a run is paid for, so without numpy and scipy."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from pytest_metricbench.definition.experiment import Case, Experiment, KillRule
from pytest_metricbench.messages import counted

_MOST: Final = 1000
"""Attempts up to which a remedy is looked for."""


def smallest_p(base_n: int, mutant_n: int) -> Fraction:
    """The smallest one-sided p of Fisher's exact test that so many attempts can reach.

    Every one of the baseline passes and none of the mutant: 1 / C(n + m, n). Three against three reach 1/20.
    """
    return Fraction(1, math.comb(base_n + mutant_n, base_n))


def attempts_needed(limit: Fraction) -> int | None:
    """The fewest attempts a side whose smallest p is below ``limit``; None where a thousand do not suffice."""
    return next((n for n in range(1, _MOST + 1) if smallest_p(n, n) < limit), None)


def unreachable_warning(experiment: Experiment) -> str | None:
    """Why the kill rule can never, or hardly ever, kill with the attempts asked for, and what would; None: it can.

    For ``fisher`` with ``alpha``: the smallest possible p of some task is above alpha (it can kill nothing there), or
    equal to it (only where every attempt of the baseline passes and none of the mutant). With ``q``: above ``q``, or so
    near that most cells of a case would have to be killed at once. ``flip`` has no p.
    """
    rule = experiment.analysis.kill
    if rule.rule == "flip":
        return None
    texts = [text for case in experiment.cases if case.mutants for text in _of_case(case, rule)]
    return "; ".join(texts) or None


def _of_case(case: Case, rule: KillRule) -> Iterator[str]:
    written, limit = _limit(rule)
    counts = {task.id: min(len(case.slots(variant.id, task)) for variant in case.variants) for task in case.tasks}
    fewest = min(counts.values())
    low = [task for task, count in counts.items() if count == fewest]
    where = "" if len(low) == len(case.tasks) else f" at {len(low)} of {len(case.tasks)} tasks"
    p = smallest_p(fewest, fewest)
    needed = attempts_needed(limit)
    remedy = f"ask for {needed} attempts" if needed is not None else f"choose a larger {written.partition(':')[0]}"
    against = f"{fewest} against {counted(fewest, 'attempt')}{where} cannot have a p below {float(p):.2g}"
    rule_text = f"{case.id}: {{rule: fisher, {written}}}"
    if p > limit:
        yield f"{rule_text} can kill nothing{where}: {against}; {remedy}"
    elif p == limit:
        only = "a mutant is killed only where every attempt of the baseline passes and none of its own"
        yield f"{rule_text} can hardly ever kill{where}: {against}, so {only}; {remedy}"
    elif rule.q is not None:
        yield from _too_many_at_once(case, limit, p, rule_text)


def _too_many_at_once(case: Case, q: Fraction, p: Fraction, rule_text: str) -> Iterator[str]:
    """Benjamini and Hochberg reject a p only together with so many others that p <= q * rank / cells."""
    mutants = sum(1 for mutant in case.mutants if not mutant.control)
    cells = mutants * len(case.tasks)
    at_once = math.ceil(p * cells / q)
    if 2 * at_once > cells > 0:
        enough = next((n for n in range(1, _MOST + 1) if 4 * smallest_p(n, n) <= q), None)
        remedy = f"ask for {enough} attempts" if enough is not None else "choose a larger q"
        yield (
            f"{rule_text} can hardly ever kill: with the smallest p, {float(p):.2g}, at least {at_once} of the {cells} "
            f"cells must be told apart completely before any is killed; {remedy}"
        )


def _limit(rule: KillRule) -> tuple[str, Fraction]:
    number = rule.alpha if rule.alpha is not None else rule.q
    if number is None:
        raise ValueError("a fisher rule needs alpha or q")
    return f"alpha: {number}" if rule.alpha is not None else f"q: {number}", Fraction(repr(number))
