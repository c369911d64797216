"""One run of NeMo Gym: its three files read and joined, rollout by rollout."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.answers import plain_text
from pytest_metricbench.digests import digest_value
from pytest_metricbench.interop.gym.files import FAILURES, PLANNED, RunFiles
from pytest_metricbench.interop.gym.rows import (
    Key,
    Reading,
    Try,
    agent_of,
    attempt_of,
    find_field,
    has_key,
    is_omitted,
    key_of,
    read_failure,
    read_result,
)
from pytest_metricbench.interop.json_lines import JsonLines
from pytest_metricbench.interop.recordings import RecordingError

NOT_PLANNED: Final = "rollouts file{s} without materialized inputs: what left no row is not known of"
CUT: Final = "file{s} with a last line that is cut, and not read: the run was killed, or still writes"
RETRIED: Final = "failure{s} of rollouts that have a result: not counted, since Gym tried again"
FAILED_AGAIN: Final = "failure{s} before the last one of a rollout: not counted"
NAMELESS: Final = "row{s} of failures without a task or rollout index: not read"
_FIELDS_KEPT: Final = 1000
"""Names of fields that an error's message may draw on; they are a stranger's."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A row of the materialized inputs."""

    agent: str | None
    task: str
    """What the task is called."""
    input: str
    """Digest of what the agent is asked."""


class Run:
    """One run: for each of its rollouts what counts of it, and what was decided on the way."""

    def __init__(self, files: RunFiles, reading: Reading, notes: Counter[str]) -> None:
        """Read the files.

        Args:
            files: the three of the run.
            reading: what of them is asked for.
            notes: what is decided on the way is counted here, too.

        Raises:
            RecordingError: a file cannot be read, or rows of it contradict one another.
        """
        self.files = files
        self._reading: Final = reading
        self._notes: Final = notes
        self.planned: dict[Key, Planned] = {}
        self.results: dict[Key, Try] = {}
        self.omitted: dict[Key, str | None] = {}
        self.responses: dict[Key, str] = {}
        """Digest of the response's own id, which no two responses share."""
        self.fields: set[str] = set()
        """Fields that are scores somewhere, or could be."""
        self._lines: dict[Key, int] = {}
        self._read_planned()
        self._read_rollouts()
        self._read_failures()
        self.rollouts: Final = sorted(self.planned.keys() | self.results.keys() | self.omitted.keys())
        """Every rollout that was planned or left anything, by task and rollout."""

    def _rows(self, suffix: str, path: Path | None, *, may_be_torn: bool) -> Iterator[tuple[str, dict[str, Any]]]:
        """The rows of one of its files, each with its place."""
        if path is None:
            return
        name = self.files.beside(suffix) if suffix else self.files.name
        lines = JsonLines(path, name, may_be_torn=may_be_torn)
        for number, row in lines:
            yield f"{name}:{number}", row
        self._notes[CUT] += lines.torn is not None

    def _read_planned(self) -> None:
        if self.files.planned is None:
            self._notes[NOT_PLANNED] += 1
            if self._reading.task is not None:
                message = f"{self.files.name} has no materialized inputs beside it, of which a field would name tasks"
                remedy = f"{self.files.beside(PLANNED)} is looked for; or remove runner.columns.task"
                raise RecordingError(message, remedy)
        names: dict[tuple[str | None, str], int] = {}
        for where, row in self._rows(PLANNED, self.files.planned, may_be_torn=False):
            key = key_of(row, where)
            if key in self.planned:
                raise RecordingError(f"{where}: task {key[0]}, rollout {key[1]} is planned twice")
            agent, task = agent_of(row), self._task_name(row, key, where)
            if names.setdefault((agent, task), key[0]) != key[0]:
                message = f"{where}: task {key[0]} is called {task!r}, as task {names[agent, task]} is"
                raise RecordingError(message, "runner.columns.task: a field that tells the tasks apart")
            self.planned[key] = Planned(agent, task, _input_digest(row))

    def _task_name(self, row: Mapping[str, Any], key: Key, where: str) -> str:
        field = self._reading.task
        if field is None:
            return f"task-{key[0]}"
        value = find_field(row, field)
        if type(value) is int:
            return str(value)
        if not isinstance(value, str) or not value.strip():
            scalars = [name for name, value in row.items() if type(value) in (int, str) and not name.startswith("_")]
            there = f"the row has {', '.join(scalars[:20])}" if scalars else "remove runner.columns.task"
            raise RecordingError(f"{where}: the field {field!r} names no task", there)
        return plain_text(value).strip()

    def _read_rollouts(self) -> None:
        for where, row in self._rows("", self.files.rollouts, may_be_torn=True):
            key = key_of(row, where)
            line = int(where.rpartition(":")[2])
            if key in self._lines:
                message = f"{where}: task {key[0]}, rollout {key[1]} stands in line {self._lines[key]} too"
                raise RecordingError(message, "a rollout has one result; remove the other, or read the runs apart")
            self._lines[key] = line
            self._check_planned(key, where)
            result = read_result(row, where, self._reading)
            self.results[key] = self._with_agent(result, key)
            self._note_fields(row)
            response = row.get("response")
            if isinstance(response, dict) and isinstance(response.get("id"), str):
                self.responses[key] = digest_value([response["id"], response.get("created_at"), *key])

    def _note_fields(self, row: Mapping[str, Any]) -> None:
        self.fields.update(name for name in self._reading.scores if find_field(row, name) is not None)
        if len(self.fields) < _FIELDS_KEPT:
            self.fields.update(name for name, value in row.items() if type(value) in (int, float, bool))

    def _read_failures(self) -> None:
        last: dict[Key, tuple[int, Try]] = {}
        for where, row in self._rows(FAILURES, self.files.failures, may_be_torn=True):
            if not has_key(row):
                self._notes[NAMELESS] += 1
                continue
            key = key_of(row, where)
            self._check_planned(key, where)
            if is_omitted(row):
                self.omitted[key] = agent_of(row)
                continue
            attempt, failed = attempt_of(row, where), read_failure(row, where, self._reading)
            if key in self.results:
                self._notes[RETRIED] += 1
                continue
            self._notes[FAILED_AGAIN] += key in last
            if key not in last or attempt >= last[key][0]:
                last[key] = attempt, self._with_agent(failed, key)
        self.results.update((key, failed) for key, (_, failed) in last.items())

    def _with_agent(self, result: Try, key: Key) -> Try:
        """A row that does not say whose it is belongs to the agent that was planned."""
        if result.agent is None and key in self.planned:
            return replace(result, agent=self.planned[key].agent)
        return result

    def _check_planned(self, key: Key, where: str) -> None:
        if self.files.planned is not None and key not in self.planned:
            message = f"{where}: task {key[0]}, rollout {key[1]} is not planned in {self.files.beside(PLANNED)}"
            raise RecordingError(message, "the two files are of different runs; keep each run's files together")

    def task(self, key: Key) -> str:
        """What the task of a rollout is called."""
        return self.planned[key].task if key in self.planned else f"task-{key[0]}"

    def agent(self, key: Key) -> str | None:
        """Whose a rollout is, by its result or the plan."""
        if key in self.results:
            return self.results[key].agent
        return self.planned[key].agent if key in self.planned else self.omitted.get(key)


def _input_digest(row: Mapping[str, Any]) -> str:
    params = row.get("responses_create_params")
    try:
        return digest_value(params.get("input")) if isinstance(params, dict) else ""
    except RecursionError:  # nested so deep that it could just be read
        return ""
