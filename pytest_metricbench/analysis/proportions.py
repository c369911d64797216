"""Intervals of a proportion."""

import math
from functools import lru_cache
from statistics import NormalDist


def check_proportion(successes: int, n: int, *, least: int = 1) -> None:
    """Refuse what is no count of successes.

    Raises:
        ValueError: ``n`` is below ``least``, or ``successes`` is not in 0..n.
    """
    if n < least or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials make no proportion")


def check_confidence(confidence: float) -> None:
    """Refuse what is no confidence of an interval.

    Raises:
        ValueError: it is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; a number between 0 and 1 is expected")


@lru_cache(maxsize=4096)
def wilson(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of ``successes`` in ``n``, two-sided, without continuity correction.

    Unlike Wald's it never leaves [0, 1] and is no point at 0 or ``n`` successes (Wilson 1927; recommended by Brown,
    Cai and DasGupta 2001, section 4, for small ``n``).

    Raises:
        ValueError: ``n`` is below 1, ``successes`` is not in 0..n, or ``confidence`` is not between 0 and 1.
    """
    check_proportion(successes, n)
    check_confidence(confidence)
    z = -NormalDist().inv_cdf((1 - confidence) / 2)  # of the upper end, a confidence just below 1 would be rounded to 1
    share = successes / n
    shrink = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / shrink
    low = 0.0 if successes == 0 else max(0.0, centre - reach)
    high = 1.0 if successes == n else min(1.0, centre + reach)
    return low, high
