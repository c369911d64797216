"""Estimates that a notebook asks for itself: what they refuse, in words that say what they were given."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pytest_metricbench.analysis.correlation import coefficients
from pytest_metricbench.analysis.estimates import (
    bayes_at_n,
    beta_interval,
    clopper_pearson,
    clustered_error,
    detection_probability,
    paired_difference,
)
from pytest_metricbench.analysis.figures import Figure
from pytest_metricbench.analysis.pass_at_k import pass_at_k, task_intervals
from pytest_metricbench.analysis.proportions import wilson

Call = Callable[[], Any]

ALMOST_SURE = math.nextafter(1, 0)
"""A confidence whose (1 + confidence) / 2 is rounded to 1, where the normal distribution has no quantile."""
ALMOST_HALF = 0.5 / math.sqrt(1 + 2 / stats.norm.isf((1 - ALMOST_SURE) / 2) ** 2)
"""Wilson's half width at one success in two: z / (2 sqrt(z^2 + n))."""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wilson(1, 0), "1 successes in 0 trials make no proportion$"),
        (lambda: wilson(1, 2, 0.0), "confidence is 0.0; a number between 0 and 1 is expected$"),
        (lambda: clopper_pearson(3, 2), "3 successes in 2 trials"),
        (lambda: clopper_pearson(0, 0), "0 successes in 0 trials"),
        (lambda: clopper_pearson(1, 2, 1.0), "confidence is 1.0"),
        (lambda: beta_interval(-1, 2), "-1 successes in 2 trials"),
        (lambda: beta_interval(1, 2, 0.0), "prior is 0.0; a number above 0"),
        (lambda: beta_interval(1, 2, math.inf), "prior is inf; a number above 0"),
        (lambda: beta_interval(1, 2, 1.0, 1.5), "confidence is 1.5"),
        (lambda: bayes_at_n([]), "0 tasks: at least one is needed"),
        (lambda: bayes_at_n([(2, 1), (1, 2)]), "2 passes of 1 attempt$"),
        (lambda: bayes_at_n([(2, -1)]), "-1 passes of 2 attempts$"),
        (lambda: detection_probability([0.5, 1.5]), "1.5 is no probability"),
        (lambda: detection_probability([math.nan]), "nan is no probability"),
        (lambda: paired_difference([1.0], [1.0]), "1 task against 1"),
        (lambda: paired_difference([1.0, 0.0], [1.0]), "2 tasks against 1: two or more tasks of both are needed$"),
        (lambda: clustered_error([1.0, 0.0], ["a"]), "2 scores, 1 of them with a family: each needs one$"),
        (lambda: clustered_error([], []), "0 scores in 0 families"),
        (lambda: clustered_error([1.0, 0.0], ["a", "a"]), "2 scores in 1 family: two or more families are needed"),
        (lambda: task_intervals([[0.0, 1.0]], resamples=0, seed=1), "resamples is 0; 1 or more"),
        (
            lambda: task_intervals([[0.0, 1.0], [1.0]], resamples=9, seed=1),
            "rows of 1 and 2 values; all must be of the same tasks$",
        ),
        (lambda: task_intervals([[0.0, 1.0]], resamples=9, seed=1, confidence=2.0), "confidence is 2.0"),
        (lambda: pass_at_k(2, 3, 1), "n=2, c=3, k=1: k of at least 1 and 0 <= c <= n are expected$"),
        (lambda: pass_at_k(2, 1, 0), "n=2, c=1, k=0: k of at least 1"),
        (lambda: coefficients(np.zeros(2), np.zeros(3)), "2 values of x and 3 of y make no pairs$"),
        (lambda: Figure(value=None), ".*a figure has a value, or null and a reason"),
        (lambda: Figure(value=1.0, reason="why"), ".*a figure has a value, or null and a reason"),
    ],
)
def test_refused(call: Call, message: str) -> None:
    with pytest.raises(ValueError, match="(?s)^" + message):
        call()


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda: wilson(1, 2, ALMOST_SURE), (0.5 - ALMOST_HALF, 0.5 + ALMOST_HALF)),
        (lambda: beta_interval(0, 0), (0.025, 0.975)),  # no attempt: the prior, which is uniform
        (lambda: bayes_at_n([(0, 0)]), (0.5, 1 / math.sqrt(12))),  # likewise
        (lambda: detection_probability([]), 0),
        (lambda: detection_probability([0.0, 1.0]), 1),
        (lambda: paired_difference([1.0, 0.0], [1.0, 0.0]).error, 0),
        (lambda: clustered_error([1.0, 0.0], ["a", "b"]).clustered, 1 / math.sqrt(8)),
    ],
)
def test_at_the_edge(call: Call, found: Any) -> None:
    assert call() == pytest.approx(found, abs=1e-12)
