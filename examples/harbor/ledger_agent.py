"""A Harbor agent that answers questions about a ledger, by rules in place of a model.

Its kwargs decide how it does that; the mutants of the experiment change them, its environment or its instructions.
"""

import csv
import json
import re
import shlex
from collections import defaultdict
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any, ClassVar, Literal

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.options import AgentOptions
from pydantic import Field

TOOLS = (
    "read_ledger",
    "drop_duplicates",
    "filter_period",
    "subtract_refunds",
    "convert_currency",
    "group_by_customer",
    "sum_amounts",
    "export_chart",  # no task asks for it
    "write_answer",
)

Row = dict[str, str]


class LedgerOptions(AgentOptions):
    """What Harbor accepts as kwargs of the agent; it refuses any other."""

    duplicates: Literal["drop", "keep"] = "drop"
    last_day: Literal["include", "exclude"] = "include"
    refunds: Literal["subtract", "ignore"] = "subtract"
    rates: dict[str, str] = Field(default_factory=lambda: {"EUR": "1", "USD": "0.80"})
    rounding: Literal["half_up", "down"] = "half_up"


class LedgerAgent(BaseAgent):
    """Reads the ledger, calls the tools that the question and the ledger ask for, and writes one line."""

    options_model = LedgerOptions
    capabilities: ClassVar[AgentCapabilities] = AgentCapabilities(atif=True)

    @staticmethod
    def name() -> str:
        return "ledger"

    def version(self) -> str:
        return "1"

    async def setup(self, environment: Any) -> None:
        """Nothing is installed."""

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        calls: list[tuple[str, dict[str, Any], str]] = []
        try:
            await self._answer(instruction, environment, calls)
        finally:
            trace = self._trace(instruction, calls)
            (self.logs_dir / "trajectory.json").write_text(json.dumps(trace, indent=1), encoding="utf-8")
        context.metadata = {"tool_calls": len(calls)}

    async def _answer(self, instruction: str, environment: Any, calls: list[tuple[str, dict[str, Any], str]]) -> None:
        read = await environment.exec("cat /app/ledger.csv")
        rows = list(csv.DictReader((read.stdout or "").splitlines()))
        calls.append(("read_ledger", {"path": "/app/ledger.csv"}, f"{len(rows)} rows"))
        period = re.search(r"from (\d{4}-\d\d-\d\d) to (\d{4}-\d\d-\d\d)", instruction)
        if period is not None:
            rows = self._in_period(rows, *period.groups())
            calls.append(("filter_period", {"first": period[1], "last": period[2]}, f"{len(rows)} rows"))
        if len({row["id"] for row in rows}) < len(rows):
            rows = self._without_duplicates(rows)
            calls.append(("drop_duplicates", {"key": "id"}, f"{len(rows)} rows"))
        if any(row["kind"] == "refund" for row in rows):
            calls.append(("subtract_refunds", {}, self.options.refunds))
        if any(row["currency"] != "EUR" for row in rows):
            calls.append(("convert_currency", {"to": "EUR"}, json.dumps(self.options.rates)))
        if "customer" in instruction:
            answer = self._best_customer(rows)
            calls.append(("group_by_customer", {}, answer))
        else:
            answer = self._money(sum(map(self._amount, rows), Decimal(0)), instruction)
            calls.append(("sum_amounts", {}, answer))
        await environment.exec(f"printf '%s\\n' {shlex.quote(answer)} > /app/answer.txt")
        calls.append(("write_answer", {"path": "/app/answer.txt"}, answer))

    # ------------------------------------------------------------ the tools

    def _in_period(self, rows: list[Row], first: str, last: str) -> list[Row]:
        if self.options.last_day == "exclude":
            return [row for row in rows if first <= row["date"] < last]
        return [row for row in rows if first <= row["date"] <= last]

    def _without_duplicates(self, rows: list[Row]) -> list[Row]:
        return rows if self.options.duplicates == "keep" else list({row["id"]: row for row in rows}.values())

    def _amount(self, row: Row) -> Decimal:
        amount = Decimal(row["amount"]) * Decimal(self.options.rates[row["currency"]])
        if row["kind"] == "refund":
            return Decimal(0) if self.options.refunds == "ignore" else -amount
        return amount

    def _best_customer(self, rows: list[Row]) -> str:
        totals: defaultdict[str, Decimal] = defaultdict(Decimal)
        for row in rows:
            totals[row["customer"]] += self._amount(row)
        return max(sorted(totals), key=lambda name: totals[name])

    def _money(self, amount: Decimal, instruction: str) -> str:
        smallest = Decimal("1") if "whole euros" in instruction else Decimal("0.01")
        rounding = ROUND_DOWN if self.options.rounding == "down" else ROUND_HALF_UP
        return str(amount.quantize(smallest, rounding)).replace(".", self.extra_env.get("LEDGER_POINT", "."))

    # ------------------------------------------------------------ the trace

    def _trace(self, instruction: str, calls: list[tuple[str, dict[str, Any], str]]) -> dict[str, Any]:
        """What the agent did, in Harbor's trajectory format (ATIF)."""
        steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": instruction}]
        for number, (tool, arguments, result) in enumerate(calls, start=2):
            call = {"tool_call_id": f"call-{number}", "function_name": tool, "arguments": arguments}
            observation = {"results": [{"source_call_id": f"call-{number}", "content": result}]}
            step = {"step_id": number, "source": "agent", "message": "", "tool_calls": [call]}
            steps.append({**step, "observation": observation})
        tools = [{"type": "function", "function": {"name": tool, "parameters": {"type": "object"}}} for tool in TOOLS]
        agent = {"name": self.name(), "version": self.version(), "tool_definitions": tools}
        return {"schema_version": "ATIF-v1.7", "session_id": str(self.session_id), "agent": agent, "steps": steps}
