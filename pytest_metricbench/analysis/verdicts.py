"""The verdict of a task under a variant."""

from typing import Literal


def verdict(n: int, passed: int) -> Literal["solved", "flaky", "failed", "unmeasured"]:
    """What ``n`` entries with ``passed`` passes say of a task: all, some, none, or nothing known.

    Raises:
        ValueError: ``passed`` is not in 0..n.
    """
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} passes in {n} entries")
    if n == 0:
        return "unmeasured"
    if passed == n:
        return "solved"
    return "flaky" if passed else "failed"
