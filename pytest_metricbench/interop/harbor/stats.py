"""Harbor's own figures of a job, computed from the attempts that a store keeps.

``AgentDatasetStats`` of Harbor 0.20 to 0.26: for each agent, model and dataset ``n_trials``, ``n_errors``, the mean of
the rewards, pass@k, and which trials had which reward and which exception. The rules of 0.25 (and before) count an
errored trial as a reward of 0 in the mean and in pass@k; those of 0.26 leave out a trial whose reward is not valid.
Our own figures do neither; these are for comparison.

Sources: ``harbor.models.job.result.JobStats.increment``, ``harbor.metrics.base.aggregate_reward_dicts`` and
``harbor.utils.pass_at_k`` of both versions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pytest_metricbench.contracts import NOT_RECORDED, AttemptRecord, ContractError, Json
from pytest_metricbench.interop.harbor.exceptions import RulesVersion, rule_for, rules_version
from pytest_metricbench.interop.harbor.folders import RESULT, read_document
from pytest_metricbench.interop.harbor.results import STEP_PREFIX, HarborResultError, read_trial
from pytest_metricbench.score_values import ScoreValue

Rewards: TypeAlias = Mapping[str, ScoreValue]


@dataclass(frozen=True, slots=True)
class CountedTrial:
    """What Harbor's figures see of one trial."""

    group: str
    """Harbor's key of the figures: ``<agent>__<dataset>``, or ``<agent>__<model>__<dataset>``."""
    name: str
    task: str
    rewards: Rewards | None
    """None where the verifier gave none."""
    exception: str | None
    """Type of the trial's own exception."""
    exceptions: tuple[str, ...]
    """Types of the trial's exception and of those of its steps."""
    is_valid: bool
    """Whether the rules of 0.26 take its rewards."""
    has_metrics: bool = True
    """Whether Harbor finds the metrics of its dataset: not where the dataset's name has ``__`` in it."""


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """Harbor's ``AgentDatasetStats``."""

    n_trials: int
    """Trials that have rewards (under the rules of 0.26: valid ones)."""
    n_errors: int
    """Trials with an exception."""
    metrics: Mapping[str, float]
    """``mean`` of the reward, or with several rewards the mean of each; empty where Harbor has none."""
    pass_at_k: Mapping[int, float]
    """k -> the mean over the tasks; empty where Harbor gives none: a reward that is not 0 or 1, or several rewards."""
    reward_stats: Mapping[str, Mapping[ScoreValue, Sequence[str]]]
    """Reward -> value -> names of the trials."""
    exception_stats: Mapping[str, Sequence[str]]
    """Type of exception -> names of the trials."""

    def to_json(self) -> dict[str, Json]:
        """As it stands under ``stats.evals`` in a job's ``result.json``, the names of the trials sorted."""
        return {
            "n_trials": self.n_trials,
            "n_errors": self.n_errors,
            "metrics": [dict(self.metrics)] if self.metrics else [],
            "pass_at_k": {str(k): value for k, value in self.pass_at_k.items()},
            "reward_stats": {
                name: {str(value): sorted(trials) for value, trials in values.items()}
                for name, values in self.reward_stats.items()
            },
            "exception_stats": {name: sorted(trials) for name, trials in self.exception_stats.items()},
        }


def counted_trial(result: Mapping[str, Any]) -> CountedTrial:
    """What counts of a trial's ``result.json``.

    Raises:
        HarborResultError: it is not of Harbor's form.
    """
    trial = read_trial(result)
    info = result.get("agent_info")
    agent = info.get("name") if isinstance(info, Mapping) else None
    model = info.get("model_info") if isinstance(info, Mapping) else None
    model_name = model.get("name") if isinstance(model, Mapping) else None
    dataset = str(result.get("source") or "adhoc")
    parts = [str(agent), *([str(model_name)] if model_name else []), dataset]
    own = result.get("exception_info")
    return CountedTrial(
        group="__".join(parts),
        name=trial.name,
        task=trial.task,
        rewards=trial.rewards,
        exception=str(own.get("exception_type")) if isinstance(own, Mapping) else None,
        exceptions=tuple(exception.type for exception in trial.exceptions),
        is_valid=bool(trial.rewards) and all(_is_valid(entry.type, entry.is_valid) for entry in trial.exceptions),
        has_metrics="__" not in dataset,
    )


def counted_record(record: AttemptRecord, group: str = "") -> CountedTrial:
    """What counts of an attempt's record alone, where its trial left nothing else in the store.

    A reward that Harbor gave and that did not count here (of an attempt that died or was not measured) is not in the
    record and therefore not in these figures.
    """
    rewards = {name: value for name, value in record.scores.items() if not name.startswith(STEP_PREFIX)}
    types = () if record.error is None else (record.error.type,)
    return CountedTrial(
        group=group,
        name=record.shown_id,
        task=record.task,
        rewards=rewards if record.outcome == "scored" else None,
        exception=types[0] if types else None,
        exceptions=types,
        is_valid=record.outcome == "scored" and bool(rewards) and all(_is_valid(name, None) for name in types),
    )


