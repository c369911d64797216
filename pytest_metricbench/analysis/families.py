"""p values of several tests that ask one question together."""

from collections.abc import Mapping


def holm(p_values: Mapping[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    """Adjusted p values of a family of tests (Holm 1979): each is at most the chance of any false rejection."""
    adjusted, least = {}, 0.0
    for rank, (key, p) in enumerate(sorted(p_values.items(), key=lambda entry: entry[1])):
        least = max(least, min(1.0, (len(p_values) - rank) * p))
        adjusted[key] = least
    return adjusted
