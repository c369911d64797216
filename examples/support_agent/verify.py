"""The verifier's command: scores an attempt by what the agent left in the workspace.

Run as `verify.py shop.json expectations.json rubric.json` in the same workspace after the agent, it writes
response.json. What a task expects stands in expectations.json and not in the task's params, which are the agent's to
read.

Two things must hold. The shop's records are those of before apart from the changes expected, so that an order which
should have been left alone counts too. And the reply has the right resolution and says what it must say.

It also judges the trace, for the audit: see the end.
"""

import hashlib
import json
import os
import sys


def main(shop_file: str, expectations_file: str, rubric_file: str) -> None:
    task = load("request.json")["task"]["id"]
    expected = load(expectations_file)[task]
    state = state_is_right(load(shop_file), expected)
    reply = reply_is_right(expected)
    scores = {"reward": 1.0 if state and reply else 0.0, "state": state, "reply": reply, "tool_calls": tool_calls()}
    with open("response.json", "w", encoding="utf-8") as file:
        json.dump({"scores": scores}, file)
    for kind, questions in load(rubric_file).items():
        judge(kind, questions)


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


def judge(kind: str, questions: list[dict]) -> None:
    """Answer what audit.md leaves to a judge, and leave the answers beside the trace that they are about.

    The digest says which trace that is: a judgment counts for no other. A real agent would be judged by a person or a
    model; rules are enough for an agent made of rules.
    """
    if not os.path.exists("trajectory.json"):
        return
    with open("trajectory.json", "rb") as trace:
        digest = hashlib.sha256(trace.read()).hexdigest()
    judgments = [{kind: question.pop("item")} | question | answer(question) for question in questions]
    for judgment in judgments:
        judgment.pop("resolution", None)
        judgment.pop("rule", None)
    content = {
        "schema": f"nemo.eval_author.audit_{kind}_judgments.v1",
        "trace_sha256": f"sha256:{digest}",
        "judged_by": "verify.py",
        "judgments": judgments,
    }
    with open(f"{kind.replace('_', '-')}-judgments.json", "w", encoding="utf-8") as file:
        json.dump(content, file)


def answer(question: dict) -> dict:
    """Whether the conversation ended as the question asks, or the agent ran into the rule that it names."""
    if "resolution" in question:
        found = left_by_agent("reply.json").get("resolution")
        yes, why = found == question["resolution"], f"It ended with the resolution {found}."
    else:
        notes = [step["extra"] for step in left_by_agent("trajectory.json")["steps"] if "extra" in step]
        forbidden = [note["rule"] for note in notes if note["outcome"] == "forbids"]
        yes, why = question["rule"] in forbidden, f"Rules that forbade something: {', '.join(forbidden) or 'none'}."
    return {"status": "satisfied" if yes else "missing", "confidence": "high", "rationale": why}


def left_by_agent(path: str) -> dict:
    """A file that the agent should have left. To leave none is a bad attempt, not a failure of the measurement."""
    return load(path) if os.path.exists(path) else {}


def load(path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    main(*sys.argv[1:])
