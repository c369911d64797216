"""Writes the results that the example of a summary reads: the same every time."""

import csv
from pathlib import Path

TASKS = {
    "refunds": ["late", "damaged", "expensive", "late-expensive", "receipt", "gift", "sale", "greeting"],
    "parcels": ["lost", "delayed", "wrong-door", "strike"],
}
KILLED = {
    "no-limit": {"expensive", "late-expensive"},
    "no-date": {"late", "late-expensive", "sale", "delayed", "strike"},
    "no-receipt": {"receipt", "gift"},
    "no-photo": {"damaged"},
    "slow": set(),
    "no-tracking": {"lost", "delayed"},
    "no-street": {"wrong-door"},
    "no-door": {"wrong-door"},
}
DIES = {("no-photo", "damaged"), ("broken", "*")}
VARIANTS = {
    "refunds": ["agent-1.4", "no-limit", "no-date", "no-receipt", "no-photo", "slow", "same-again", "polite", "broken"],
    "parcels": ["agent-1.4", "no-date", "no-tracking", "no-street", "no-door"],
}
FLAKY = {
    ("agent-1.4", "gift"): 3,
    ("agent-1.4", "greeting"): 2,
    ("same-again", "greeting"): 4,
    ("slow", "late"): 3,
    ("same-again", "gift"): 1,
}
"""Variant and task -> attempts of four that pass."""
ATTEMPTS = 4


def write(path: Path, *, earlier: bool = False) -> None:
    """Write the table; in the earlier one a mutant survives that is killed now, and the other way round."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["case", "variant", "task", "trial_id", "outcome", "error", "reward", "tokens", "tone"])
        for case, variants in VARIANTS.items():
            for variant in variants:
                for task in TASKS[case]:
                    if not (earlier and (variant == "no-photo" or task == "gift")):
                        rows.writerows(_attempts(case, variant, task, earlier))


def _attempts(case: str, variant: str, task: str, earlier: bool) -> list[list[object]]:
    found: list[list[object]] = []
    for number in range(1, ATTEMPTS + 1):
        name = [case, variant, task, f"{'old' if earlier else 'new'}-{case}-{variant}-{task}-{number}"]
        if DIES & {(variant, task), (variant, "*")}:
            found.append([*name, "died", "the agent ran out of memory", "", "", ""])
        elif (variant, task, number) == ("slow", "sale", 1):
            found.append([*name, "unmeasured", "the judge did not answer", "", "", ""])
        else:
            found.append([*name, "scored", "", _passes(variant, task, number, earlier), 100 + number, "dry"])
    return found


def _passes(variant: str, task: str, number: int, earlier: bool) -> int:
    killed = KILLED.get(variant, set())
    if earlier and variant in ("slow", "no-door"):
        killed = {"late"} if variant == "slow" else set()
    if earlier and (variant, task) == ("agent-1.4", "lost"):
        return int(number < 3)
    return int(task not in killed and number <= FLAKY.get((variant, task), ATTEMPTS))
