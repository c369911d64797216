"""What one key of an experiment says about another: the primary score, the kill rule, the k of pass@k."""

from collections.abc import Iterable
from typing import Final

from pytest_metricbench.definition.documents import Place
from pytest_metricbench.definition.experiment import Task
from pytest_metricbench.definition.problems import ProblemList
from pytest_metricbench.definition.scoring import UNCOUNTED
from pytest_metricbench.messages import counted

_MOST_NAMED: Final = 6
_FISHER = "write {rule: fisher, alpha: 0.05} or {rule: fisher, q: 0.05}"


def primary_of(root: Place, problems: ProblemList) -> str | None:
    """The name of the score that decides, as far as the file says: declared, or following from ``outputs``.

    None where it depends on what the attempts score: the only score, or ``reward``.
    """
    score = root.child("score")
    outputs = score.child("outputs") if score is not None else None
    primary = score.child("primary") if score is not None else None
    name = score.text("primary") if score is not None else None
    if outputs is None or not isinstance(outputs.value, dict) or not outputs.value:
        return name
    counting = [key for key, kind in outputs.value.items() if kind not in ("label", "measurement")]
    listed = f"those that count are {', '.join(counting)}" if counting else "declare one that is a number or a boolean"
    if primary is None or primary.value is None:
        if not counting:
            problems.add(outputs.problem("declares no score that can decide", listed, at_key=True))
        elif len(counting) > 1 and "reward" not in counting:
            remedy = f"name one of {', '.join(counting)} in score.primary"
            problems.add(outputs.problem("declares several scores and none is called 'reward'", remedy, at_key=True))
        return counting[0] if len(counting) == 1 else "reward"
    if name is not None and name not in outputs.value:
        hint = problems.hint(name, outputs.value) or listed
        problems.add(primary.problem(f"the score {name!r} is not among the outputs", hint))
    elif name is not None and name not in counting:
        problems.add(primary.problem(f"the score {name!r} is declared as a {outputs.value[name]}", listed))
    return name


def check_kill(root: Place, problems: ProblemList) -> None:
    """``fisher`` has exactly one of alpha and q, ``flip`` neither."""
    analysis = root.child("analysis")
    kill = analysis.child("kill") if analysis is not None else None
    if kill is None or not isinstance(kill.value, dict):
        return
    given = [name for name in ("alpha", "q") if kill.value.get(name) is not None]
    rule = kill.value.get("rule")
    if rule == "fisher" and not given:
        problems.add(kill.problem("says neither alpha nor q", _FISHER))
    elif rule == "fisher" and len(given) == 2:
        problems.add(kill.problem("says both alpha and q", _FISHER))
    elif rule == "flip":
        for name in given:
            place = kill.child(name) or kill
            problems.add(place.problem(f"the rule flip has no {name}", _FISHER, at_key=True))


def check_primary_of_tasks(root: Place, tasks: Iterable[Task], primary: str | None, problems: ProblemList) -> None:
    """Where tasks say what is scored at them, one score decides: ``reward``, the only one, or a named one."""
    counting = {name for task in tasks for name, kind in task.outputs.items() if kind not in UNCOUNTED}
    if primary is None and len(counting) > 1 and "reward" not in counting:
        names = sorted(counting)
        shown = names if len(names) <= _MOST_NAMED else [*names[:_MOST_NAMED], f"{len(names) - _MOST_NAMED} more"]
        message = f"the tasks have several scores that count ({', '.join(shown)}) and none is called 'reward'"
        problems.add((root.child("score") or root).problem(message, "name one in score.primary"))


def check_attempts_of_k(root: Place, attempts: int, problems: ProblemList) -> None:
    """No k of ``pass_at_k`` is above the attempts of every task: pass@k is then undefined everywhere."""
    analysis = root.child("analysis")
    for place in analysis.entries("pass_at_k") if analysis is not None else []:
        if type(place.value) is int and place.value > attempts:
            message = f"k = {place.value} is above the {counted(attempts, 'attempt')} of a task"
            problems.add(place.problem(message, f"at most {attempts}, or ask for more attempts"))


def default_pass_at_k(attempts: int) -> tuple[int, ...]:
    """Those of 1, 3 and 5 that a number of attempts allows."""
    return tuple(k for k in (1, 3, 5) if k <= attempts)
