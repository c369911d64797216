"""What of a correlation is left when the size of the subsets is taken into account.

Bigger subsets cover more and kill more, whatever the metric. Partial correlations remove size from both sides; the
gain in R2 over log(size) says what coverage adds to size as a predictor, which stays meaningful where the partial
coefficient becomes spurious because coverage and size nearly determine each other (Chen et al., ASE 2020; the share
that log(size) explains by itself: Gopinath, Jensen and Groce, ICSE 2014).
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from pytest_metricbench.analysis.arrays import FloatArray
from pytest_metricbench.analysis.correlation import kendall, levels, pearson, spearman, why_undefined
from pytest_metricbench.analysis.figures import DECIMALS, Balance, Figure, SizeControl
from pytest_metricbench.analysis.unavailable import missing

_DETERMINED: Final = 1e-12
_METHODS: Final = {"pearson": pearson, "spearman": spearman, "kendall": kendall}
LOPSIDED: Final = 0.1
"""A mean kill share nearer to 0 or 1 than this leaves little to predict."""


def partial_coefficient(r_xy: float, r_xz: float, r_yz: float) -> float | None:
    """The correlation of x and y given z; None where z determines one of them (denominator below 1e-12)."""
    square = (1 - r_xz * r_xz) * (1 - r_yz * r_yz)
    if square < _DETERMINED:
        return None
    return max(-1.0, min(1.0, (r_xy - r_xz * r_yz) / math.sqrt(square)))


@dataclass(frozen=True, slots=True)
class SizeModel:
    """The score by least squares on log(size), and on log(size) and coverage."""

    r2_log_size: float
    r2_with_coverage: float
    adjusted: float
    """R2 of both, adjusted for the number of predictors; needs at least 4 pairs, else equal to R2."""
    slope: float
    """Of coverage, log(size) held."""

    @property
    def gain(self) -> float:
        """What coverage adds to R2."""
        return self.r2_with_coverage - self.r2_log_size


def size_model(coverage: FloatArray, score: FloatArray, size: FloatArray) -> SizeModel | None:
    """Both regressions, from the three correlations; None where log(size) determines coverage.

    No side may be constant.
    """
    log_size = np.log(size)
    r_yx, r_yz, r_xz = pearson(score, coverage), pearson(score, log_size), pearson(coverage, log_size)
    left = 1 - r_xz * r_xz
    if left < _DETERMINED:
        return None
    both = min(1.0, (r_yx**2 + r_yz**2 - 2 * r_yx * r_yz * r_xz) / left)
    pairs = len(score)
    adjusted = 1 - (1 - both) * (pairs - 1) / (pairs - 3) if pairs > 3 else both
    slope = float(score.std() / coverage.std()) * (r_yx - r_yz * r_xz) / left
    return SizeModel(r_yz**2, max(both, r_yz**2), adjusted, slope)


def size_control(coverage: FloatArray, score: FloatArray, sizes: list[int], reason: Figure | None) -> SizeControl:
    """The figures of one correlation over all subsets.

    Args:
        coverage: of every pair.
        score: of every pair.
        sizes: of every pair's subset.
        reason: an unavailable figure to give instead, where the correlation itself has none.
    """
    if reason is not None:
        return SizeControl(**dict.fromkeys(SizeControl.model_fields, reason))
    size = np.array(sizes, dtype=np.float64)
    if why_undefined(size, score) is not None:
        one = Figure(**missing(f"all subsets with a pair have size {sizes[0]}"))
        return SizeControl(**dict.fromkeys(SizeControl.model_fields, one))
    partials = {
        name: _figure(partial_coefficient(method(coverage, score), method(coverage, size), method(score, size)))
        for name, method in _METHODS.items()
    }
    model = size_model(coverage, score, size)
    return SizeControl(
        **partials,
        r2_log_size=Figure(value=pearson(score, np.log(size)) ** 2),
        r2_with_coverage=_figure(model.r2_with_coverage if model else None),
        gain=_figure(model.gain if model else None),
    )


def _figure(value: float | None) -> Figure:
    reason = "the size of the subsets determines their coverage or their mutation score"
    return Figure(value=value) if value is not None else Figure(**missing(reason))


def attainable_r(share: float) -> float:
    """The largest Pearson's r with an outcome that is 1 in ``share`` of the pairs (Chen et al., ASE 2020, eq. 1).

    The density of the normal distribution at its quantile, over the standard deviation of the outcome: .80 at one
    half, .58 at one in ten; for a normal other side.

    Raises:
        ValueError: ``share`` is not between 0 and 1: the outcome is constant.
    """
    if not 0 < share < 1:
        raise ValueError(f"an outcome that is 1 in a share of {share} of the pairs is constant")
    normal = NormalDist()
    return normal.pdf(normal.inv_cdf(share)) / math.sqrt(share * (1 - share))


def balance(score: FloatArray, *, is_share: bool) -> Balance:
    """How far the scores of the pairs are from one side; ``is_share`` where they are kill shares."""
    if not len(score):
        return Balance(mean=None, lopsided=False, attainable=Figure(**missing("there is no pair")))
    mean = round(math.fsum(score.tolist()) / len(score), DECIMALS)  # scores are rounded so far, too
    lopsided = is_share and not LOPSIDED <= mean <= 1 - LOPSIDED
    binary = bool(np.isin(score, (0.0, 1.0)).all())
    if binary and int(levels(score).max()) == 1:
        attainable = Figure(value=attainable_r(mean))
    else:
        attainable = Figure(**missing("the outcome is constant" if binary else "the outcome is not only 0 and 1"))
    return Balance(mean=mean, lopsided=lopsided, attainable=attainable)
