"""What a node id on the command line names, checked before anything runs: a misspelt part with the right one."""

from collections.abc import Iterable, Sequence

from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.messages import did_you_mean


def parts_of(argument: str) -> tuple[str, ...]:
    """The parts of a command line argument below the file, as pytest splits it: ``::`` in brackets does not count."""
    base, bracket, rest = argument.partition("[")
    _, *parts = base.split("::")
    if parts and bracket:
        parts[-1] += bracket + rest
    return tuple(parts)


def selection_problem(experiment: Experiment, parts: Sequence[str]) -> str | None:
    """Which of the parts names nothing, and what it probably means; None where an item is named.

    Args:
        experiment: the one of the file before the parts.
        parts: case, variant and task with its slot, as many as are given.
    """
    if not parts:
        return None
    case = next((case for case in experiment.cases if case.id == parts[0]), None)
    if case is None:
        return _unknown("case", parts[0], (case.id for case in experiment.cases))
    if len(parts) == 1:
        return None
    if parts[1] == "coverage":
        return "coverage requests follow the attempts; choose their systems with --metricbench-coverage ID"
    variants = [variant.id for variant in case.variants]
    if parts[1] not in variants:
        return _unknown("variant", parts[1], variants)
    if len(parts) == 2:
        return None
    lowest, depth = ("a variant", 2) if experiment.items == "variant" else ("an attempt", 3)
    if len(parts) > depth:
        return f"there is nothing below {lowest}; leave out ::{'::'.join(parts[depth:])}"
    name, bracket, slot = parts[2].partition("[")
    task = next((task for task in case.tasks if task.id == name), None)
    if task is None:
        return _unknown("task", name, (task.id for task in case.tasks))
    if bracket and experiment.items == "task":
        return f"an item is all attempts at a task here (items: task); leave out [{slot}"
    slots = [str(slot) for slot in case.slots(parts[1], task)]
    if bracket and slot.removesuffix("]") not in slots:
        return f"there is no attempt [{slot}; {_slots(slots)}"
    return None


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = list(known)
    listed = f"there {'is only' if len(names) == 1 else 'are'} {first_names(names)}"
    return f"there is no {what} {name!r}; {did_you_mean(name, names) or listed}"


def _slots(slots: Sequence[str]) -> str:
    if not slots:
        return "none are made of it"
    return "there is only [1]" if len(slots) == 1 else f"they are [{slots[0]}] to [{slots[-1]}]"
