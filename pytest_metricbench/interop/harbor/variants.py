"""Which trials of Harbor belong to one variant: by the configuration of the agent, and a name for each.

Harbor itself tells agents apart by name and model only and so merges a baseline with its mutants; what differs stands
in each trial's ``config.agent``.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from pytest_metricbench.contracts import Json
from pytest_metricbench.digests import canonical_json

AGENT: Final = "agent"
"""The setting that holds the agent's name or import path, whichever of the two keys Harbor kept it under."""
_NO_IDENTITY: Final = frozenset(
    {"name", "import_path", "n_concurrent", "concurrency_group", "include_logs", "exclude_logs", "model_api_key_name"}
)
"""Keys of ``config.agent`` that say nothing about what the agent does, or that :data:`AGENT` stands for."""
_NESTED: Final = ("kwargs", "env")
_FIRST: Final = ("kwargs.", "model_name", "env.", "skills", "mcp_servers", "extra_instructions", "agent")
_MOST_KEYS: Final = 2
"""Settings that a name is made of, unless it takes more to tell all variants apart."""
_VALUE_LIMIT: Final = 32
_SECRET_KEYS: Final = frozenset({"mcp_servers", "base_url"})
"""Keys of ``config.agent`` that may hold credentials."""
_SECRET_NAME: Final = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL|AUTH", re.IGNORECASE)
"""Names whose values Harbor itself masks in an agent's environment."""
_MASK: Final = "****"
MASKED: Final = "masked"
"""How a setting begins of which Harbor kept only a mask: two that differ may look equal."""
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._+-]+")


def agent_settings(agent: Mapping[str, Any]) -> dict[str, Json]:
    """What an agent's configuration says, flat: ``kwargs`` and ``env`` by key, what is empty or a default left out.

    Harbor writes one configuration in several ways (defaults given or not, whole seconds as floats); they give equal
    settings. Values that may be secret are digests: settings end up in a lock that is committed.
    """
    settings: dict[str, Json] = {}
    name = agent.get("import_path") or agent.get("name")
    if name:
        settings[AGENT] = name
    for key, value in agent.items():
        if key in _NESTED and isinstance(value, Mapping):
            is_secret = key == "env"
            settings.update({f"{key}.{inner}": _open(inner, entry, is_secret) for inner, entry in value.items()})
        elif key not in _NO_IDENTITY and value not in (None, False, "", [], {}):
            settings[key] = _open(key, value, key in _SECRET_KEYS)
    return dict(sorted(settings.items()))


def _open(name: str, value: Any, is_secret: bool) -> Json:
    """A value as it may be shown."""
    plain = _plain(value)
    if isinstance(value, str) and (_SECRET_NAME.search(name) or _MASK in value):
        is_secret = True
    if not is_secret:
        return plain
    masked = f"{MASKED} " if isinstance(value, str) and _MASK in value else ""
    return f"{masked}#{_digest(plain)}"


def settings_key(settings: Mapping[str, Json]) -> str:
    """One text for equal settings."""
    return canonical_json(settings)


def describe_settings(settings: Mapping[str, Json], others: Sequence[Mapping[str, Json]]) -> str:
    """What a variant's settings are that not all variants have, in words: ``kwargs.mutant=m1, model_name=x/y``.

    Args:
        settings: of the variant.
        others: those of all variants; where there is only one, all of its settings are told.
    """
    told = [name for name in settings if len(others) == 1 or len({_value(other, name) for other in others}) > 1]
    return ", ".join(f"{name}={_in_words(settings[name])}" for name in told)


def name_variants(variants: Sequence[tuple[str, Mapping[str, Json]]]) -> list[str]:
    """A name for each variant, all different and made of the characters of ids.

    A variant is named like its agent; those that share one are told apart by what differs between them, with as few
    settings as it takes: ``toy``, ``toy-mutant-m1``.

    Args:
        variants: (what the agent calls itself, settings), in a fixed order, no two of them equal.
    """
    groups: dict[str, list[int]] = {}
    for position, (label, _) in enumerate(variants):
        groups.setdefault(_clean(label) or "agent", []).append(position)
    names = [""] * len(variants)
    for label, members in groups.items():
        for position, name in zip(members, _names_within(label, [variants[at][1] for at in members]), strict=True):
            names[position] = name
    repeated = {name for name in names if names.count(name) > 1}
    return [
        f"{name}-{_digest(settings)}" if name in repeated else name
        for name, (_, settings) in zip(names, variants, strict=True)
    ]


def _names_within(label: str, group: Sequence[Mapping[str, Json]]) -> list[str]:
    """Names of variants whose agents have one name."""
    keys = sorted({key for settings in group for key in settings})
    differing = [key for key in keys if len({_value(settings, key) for settings in group}) > 1]
    differing.sort(key=lambda key: _rank(key, [settings.get(key) for settings in group]))
    chosen: Sequence[str] = differing
    for count in range(1, _MOST_KEYS + 1):
        telling = [keys for keys in combinations(differing, count) if _tells_apart(keys, group)]
        if telling:
            chosen = telling[0]
            break
    return ["-".join([label, *_parts(settings, chosen)]) for settings in group]


def _tells_apart(keys: Sequence[str], group: Sequence[Mapping[str, Json]]) -> bool:
    return len({tuple(_value(settings, key) for key in keys) for settings in group}) == len(group)


def _parts(settings: Mapping[str, Json], keys: Sequence[str]) -> list[str]:
    parts: list[str] = []
    for key in keys:
        if key in settings:
            value = settings[key]
            text = _clean(_in_words(value))
            if len(text) > _VALUE_LIMIT:
                text = f"{text[:_VALUE_LIMIT]}-{_digest(value)}"
            shown = "" if key in ("model_name", AGENT) else _clean(key.partition(".")[2] or key)
            parts.extend(part for part in (shown, text) if part)
    return parts


def _value(settings: Mapping[str, Json], key: str) -> str:
    return canonical_json(settings[key]) if key in settings else ""


def _in_words(value: Json) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _rank(key: str, values: Sequence[Json]) -> tuple[int, bool, str]:
    """Which settings a name is rather made of: arguments of the agent before others, and plain values before lists."""
    first = next((position for position, start in enumerate(_FIRST) if key.startswith(start)), len(_FIRST))
    return first, any(isinstance(value, list | dict) for value in values), key


def _clean(text: str) -> str:
    return _FOREIGN.sub("-", text).strip("-").lstrip("._+")


def _digest(value: Json) -> str:
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()[:6]


def _plain(value: Any) -> Json:
    """A value as every version writes it: whole floats as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value
