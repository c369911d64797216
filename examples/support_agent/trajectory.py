"""The trace of one conversation in ATIF, the Agent Trajectory Interchange Format: what coverage is measured from."""

import json


class Trajectory:
    """Records the steps of a conversation; `to_json` is the content of trajectory.json."""

    def __init__(self, session_id: str, tools: dict, rules: dict) -> None:
        self._session_id = session_id
        self._tools = tools
        self._rules = rules
        self._steps: list[dict] = []

    def message(self, source: str, text: str) -> None:
        """Somebody says something: `user` or `agent`."""
        self._steps.append({"step_id": len(self._steps) + 1, "source": source, "message": text})

    def rule(self, name: str, allowed: bool) -> None:
        """The agent consults a rule of the policy. `extra` is ATIF's place for what only this agent knows."""
        outcome = "allows" if allowed else "forbids"
        self.message("agent", f"The rule {name} {outcome} it.")
        self._steps[-1]["extra"] = {"rule": name, "outcome": outcome}

    def tool_call(self, name: str, arguments: dict, result: dict) -> None:
        """The agent calls a tool."""
        self.message("agent", f"I call {name}.")
        call = f"call-{len(self._steps)}"
        self._steps[-1]["tool_calls"] = [{"tool_call_id": call, "function_name": name, "arguments": arguments}]
        self._steps[-1]["observation"] = {"results": [{"source_call_id": call, "content": json.dumps(result)}]}

    def to_json(self) -> dict:
        """The whole trace, with the tools and rules that this agent has, used or not."""
        return {
            "schema_version": "ATIF-v1.7",
            "session_id": self._session_id,
            "agent": {
                "name": "support-agent",
                "version": "1.0",
                "tool_definitions": [_definition(name, tool) for name, tool in self._tools.items()],
                "extra": {"rules": list(self._rules)},
            },
            "steps": self._steps,
        }


def _definition(name: str, tool: object) -> dict:
    return {"type": "function", "function": {"name": name, "description": tool.__doc__}}
