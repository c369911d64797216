"""Which saved attempts no longer fit the experiment, and what of it changed: said before they are paid for again."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from pytest_metricbench.answers import read_json_file
from pytest_metricbench.contracts import AttemptKey, AttemptRecord, ContractError
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.store.layout import Layout

_MOST_CHANGES: Final = 4
_RUN_AGAIN: Final = ("unmeasured", "not_needed")
"""Outcomes that are never reused, whatever has changed."""
_NAMED_BY: Final[Mapping[str, Callable[[str], str]]] = {
    "runner": str,
    "case": lambda name: name.partition(":")[2],  # behind the case's id
    "shared": lambda name: name.rpartition(":")[2],
}
"""How a file is called by what stands before its name."""


def stale_notice(
    experiment: Experiment,
    fingerprints: Fingerprints,
    layout: Layout,
    stored: Mapping[AttemptKey, AttemptRecord],
    selected: AbstractSet[AttemptKey],
) -> str | None:
    """A sentence on the selected attempts whose saved results are stale; None where there are none.

    Args:
        experiment: as it is today.
        fingerprints: of that experiment.
        layout: of its store, before this run describes itself there.
        stored: what the store holds.
        selected: the attempts that are part of this run.
    """
    stale = 0
    for case, variant, task, slot in experiment.attempts():
        record = stored.get((case.id, variant.id, task.id, slot))
        if record is None or record.key not in selected or record.outcome in _RUN_AGAIN:
            continue
        stale += record.fingerprint != fingerprints.attempt(case, variant, task)
    if not stale:
        return None
    changes = list(dict.fromkeys(_changes(_earlier(layout), fingerprints.summary())))
    what = f" (changed: {first_names(changes, _MOST_CHANGES)})" if changes else ""
    count = f"{stale:,} saved attempts no longer fit" if stale > 1 else "1 saved attempt no longer fits"
    return f"{count} the experiment{what}: run again, and the old kept under {layout.stale.name}/"


def _earlier(layout: Layout) -> dict[str, Any]:
    """The digests of the run that the store was last written by; empty where it does not say."""
    try:
        digests = read_json_file(layout.experiment, 1 << 30)["digests"]
    except (ContractError, TypeError, KeyError):
        return {}
    return digests if isinstance(digests, dict) else {}


def _changes(earlier: Mapping[str, Any], today: Mapping[str, Any]) -> Iterator[str]:
    """The parts of an experiment that shape attempts and have another digest than before, by name."""
    if not earlier:
        return
    if earlier.get("seed") != today["seed"]:
        yield "seed"
    files = list(_files(earlier.get("files"), today["files"]))
    yield from files
    if not files and earlier.get("runner") != today["runner"]:
        yield "runner"
    before = _mapping(earlier.get("cases"))
    for name, case in today["cases"].items():
        old = _mapping(before.get(name))
        if not files and old and old.get("inputs") != case["inputs"]:
            yield f"inputs of {name}"
        for part in ("variants", "tasks"):
            known = _mapping(old.get(part))
            yield from (f"{name}::{key}" for key, digest in case[part].items() if known.get(key, digest) != digest)


def _files(earlier: Any, today: Mapping[str, str]) -> Iterator[str]:
    """Names, without their scopes, of files of the runner, of all attempts or of inputs with another content."""
    before = _mapping(earlier)
    for key, digest in today.items():
        scope, _, name = key.partition(":")
        if scope in _NAMED_BY and before.get(key, digest) != digest:
            yield _NAMED_BY[scope](name)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
