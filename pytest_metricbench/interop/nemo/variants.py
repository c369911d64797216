"""Which evaluator bundles belong to one variant: by a label, by their target, or by their folder.

Looked at is ``metadata.json`` alone, so that bundles of other cases need not be read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from pytest_metricbench.contracts import Json
from pytest_metricbench.interop.gym.files import short_names
from pytest_metricbench.interop.harbor.variants import describe_settings, name_variants, settings_key
from pytest_metricbench.interop.nemo.content import read_metadata
from pytest_metricbench.interop.nemo.files import METADATA, Bundle, listed
from pytest_metricbench.interop.recordings import RecordedVariant, RecordingError

LABEL: Final = "label:"
CASE_LABEL, VARIANT_LABEL = "case", "variant"
"""Labels that bundles of ours carry, and that are looked for in others."""
WAYS: Final = f"{LABEL}<key>, target or folder"
_NO_IDENTITY: Final = frozenset(
    {
        "n_attempts",
        "num_repeats",
        "n_concurrent_trials",
        "concurrency",
        "parallelism",
        "max_retries",
        "force_rerun",
        "job_dir",
        "jobs_dir",
        "job_name",
        "work_dir",
        "output_dir",
        "bind_resources_server",
    }
)
"""Settings of a target that say how and where it was run, and not what it does."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A bundle with what its metadata says."""

    bundle: Bundle
    labels: Mapping[str, str]
    target: Mapping[str, Any]


def of_case(bundles: Sequence[Bundle], case: str) -> tuple[list[Labelled], int]:
    """The bundles of one case, and how many others there are.

    Where bundles carry several labels ``case``, those of this case are taken; where they carry one or none, all.

    Raises:
        RecordingError: there are several, and none is this case.
    """
    labelled = [Labelled(bundle, *read_metadata(bundle)) for bundle in bundles]
    cases = {found.labels[CASE_LABEL] for found in labelled if CASE_LABEL in found.labels}
    if len(cases) < 2:
        return labelled, 0
    if case not in cases:
        message = (
            f"the bundles are of several cases by their label {CASE_LABEL!r}, and none is {case!r}: {listed(cases)}"
        )
        raise RecordingError(message, "call the case of the experiment like one of them, or read fewer bundles")
    mine = [found for found in labelled if found.labels.get(CASE_LABEL) == case]
    return mine, len(labelled) - len(mine)


def variants_of(bundles: Sequence[Labelled], how: str | None) -> list[RecordedVariant]:
    """The variant of each bundle.

    Args:
        bundles: those of one case.
        how: ``label:<key>``, ``target`` or ``folder``; None: by the label ``variant`` where every bundle has one, and
            otherwise only if there is nothing to tell apart.

    Raises:
        RecordingError: a bundle lacks what would tell its variant, or nobody said what does.
    """
    if how is None:
        if all(VARIANT_LABEL in found.labels for found in bundles):
            how = f"{LABEL}{VARIANT_LABEL}"
        elif len(bundles) == 1:
            how = "folder"
        else:
            message = f"there are {len(bundles)} bundles, and nothing says which are of one variant"
            raise RecordingError(message, f"set runner.variants: {WAYS}")
    if how.startswith(LABEL) and (key := how.removeprefix(LABEL)):
        return [RecordedVariant(_label(found, key)) for found in bundles]
    if how == "target":
        return _by_target(bundles)
    if how == "folder":
        names = _without_common_end([found.bundle.name for found in bundles])
        short = short_names(names)
        return [RecordedVariant(short[name]) for name in names]
    raise RecordingError(f"runner.variants: {how!r} is not known to the form nemo", f"{WAYS} is expected")


def _without_common_end(names: Sequence[str]) -> list[str]:
    """Names of folders without what all of them end in: a job's results are always called ``agent-eval-results``."""
    parts = [PurePosixPath(name).parts for name in names]
    while len(parts) > 1 and all(len(own) > 1 for own in parts) and len({own[-1] for own in parts}) == 1:
        parts = [own[:-1] for own in parts]
    return [str(PurePosixPath(*own)) for own in parts]


def _label(found: Labelled, key: str) -> str:
    if found.labels.get(key):
        return found.labels[key]
    if key in found.labels:
        what = f"an empty label {key!r}"
    else:
        what = f"no label {key!r}; " + (
            f"its labels are {listed(found.labels)}" if found.labels else "it has no labels"
        )
    raise RecordingError(f"{found.bundle.where(METADATA)} has {what}", f"set runner.variants: {WAYS}")


def _by_target(bundles: Sequence[Labelled]) -> list[RecordedVariant]:
    """By name and settings of the target: two agents of Harbor are both called ``harbor``."""
    settings = [_settings(found) for found in bundles]
    labels = [_target_name(found) for found in bundles]
    keys = [(label, settings_key(given)) for label, given in zip(labels, settings, strict=True)]
    first = {key: position for position, key in reversed(list(enumerate(keys)))}
    different = sorted(first, key=lambda key: first[key])
    names = name_variants([(label, settings[first[label, given]]) for label, given in different])
    by_key = dict(zip(different, names, strict=True))
    return [
        RecordedVariant(by_key[key], description=describe_settings(given, settings))
        for key, given in zip(keys, settings, strict=True)
    ]


def _target_name(found: Labelled) -> str:
    name, config = found.target.get("name"), found.target.get("config")
    agent = config.get("effective_agent") if isinstance(config, dict) else None
    if isinstance(agent, str) and agent:
        return agent
    if isinstance(name, str) and name:
        return name
    message = f"{found.bundle.where(METADATA)} names no target: its trials were imported"
    raise RecordingError(message, f"set runner.variants: {LABEL}<key> or folder")


def _settings(found: Labelled) -> dict[str, Json]:
    """What a target's configuration says of what it does, flat; what is not set is left out."""
    config = found.target.get("config")
    settings: dict[str, Json] = {}
    for key, value in config.items() if isinstance(config, dict) else ():
        if key not in _NO_IDENTITY:
            settings.update(
                {f"{key}.{name}": entry for name, entry in value.items()} if isinstance(value, dict) else {key: value}
            )
    return {key: value for key, value in sorted(settings.items()) if value not in (None, "", [], {})}
