"""What JUnit files carry: properties of attempts, of coverage requests and of the whole, as texts."""

from collections.abc import Iterator, Sequence

from pytest_metricbench.analysis.figures import Figure
from pytest_metricbench.analysis.summary import CaseSummary, GateResult, Settings, Summary
from pytest_metricbench.contracts import AttemptKey, AttemptRecord, CoverageRecord
from pytest_metricbench.definition.experiment import BASELINE
from pytest_metricbench.score_values import value_to_json


def identity_properties(key: AttemptKey) -> list[tuple[str, object]]:
    """Which attempt a test case is: its class name cannot be taken apart, since ids may hold points."""
    case, variant, task, slot = key
    return [("case", case), ("variant", variant), ("task", task), ("attempt", str(slot))]


def group_properties(name: Sequence[str]) -> list[tuple[str, object]]:
    """Which group of attempts a test case is: case and variant, and the task where it is about one."""
    return list(zip(("case", "variant", "task"), name, strict=False))


def attempt_properties(record: AttemptRecord, word: str, prefix: str = "") -> list[tuple[str, object]]:
    """Outcome, trial id and scores of an attempt.

    Args:
        record: of the attempt.
        word: passed, missed, died or unmeasured.
        prefix: what the names begin with, where a test case is about several attempts.
    """
    properties: list[tuple[str, object]] = [(f"{prefix}outcome", word), (f"{prefix}trial_id", record.shown_id)]
    properties += [(f"{prefix}score.{name}", str(value_to_json(value))) for name, value in record.scores.items()]
    if record.error is not None:
        properties.append((f"{prefix}error", f"{record.error.phase}: {record.error.type}"))
    return properties


def coverage_properties(record: CoverageRecord) -> list[tuple[str, object]]:
    """Outcome and value of a coverage request, or the reason why there is none."""
    properties: list[tuple[str, object]] = [("outcome", record.outcome)]
    if record.value is not None:
        properties.append(("value", str(record.value)))
    if record.reason is not None:
        properties.append(("reason", record.reason))
    return properties


def suite_properties(summary: Summary) -> Iterator[tuple[str, str]]:
    """The headline of an experiment, for the properties of the test suite.

    ``<experiment>.complete``, ``<experiment>.gate.<its text>`` (ok, FAIL or open), and of each case, as
    ``<experiment>.<case>.<figure>``: the baseline's pass@k, the mutation score of all tasks (``mutation_score`` is the
    one that ``analysis`` chose; ``kill_share`` with ``killed`` and ``mutants``, ``mean_drop``), and of each coverage
    system its coverage and its correlations over all subsets. A figure that is unavailable stands as
    ``<name>.unavailable`` with the reason, so that what stands under a figure's name is a number.
    """
    start = summary.experiment
    yield f"{start}.complete", "true" if summary.complete else "false"
    if summary.part is not None:
        yield f"{start}.part", summary.part
    for name, case in summary.cases.items():
        yield from _case_properties(f"{start}.{name}", case, summary.settings)
    for gate in summary.gates:
        yield f"{start}.gate.{gate.text}", _gate_word(gate)


def _case_properties(start: str, case: CaseSummary, settings: Settings) -> Iterator[tuple[str, str]]:
    for k, figure in case.variants[BASELINE].pass_at_k.get(settings.primary, {}).items():
        yield _figure(f"{start}.baseline.pass@{k}", figure)
    if case.kills:
        share, drop = case.pool.kill_share, case.pool.mean_drop
        yield _figure(f"{start}.mutation_score", share if settings.mutation_score == "kill_share" else drop)
        yield _figure(f"{start}.kill_share", share)
        yield f"{start}.killed", str(share.killed)
        yield f"{start}.mutants", str(share.mutants)
        yield _figure(f"{start}.mean_drop", drop)
    for system, coverage in case.pool.coverage.items():
        yield _figure(f"{start}.{system}.coverage", coverage)
    for system, by_score in case.correlation.items():
        overall = by_score[settings.mutation_score].overall
        yield _figure(f"{start}.{system}.kendall", overall.kendall)
        yield _figure(f"{start}.{system}.spearman", overall.spearman)
        yield _figure(f"{start}.{system}.pearson", overall.pearson)


def _figure(name: str, figure: Figure) -> tuple[str, str]:
    if figure.value is None:
        return f"{name}.unavailable", figure.reason or "no reason was given"
    return name, str(figure.value)


def _gate_word(gate: GateResult) -> str:
    return "open" if gate.holds is None else "ok" if gate.holds else "FAIL"
