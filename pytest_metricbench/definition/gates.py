"""Gates, read and checked against the ids of the experiment.

Of one run, ``[case] [baseline | mutant | coverage system] <figure> <op> <number>``; against an earlier one,
``[significant] [case] [..] <figure> drop <op> <number>`` and ``[case] no [significant] new survivors``.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast, get_args

from pytest_metricbench.definition.experiment import Figure, Gate, Operator
from pytest_metricbench.definition.problems import shortened
from pytest_metricbench.messages import did_you_mean, joined

SURVIVORS: Final = "new_survivors"
FIGURES: Final[tuple[str, ...]] = tuple(figure for figure in get_args(Figure) if figure != SURVIVORS)
"""Those that are compared with a number."""
CORRELATIONS: Final = ("pearson", "spearman", "kendall")
_OF_VARIANTS: Final = ("pass@k", "pass^k")
_OF_SYSTEMS: Final = ("coverage", *CORRELATIONS)
_OF_MUTANTS: Final = ("mutation_score", "mean_drop", SURVIVORS, *CORRELATIONS)
_SIGNIFICANT: Final = "significant"
_DROP: Final = "drop"

_GRAMMAR: Final = "a gate is written [case] [variant or coverage system] figure op number, as in baseline pass@1 >= 0.9"
_SURVIVORS: Final = re.compile(r"(?:(?P<case>\S+) )?no (?P<significant>significant )?new survivors")
_GATE: Final = re.compile(r"\s*(?P<words>[^<>=!]*)(?P<op>[<>=!]+)(?P<number>.*)", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_OPERATORS: Final = (">=", ">", "<=", "<", "==", "!=")
_WITH_K: Final = re.compile(r"pass(?P<kind>[@^])(?P<k>.+)", re.DOTALL)


class GateError(ValueError):
    """A gate that cannot be read, or that asks for what the experiment does not have."""

    def __init__(self, message: str, remedy: str) -> None:
        """Keep what is wrong and what would be right."""
        super().__init__(joined(message, remedy))
        self.message: Final = message
        self.remedy: Final = remedy


@dataclass(frozen=True, slots=True)
class CaseScope:
    """What the gates of a case can be about."""

    variants: frozenset[str]
    scored_mutants: int
    """Its mutants that count in a score: neither controls nor found to be equivalent."""
    subsets: bool
    """Whether it has any."""
    attempts: int
    """The most that one of its tasks gets."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What the gates of an experiment can be about."""

    cases: Mapping[str, CaseScope]
    systems: frozenset[str]

    @property
    def variants(self) -> frozenset[str]:
        """The variants of all cases."""
        return frozenset[str]().union(*(case.variants for case in self.cases.values()))


def parse_gate(text: str) -> tuple[Gate, tuple[str, ...]]:
    """A gate that is about nothing yet, and the ids in front of its figure.

    Raises:
        GateError: the text is no gate.
    """
    match = _GATE.fullmatch(text)
    if (match["words"] if match is not None else text).split()[-1:] in (["survivors"], ["survivor"]):
        return _no_new_survivors(text)
    if match is None:
        raise GateError(f"{shortened(text)!r} compares nothing", _GRAMMAR)
    operator, number, words = match["op"], match["number"].strip(), match["words"].split()
    if operator not in _OPERATORS:
        hint = "write ==" if operator == "=" else f"one of {' '.join(_OPERATORS)} is expected"
        raise GateError(f"{operator!r} is no comparison", hint)
    if not _NUMBER.fullmatch(number) or not math.isfinite(float(number)):
        share = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", number, re.ASCII)
        hint = f"write {float(share[1]) / 100:g}" if share else "a number such as 0.9 is expected"
        raise GateError(f"{shortened(number)!r} is no number", hint)
    drop = words[-1:] == [_DROP]
    words = words[:-1] if drop else words
    significant = drop and words[:1] == [_SIGNIFICANT]
    words = words[1:] if significant else words
    if not words:
        raise GateError("names no figure", f"write baseline pass@1 drop {operator} {number}" if drop else _GRAMMAR)
    if len(words) > 3:
        raise GateError(f"names {len(words) - 1} things before the figure", _GRAMMAR)
    figure, k = _figure(words[-1])
    if significant:
        _check_significant(figure, operator)
    gate = Gate(text, None, None, figure, k, cast("Operator", operator), float(number), drop, significant)
    return gate, tuple(words[:-1])


