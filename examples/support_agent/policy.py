"""The shop's policy: the rules that the agent keeps, each a yes or no about one record."""

from collections.abc import Callable

RETURN_DAYS = 30
LOST_AFTER_DAYS = 10
REFUND_LIMIT = 500_00


def identity(order: dict, sender: str) -> bool:
    """An order is discussed only with the customer who placed it."""
    return order["customer"] == sender


def return_window(order: dict) -> bool:
    """Goods are taken back or replaced within 30 days of their delivery."""
    return order["status"] == "delivered" and order["days_since_delivery"] <= RETURN_DAYS


def refund_limit(amount: int) -> bool:
    """The agent pays back at most 500 EUR by itself."""
    return amount <= REFUND_LIMIT


def cancel_window(order: dict) -> bool:
    """An order can be cancelled until it is handed to the carrier."""
    return order["status"] == "paid"


def redirect_window(order: dict) -> bool:
    """An order's address can be changed until it is handed to the carrier."""
    return order["status"] == "paid"


def loss_period(parcel: dict) -> bool:
    """A parcel that the carrier has not scanned for ten days counts as lost."""
    return parcel["days_since_scan"] >= LOST_AFTER_DAYS


RULES: dict[str, Callable[..., bool]] = {
    "identity": identity,
    "return-window": return_window,
    "refund-limit": refund_limit,
    "cancel-window": cancel_window,
    "redirect-window": redirect_window,
    "loss-period": loss_period,
}

REFUSALS = {
    "identity": "this order belongs to another customer, so I cannot talk about it.",
    "return-window": "we can take goods back only within 30 days of their delivery.",
    "cancel-window": "your order is with the carrier already and can no longer be cancelled.",
    "redirect-window": "your order is with the carrier already and can no longer be redirected.",
}
"""What the customer is told when a rule says no."""


def amount_to_refund(order: dict, text: str) -> int:
    """The price of the items that the message names, in cents; of all items when it names none."""
    named = [price for item, price in order["items"].items() if item in text]
    return sum(named or order["items"].values())
