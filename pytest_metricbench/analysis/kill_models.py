"""The part of the summary that is about kills: which mutants count, what kills them, and how much of it is noise.

The whole is :mod:`pytest_metricbench.analysis.summary`.
"""

from typing import Literal, TypeAlias

from pytest_metricbench.analysis.figures import Figure, Finite, Interval, RateFigure, SummaryModel, Text
from pytest_metricbench.analysis.variant_models import Verdict

CellState: TypeAlias = Literal["killed", "survived", "missing", "not_reached"]
"""Of a mutant at a task; ``not_reached`` is for runners that know that the task never reaches the changed place."""


class MutantGroups(SummaryModel):
    """Ids of a case's mutants by how they count. A mutant is in exactly one of the first seven."""

    detected: tuple[str, ...]
    """Valid, and killed by some task of the pool."""
    undetected: tuple[str, ...]
    """Valid, and killed by no task of the pool."""
    unmeasured: tuple[str, ...]
    """Every cell is missing."""
    outside: tuple[str, ...]
    """Not known to be detected, and attempts that could say so are outside this part."""
    invalid: tuple[str, ...]
    """Every attempt died: in no score."""
    equivalent: tuple[str, ...]
    """Valid, found equal to the baseline by a reviewer: not in ``value``, only in ``with_equivalents``."""
    controls: tuple[str, ...]
    """In no score."""
    invalid_controls: tuple[str, ...]
    """Of ``controls``, those whose every attempt died: in no rate of false kills."""


class Detection(SummaryModel):
    """The rule that decides a kill, and what it can show with the attempts that are there."""

    rule: Literal["flip", "fisher"]
    alpha: Finite | None
    q: Finite | None
    threshold: Figure
    """The p at or below which a cell is killed; unavailable for ``flip``."""
    smallest_p: Figure
    """The smallest p that any cell of the scored mutants could reach; unavailable for ``flip``."""
    out_of_reach: int
    """Cells that no number of failures could bring to the threshold (under ``q``: to ``q`` itself)."""


class Survivor(SummaryModel):
    """An undetected mutant: a blind spot of the evaluation."""

    mutant: str
    description: Text
    cells: int
    """Tasks that could have killed it and did not."""
    missing_cells: int
    """Tasks about which nobody knows."""


class Kill(SummaryModel):
    """A cell that is killed."""

    mutant: str
    task: str


class DiedKills(SummaryModel):
    """Kills that would not stand without the attempts that died: weaker evidence than wrong answers."""

    kills: tuple[Kill, ...]
    time_outs: tuple[Kill, ...]
    """Kills that would not stand without the attempts that ran out of time."""
    total: int
    """Kills of the scored mutants, these among them."""
    mutants: tuple[str, ...]
    """Detected mutants that have no other kill."""


class Death(SummaryModel):
    """A kind of error that attempts died of."""

    type: str
    """Name of the exception; ``AgentFailed`` or ``TimeOut`` of a command; ``NullScore`` where the score was null."""
    attempts: int
    variants: tuple[str, ...]
    first: str
    """The first of these attempts, as in node ids: ``variant::task[slot]``."""
    message: Text
    """What that one died of."""


class FalseKills(SummaryModel):
    """What the valid controls say about kills of nothing: a killed control is a false kill."""

    cells: int
    killed_cells: int
    cell_rate: RateFigure
    controls: int
    killed_controls: int
    control_rate: RateFigure
    kills: tuple[Kill, ...]


class NoiseFigure(Figure):
    """A mean over random splits of the baseline's attempts, with the middle 95 % of the splits."""

    middle: Interval | None = None


class SelfKills(SummaryModel):
    """What a set of tasks says of the baseline against itself."""

    false_kills: NoiseFigure
    """Tasks that kill, of the set; a mean over its subsets where there are several."""
    kill_share: NoiseFigure
    """Share of the splits in which some task of the set kills."""
    mean_drop: NoiseFigure


class SelfComparison(SummaryModel):
    """The baseline's attempts split in two and compared with themselves (A/A): what is killed there is noise."""

    splits: int
    """Random splits; 0 where the baseline is so steady that every split says the same."""
    cells: int
    """Tasks with at least two attempts of the baseline."""
    pool: SelfKills
    sizes: dict[str, SelfKills]


class Redundancy(SummaryModel):
    """Mutants that say the same. One is redundant where another's kills are a part of its own."""

    minimal: tuple[str, ...]
    """Detected mutants that no other makes redundant; of mutants with the same kills the first."""
    identical: tuple[tuple[str, ...], ...]
    """Detected mutants with the same kills."""
    stability: dict[str, Finite]
    """Scored mutant -> share of redraws of the attempts in which it is killed and not redundant."""
    redraws: int
    """0 where every rate is 0 or 1, so that every redraw says the same."""


class GreedyStep(SummaryModel):
    """The task that, added to those before it, kills most mutants that they leave."""

    task: str
    killed: int
    """Mutants killed by it and those before it."""
    mutants: int
    kill_share: Finite


class TaskSummary(SummaryModel):
    """One task of a case, over the variants."""

    description: Text
    baseline: Verdict
    baseline_rate: Figure
    kills: int
    """Scored mutants that it kills."""
    cells: int
    """Scored mutants about which it says something."""
    only_killer_of: tuple[str, ...]
    """Scored mutants that no other task kills."""