def _no_new_survivors(text: str) -> tuple[Gate, tuple[str, ...]]:
    match = _SURVIVORS.fullmatch(" ".join(text.split()))
    if match is None or match["case"] == _SIGNIFICANT:
        remedy = "write no new survivors or no significant new survivors, a case before it where only one is meant"
        raise GateError(f"{shortened(text)!r} is no gate", remedy)
    significant = match["significant"] is not None
    gate = Gate(text, None, None, "new_survivors", None, "<=", 0.0, significant=significant)
    return gate, () if match["case"] is None else (match["case"],)


def _check_significant(figure: str, operator: str) -> None:
    """See that noise can be told from the drop that a gate is about."""
    if operator not in ("<=", "<", ">=", ">"):
        raise GateError(f"a significant drop cannot be compared by {operator}", "write <= and the drop that is allowed")
    if figure in _OF_SYSTEMS:
        raise GateError(f"the drop of {figure} has no interval, so none can be significant", "leave significant out")


def check_gate(text: str, scope: Scope) -> Gate:
    """A gate of an experiment, its names resolved and known to fit its figure.

    A mutant that only one case has stands for that case.

    Raises:
        GateError: the text is no gate, names what is not there or could be two things, or asks for a figure that
            cannot be had.
    """
    gate, names = parse_gate(text)
    _check_modifier(gate, names, scope)
    gate = _two_names(gate, names, scope) if len(names) == 2 else _one_name(gate, names, scope)
    cases = scope.cases if gate.case is None else {gate.case: scope.cases[gate.case]}
    for name, case in cases.items():
        _check_figure(gate, name, case, scope)
    return gate


def _check_modifier(gate: Gate, names: Sequence[str], scope: Scope) -> None:
    """See that ``significant`` can be the word that it is taken for."""
    known = _SIGNIFICANT in {*scope.cases, *scope.variants, *scope.systems}
    if gate.significant and known:
        raise GateError(f"{_SIGNIFICANT!r} is an id and a word of gates", "give what is called so another id")
    if names[:1] == (_SIGNIFICANT,) and not known:
        written = " ".join((_SIGNIFICANT, *names[1:], gate.figure.replace("k", str(gate.k)) if gate.k else gate.figure))
        raise GateError("only a drop can be significant", f"write {written} drop <= 0, and compare with an earlier run")


def _figure(word: str) -> tuple[Figure, int | None]:
    match = _WITH_K.fullmatch(word)
    if match is not None and word not in FIGURES:
        if not re.fullmatch(r"[1-9][0-9]{0,8}", match["k"], re.ASCII):
            raise GateError(f"{shortened(match['k'])!r} is no k of pass{match['kind']}k", "a whole number from 1 on")
        return cast("Figure", f"pass{match['kind']}k"), int(match["k"])
    if word == "pass":
        raise GateError("pass names no k", "write pass@1")
    if word in _OF_VARIANTS:
        raise GateError(f"{word} names no k", f"write {word[:-1]}1")
    if word not in FIGURES:
        known = f"the figures are {', '.join(FIGURES)}, and behind each drop"
        raise GateError(f"{shortened(word)!r} is no figure", joined(did_you_mean(word, (_DROP, *FIGURES)), known))
    return cast("Figure", word), None


# ---------------------------------------------------------------- names


