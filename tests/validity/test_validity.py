"""Simulated experiments whose truth is known. The tables of full runs are in docs/validity/README.md."""

import comparing
import false_kills
import intervals
import numpy as np
import pytest
import relabelling
import worlds

from pytest_metricbench.analysis.task_labels import TaskLabelTest

pytestmark = [pytest.mark.slow, pytest.mark.benchmark]

FEW = 400


@pytest.mark.parametrize("setting", relabelling.SETTINGS[:4], ids=lambda s: f"{s.tasks} tasks, sizes {s.sizes}")
def test_without_a_relation_p_is_small_as_often_as_it_says(setting: relabelling.Setting) -> None:
    found = [relabelling.p_values(setting, seed, relabellings=199) for seed in range(FEW)]
    for method in relabelling.METHODS:
        share = sum(p[method] <= 0.05 for p in found) / FEW
        assert 0.02 <= share <= 0.08, (method, share)
    assert sum(p["naive"] <= 0.05 for p in found) / FEW > 0.15, "what the naive p says of the same experiments"


@pytest.mark.parametrize(
    "setting",
    [intervals.SETTINGS[index] for index in (0, 2, 3)],
    ids=lambda s: f"{s.tasks} tasks, {s.sizes}, {s.noisy}",
)
def test_intervals_hold_what_pools_of_this_kind_have(setting: intervals.Setting) -> None:
    found = {seed: intervals.experiment(setting, seed, draws=200) for seed in range(200)}
    for method in intervals.METHODS:
        expected = np.tanh(np.mean([np.arctanh(one.value[method]) for one in found.values()]))
        ours = [one.ours[method] for one in found.values()]
        held = [interval for interval in ours if interval is not None]
        assert sum(low <= expected <= high for low, high in held) / 200 >= 0.85, method
        pairs = [one.pairs[method] for one in found.values()]
        assert sum(low <= expected <= high for low, high in pairs) < sum(low <= expected <= high for low, high in held)


@pytest.mark.parametrize("rate", false_kills.RATES)
def test_an_unchanged_agent_is_killed_as_often_as_enumeration_says(rate: float) -> None:
    """By flip the chance is exact: the baseline above 1/2, the mutant not."""
    for attempts in false_kills.ATTEMPTS:
        found = false_kills.rates(false_kills.RULES["flip"], rate, attempts, 100)
        passes = np.random.default_rng(1).binomial(attempts, rate, 200_000)
        above = (2 * passes > attempts).mean()
        assert found.cells == pytest.approx(above * (1 - above), abs=0.015)
        fisher = false_kills.rates(false_kills.RULES["fisher, alpha .05"], rate, attempts, 100)
        assert fisher.cells <= 0.05
        by_q = false_kills.rates(false_kills.RULES["fisher, q .05"], rate, attempts, 100)
        assert by_q.cells <= 0.01
        if attempts == 10:
            assert found.control_cells == pytest.approx(found.cells, abs=0.05), "enough attempts to split"


@pytest.mark.parametrize("related", [False, True], ids=["no relation", "the same relation"])
def test_systems_that_are_alike_are_seldom_told_apart(related: bool) -> None:
    found = [comparing.experiment("alike", (5,), related, seed, draws=99) for seed in range(120)]
    assert sum(one.relabelled <= 0.05 for one in found) / len(found) <= 0.1
    assert sum(one.apart for one in found) / len(found) <= 0.12


def test_a_relation_is_found() -> None:
    """The other half of a valid test: where coverage does tell, p is small."""
    rng = np.random.default_rng(3)
    small = 0
    for seed in range(20):
        world = worlds.related(rng, 40)
        members = worlds.overlapping_subsets(rng, 40, (5,), 100)
        side = worlds.killed_mutants(members, world.kills)
        test = TaskLabelTest(
            worlds.goal_sets_of(world.goals),
            members,
            {"kill_share": ({"overall": np.arange(100)}, side)},
            199,
            seed,
            "",
        )
        found = test.tail("kill_share", "overall", "spearman")
        small += not isinstance(found, str) and found.two_sided <= 0.05
    assert small >= 18
