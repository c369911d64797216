"""p, intervals and comparisons of correlations, against brute force and against their own laws."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.analysis import task_labels
from pytest_metricbench.analysis.correlation import coefficients
from pytest_metricbench.analysis.detection import Tallies, kills
from pytest_metricbench.analysis.figures import Coefficient
from pytest_metricbench.analysis.goal_sets import GoalSets
from pytest_metricbench.analysis.intervals import correlation_interval, difference_interval
from pytest_metricbench.analysis.mutation_score import drops, mean_drops, set_kills
from pytest_metricbench.analysis.redraws import AttemptRedraws, CaseRedraws, Judge
from pytest_metricbench.analysis.strata import Side
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary_json import summary_to_json
from pytest_metricbench.analysis.task_labels import Tail, TaskLabelTest, tail
from pytest_metricbench.analysis.unions import Design
from pytest_metricbench.definition.experiment import KillRule
from tests.analysis.goals_lab import GOALS, TASKS, analysed, big_table, table
from tests.analysis.order_lab import shuffled
from tests.analysis.results_builder import build

# ---------------------------------------------------------------- task labels


def test_small_cases_count_every_labelling() -> None:
    """Six tasks: all 720, computed here one by one with sets."""
    case = analysed(table())
    figure = case.correlation["one"]["kill_share"].overall.kendall
    y = np.array([s.kill_share.value for s in case.subsets.values()])
    members = [s.tasks for s in case.subsets.values()]
    null = []
    for order in itertools.permutations(TASKS):
        goals = {task: set(GOALS[other]) for task, other in zip(TASKS, order, strict=True)}
        x = np.array([float(len(set().union(*(goals[task] for task in tasks)))) for tasks in members])
        null.append(coefficients(x, y).kendall if len(set(x)) > 1 else math.nan)
    defined = [r for r in null if not math.isnan(r)]
    assert figure.value is not None
    greater = sum(r >= figure.value - 1e-12 for r in defined) / len(defined)
    less = sum(r <= figure.value + 1e-12 for r in defined) / len(defined)
    assert figure.p.exact
    assert figure.p.relabellings == len(defined)
    assert figure.p.undefined == 720 - len(defined)
    assert figure.p.greater == pytest.approx(greater)
    assert figure.p.less == pytest.approx(less)
    assert figure.p.value == pytest.approx(min(1, 2 * min(greater, less)))
    assert figure.random.value == pytest.approx(np.mean(defined))


def test_big_cases_draw_labellings() -> None:
    case = analysed(big_table(), permutation=999)
    for system in ("one", "two"):
        figure = case.correlation[system]["kill_share"].overall.spearman
        assert not figure.p.exact
        assert figure.p.relabellings == 999
        assert figure.p.value is not None
        assert figure.p.value * 1000 == pytest.approx(round(figure.p.value * 1000))
        assert min(figure.p.greater or 0, figure.p.less or 0) >= 0.001


def test_mixed_sizes_have_a_null_far_above_0() -> None:
    found = analysed(big_table(), permutation=299).correlation["one"]["kill_share"]
    assert found.overall.kendall.random.value is not None
    assert found.overall.kendall.random.value > 0.3
    for size in ("3", "6"):
        assert abs(found.by_size[size].kendall.random.value or 0.0) < 0.1


def test_drawn_labellings_agree_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = analysed(table()).correlation["one"]["kill_share"].overall.pearson.p
    monkeypatch.setattr(task_labels, "EXACT_TASKS", 3)
    drawn = analysed(table(), permutation=4999).correlation["one"]["kill_share"].overall.pearson.p
    assert not drawn.exact
    assert drawn.value == pytest.approx(exact.value, abs=0.03)
    assert drawn.greater == pytest.approx(exact.greater, abs=0.03)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.floats(-1, 1), st.booleans())
def test_tails_cover_everything(null: list[float], observed: float, exact: bool) -> None:
    found = tail(observed, np.array(null), exact)
    assert isinstance(found, Tail)
    assert found.greater + found.less >= 1 or exact
    assert 0 < found.two_sided <= 1 or exact
    assert found.two_sided <= 1
    assert found.draws == len(null)


def test_tails_of_nothing_say_why() -> None:
    null = np.array([0.1] * 90 + [math.nan] * 10)
    assert tail(math.nan, null, False) == "the coverage that the goals make is constant"
    assert tail(0.1, null, False) == "10 of 100 relabellings of the tasks have no coefficient, more than 5 %"
    kept = tail(0.1, null[4:], False)
    assert kept == "10 of 96 relabellings of the tasks have no coefficient, more than 5 %"
    few = tail(0.1, np.array([0.1] * 96 + [math.nan] * 4), False)
    assert isinstance(few, Tail)
    assert (few.draws, few.undefined) == (96, 4)


def test_subsets_of_unknown_tasks_are_in_no_test() -> None:
    goals = GoalSets((0, 1, 2), np.array([[1, 2, 4]], dtype=np.uint64), 3)
    members = np.array([[1, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0]], dtype=np.bool_)
    side = Side(np.array([[2], [0], [1], [0]]), np.array([[2], [0], [1], [0]]))
    test = TaskLabelTest(goals, members, {"kill_share": ({"overall": np.array([0, 2, 3])}, side)}, 9, 1, "x")
    found = test.tail("kill_share", "overall", "spearman")
    assert isinstance(found, Tail)
    assert found.draws == 6


# ---------------------------------------------------------------- redraws


def test_redrawn_scores_are_those_of_the_redrawn_case() -> None:
    """Each redraw, taken apart: the scores of its subsets as :mod:`.mutation_score` computes them exactly."""
    rng = np.random.default_rng(4)
    tallies = Tallies(
        np.array([4, 2, 0, 3, 4]), np.array([4, 4, 0, 4, 4]),
        rng.integers(0, 5, (3, 5)), np.full((3, 5), 4),
    )  # fmt: skip
    tallies.mutant_n[1, 3] = 0
    tallies.mutant_passed[1, 3] = 0
    members = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [1, 0, 0, 1, 0], [0, 0, 1, 0, 0]], dtype=np.bool_)
    rule = KillRule()
    judge = Judge(rule, None, tallies.base_n, tallies.mutant_n)
    redraws = CaseRedraws(tallies, judge, Design.of(members), range(5))
    for part in redraws.draw(40, Replay()):
        for draw in range(part.tasks.shape[1]):
            tasks, mutants = part.tasks[:, draw], Replay.mutants[draw]
            redrawn = Tallies(
                Replay.base[draw][tasks], tallies.base_n[tasks],
                Replay.mutant[draw][mutants][:, tasks], tallies.mutant_n[mutants][:, tasks],
            )  # fmt: skip
            found = set_kills(members, redrawn.present, kills(rule, redrawn, np.ones(3, dtype=np.bool_)).killed)
            means = mean_drops(members, found.cells, drops(redrawn), np.ones(3, dtype=np.bool_))
            for row in range(len(members)):
                killed, counted = found.share(row, np.ones(3, dtype=np.bool_))
                share = part.scores["kill_share"].values[row, draw]
                assert math.isnan(share) if not counted else share == pytest.approx(killed / counted)
                drop, mean = part.scores["mean_drop"].values[row, draw], means[row]
                assert math.isnan(drop) if mean is None else drop == pytest.approx(float(mean))


class Replay(np.random.Generator):
    """Remembers what it drew."""

    mutants: Any
    base: Any
    mutant: Any

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(8))
        self._calls = 0

    def integers(self, *args: Any, **kwargs: Any) -> Any:
        found = super().integers(*args, **kwargs)
        self._calls += 1
        if self._calls == 2:
            Replay.mutants = found
        return found

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Attempts as they are: the test above is about tasks and mutants."""
        drawn = np.broadcast_to(np.rint(n * p).astype(np.int64), size)
        full = Replay._tallies()
        Replay.base = np.broadcast_to(full.base_passed, (size[0], 5))
        Replay.mutant = np.broadcast_to(full.mutant_passed, (size[0], 3, 5))
        return drawn

    @staticmethod
    def _tallies() -> Tallies:
        passed = np.random.default_rng(4).integers(0, 5, (3, 5))
        passed[1, 3] = 0
        return Tallies(np.array([4, 2, 0, 3, 4]), np.array([4, 4, 0, 4, 4]), passed, np.full((3, 5), 4))


