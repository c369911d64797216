"""The way through one ATIF trace from its first byte to its last: what is called, what is declared, what is wrong."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_metricbench.atif import fields
from pytest_metricbench.atif.levels import LevelReader, TraceError, shown_value
from pytest_metricbench.json_stream import JsonReader

CALLS_LIMIT: Final = 10_000
"""Calls of one trace that are kept one by one; all of them are counted."""
STEP_LIMIT: Final = 100_000
"""Calls of one step, and results of its observation, that are compared with one another."""
TOOLS_LIMIT: Final = 100_000
"""Different tools that one trace may call, and that it may declare."""
NESTING_LIMIT: Final = 100
"""Levels of subagents."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: in which step of which trajectory of the file."""

    tool: str
    """Without surrounding blanks."""
    tool_call_id: str
    step_id: int
    trajectory_path: str
    """``$`` for the trajectory itself, ``$.subagent_trajectories[0]`` for one nested in it."""


@dataclass(slots=True)
class _Step:
    """What one step says that must fit together."""

    given: dict[str, Any] = field(default_factory=dict)
    """Fields that are there and not null."""
    calls: list[tuple[str, str | None]] = field(default_factory=list)
    """Tool and id of each call."""
    answered: list[tuple[str, str]] = field(default_factory=list)
    """Where a result stands, and the id of the call it answers."""


