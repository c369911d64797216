"""What became of an attempt at a test: the reports of pytest, or the way its process ended, as an outcome."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.answers import plain_text, read_json_file
from pytest_metricbench.contracts import TIME_OUT, AttemptError, ContractError, Outcome
from pytest_metricbench.messages import joined
from pytest_metricbench.plain_files import open_regular
from pytest_metricbench.processes import bound_log, log_tail
from pytest_metricbench.suite.child import OUR_FAULT, STDERR, STDOUT, result_file
from pytest_metricbench.suite.mutations import Mutation
from pytest_metricbench.suite.processes import Server, ending

SCORE: Final = "passed"
"""The score of this runner: 1 where the test passed, 0 where it did not."""
_RESULT_LIMIT: Final = 256 << 20
"""Bytes of what an attempt's process leaves about itself: the arcs of a large source among it."""


@dataclass(frozen=True, slots=True)
class Attempted:
    """One attempt at a test, and what is known of it."""

    test: str
    """Its node id."""
    mutation: Mutation
    limit: float
    """The time limit that is kept with an attempt that died of it."""
    seconds: float
    """The wall time that it was given."""

    @property
    def is_baseline(self) -> bool:
        """Whether nothing of the source is changed."""
        return not self.mutation.changes

    def died(self, type: str, message: str) -> Outcome:  # noqa: A002
        """It died; ``message`` goes through whatever encodings are in it."""
        limit = self.limit if type == TIME_OUT else None
        return Outcome.died(type, plain_text(message), time_limit=limit)

    def unmeasured(self, type: str, message: str) -> Outcome:  # noqa: A002
        """Nothing is known of it."""
        return Outcome.unmeasured(type, plain_text(message), "setup")

    # ------------------------------------------------ without an attempt

    def without_server(self, server: Server) -> Outcome:
        """What became of it where its file could not be collected."""
        kind, text = server.problem or ("collection", "")
        file = self.test.partition("::")[0]
        if kind == "elsewhere":
            return self.unmeasured("ImportedElsewhere", text)
        if kind == "timeout":
            return self.died(TIME_OUT, f"collection of {file}: {text}")
        return self.died("CollectionFailed", f"collection of {file} failed: {text}")

    def without_test(self, answer: Mapping[str, Any], hint: str) -> Outcome:
        """What became of it where the file has no such test."""
        file, _, name = self.test.partition("::")
        if answer["deselected"]:
            return self.unmeasured("TestNotFound", f"pytest's options (addopts, pytest_args) deselect {self.test}")
        if self.is_baseline:
            return self.unmeasured("TestNotFound", joined(f"{file} has no test {name}", hint))
        return self.died("TestNotFound", f"collection of {file}: under this mutant there is no test {name}")

    # ------------------------------------------------ with one

    def outcome(
        self, answer: Mapping[str, Any], scratch: Path, number: int
    ) -> tuple[Outcome, Mapping[str, Any] | None]:
        """What became of it, and what its process left about it, where it did.

        Args:
            answer: the server's: how the process ended.
            scratch: its folder.
            number: how many tests the process had run before.
        """
        try:
            result = read_json_file(scratch / result_file(number), _RESULT_LIMIT)
        except ContractError:
            return self._without_result(answer, scratch), None
        problem = result["wrong"] or self._not_in_force(result["proof"])
        if problem is not None:
            return self.unmeasured("NotInForce", problem), None
        if result["elsewhere"] is not None:
            return self.unmeasured("ImportedElsewhere", result["elsewhere"]), None
        return self._of_reports(result), result

    def _without_result(self, answer: Mapping[str, Any], scratch: Path) -> Outcome:
        if answer["end"] == "timeout":
            return self.died(TIME_OUT, f"the test ran longer than {self.seconds:.3g} s and was stopped")
        if answer["end"] == "overflow":
            return self.died("OutputLimit", "the test printed more than is kept of any output")
        code, stderr = answer["code"], log_tail(scratch / STDERR)
        tail = f"; the end of its stderr:\n{stderr}" if stderr else ""
        if code == OUR_FAULT:
            return self.unmeasured("ServerFailed", f"the test could not be run{tail}")
        if answer["end"] == "cpu" or ending(code).endswith("SIGXCPU"):
            return self.died(TIME_OUT, f"the test used {answer['cpu']:.3g} s of CPU time and was stopped")
        return self.died("Crashed" if code < 0 else "Exited", f"the test {ending(code)}{tail}")

    def _not_in_force(self, proof: Mapping[str, Any]) -> str | None:
        """Why it is not certain that the test would have seen the mutant; None when it is."""
        for name, change in self.mutation.changes.items():
            real = str(change.path.resolve())
            found = proof.get(real, {"digests": [], "strangers": []})
            if found["strangers"]:
                return f"{name} was loaded as {' and '.join(found['strangers'])} past the mutant"
            if found["digests"] != [self.mutation.digests[real]]:
                return f"the source of {name} that was in force is not the mutant's"
        return None

    def _of_reports(self, result: Mapping[str, Any]) -> Outcome:
        reports = [report for report in result["reports"] if report["outcome"] != "rerun"]
        if result["error"] is not None:
            return self.died("Ended", f"the test ended pytest: {result['error']}")
        setup = [report for report in reports if report["when"] == "setup"]
        calls = [report for report in reports if report["when"] == "call"]
        if setup and setup[-1]["outcome"] == "failed":
            return self.died("SetUpFailed", f"set-up failed: {setup[-1]['text']}")
        # After a rerun the last one counts; each subtest has a report of its own, and fails its test.
        last = [report for report in (*setup, *calls) if report["outcome"] == "skipped"]
        failed = [report for report in reports if report["outcome"] == "failed"]
        if failed:
            return _scored(0, self._failure(failed[0]))
        if last and not any(report["outcome"] == "passed" for report in calls):
            return self._skipped(last[-1])
        if not calls:
            return self.unmeasured("ServerFailed", "pytest reported nothing of the test")
        return _scored(1, None)

    def _skipped(self, report: Mapping[str, Any]) -> Outcome:
        word = "is expected to fail" if report["xfail"] else "is skipped"
        if self.is_baseline:
            return self.unmeasured("XFailed" if report["xfail"] else "Skipped", f"the test {word}: {report['text']}")
        # The suite stays green: a test that steps aside under a mutant does not find it.
        return _scored(1, AttemptError("Skipped", plain_text(f"under this mutant the test {word}"), "agent"))

    @staticmethod
    def _failure(report: Mapping[str, Any]) -> AttemptError:
        where = "tear-down failed: " if report["when"] == "teardown" else ""
        return AttemptError("TestFailed", plain_text(where + report["text"]), "agent")


def passed(outcome: Outcome) -> bool:
    """Whether the test was run and passed."""
    return outcome.kind == "scored" and outcome.scores[SCORE] == 1


def keep_output(scratch: Path, workspace: Path, before: Mapping[str, int], after: Mapping[str, int] | None) -> None:
    """Put what a test printed into its workspace; a silent one needs none.

    Args:
        scratch: the folder of its process.
        workspace: of its attempt.
        before: stream -> bytes that the tests before it had printed.
        after: likewise, with its own; None: all there is.
    """
    for stream in (STDOUT, STDERR):
        path, start = scratch / stream, before.get(stream, 0)
        end = after.get(stream, 0) if after is not None else path.stat().st_size if path.exists() else 0
        if end <= start:
            continue
        workspace.mkdir(parents=True, exist_ok=True)
        with open_regular(path) as printed, (workspace / f"agent.{stream}").open("w+b") as kept:
            printed.seek(start)
            kept.write(printed.read(end - start))
            kept.flush()
            bound_log(kept.fileno())


def _scored(value: int, error: AttemptError | None) -> Outcome:
    return Outcome.scored({SCORE: value}, error=error)
