"""Reading a message: what the customer wants, which order it is about, where it should go.

This stands for the model of a real agent, and it is the only place with any randomness: a message whose words fit
several wishes is understood now one way, now another. The likelier readings win more often, not always.
"""

import re
from random import Random

KEYWORDS = {
    "refund": ("refund", "money back"),
    "replacement": ("in pieces", "replace", "new one"),
    "tracking": ("where is", "parcel", "not arrived"),
    "cancellation": ("cancel",),
    "redirection": ("new address", "moved"),
    "invoice": ("invoice",),
    "opening hours": ("opening hours",),
}


class Wish:
    """What was understood of a message."""

    def __init__(self, kind: str, text: str, order_id: str | None, address: str | None) -> None:
        self.kind = kind
        """A key of KEYWORDS, or `unclear`."""
        self.text = text
        """The message in lower case."""
        self.order_id = order_id
        """The order number it names, if any."""
        self.address = address
        """The new address it names, if any."""


def read_message(message: str, random: Random) -> Wish:
    """Understand a message; `random` decides between the wishes that its words fit."""
    text = message.lower()
    number = re.search(r"\b1\d{3}\b", text)
    address = re.search(r"new address is (.+?)\.", message)
    return Wish(
        kind=_kind(text, random),
        text=text,
        order_id=number.group() if number else None,
        address=address.group(1) if address else None,
    )


def _kind(text: str, random: Random) -> str:
    """Each kind of wish weighs as much as the square of the number of its words that occur."""
    weights = {kind: sum(word in text for word in words) ** 2 for kind, words in KEYWORDS.items()}
    if not any(weights.values()):
        return "unclear"
    return random.choices(list(weights), list(weights.values()))[0]
