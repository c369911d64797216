"""The tools: the only way in which the agent reads or changes the shop's records.

Each takes the shop's records (the content of shop.json) and named arguments, and answers with a mapping.
"""


def find_order(shop: dict, order_id: str) -> dict:
    """Look up an order by its number."""
    order = shop["orders"].get(order_id)
    if order is None:
        return {"error": f"there is no order {order_id}"}
    return {"order_id": order_id} | {key: value for key, value in order.items() if key != "parcel"}


def find_customer(shop: dict, email: str) -> dict:
    """Look up a customer's orders that are still open."""
    orders = shop["customers"].get(email, {}).get("orders", [])
    return {"open_orders": [number for number in orders if shop["orders"][number]["status"] in ("paid", "shipped")]}


def track_parcel(shop: dict, order_id: str) -> dict:
    """Ask the carrier where the parcel of an order is."""
    return shop["orders"][order_id].get("parcel", {"error": "not handed to the carrier"})


def refund(shop: dict, order_id: str, amount: int) -> dict:
    """Pay back an amount, in cents."""
    shop["orders"][order_id]["refunded"] += amount
    return {"refunded": amount}


def send_replacement(shop: dict, order_id: str) -> dict:
    """Send the order's goods once more, free of charge."""
    shop["orders"][order_id]["replacements"] += 1
    return {"replacements": shop["orders"][order_id]["replacements"]}


def cancel_order(shop: dict, order_id: str) -> dict:
    """Cancel an order."""
    shop["orders"][order_id]["status"] = "cancelled"
    return {"status": "cancelled"}


def change_address(shop: dict, order_id: str, address: str) -> dict:
    """Send an order to another address."""
    shop["orders"][order_id]["address"] = address
    return {"address": address}


def add_note(shop: dict, order_id: str, text: str) -> dict:
    """Leave a note at an order for colleagues."""
    shop["orders"][order_id]["notes"].append(text)
    return {"notes": len(shop["orders"][order_id]["notes"])}


def reissue_invoice(shop: dict, order_id: str) -> dict:
    """Send the invoice of an order once more."""
    return {"invoice": f"INV-{order_id}"}


def escalate(shop: dict, reason: str) -> dict:
    """Hand the conversation to a human colleague."""
    shop["tickets"].append(reason)
    return {"ticket": len(shop["tickets"])}


TOOLS = {
    tool.__name__: tool
    for tool in (
        find_order,
        find_customer,
        track_parcel,
        refund,
        send_replacement,
        cancel_order,
        change_address,
        add_note,
        reissue_invoice,
        escalate,
    )
}
