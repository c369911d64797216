"""Compares a summary with independently computed answers: ``check_summary.py summary.json expected.json``.

Prints the first differences and exits 1 on any.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def differences(summary: dict[str, Any], want: dict[str, Any], tolerance: float = 1e-9) -> list[str]:
    """Every figure of the case ``alpha`` that differs from what is wanted, in words."""
    case = summary["cases"]["alpha"]
    return [
        f"{where}: {got!r}, expected {expected!r}"
        for where, got, expected in _compared(case, want)
        if not _same(got, expected, tolerance)
    ]


def _same(got: Any, want: Any, tolerance: float) -> bool:
    if isinstance(got, dict) and "value" in got and not isinstance(want, dict):
        got = got["value"]
    if got is None or want is None or isinstance(got, str | bool) or isinstance(want, str | bool):
        return bool(got == want)
    return bool(abs(got - want) <= tolerance)


def _compared(case: dict[str, Any], want: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for variant, by_k in want["pass_at_k"].items():
        for name in ("pass_at_k", "pass_hat_k"):
            for k in by_k:
                figure = case["variants"][variant][name]["reward"][k]
                for field, value in want[name][variant][k].items():
                    yield f"{variant} {name} {k} {field}", figure[field], value
        for verdict, number in want["verdicts"][variant].items():
            yield f"{variant} verdict {verdict}", case["variants"][variant]["verdicts"][verdict], number
    for mutant, valid in want["valid"].items():
        yield f"{mutant} valid", case["variants"][mutant]["valid"], valid
        for task, state in want["kills"][mutant].items() if valid else ():
            yield f"kill {mutant} {task}", case["kills"][mutant][task], state
    for field, value in want["pool"].items():
        yield f"pool {field}", case["pool"][field], value
    for subset, figures in want["subsets"].items():
        got = case["subsets"][subset]
        yield f"{subset} kill_share", got["kill_share"], figures["kill_share"]
        yield f"{subset} mean_drop", got["mean_drop"], figures["mean_drop"]
        yield f"{subset} coverage", got["coverage"]["goals"], figures["coverage"]
    for score, figures in want["correlation"].items():
        got = case["correlation"]["goals"][score]
        for field, value in figures["overall"].items():
            yield f"{score} overall {field}", got["overall"][field], value
        for size, by_field in figures["by_size"].items():
            for field, value in by_field.items():
                yield f"{score} size {size} {field}", got["by_size"][size][field], value


def main(summary_path: str, expected_path: str) -> int:
    found = differences(json.loads(Path(summary_path).read_text()), json.loads(Path(expected_path).read_text()))
    print("\n".join(found[:10]))
    if found:
        print(f"{len(found)} figures differ; first: {found[0]}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
