"""The same agent by the book: its rules come from handbook.md and its tools from tools.json, as those of a model would.

Run as `handbook_agent.py shop.json handbook.md tools.json` in the workspace that holds request.json. Generated mutants
are damaged versions of the two files, or of what a tool answers. `text_of` and `with_faults` are all that an agent
needs to become one of them.
"""

import json
import sys
from pathlib import Path
from random import Random

from agent import load, save
from damage import damage
from desk import Desk, Parts
from handbook import leaves_notes, rules_of
from tools import TOOLS
from trajectory import Trajectory

from pytest_metricbench.generating.agent_side import text_of, with_faults


def main(shop_file: str, handbook_file: str, tools_file: str) -> None:
    request = load("request.json")
    params = request["variant"]["params"]
    shop = load(shop_file)
    mail = request["task"]["params"]
    parts = Parts()
    handbook = changed(params, handbook_file)
    parts.rules = rules_of(handbook)
    if not leaves_notes(handbook):
        parts.closing_steps.clear()
    declared = {tool["name"] for tool in json.loads(changed(params, tools_file))}
    parts.tools = with_faults({name: tool for name, tool in TOOLS.items() if name in declared}, params)
    damage(parts, {"faults": params.get("faults", [])})  # the mutants that were made by hand
    trajectory = Trajectory(f"{request['task']['id']}-{request['attempt']}", parts.tools, parts.rules)
    desk = Desk(parts, shop, mail["from"], Random(request["seed"]), trajectory)
    save("reply.json", desk.answer(mail["name"], mail["message"]))
    save("shop_after.json", shop)
    save("trajectory.json", trajectory.to_json())


def changed(params: dict, file: str) -> str:
    """A file's text as the variant has it."""
    path = Path(file)
    return text_of(params, path.name, path.parent)


if __name__ == "__main__":
    main(*sys.argv[1:])
