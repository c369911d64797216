"""The verifier's command: scores an attempt by what the agent left in the workspace.

Run as `verify.py shop.json expectations.json` in the same workspace after the agent, it writes response.json. What a
task expects stands in expectations.json and not in the task's params, which are the agent's to read.

Two things must hold. The shop's records are those of before apart from the changes expected, so that an order which
should have been left alone counts too. And the reply has the right resolution and says what it must say.
"""

import json
import os
import sys


def main(shop_file: str, expectations_file: str) -> None:
    task = load("request.json")["task"]["id"]
    expected = load(expectations_file)[task]
    state = state_is_right(load(shop_file), expected)
    reply = reply_is_right(expected)
    scores = {"reward": 1.0 if state and reply else 0.0, "state": state, "reply": reply, "tool_calls": tool_calls()}
    with open("response.json", "w", encoding="utf-8") as file:
        json.dump({"scores": scores}, file)


def state_is_right(shop: dict, expected: dict) -> bool:
    for number, changes in expected.get("orders", {}).items():
        shop["orders"][number].update(changes)
    shop["tickets"] += expected.get("tickets", [])
    return left_by_agent("shop_after.json") == shop


def reply_is_right(expected: dict) -> bool:
    reply = left_by_agent("reply.json")
    return reply.get("resolution") == expected["resolution"] and all(
        text in reply.get("message", "") for text in expected["says"]
    )


def tool_calls() -> int:
    return sum(len(step.get("tool_calls", [])) for step in left_by_agent("trajectory.json").get("steps", []))


def left_by_agent(path: str) -> dict:
    """A file that the agent should have left. To leave none is a bad attempt, not a failure of the measurement."""
    return load(path) if os.path.exists(path) else {}


def load(path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    main(*sys.argv[1:])
