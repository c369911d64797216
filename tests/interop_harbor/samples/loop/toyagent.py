"""A deterministic agent whose behaviour is set by kwargs/env (baseline + mutants)."""

import json
import random

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.options import AgentOptions
from pydantic import Field


class ToyOptions(AgentOptions):
    mutant: str = Field(default="baseline")
    break_words: list[str] = Field(default_factory=list)
    flaky: float = 0.0
    sleep: float = 0.0
    boom: str | None = None


class ToyAgent(BaseAgent):
    options_model = ToyOptions
    capabilities = AgentCapabilities(atif=True, skills=True)

    @staticmethod
    def name() -> str:
        return "toy"

    def version(self) -> str:
        return "1"

    async def setup(self, environment) -> None:
        pass

    async def run(self, instruction, environment, context) -> None:
        o = self.options
        word = instruction.split("text ")[1].split(" into")[0]
        if o.sleep:
            await environment.exec(f"sleep {o.sleep}")
        if o.boom:
            raise RuntimeError(o.boom)
        if word in o.break_words or random.random() < o.flaky:
            word = "WRONG"
        cmd = f"printf '%s' '{word}' > /app/answer.txt"
        r = await environment.exec(cmd)
        traj = {
            "schema_version": "ATIF-v1.8",
            "session_id": self.session_id,
            "agent": {"name": self.name(), "version": "1", "extra": {"mutant": o.mutant}},
            "steps": [
                {"step_id": 1, "source": "user", "message": instruction},
                {
                    "step_id": 2,
                    "source": "agent",
                    "message": "",
                    "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": cmd}}],
                    "observation": {"results": [{"source_call_id": "c1", "content": r.stdout}]},
                    "metrics": {"prompt_tokens": 10, "completion_tokens": 3},
                },
            ],
            "final_metrics": {"total_prompt_tokens": 10, "total_completion_tokens": 3, "total_cost_usd": 0.001},
        }
        # NB: write INSIDE the environment; host logs_dir is overwritten/merged from /logs/agent afterwards
        (self.logs_dir / "trajectory.json").write_text(json.dumps(traj))
        context.n_input_tokens, context.n_output_tokens, context.cost_usd = 10, 3, 0.001
        context.metadata = {"mutant": o.mutant, "extra_env": dict(self.extra_env)}
