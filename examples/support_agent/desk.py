"""The support desk: what the agent does about each kind of wish, and in which order."""

from collections.abc import Callable
from random import Random

from policy import REFUSALS, RULES, amount_to_refund
from reading import Wish, read_message
from tools import TOOLS
from trajectory import Trajectory


class RefusedError(Exception):
    """A rule of the policy forbids what the customer wants."""


class NeedsHumanError(Exception):
    """The agent cannot or may not go on by itself."""


class Parts:
    """What an agent is made of. The baseline has all of it; a mutant lacks a part or has a faulty one."""

    def __init__(self) -> None:
        self.tools: dict[str, Callable[..., dict]] = dict(TOOLS)
        self.rules: dict[str, Callable[..., bool]] = dict(RULES)
        self.closing_steps: dict[str, Callable[[Desk, dict, str], None]] = {"leave-note": leave_note}
        self.read_message: Callable[[str, Random], Wish] = read_message
        self.look_up: Callable[[Desk, str], dict] = look_up
        self.amount_to_refund: Callable[[dict, str], int] = amount_to_refund
        self.show_money: Callable[[int], str] = show_money
        self.greet: Callable[[str], str] = greet
        self.sign: Callable[[Desk], str] = sign


class Desk:
    """One conversation with one customer."""

    def __init__(self, parts: Parts, shop: dict, sender: str, random: Random, trajectory: Trajectory) -> None:
        self.parts = parts
        self.shop = shop
        self.sender = sender
        self.order: dict = {}
        """The order that the conversation is about, once it was looked up."""
        self._random = random
        self._trajectory = trajectory

    def answer(self, name: str, message: str) -> dict:
        """Do what the message asks, as far as the policy allows it, and say so."""
        self._trajectory.message("user", message)
        try:
            wish = self.parts.read_message(message, self._random)
            resolution, text = PROCEDURES[wish.kind](self, wish)
        except RefusedError as refusal:
            resolution, text = "declined", str(refusal)
        except NeedsHumanError as need:
            self.call("escalate", reason=str(need))
            resolution, text = "escalated", "a colleague will look into this and write to you."
        reply = f"{self.parts.greet(name)} {text} {self.parts.sign(self)}"
        self._trajectory.message("agent", reply)
        return {"resolution": resolution, "message": reply}

    def call(self, tool: str, **arguments: object) -> dict:
        """Call a tool and keep the call in the trace."""
        if tool not in self.parts.tools:
            raise NeedsHumanError(f"there is no tool {tool}")
        result = self.parts.tools[tool](self.shop, **arguments)
        self._trajectory.tool_call(tool, arguments, result)
        return result

    def allows(self, rule: str, *facts: object) -> bool:
        """Consult a rule and keep its answer in the trace; a rule that the agent does not know allows everything."""
        if rule not in self.parts.rules:
            return True
        allowed = self.parts.rules[rule](*facts)
        self._trajectory.rule(rule, allowed)
        return allowed

    def require(self, rule: str, *facts: object) -> None:
        """Refuse the wish unless a rule allows it."""
        if not self.allows(rule, *facts):
            raise RefusedError(REFUSALS[rule])

    def open_order(self, wish: Wish) -> dict:
        """The order that the message is about: the one it names, else the only one still open."""
        number = wish.order_id
        if number is None:
            numbers = self.call("find_customer", email=self.sender)["open_orders"]
            if len(numbers) != 1:
                raise NeedsHumanError("it is not clear which order is meant")
            number = numbers[0]
        self.order = self.parts.look_up(self, number)
        if "error" in self.order:
            raise NeedsHumanError(self.order["error"])
        self.require("identity", self.order, self.sender)
        return self.order

    def close(self, order: dict, action: str) -> None:
        """What is due after every action that changed an order."""
        for step in self.parts.closing_steps.values():
            step(self, order, action)


# ---------------------------------------------------------------- small parts


def look_up(desk: Desk, number: str) -> dict:
    return desk.call("find_order", order_id=number)


def leave_note(desk: Desk, order: dict, action: str) -> None:
    desk.call("add_note", order_id=order["order_id"], text=action)


def show_money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02} EUR"


def greet(name: str) -> str:
    return f"Dear {name},"


def sign(desk: Desk) -> str:
    return "Kind regards, Lantern and Leaf"


# ---------------------------------------------------------------- procedures, one for each kind of wish


def give_refund(desk: Desk, wish: Wish) -> tuple[str, str]:
    order = desk.open_order(wish)
    desk.require("return-window", order)
    amount = desk.parts.amount_to_refund(order, wish.text)
    if not desk.allows("refund-limit", amount):
        raise NeedsHumanError("the refund is above the limit")
    desk.call("refund", order_id=order["order_id"], amount=amount)
    desk.close(order, "refund")
    return "refunded", f"we have paid back {desk.parts.show_money(amount)}."


def replace_goods(desk: Desk, wish: Wish) -> tuple[str, str]:
    order = desk.open_order(wish)
    desk.require("return-window", order)
    desk.call("send_replacement", order_id=order["order_id"])
    desk.close(order, "replacement")
    return "replaced", "we are sorry; a replacement is on its way."


def find_parcel(desk: Desk, wish: Wish) -> tuple[str, str]:
    order = desk.open_order(wish)
    parcel = desk.call("track_parcel", order_id=order["order_id"])
    if "error" in parcel:
        return "tracked", "your order is not with the carrier yet."
    if not desk.allows("loss-period", parcel):
        return "tracked", f"your parcel was last seen in {parcel['place']}."
    desk.call("send_replacement", order_id=order["order_id"])
    desk.close(order, "replacement")
    return "replaced", "your parcel seems to be lost; a replacement is on its way."


def cancel(desk: Desk, wish: Wish) -> tuple[str, str]:
    order = desk.open_order(wish)
    desk.require("cancel-window", order)
    desk.call("cancel_order", order_id=order["order_id"])
    desk.close(order, "cancellation")
    return "cancelled", f"order {order['order_id']} is cancelled."


def redirect(desk: Desk, wish: Wish) -> tuple[str, str]:
    order = desk.open_order(wish)
    desk.require("redirect-window", order)
    if wish.address is None:
        return "asked", "which address should we send your order to?"
    desk.call("change_address", order_id=order["order_id"], address=wish.address)
    desk.close(order, "redirection")
    return "redirected", f"your order will be sent to {wish.address}."


def send_invoice(desk: Desk, wish: Wish) -> tuple[str, str]:
    order = desk.open_order(wish)
    invoice = desk.call("reissue_invoice", order_id=order["order_id"])["invoice"]
    return "informed", f"invoice {invoice} is on its way to you."


def tell_opening_hours(desk: Desk, wish: Wish) -> tuple[str, str]:
    return "informed", f"we are here {desk.shop['opening_hours']}."


def give_up(desk: Desk, wish: Wish) -> tuple[str, str]:
    raise NeedsHumanError("the message was not understood")


PROCEDURES = {
    "refund": give_refund,
    "replacement": replace_goods,
    "tracking": find_parcel,
    "cancellation": cancel,
    "redirection": redirect,
    "invoice": send_invoice,
    "opening hours": tell_opening_hours,
    "unclear": give_up,
}
