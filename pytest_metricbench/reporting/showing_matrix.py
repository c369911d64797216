"""The whole matrix of kills on a terminal, in blocks of as many tasks as fit beside each other."""

from string import ascii_lowercase
from typing import Final

from pytest_metricbench.analysis.kill_figures import cell_states
from pytest_metricbench.definition.experiment import Variant
from pytest_metricbench.reporting.layout import Line, flowing, line, listing, paragraph, shortened
from pytest_metricbench.reporting.showing import Shown, ShownCase

_SIGNS: Final = {"killed": "x", "survived": ".", "missing": "?", "not_reached": "-"}
_ID_WIDTH: Final = 32
_KEY_WIDTH: Final = 36


def matrix_lines(shown: Shown, width: int) -> list[Line]:
    """Mutants against tasks: who kills whom."""
    lines: list[Line] = []
    for name, case in shown.cases.items():
        lines += [Line()] if lines else []
        if not case.mutants:
            lines += paragraph(f"case {name} has no mutants", width)
            continue
        lines += [line("case ", (name, "bold")), *_matrix(case, width)]
    return lines


def _matrix(case: ShownCase, width: int) -> list[Line]:
    states = cell_states(case.matrix)
    tasks = [task.id for task in case.outcomes.tasks if task.id in case.tasks]
    letters = dict(zip(tasks, _letters(len(tasks)), strict=True))
    column = max(len(letter) for letter in letters.values())
    labels = {mutant.id: shortened(f"{mutant.id}{_aside(case, mutant)}", _ID_WIDTH) for mutant in case.mutants}
    left = max(len(label) for label in (*labels.values(), "kills"))
    per_block = max((width - left - len("  of 999")) // (column + 1), 1)
    lines: list[Line] = []
    for start in range(0, len(tasks), per_block):
        chosen = tasks[start : start + per_block]
        heads = " ".join(f"{letters[task]:>{column}}" for task in chosen)
        lines += [Line()] if start else []
        lines.append(line((f"{'kills':<{left}}  {heads}", "bold"), "  by" if start == 0 else ""))
        for mutant in case.mutants:
            row = states[mutant.id]
            cells = " ".join(f"{_SIGNS[row[task]]:>{column}}" for task in chosen)
            kills = sum(row[task] == "killed" for task in tasks)
            lines.append(line(f"{labels[mutant.id]:<{left}}  {cells}", f"  {kills}" if start == 0 else ""))
        counts = [sum(states[mutant.id][task] == "killed" for mutant in case.mutants) for task in chosen]
        if max(counts) < 10**column:
            lines.append(line((f"{'':<{left}}  {' '.join(f'{count:>{column}}' for count in counts)}", "light")))
    used = {states[mutant.id][task] for mutant in case.mutants for task in tasks}
    legend = "   ".join(f"{sign} {word.replace('_', ' ')}" for word, sign in _SIGNS.items() if word in used)
    keys = [f"{letter} {shortened(task, _KEY_WIDTH)}" for task, letter in letters.items()]
    return [*lines, Line(), *listing("cells", [legend], width), *(line(text) for text in flowing(keys, width))]


def _letters(number: int) -> list[str]:
    """``a`` to ``z``; of more tasks numbers, all of one width."""
    if number <= len(ascii_lowercase):
        return list(ascii_lowercase[:number])
    return [f"{index:0{len(str(number))}}" for index in range(1, number + 1)]


def _aside(case: ShownCase, mutant: Variant) -> str:
    groups = case.groups
    asides = (("control", groups.controls), ("equivalent", groups.equivalent), ("invalid", groups.invalid))
    return "".join(f" ({word})" for word, names in asides if mutant.id in names)
