"""The agent's command: answers the customer's message in request.json.

Run as `agent.py shop.json` in the workspace that holds request.json, it leaves three files there: reply.json (what the
customer is told), shop_after.json (the shop's records after the agent's actions) and trajectory.json (how it went, as
an ATIF trace: the evidence for coverage).
"""

import json
import sys
from random import Random

from damage import damage
from desk import Desk, Parts
from trajectory import Trajectory


def main(shop_file: str) -> None:
    request = load("request.json")
    shop = load(shop_file)
    mail = request["task"]["params"]
    parts = Parts()
    damage(parts, request["variant"]["params"])
    trajectory = Trajectory(f"{request['task']['id']}-{request['attempt']}", parts.tools, parts.rules)
    # All randomness comes from the request's seed: the same attempt ends the same way on every machine.
    desk = Desk(parts, shop, mail["from"], Random(request["seed"]), trajectory)
    reply = desk.answer(mail["name"], mail["message"])
    save("reply.json", reply)
    save("shop_after.json", shop)
    save("trajectory.json", trajectory.to_json())


def load(path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(path: str, content: dict) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
