"""From what generators propose to the mutants of a case: ids, what is dropped, the sample, and their params.

The lock holds each mutant with a unified diff, or with params as a user would list them. A diff is applied again
whenever the experiment is read, so what was reviewed is what runs, whatever a later version would generate.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import Json
from pytest_metricbench.digests import canonical_json, digest_bytes, digest_value
from pytest_metricbench.generating.base import EQUAL, Context, Dropped, Generator, Proposal
from pytest_metricbench.generating.diffs import changed_texts, params_diff, params_text, unified_diff, without_positions
from pytest_metricbench.generating.texts import plain, read_text
from pytest_metricbench.messages import unheard
from pytest_metricbench.origins import whose
from pytest_metricbench.sources import SourceError
from pytest_metricbench.suite.patches import PatchError

FILES: Final = "files"
"""The key of a mutant's params under which the agent finds the whole texts of the files that are changed."""
DIFF: Final = "diff"
"""The key of a mutant in the lock from which its params are made."""
TAG: Final = "generated"
"""A tag of every generated mutant."""

REPEATED: Final = "generated mutants equal to another one: dropped"
NOT_SAMPLED: Final = "generated mutants left out of the sample"
INEXPRESSIBLE: Final = "generated mutants that the runner's params cannot express: dropped"

_SLUG_LIMIT: Final = 36
"""Characters of the words in an id."""
_ALL_THE_WAY: Final = 100
_MUTANTS_LIMIT: Final = 100_000
_TOLD_EVERY: Final = 50
"""Changes that are looked at until the next word of it: some 0.2 s of them."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*", re.ASCII)


@dataclass(frozen=True)
class Mutant:
    """A proposal that is not dropped, as the lock would list it, without its id."""

    proposal: Proposal
    generator: int
    """The position of what proposed it."""
    shown: Mapping[str, Json]
    """``{"diff": ...}`` or ``{"params": ...}``."""

    @property
    def stem(self) -> str:
        """The id it would have if no other had it."""
        return f"{self.proposal.operator}-{slug(self.proposal.target)}".rstrip("-")

    @cached_property
    def digest(self) -> str:
        """Of what it changes, wherever that stands."""
        content = canonical_json(_without_positions(self.shown))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _without_positions(shown: Json) -> Json:
    """What the lock shows of a mutant, the positions in diffs left out."""
    if isinstance(shown, Mapping):
        return {key: _without_positions(value) for key, value in shown.items()}
    return without_positions(shown) if isinstance(shown, str) else shown


@dataclass(frozen=True)
class Generation:
    """The mutants that one case asks for."""

    generators: Sequence[Generator]
    """Bound to ``context``."""
    context: Context
    progress: Callable[[str], None] = unheard
    """Told how many changes were looked at."""
    _texts: dict[str, str] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)

    @property
    def inputs(self) -> dict[str, Path]:
        """The files that are changed and so are inputs of the case: name -> where."""
        return {name: path for maker in self.generators for name, path in maker.input_files(self.context).items()}

    @property
    def files(self) -> dict[str, Path]:
        """The files whose content decides what is generated."""
        return {name: path for maker in self.generators for name, path in maker.lock_files(self.context).items()}

    @property
    def made_from(self) -> dict[str, Json]:
        """The keys and values that decide it beside."""
        found: dict[str, Json] = {}
        for number, maker in enumerate(self.generators):
            prefix = "" if len(self.generators) == 1 else f"generate[{number}]."
            keys = maker.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            given = {"from": maker.origin, **keys, **maker.lock_state(self.context)}
            found.update({f"{prefix}{key}": value for key, value in given.items()})
        return found

    # ------------------------------------------------------------ expanding

    def entries(self) -> list[dict[str, Json]]:
        """The mutants as the lock lists them, and notes on those that were dropped.

        Raises:
            SourceError: there are none, or a generator cannot make them.
        """
        dropped: Counter[str] = Counter()
        mutants = self._distinct(dropped)
        if not mutants:
            told = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
            raise SourceError(
                f"no mutant can be generated{f' ({told})' if told else ''}", "use other operators or files"
            )
        ids = ids_of(mutants)
        kept = self._sampled(mutants, ids, dropped)
        listed = [
            {
                "id": ids[number],
                "description": mutant.proposal.description,
                "tags": list(dict.fromkeys([TAG, mutant.proposal.operator, *mutant.proposal.tags])),
                **mutant.shown,
            }
            for number, mutant in enumerate(mutants)
            if number in kept
        ]
        return [*listed, *({"note": {"text": text, "count": count}} for text, count in sorted(dropped.items()))]

    def _distinct(self, dropped: Counter[str]) -> list[Mutant]:
        seen: set[str] = set()
        mutants = []
        looked_at = 0
        for number, generator in enumerate(self.generators):
            for proposal in self._proposed(number, generator):
                looked_at += 1
                if looked_at % _TOLD_EVERY == 0:
                    self.progress(f"expanding the mutants of the case {self.context.case}: {looked_at:,} changes")
                if isinstance(proposal, Dropped):
                    dropped[proposal.reason] += proposal.count
                    continue
                content, reason = self._content(proposal)
                content = digest_value(content)
                if reason is None and content in seen:
                    reason = REPEATED
                if reason is not None:
                    dropped[reason] += 1
                    continue
                seen.add(content)
                mutants.append(Mutant(replace(proposal, files={}, params=None), number, self._shown(proposal)))
        return mutants

    def _proposed(self, number: int, generator: Generator) -> Iterable[Proposal | Dropped]:
        """What a generator gives, checked; what it raises told as a problem of the file."""
        who = f"{type(generator).__module__}.{type(generator).__qualname__}{whose(type(generator))}"
        count = 0
        try:
            for proposal in generator.generate(self.context):
                if not isinstance(proposal, Proposal | Dropped):
                    raise SourceError(f"{who} gave {proposal!r}", "a generator gives Proposal and Dropped")
                if isinstance(proposal, Proposal) and not _NAME.fullmatch(proposal.operator):
                    raise SourceError(
                        f"{who} names an operator {proposal.operator!r}", "letters, digits and - are allowed"
                    )
                count += 1
                if count > _MUTANTS_LIMIT:
                    raise SourceError(f"from: {generator.origin} makes more than {_MUTANTS_LIMIT} mutants", "narrow it")
                yield proposal
        except SourceError as error:
            where = f"generate[{number}]: " if len(self.generators) > 1 else ""
            raise SourceError(f"{where}{error.message}", error.remedy) from None
        except Exception as error:  # code of a third party
            raise SourceError(f"{who} cannot generate: {type(error).__name__}: {error}") from error

    def _content(self, proposal: Proposal) -> tuple[str, str | None]:
        """What a proposal comes to, equal for equal mutants; and why it is dropped, if it is."""
        if proposal.listed is not None:
            return canonical_json(dict(proposal.listed)), None
        params = self.context.baseline if proposal.params is None else proposal.params
        files = {name: digest for name, text in proposal.files.items() if (digest := _words(text)) != self._words(name)}
        content = canonical_json([files, dict(params)])
        if not files and canonical_json(dict(params)) == canonical_json(dict(self.context.baseline)):
            return content, EQUAL
        whole = with_files(params, proposal.files)
        return content, INEXPRESSIBLE if expressed(self.context, whole) is None else None

    def _shown(self, proposal: Proposal) -> dict[str, Json]:
        if proposal.listed is not None:
            return {"params": dict(proposal.listed)}
        diffs = [unified_diff(name, plain(self._text(name)), text) for name, text in sorted(proposal.files.items())]
        if proposal.params is not None:
            diffs.append(params_diff(self.context.baseline, proposal.params))
        return {DIFF: "".join(diffs)}

    def _sampled(self, mutants: Sequence[Mutant], ids: Sequence[str], dropped: Counter[str]) -> set[int]:
        kept: set[int] = set()
        for position, generator in enumerate(self.generators):
            own = [number for number, mutant in enumerate(mutants) if mutant.generator == position]
            strata: dict[str, list[int]] = {}
            for number in own:
                strata.setdefault(mutants[number].proposal.operator, []).append(number)
            chosen = sampled(strata, ids, generator.seed, generator.sample)
            kept.update(chosen)
            if len(chosen) < len(own):
                dropped[NOT_SAMPLED] += len(own) - len(chosen)
        return kept

    # ------------------------------------------------------------ reading

    def params(self, diff: str) -> Mapping[str, Json]:
        """The params of a mutant, as a user would list them, from its diff in the lock.

        Raises:
            SourceError: the diff does not fit the files or the baseline's params.
        """
        try:
            files, params = changed_texts(diff, self._text, self._params_text)
        except PatchError as error:
            raise SourceError(f"the diff does not fit: {error}") from None
        whole = with_files(self.context.baseline if params is None else params, files)
        own = expressed(self.context, whole)
        if own is None:
            raise SourceError(
                f"the runner {self.context.runner.kind!r} cannot express what the diff makes of the params"
            )
        return own

    def _text(self, name: str) -> str:
        if name not in self._texts:
            self._texts[name] = read_text(self.context.folder, name)
        return self._texts[name]

    def _words(self, name: str) -> str:
        if name not in self._digests:
            self._digests[name] = _words(self._text(name))
        return self._digests[name]

    @cached_property
    def _params_text(self) -> str:
        return params_text(self.context.baseline)


def _words(text: str) -> str:
    """The digest of a text without what is no difference to a reader: how its words are spaced and its lines end."""
    return digest_bytes(" ".join(text.split()).encode("utf-8", "surrogatepass"))


def with_files(params: Mapping[str, Json], files: Mapping[str, str]) -> dict[str, Json]:
    """Params with the changed texts of files beside those that the baseline gives already.

    Raises:
        SourceError: the baseline uses the key for something else.
    """
    if not files:
        return dict(params)
    there = params.get(FILES, {})
    if not isinstance(there, Mapping):
        remedy = "call it otherwise: generated mutants give the agent changed files there"
        raise SourceError(f"the baseline's params have a key {FILES!r} that is no mapping", remedy)
    return {**params, FILES: {**there, **files}}


def expressed(context: Context, whole: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """A mutant's params as they are listed, so that with what it inherits they are ``whole``; None: there are none.

    Most runners let a mutant's params stand for themselves. Where they are merged with the baseline's, what is gone
    is listed as null.
    """
    runner: Runner = context.runner
    for own in (dict(whole), *(_difference(context.baseline, whole, depth) for depth in (2, 1, _ALL_THE_WAY))):
        try:
            if canonical_json(dict(runner.inherit(context.baseline, own))) == canonical_json(dict(whole)):
                return own if _is_accepted(runner, own, context.folder) else None
        except Exception:  # the runner's way of saying that these are no params
            continue
    return None


def _is_accepted(runner: Runner, own: Mapping[str, Json], folder: Path) -> bool:
    """Whether params are of the form that a runner asks for; what else may be wrong with them is told later."""
    if runner.variant_params is None:
        return True
    try:
        context = {"folder": folder, "cached_only": True}
        runner.variant_params.model_validate_json(canonical_json(dict(own)), strict=True, context=context)
    except ValidationError:
        return False
    return True


def _difference(baseline: Mapping[str, Json], whole: Mapping[str, Json], depth: int) -> dict[str, Json]:
    """What of some params is not the baseline's, so many levels of mappings looked into; null for what is gone."""
    found: dict[str, Any] = {key: None for key in baseline if key not in whole}
    for key, value in whole.items():
        before = baseline.get(key)
        if key in baseline and canonical_json(before) == canonical_json(value):
            continue
        if depth > 1 and isinstance(before, Mapping) and isinstance(value, Mapping):
            found[key] = _difference(before, value, depth - 1)
        else:
            found[key] = value
    return found