def _two_names(gate: Gate, names: Sequence[str], scope: Scope) -> Gate:
    case, subject = names
    if case not in scope.cases:
        raise GateError(f"there is no case {case!r}", _near(case, scope.cases, "the case comes first"))
    variants = scope.cases[case].variants
    if subject not in variants | scope.systems:
        where = f"the case {case} has no variant {subject!r}, and there is no coverage system of that id"
        raise GateError(where, _near(subject, variants | scope.systems))
    kinds = {kind for kind, ids in (("variant", variants), ("system", scope.systems)) if subject in ids}
    if not kinds & _kinds(gate.figure):
        raise _unfit(gate, subject, kinds)
    return replace(gate, case=case, subject=subject)


def _one_name(gate: Gate, names: Sequence[str], scope: Scope) -> Gate:
    if not names:
        return gate
    name = names[0]
    groups = (("case", scope.cases), ("variant", scope.variants), ("system", scope.systems))
    kinds = {kind for kind, ids in groups if name in ids}
    if not kinds:
        known = {*scope.cases, *scope.variants, *scope.systems}
        raise GateError(f"there is no case, variant or coverage system {name!r}", _near(name, known))
    fitting = kinds & ({"case"} | _kinds(gate.figure))
    if not fitting:
        raise _unfit(gate, name, kinds)
    if len(fitting) > 1:
        what = " and ".join(_TITLES[kind] for kind in sorted(fitting))
        raise GateError(f"{name!r} is the id of {what}", "give one of them another id, or name the case before it")
    if "case" in fitting:
        return replace(gate, case=name)
    holders = [case for case, ids in scope.cases.items() if name in ids.variants]
    if "variant" in fitting and len(holders) < len(scope.cases):
        if len(holders) > 1:
            raise GateError(f"not every case has {name!r}", f"name the case before it: {' or '.join(holders)}")
        return replace(gate, case=holders[0], subject=name)
    return replace(gate, subject=name)


_TITLES: Final = {"case": "a case", "variant": "a variant", "system": "a coverage system"}


def _kinds(figure: str) -> set[str]:
    """What a figure can be of, a whole case aside."""
    if figure in _OF_VARIANTS:
        return {"variant"}
    return {"system"} if figure in _OF_SYSTEMS else set()


def _unfit(gate: Gate, name: str, kinds: Iterable[str]) -> GateError:
    what = " and ".join(_TITLES[kind] for kind in sorted(kinds))
    fits = [_TITLES[kind] for kind in sorted(_kinds(gate.figure))]
    remedy = f"{gate.figure} is a figure of {fits[0] if fits else 'a whole case; leave the name out'}"
    return GateError(f"{name!r} is {what} and has no {gate.figure}", remedy)


def _near(word: str, known: Iterable[str], otherwise: str = "") -> str:
    names = sorted(known)
    hint = did_you_mean(word, names)
    listed = f"there are {', '.join(names)}" if 0 < len(names) <= 10 else ""
    return joined(hint, listed) or otherwise


# ---------------------------------------------------------------- figures


def _check_figure(gate: Gate, name: str, case: CaseScope, scope: Scope) -> None:
    if gate.k is not None and gate.k > case.attempts:
        message = f"no task of the case {name} gets {gate.k} attempts"
        raise GateError(message, f"k is at most {case.attempts}, or ask for more attempts")
    if gate.figure in _OF_MUTANTS and not case.scored_mutants:
        remedy = "name a case that has some before the figure" if gate.case is None else "add mutants"
        raise GateError(f"the case {name} has no mutants that count, so it has no {gate.figure}", remedy)
    if gate.figure in _OF_SYSTEMS and not scope.systems:
        raise GateError(f"{gate.figure} needs a coverage system and there is none", "add one under coverage")
    if gate.figure in CORRELATIONS and not case.subsets:
        remedy = "name a case that has some before the figure" if gate.case is None else "add subsets"
        raise GateError(f"the case {name} has no subsets, so it has no {gate.figure}", remedy)
