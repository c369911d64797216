"""The runner's attempts: which need not be made, and what those that are made are asked and give."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.contracts import AttemptRequest, Json, Outcome
from pytest_metricbench.messages import did_you_mean
from pytest_metricbench.processes import OUTPUT_LIMIT
from pytest_metricbench.suite.child import result_file
from pytest_metricbench.suite.killing import Asked, FirstKills
from pytest_metricbench.suite.mutations import MutantParams, Mutation, mutation_of
from pytest_metricbench.suite.outcomes import Attempted, keep_output, passed
from pytest_metricbench.suite.processes import Server
from pytest_metricbench.suite.project import Limits, Project
from pytest_metricbench.suite.reach import Memory, Ran, Reach, write_reach


class AttemptMaker:
    """Makes the attempts of one project."""

    def __init__(
        self,
        project: Project,
        *,
        recursion_limit: int | None,
        memory: int | None,
        exhaustive: bool,
        first_only: bool,
    ) -> None:
        """Nothing is made yet.

        Args:
            project: with the processes in which they are made.
            recursion_limit: Python's, for the tests; None: as it is.
            memory: bytes that a test may take beyond what pytest has; None: no limit.
            exhaustive: make those, too, that cannot tell the mutant from the baseline.
            first_only: make no more of a mutant that is killed.
        """
        self._project: Final = project
        self._request: Final = {"memory": memory, "recursion": recursion_limit}
        self._exhaustive: Final = exhaustive
        self._first_only: Final = first_only
        self._kills: Final = FirstKills(self._in_a_row)
        self._memory: Final = Memory()
        self._mutations: Final[dict[str, Mutation]] = {}
        self._last: tuple[Mapping[str, Json], Mutation] | None = None
        """The mutant that was asked for last."""
        self._begun: Final[dict[str, Asked | Outcome]] = {}
        """Id of an attempt that was begun -> what is asked, or what became of it as it need not be made."""

    def mutation(self, params: MutantParams) -> Mutation:
        """The mutant of some params.

        Raises:
            MutationError: it cannot be made.
        """
        key = params.model_dump_json()
        if key not in self._mutations:
            self._mutations[key] = mutation_of(params, self._project.source, self._project.folder)
        return self._mutations[key]

    def expect(self, request: AttemptRequest, workspace: Path) -> None:
        """Note an attempt of a mutant that comes next.

        Raises:
            LookupError: it is the baseline's, or the baseline has not run the test yet.
        """
        asked = self._asked(request, workspace)
        if not asked.mutation.changes or not asked.known:
            raise LookupError("nothing is known of the baseline")
        not_reached = self._not_reached(asked.mutation, asked.known)
        self._begun[request.trial_id] = asked if not_reached is None else not_reached
        if not_reached is None:
            self._kills.expect(asked)

    def foreseen(
        self, variant: Mapping[str, Json], task: Mapping[str, Json], baseline: Iterable[Path]
    ) -> Outcome | None:
        """What becomes of an attempt that need not be made, as far as what the baseline left tells; else None.

        Raises:
            MutationError: the mutant cannot be made.
        """
        mutation = self._mutation_in(variant)
        return self._not_reached(mutation, self._known(mutation, task, baseline))

    def outcome(self, request: AttemptRequest, workspace: Path) -> Outcome:
        """Make an attempt, unless it need not be made.

        Raises:
            SuiteError: the tests cannot be run at all.
            MutationError: the mutant cannot be made.
            MissingVariableError: a variable that ``env`` takes from the environment is not set there.
            OSError: what the attempt leaves cannot be kept.
        """
        begun = self._begun.pop(request.trial_id, None)
        if begun is None:
            asked = self._asked(request, workspace)
            begun = self._not_reached(asked.mutation, asked.known) or asked
        if isinstance(begun, Outcome):
            return begun
        if self._first_only and begun.mutation.changes:
            return self._kills.outcome(begun)
        return self._in_a_row([begun])[0]

    def _asked(self, request: AttemptRequest, workspace: Path) -> Asked:
        mutation = self._mutation_in(request.variant.params)
        return Asked(request, workspace, mutation, self._known(mutation, request.task.params, request.baseline))

    def _mutation_in(self, params: Mapping[str, Json]) -> Mutation:
        if self._last is None or self._last[0] != params:
            self._last = (dict(params), self.mutation(MutantParams.model_validate(params)))
        return self._last[1]

    def _known(self, mutation: Mutation, task: Mapping[str, Json], baseline: Iterable[Path]) -> Sequence[Ran]:
        """What the baseline's attempts at the test ran; nothing is asked of it for the baseline itself."""
        if not mutation.changes or not self._project.trace:
            return ()
        return self._memory.of(baseline, self._project.key_of(str(task["nodeid"])))

    def _not_reached(self, mutation: Mutation, known: Sequence[Ran]) -> Outcome | None:
        if self._exhaustive or not mutation.changes or not known:
            return None
        if any(ran.leads_to(mutation) for ran in known):
            return None
        return Outcome.not_reached(f"the test never runs what leads to the change ({mutation.places})")

    # ------------------------------------------------ tests in a row

    def _in_a_row(self, row: Sequence[Asked]) -> list[Outcome]:
        """Attempts at tests of one file in one process, up to one that does not pass, or after which it must end."""
        first, limits = row[0], [self._limits(asked) for asked in row]
        attempted = [
            Attempted(asked.nodeid, asked.mutation, self._project.timeout, limit.seconds)
            for asked, limit in zip(row, limits, strict=True)
        ]
        path = self._project.file_of(first.nodeid)
        if path is None:
            return [attempted[0].unmeasured("TestNotFound", f"the file of {first.nodeid} does not exist")]
        tests = [_test(asked, limit) for asked, limit in zip(row, limits, strict=True)]
        server, answer, scratch = self._project.attempts(
            first.nodeid, path, first.mutation, self._request | {"tests": tests, "output": OUTPUT_LIMIT}
        )
        if server.problem is not None:
            return [attempted[0].without_server(server)]
        if "absent" in answer:
            if len(row) > 1:
                return self._in_a_row(row[:1])
            return [attempted[0].without_test(answer, did_you_mean(answer["absent"], answer["tests"]))]
        return self._outcomes(row, attempted, server, answer, scratch)

    def _limits(self, asked: Asked) -> Limits:
        timeout = self._project.timeout
        if not asked.mutation.changes:
            return Limits(timeout, None)
        if not asked.known:
            return Limits(timeout, timeout)
        return self._project.limits(max(ran.seconds for ran in asked.known), asked.cpu)

    def _outcomes(
        self,
        row: Sequence[Asked],
        attempted: Sequence[Attempted],
        server: Server,
        answer: Mapping[str, Any],
        scratch: Path,
    ) -> list[Outcome]:
        """What became of those that were made, at least of the first."""
        outcomes: list[Outcome] = []
        printed: Mapping[str, int] = {}
        for number, asked in enumerate(row):
            outcome, result = attempted[number].outcome(answer, scratch, number)
            outcomes.append(outcome)
            now = None if result is None else result["printed"]
            keep_output(scratch, asked.workspace, printed, now)
            if result is not None and "arcs" in result and outcome.kind in ("scored", "died"):
                self._keep_reach(asked, server, result, outcome, answer)
            if now is None or not passed(outcome):
                break
            printed = now
            is_over = answer["end"] == "ended" and answer["code"] == 0
            if is_over and not (scratch / result_file(number + 1)).exists():
                break
        return outcomes

    def _keep_reach(
        self, asked: Asked, server: Server, result: Mapping[str, Any], outcome: Outcome, answer: Mapping[str, Any]
    ) -> None:
        asked.workspace.mkdir(parents=True, exist_ok=True)
        is_whole = bool(result["whole"] and server.ready["whole"])
        reach = Reach(
            key=self._project.key_of(asked.nodeid),
            complete=is_whole and not any(file["strangers"] for file in result["proof"].values()),
            passed=passed(outcome),
            files=self._project.reached(server.ready["imported"], result["arcs"]),
            seconds=round(answer["duration"], 4),
            cpu=round(result["cpu"], 4),
        )
        write_reach(asked.workspace, reach)


def _test(asked: Asked, limits: Limits) -> dict[str, Any]:
    """A test as a fork is asked for it."""
    name = asked.nodeid.partition("::")[2]
    return {"test": name, "seconds": limits.seconds, "cpu": limits.cpu, "seed": asked.request.seed}