def _is_valid(exception_type: str, declared: bool | None) -> bool:
    return rule_for(exception_type).counted if declared is None else declared


def stored_trials(records: Iterable[AttemptRecord], workspace: Callable[[AttemptRecord], Path]) -> list[CountedTrial]:
    """What counts of the attempts of a store: their trials' ``result.json`` where they left one, else the records.

    Args:
        records: the attempts; those that were planned and left no result are passed over.
        workspace: where an attempt's files are (:meth:`pytest_metricbench.store.layout.Layout.left_by`).

    Raises:
        HarborResultError: a kept result is damaged.
    """
    found = []
    for record in records:
        if record.error is not None and record.error.type == NOT_RECORDED:
            continue
        if RESULT not in record.files:
            found.append(counted_record(record))
            continue
        path = workspace(record) / RESULT
        try:
            result = read_document(path)
        except ContractError as error:
            raise HarborResultError(f"{path.parent}: {error}") from None
        found.append(counted_trial(result))
    return found


def stats_by_group(trials: Iterable[CountedTrial], version: str | None) -> dict[str, DatasetStats]:
    """Harbor's figures by agent, model and dataset, as under ``stats.evals``.

    Args:
        trials: of one job, or of several that Harbor would have run as one.
        version: whose rules hold.
    """
    groups: dict[str, list[CountedTrial]] = {}
    for trial in trials:
        groups.setdefault(trial.group, []).append(trial)
    return {group: dataset_stats(members, version) for group, members in groups.items()}


def dataset_stats(trials: Sequence[CountedTrial], version: str | None) -> DatasetStats:
    """Harbor's figures of trials that belong together, under the rules of a version."""
    rules = rules_version(version)
    counted = [trial for trial in trials if trial.rewards is not None and (rules == "0.25" or trial.is_valid)]
    reward_stats: dict[str, dict[ScoreValue, list[str]]] = {}
    for trial in counted:
        for name, value in (trial.rewards or {}).items():
            reward_stats.setdefault(name, {}).setdefault(value, []).append(trial.name)
    exception_stats: dict[str, list[str]] = {}
    errors = 0
    for trial in trials:
        types = _types(trial, rules)
        errors += bool(types)
        for name in types:
            exception_stats.setdefault(name, []).append(trial.name)
    return DatasetStats(
        n_trials=len(counted),
        n_errors=errors,
        metrics=_means(trials if rules == "0.25" else counted),
        pass_at_k=_pass_at_k(trials if rules == "0.25" else counted),
        reward_stats=reward_stats,
        exception_stats=exception_stats,
    )


def _types(trial: CountedTrial, rules: RulesVersion) -> list[str]:
    """The exceptions that are counted: up to 0.25 the trial's own, from 0.26 on those of its steps too."""
    if rules == "0.25":
        return [] if trial.exception is None else [trial.exception]
    return sorted(set(trial.exceptions))


def _means(trials: Sequence[CountedTrial]) -> dict[str, float]:
    """The mean of each reward, one that is missing as 0; called ``mean`` where there is only one reward."""
    names = sorted({name for trial in trials for name in trial.rewards or {}})
    if not trials or not all(trial.has_metrics for trial in trials):
        return {}
    if len(names) <= 1:
        return {"mean": sum(_number(next(iter((trial.rewards or {}).values()), 0)) for trial in trials) / len(trials)}
    return {name: sum(_number((trial.rewards or {}).get(name, 0)) for trial in trials) / len(trials) for name in names}


def _pass_at_k(trials: Sequence[CountedTrial]) -> dict[int, float]:
    """1 - C(n-c, k) / C(n, k) for each task, the mean over tasks, for the k that every task has trials for."""
    passes: dict[str, list[int]] = {}
    for trial in trials:
        if trial.rewards is None:
            passes.setdefault(trial.task, []).append(0)
            continue
        values = list(trial.rewards.values())
        if len(values) != 1 or values[0] not in (0, 1):
            return {}
        passes.setdefault(trial.task, []).append(int(_number(values[0])))
    if not passes:
        return {}
    fewest = min(len(tried) for tried in passes.values())
    return {
        k: sum(_of_task(len(tried), sum(tried), k) for tried in passes.values()) / len(passes)
        for k in _eligible_k(fewest)
    }


def _eligible_k(most: int) -> list[int]:
    """The powers of two from 2 and the multiples of five, up to ``most``. Harbor never gives pass@1."""
    powers = {2**exponent for exponent in range(1, max(most, 1).bit_length())}
    return sorted(k for k in powers | set(range(5, most + 1, 5)) if k <= most)


def _of_task(n: int, c: int, k: int) -> float:
    """As a product, in Harbor's order of multiplications: the last digits agree too."""
    if n - c < k:
        return 1.0
    product = 1.0
    for i in range(k):
        product *= (n - c - i) / (n - i)
    return 1.0 - product


def _number(value: ScoreValue) -> float:
    return value if isinstance(value, int | float) else 0.0