def test_attempts_are_redrawn_at_the_rate_of_their_cell() -> None:
    tallies = Tallies(np.array([3, 4, 0]), np.array([4, 4, 0]), np.array([[1, 4, 0]]), np.array([[4, 4, 4]]))
    redraws = AttemptRedraws(tallies)
    assert redraws.any
    base, mutant = redraws.draw(4000, np.random.default_rng(1))
    assert base[:, 0].mean() == pytest.approx(3, abs=0.1)
    assert set(base[:, 1].tolist()) == {4}
    assert set(base[:, 2].tolist()) == {0}
    assert mutant[:, 0, 0].var() == pytest.approx(4 * 0.25 * 0.75, abs=0.1)
    assert set(mutant[:, 0, 1].tolist()) == {4}
    steady = Tallies(np.array([4]), np.array([4]), np.array([[0]]), np.array([[4]]))
    assert not AttemptRedraws(steady).any


@pytest.mark.parametrize("rule", [KillRule(), KillRule("fisher", 0.2), KillRule("fisher", None, 0.5)])
def test_redrawn_kills_are_those_of_the_rule(rule: KillRule) -> None:
    rng = np.random.default_rng(3)
    base_n, mutant_n = np.array([4, 3, 0, 5]), rng.integers(0, 6, (6, 4))
    base, mutant = rng.integers(0, base_n + 1, (20, 4)), rng.integers(0, mutant_n + 1, (20, 6, 4))
    threshold = kills(rule, Tallies(base[0], base_n, mutant[0], mutant_n), np.ones(6, dtype=np.bool_)).threshold
    found = Judge(rule, threshold, base_n, mutant_n).kills(base, mutant)
    for draw in range(20):
        tallies = Tallies(base[draw], base_n, mutant[draw], mutant_n)
        if rule.rule == "flip":
            assert (found[draw] == kills(rule, tallies, np.ones(6, dtype=np.bool_)).killed).all()
        else:
            alpha = KillRule("fisher", float(threshold)) if threshold is not None else None
            wanted = kills(alpha, tallies, np.ones(6, dtype=np.bool_)).killed if alpha else np.zeros((6, 4))
            assert (found[draw] == wanted).all()