class Walk(LevelReader):
    """Reads one trace; what was found stands in its attributes afterwards."""

    def __init__(self, reader: JsonReader) -> None:
        """Prepare to read; nothing is read yet."""
        super().__init__(reader)
        self._nesting = 0
        self.calls: list[Call] = []
        self.counts: Counter[str] = Counter()
        self.declared: set[str] | None = None
        self.undeclared: str | None = None

    def whole(self) -> None:
        """Read the file to its end.

        Raises:
            TraceError: it cannot be understood.
            JsonError: it is no JSON.
        """
        if self._reader.kind != "object":
            self._reader.skip()
            self._reader.end()
            raise TraceError("trajectory is not a mapping")
        self._trajectory("trajectory", "$")
        self._reader.end()

    # ------------------------------------------------------------ levels

    def _trajectory(self, where: str, path: str) -> str | None:
        """Read one trajectory; gives its ``trajectory_id``."""
        found: dict[str, Any] = {}

        def steps(place: str) -> None:
            found["steps"] = self._steps(place, path)

        def subagents(place: str) -> None:
            self._subagents(place, f"{path}.subagent_trajectories")

        def version(place: str) -> None:
            found["version"] = True
            self._version(place)

        readers = {"VERSION": version, "AGENT": self._agent, "STEPS": steps, "SUBAGENTS": subagents}
        given = self._mapping(where, fields.TRAJECTORY, readers, needed=False)
        if "version" not in found:
            raise TraceError(f"{where}.schema_version is None; ATIF-v1.x is expected")
        if not found.get("steps"):
            raise TraceError(f"{where}.steps is missing or empty")
        if "agent" not in given:
            self.violations.add(f"{where}.agent is missing")
        own: str | None = given.get("trajectory_id")
        return own

    def _version(self, where: str) -> None:
        version = self._value()
        if not isinstance(version, str) or not version.startswith("ATIF-v1."):
            raise TraceError(f"{where} is {shown_value(version)}; ATIF-v1.x is expected")
        if version not in fields.VERSIONS:
            self.unknown.add(f"{where} is {shown_value(version)}; ATIF-v1.0 to ATIF-v1.8 are known")

    def _subagents(self, where: str, path: str) -> None:
        self._nesting += 1
        if self._nesting > NESTING_LIMIT:
            raise TraceError(f"{where} is nested deeper than {NESTING_LIMIT} levels")
        self._require(where, "array", "is not a list")
        seen: set[str] = set()
        for index in self._reader.items():
            self._require(f"{where}[{index}]", "object", "is not a mapping")
            own = self._trajectory(f"{where}[{index}]", f"{path}[{index}]")
            if own is None:
                self.violations.add(f"{where}[{index}].trajectory_id is missing; a subagent's trajectory needs one")
            elif own in seen:
                self.violations.add(
                    f"{where}[{index}].trajectory_id {shown_value(own)} stands twice; each needs its own"
                )
            elif len(seen) < STEP_LIMIT:
                seen.add(own)
        self._nesting -= 1

    def _agent(self, where: str) -> None:
        if self._wrong(where, "object", "a mapping"):
            return
        self._mapping(where, fields.AGENT, {"DEFINITIONS": self._definitions})

    def _definitions(self, where: str) -> None:
        if self._reader.kind != "array":
            self._wrong(where, "array", "a list")
            self._not_declared(f"{where} is not a list")
            return
        if self.declared is None:
            self.declared = set()
        for index in self._reader.items():
            name = self._definition(f"{where}[{index}]")
            if name is None:
                self._not_declared(f"{where}[{index}] has no name")
            elif len(self.declared) < TOOLS_LIMIT:
                self.declared.add(name)
            else:
                raise TraceError(f"{where} declares more than {TOOLS_LIMIT} tools")

    def _definition(self, where: str) -> str | None:
        """The name in a definition, plain (``{"name": ..}``) or as a function (``{"function": {..}}``)."""
        if self._wrong(where, "object", "a mapping"):
            return None
        names: dict[str, str | None] = {}
        for key in self._keys(where):
            if key == "name":
                names[key] = self._name()
            elif key == "function" and self._reader.kind == "object":
                names[key] = None
                for inner in self._keys(f"{where}.function"):
                    if inner == "name":
                        names[key] = self._name()
                    else:
                        self._reader.skip()
            else:
                if key == "function":
                    names[key] = None
                self._reader.skip()
        return names["function"] if "function" in names else names.get("name")

    def _not_declared(self, problem: str) -> None:
        if self.undeclared is None:
            self.undeclared = problem

    # ------------------------------------------------------------ steps

    def _steps(self, where: str, path: str) -> int:
        """Read the steps; gives their number."""
        if self._reader.kind != "array":
            self._reader.skip()
            return 0
        count = 0
        for index in self._reader.items():
            self._require(f"{where}[{index}]", "object", "is not a mapping")
            self._step(f"{where}[{index}]", index + 1, path)
            count += 1
        return count

    def _step(self, where: str, number: int, path: str) -> None:
        step = _Step()

        def calls(place: str) -> None:
            self._calls(place, step)

        def observation(place: str) -> None:
            self._observation(place, step)

        def step_id(place: str) -> None:
            found = self._value()
            if type(found) is not int or found != number:
                self.violations.add(f"{place} is {shown_value(found)}; {number} is expected: steps are counted from 1")

        readers = {
            "STEP_ID": step_id,
            "SOURCE": lambda place: self._choice(place, fields.SOURCES),
            "TIMESTAMP": self._timestamp,
            "CONTENT": self._content,
            "CALLS": calls,
            "OBSERVATION": observation,
            "METRICS": lambda place: self._level(place, fields.METRICS),
            "COUNT": self._count,
        }
        step.given = self._mapping(where, fields.STEP, readers)
        self._fits_together(where, step)
        for name, call_id in step.calls[: max(0, CALLS_LIMIT - len(self.calls))]:
            self.calls.append(Call(name, call_id or "", number, path))

    def _fits_together(self, where: str, step: _Step) -> None:
        source = step.given.get("source")
        if source in ("system", "user"):
            for key in fields.AGENT_ONLY:
                if key in step.given:
                    self.violations.add(f"{where}.{key} stands in a step of the {source}; only the agent's have it")
        elif step.given.get("llm_call_count") == 0:
            for key in fields.MODEL_ONLY:
                if key in step.given:
                    self.violations.add(f"{where}.{key} stands in a step whose llm_call_count is 0")
        ids = {call_id for _, call_id in step.calls}
        for place, answered in step.answered:
            if answered not in ids:
                self.violations.add(
                    f"{place}.source_call_id is {shown_value(answered)}; no tool call of this step has that id"
                )

    def _calls(self, where: str, step: _Step) -> None:
        self._require(where, "array", "is not a list")
        for index in self._reader.items():
            found: dict[str, str | None] = {}

            def name(place: str, found: dict[str, str | None] = found) -> None:
                found["name"] = self._name()

            place = f"{where}[{index}]"
            given: dict[str, Any] = {}
            if self._reader.kind == "object":
                given = self._mapping(place, fields.CALL, {"NAME": name}, told_elsewhere="function_name")
            else:
                self._reader.skip()
            tool = found.get("name")
            if tool is None:
                raise TraceError(f"{place} has no function_name")
            if index >= STEP_LIMIT:
                raise TraceError(f"{where} has more than {STEP_LIMIT} calls in one step")
            self.counts[tool] += 1
            if len(self.counts) > TOOLS_LIMIT:
                raise TraceError(f"{place} is the call of more than {TOOLS_LIMIT} different tools")
            step.calls.append((tool, given.get("tool_call_id")))

    def _observation(self, where: str, step: _Step) -> None:
        if not self._wrong(where, "object", "a mapping"):
            self._mapping(where, fields.OBSERVATION, {"RESULTS": lambda place: self._results(place, step)})

    def _results(self, where: str, step: _Step) -> None:
        if self._wrong(where, "array", "a list"):
            return
        for index in self._reader.items():
            place = f"{where}[{index}]"
            if self._wrong(place, "object", "a mapping"):
                continue
            readers = {"CONTENT": self._content, "REFERENCES": self._references}
            given = self._mapping(place, fields.RESULT, readers)
            if "source_call_id" in given:
                if len(step.answered) >= STEP_LIMIT:
                    raise TraceError(f"{where} has more than {STEP_LIMIT} results in one step")
                step.answered.append((place, given["source_call_id"]))

    def _references(self, where: str) -> None:
        if self._wrong(where, "array", "a list"):
            return
        for index in self._reader.items():
            place = f"{where}[{index}]"
            if not self._wrong(place, "object", "a mapping"):
                given = self._mapping(place, fields.REFERENCE, {})
                if not given.keys() & {"trajectory_id", "trajectory_path"}:
                    self.violations.add(f"{place} has neither trajectory_id nor trajectory_path")
