"""How mutants are made: a variant's `params` say which parts of the agent are missing or faulty.

`without_tools`, `without_rules` and `without_steps` name parts to leave out. `faults` names functions of this module,
each of which puts a faulty part in the place of a good one. The agent itself knows nothing of all this: the code that
is measured has no `if mutant:` in it.
"""

from collections.abc import Callable
from random import Random

from desk import Desk, Parts
from reading import Wish


def damage(parts: Parts, params: dict) -> None:
    """Turn the parts of the baseline into those of the variant with these params; no params, no damage."""
    for key, names in params.items():
        for name in names:
            if key == "faults":
                FAULTS[name](parts)
            else:
                del REMOVABLE[key](parts)[name]


REMOVABLE: dict[str, Callable[[Parts], dict]] = {
    "without_tools": lambda parts: parts.tools,
    "without_rules": lambda parts: parts.rules,
    "without_steps": lambda parts: parts.closing_steps,
}


def refunds_whole_order(parts: Parts) -> None:
    """Calls the refund tool with the wrong amount."""
    parts.amount_to_refund = lambda order, text: sum(order["items"].values())


def shows_cents(parts: Parts) -> None:
    """Writes 4990 where the answer should say 49.90 EUR."""
    parts.show_money = str


def ascii_names_only(parts: Parts) -> None:
    """Crashes when a customer's name has a letter outside ASCII."""
    greet = parts.greet
    parts.greet = lambda name: greet(name.encode("ascii").decode("ascii"))


def looks_twice(parts: Parts) -> None:
    """Looks up every order a second time: slower, and no other difference."""
    look_up = parts.look_up

    def look_up_twice(desk: Desk, number: str) -> dict:
        look_up(desk, number)
        return look_up(desk, number)

    parts.look_up = look_up_twice


def tells_address(parts: Parts) -> None:
    """Ends every answer about an order with the address that the shop has on file."""
    sign = parts.sign

    def sign_with_address(desk: Desk) -> str:
        address = f"Your address is {desk.order['address']}. " if "address" in desk.order else ""
        return address + sign(desk)

    parts.sign = sign_with_address


def misreads_numbers(parts: Parts) -> None:
    """Takes one order number in five for the next one."""
    read = parts.read_message

    def misread(message: str, random: Random) -> Wish:
        wish = read(message, random)
        if wish.order_id is not None and random.random() < 0.2:
            wish.order_id = str(int(wish.order_id) + 1)
        return wish

    parts.read_message = misread


FAULTS = {
    fault.__name__: fault
    for fault in (refunds_whole_order, shows_cents, ascii_names_only, looks_twice, tells_address, misreads_numbers)
}
