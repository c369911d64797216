"""The handbook, read: which rules it binds the agent to. What a model would take from the text, taken by patterns.

A sentence is about one rule, binds by its modal, and may carry a number. "May", "rarely" or "preferably" binds nobody;
the opposite of the modal that belongs there turns the rule round.
"""

import re
from collections.abc import Callable

import policy

Rule = Callable[..., bool]

TOPICS: dict[str, tuple[str, str, Callable[[int], Rule]]] = {
    "identity": ("discussed", "must", lambda number: policy.identity),
    "cancel-window": ("cancelled", "must not", lambda number: policy.cancel_window),
    "redirect-window": ("address", "must not", lambda number: policy.redirect_window),
    "return-window": (
        "taken back",
        "must",
        lambda days: lambda order: order["status"] == "delivered" and order["days_since_delivery"] <= days,
    ),
    "refund-limit": ("pay back", "must not", lambda euros: lambda amount: amount <= euros * 100),
    "loss-period": ("lost", "must", lambda days: lambda parcel: parcel["days_since_scan"] >= days),
}
"""Rule -> a word of its sentence, the modal that belongs there, and the rule with the number of the sentence."""

TURNED = {"less than", "after"}
"""Bounds that none of the sentences has as it should be."""


def rules_of(text: str) -> dict[str, Rule]:
    """The rules of a handbook by their names; those that it does not make binding are not among them."""
    rules = {}
    for sentence in sentences_of(text):
        for name, (word, modal, make) in TOPICS.items():
            if word not in sentence:
                continue
            found = re.search(r"\b(must not|must)\b", sentence)
            if found is None:
                continue
            number = re.search(r"\d+", sentence)
            rule = make(int(number[0]) if number else 0)
            turned = (found[0] != modal) != any(bound in sentence for bound in TURNED)
            rules[name] = opposite(rule) if turned else rule
    return rules


def leaves_notes(text: str) -> bool:
    """Whether every change is to be noted."""
    return any(re.search(r"\balways leave a note\b", sentence, re.IGNORECASE) for sentence in sentences_of(text))


def sentences_of(text: str) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"(?<=[.!?])\s|\n(?=[-#\n])", text) if part.strip()]


def opposite(rule: Rule) -> Rule:
    return lambda *facts: not rule(*facts)