# ---------------------------------------------------------------- ids and samples


def slug(text: str) -> str:
    """The words of a text as a part of an id, as many as fit."""
    plain_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    words = re.findall(r"\d+(?:\.\d+)+|[A-Za-z0-9]+", plain_text.replace("'", ""))
    found = ""
    for word in words:
        word = word.lower().replace(".", "_")  # pytest shows a point in a name as ::
        longer = f"{found}-{word}" if found else word[:_SLUG_LIMIT]
        if len(longer) > _SLUG_LIMIT:
            break
        found = longer
    return found


def ids_of(mutants: Sequence[Mutant]) -> list[str]:
    """An id for each, unique; where several have the same words, each also has digits of what it changes."""
    stems = Counter(mutant.stem for mutant in mutants)
    taken: set[str] = set()
    found = []
    for mutant in mutants:
        name = mutant.stem if stems[mutant.stem] == 1 else f"{mutant.stem}-{mutant.digest[:6]}"
        number = 1
        while name in taken or (number > 1 and name in stems):
            number += 1
            name = f"{mutant.stem}-{mutant.digest[:6]}-{number}"
        taken.add(name)
        found.append(name)
    return found


def sampled(strata: Mapping[str, Sequence[int]], ids: Sequence[str], seed: int, size: int | None) -> set[int]:
    """A sample as even over the strata as they are large enough.

    Which of a stratum come first is decided by digests of the seed and their ids: a mutant more or less elsewhere
    changes nothing in their order.
    """

    def rank(name: str) -> str:
        return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()

    queues = [sorted(strata[operator], key=lambda number: rank(ids[number])) for operator in sorted(strata, key=rank)]
    turns = [
        number
        for turn in range(max(map(len, queues), default=0))
        for queue in queues
        for number in queue[turn : turn + 1]
    ]
    return set(turns if size is None else turns[:size])