def test_without_a_threshold_nothing_is_killed() -> None:
    judge = Judge(KillRule("fisher", None, 0.01), None, np.array([3]), np.array([[3]]))
    assert not judge.kills(np.array([[3]]), np.array([[[0]]])).any()


def test_intervals_hold_the_coefficient_and_count_what_they_rest_on() -> None:
    case = analysed(big_table(), bootstrap=300, permutation=99)
    for by_score in case.correlation.values():
        for score in by_score.values():
            for correlation in (score.overall, *score.by_size.values()):
                check_interval(correlation.spearman)


def check_interval(figure: Coefficient) -> None:
    assert (figure.interval is None) != (figure.interval_reason is None)
    assert (figure.redraws or 0) + (figure.redraws_undefined or 0) == 300
    if figure.interval is not None and figure.value is not None:
        assert -1 <= figure.interval[0] <= figure.value <= figure.interval[1] <= 1


def test_the_interval_of_a_coefficient_is_symmetric_in_its_sign() -> None:
    """atanh of the redraws is 0.2, 0.5 and 0.8, of which the standard deviation is 0.3."""
    redrawn = np.tanh([0.2, 0.5, 0.8])
    reach = 1.959963984540054 * 0.3
    above = correlation_interval(math.tanh(0.5), redrawn).interval
    below = correlation_interval(-math.tanh(0.5), -redrawn).interval
    assert above == pytest.approx((math.tanh(0.5 - reach), math.tanh(0.5 + reach)), abs=1e-9)
    assert below == pytest.approx((math.tanh(-0.5 - reach), math.tanh(-0.5 + reach)), abs=1e-9)


def test_intervals_that_cannot_be_made_say_why() -> None:
    nothing = correlation_interval(0.5, np.array([0.5] * 90 + [math.nan] * 10))
    assert nothing.reason == "10 of 100 redraws have no coefficient, more than 5 %"
    assert (nothing.interval, nothing.draws, nothing.undefined) == (None, 90, 10)
    assert correlation_interval(0.5, np.array([0.5] * 9)).reason == "the redraws show no spread"
    one = correlation_interval(1.0, np.array([1.0, 0.9, 0.8, 1.0]))
    assert one.interval is not None
    assert one.interval[1] == 1.0
    wide = difference_interval(0.1, np.array([-2.0, 2.0]))
    assert wide.interval == (-2.0, 2.0)


# ---------------------------------------------------------------- the same bytes


@given(st.integers(0, 2**32), st.sampled_from([KillRule(), KillRule("fisher", 0.3), KillRule("fisher", None, 0.4)]))
@settings(max_examples=8)
def test_no_order_of_the_files_changes_a_draw(seed: int, rule: KillRule) -> None:
    given_results = build(big_table(), rule=rule, permutation=49, bootstrap=40)
    assert summary_to_json(summarize(shuffled(given_results, seed))) == summary_to_json(summarize(given_results))


def test_the_seed_changes_what_is_drawn_and_nothing_else() -> None:
    ones, others = (analysed(big_table(), permutation=199, bootstrap=100, seed=seed) for seed in (1, 2))
    one, other = (case.correlation["one"]["kill_share"].overall.kendall for case in (ones, others))
    assert one.value == other.value
    assert one.interval != other.interval
    assert one.random.value != other.random.value
