"""Records as lines: what is written comes back, and what is no record is refused."""

import json
import math
import string
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.answers import plain_text
from pytest_metricbench.contracts import AttemptError, AttemptRecord, CoverageRecord, Goals
from pytest_metricbench.store.records import (
    RecordError,
    attempt_from_line,
    attempt_to_json,
    coverage_from_line,
    coverage_to_json,
    seal,
    to_line,
    unsealed,
)

# Texts with lone surrogates among them: an exception about a file name that is no UTF-8 has them.
TEXT = st.text(st.characters(codec=None), max_size=20)
IDS = st.text(string.ascii_letters + string.digits, min_size=1, max_size=8)
NUMBERS = st.floats() | st.integers(-(10**308), 10**308) | st.sampled_from([-0.0, 5e-324, 2**63, 2**64 + 1, 0.1 + 0.2])
LABELS = TEXT | st.sampled_from(["NaN", "Infinity", "null", "true", "1", "", "\0", "\u2028", '{"number": "NaN"}'])
SCORES = st.dictionaries(TEXT, NUMBERS | st.booleans() | st.none() | LABELS, max_size=5)
NAMES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=8).filter(
        lambda part: part not in (".", "..")
    ),
    min_size=1,
    max_size=3,
).map("/".join)
FILES = st.dictionaries(NAMES, TEXT, max_size=3)
SECONDS = st.floats(0, 1e6)

ATTEMPTS = st.builds(
    AttemptRecord,
    case=IDS,
    variant=IDS,
    task=IDS,
    attempt=st.integers(1, 10**6),
    trial_id=IDS,
    outcome=st.sampled_from(["scored", "died", "unmeasured"]),
    scores=SCORES,
    error=st.none() | st.builds(AttemptError, TEXT, TEXT, st.sampled_from(["setup", "agent", "verifier", "contract"])),
    time_limit=st.none() | SECONDS,
    fingerprint=TEXT,
    verifier=TEXT,
    seed=st.integers(0, 2**32 - 1),
    started=TEXT,
    duration=SECONDS,
    files=FILES,
    supersedes=st.none() | IDS,
    folder=st.none() | IDS,
)
COVERAGE = st.builds(
    CoverageRecord,
    case=IDS,
    system=IDS,
    subset=IDS,
    outcome=st.sampled_from(["measured", "failed"]),
    value=st.none() | st.floats(0, 1),
    reason=st.none() | TEXT,
    goals=st.none()
    | st.builds(
        Goals,
        st.lists(TEXT, max_size=3).map(tuple),
        st.dictionaries(TEXT, st.lists(TEXT, max_size=2).map(tuple), max_size=3),
    ),
    error=st.none() | TEXT,
    request_digest=TEXT,
    settings_digest=TEXT,
    started=TEXT,
    duration=SECONDS,
    files=FILES,
)


def plain(value: Any) -> Any:
    """A value as it comes back: halves of surrogate pairs replaced; NaN and the kinds of numbers told apart."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return repr(value) if isinstance(value, float) else (type(value).__name__, value)


@settings(max_examples=150)
@given(ATTEMPTS)
def test_an_attempt_comes_back(record: AttemptRecord) -> None:
    line = to_line(attempt_to_json(record))
    assert line.isascii()
    assert "\n" not in line
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    again = attempt_from_line(line.encode())
    assert plain(attempt_to_json(again)) == plain(attempt_to_json(record))
    assert again.key == record.key
    assert to_line(attempt_to_json(again)) == to_line(attempt_to_json(attempt_from_line(line)))


@settings(max_examples=100)
@given(COVERAGE)
def test_a_coverage_request_comes_back(record: CoverageRecord) -> None:
    line = to_line(coverage_to_json(record))
    assert line.isascii()
    assert "\n" not in line
    again = coverage_from_line(line.encode())
    assert plain(coverage_to_json(again)) == plain(coverage_to_json(record))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_not_a_label(attempt: Callable[..., AttemptRecord], value: float) -> None:
    scores = attempt_from_line(
        to_line(attempt_to_json(attempt(scores={"number": value, "label": "NaN", "other": "-Infinity"})))
    ).scores
    assert repr(scores["number"]) == repr(value)
    assert scores["label"] == "NaN"
    assert scores["other"] == "-Infinity"


def test_kinds_of_values_stay_apart(attempt: Callable[..., AttemptRecord]) -> None:
    scores = {"int": 1, "float": 1.0, "bool": True, "text": "1", "none": None, "big": 2**70, "minus": -0.0}
    again = attempt_from_line(to_line(attempt_to_json(attempt(scores=scores)))).scores
    assert {name: type(value) for name, value in again.items()} == {name: type(v) for name, v in scores.items()}
    assert again == scores
    assert str(again["minus"]) == "-0.0"


def test_half_a_character_anywhere_can_be_read_again(
    attempt: Callable[..., AttemptRecord], coverage: Callable[..., CoverageRecord]
) -> None:
    half = "half \ud83d"
    whole = "half \N{REPLACEMENT CHARACTER}"
    record = attempt(scores={half: half}, error=AttemptError(half, half, "agent"), outcome="died")
    again = attempt_from_line(to_line(attempt_to_json(record)))
    assert again.scores == {whole: whole}
    assert again.error == AttemptError(whole, whole, "agent")
    request = coverage(reason=half, error=half, goals=Goals((half,), {half: (half,)}))
    known = coverage_from_line(to_line(coverage_to_json(request)).encode())
    assert (known.reason, known.error, known.goals) == (whole, whole, Goals((whole,), {whole: (whole,)}))


# ---------------------------------------------------------------- what is no record


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"{}", b"[]", b"null", b"1", b"{", b'{"case": "a"}', b"\0\0\0", b"\xff", b"[" * 100_000, b"{} {}"],
    ids=["empty", "newline", "mapping", "list", "null", "number", "torn", "little", "nulls", "bytes", "deep", "two"],
)
def test_what_is_no_record(line: bytes) -> None:
    for read in (attempt_from_line, coverage_from_line):
        with pytest.raises(RecordError, match=r".+") as caught:
            read(line)
        assert len(str(caught.value)) < 300


HOSTILE = [
    "..", "../x", "a/b", "/etc/passwd", "a/../b", ".", ".hidden", "", "a b", "a\0", "a\n", "-x", "\u00e9", "a" * 101,
    "C:x", "a\\b", "~", "$HOME", "\u202e", 3, None, ["a"], True,
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize("field", ["case", "variant", "task", "trial_id"])
def test_an_id_that_is_no_name_is_refused(attempt: Callable[..., AttemptRecord], field: str, value: object) -> None:
    with pytest.raises(RecordError, match=f"^{field}: "):
        attempt_from_line(json.dumps(attempt_to_json(attempt()) | {field: value}))


@pytest.mark.parametrize("value", [value for value in HOSTILE if value is not None], ids=repr)
def test_a_folder_that_is_no_name_is_refused(attempt: Callable[..., AttemptRecord], value: object) -> None:
    with pytest.raises(RecordError, match=r"^folder: "):
        attempt_from_line(json.dumps(attempt_to_json(attempt()) | {"folder": value}))


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize("field", ["case", "system", "subset"])
def test_an_id_of_a_request_that_is_no_name_is_refused(
    coverage: Callable[..., CoverageRecord], field: str, value: object
) -> None:
    with pytest.raises(RecordError, match=f"^{field}: "):
        coverage_from_line(json.dumps(coverage_to_json(coverage()) | {field: value}).encode())


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x", "a/../../x", "..", ".", "", "a//b", "a/./b", "a/", "/", "a\0b", "a/.."], ids=repr
)
def test_a_file_that_leads_elsewhere_is_refused(
    attempt: Callable[..., AttemptRecord], coverage: Callable[..., CoverageRecord], name: str
) -> None:
    with pytest.raises(RecordError, match=r"files: .*leads out of"):
        attempt_from_line(json.dumps(attempt_to_json(attempt()) | {"files": {"fine": "d", name: "d"}}))
    with pytest.raises(RecordError, match=r"files: .*leads out of"):
        coverage_from_line(json.dumps(coverage_to_json(coverage()) | {"files": {name: "d"}}).encode())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("attempt", 0),
        ("attempt", -1),
        ("attempt", 1.5),
        ("attempt", None),
        ("outcome", "passed"),
        ("outcome", None),
        ("scores", None),
        ("scores", []),
        ("scores", {"reward": [1]}),
        ("scores", {"reward": {"number": "nan"}}),
        ("scores", {"reward": {"number": 1}}),
        ("scores", {"reward": {"value": 1}}),
        ("error", "why"),
        ("error", {"type": "x", "message": "y", "phase": "later"}),
        ("error", {"type": "x"}),
        ("time_limit", "long"),
        ("fingerprint", None),
        ("seed", "x"),
        ("duration", None),
        ("files", None),
        ("files", {"a": 1}),
        ("supersedes", 3),
    ],
)
def test_a_field_of_another_kind_is_named(attempt: Callable[..., AttemptRecord], field: str, value: object) -> None:
    with pytest.raises(RecordError, match=f"^{field}"):
        attempt_from_line(json.dumps(attempt_to_json(attempt()) | {field: value}))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("outcome", "scored"),
        ("value", 1.5),
        ("value", -0.1),
        ("value", "half"),
        ("value", {"number": "NaN"}),
        ("goals", []),
        ("goals", {"universe": []}),
        ("reason", 3),
        ("files", {"a": None}),
    ],
)
def test_a_field_of_a_request_of_another_kind_is_named(
    coverage: Callable[..., CoverageRecord], field: str, value: object
) -> None:
    with pytest.raises(RecordError, match=f"^{field}"):
        coverage_from_line(json.dumps(coverage_to_json(coverage()) | {field: value}).encode())


def test_every_missing_field_is_named(
    attempt: Callable[..., AttemptRecord], coverage: Callable[..., CoverageRecord]
) -> None:
    for whole, read in (
        (attempt_to_json(attempt()), attempt_from_line),
        (coverage_to_json(coverage()), coverage_from_line),
    ):
        for field in whole:
            with pytest.raises(RecordError, match=f"^{field}: "):
                read(json.dumps({key: value for key, value in whole.items() if key != field}).encode())


def test_a_record_cut_at_every_byte_is_refused(attempt: Callable[..., AttemptRecord]) -> None:
    line = to_line(attempt_to_json(attempt(error=AttemptError("x", "y", "agent")))).encode()
    for length in range(len(line)):
        with pytest.raises(RecordError):
            attempt_from_line(line[:length])


def test_a_record_of_a_score_that_nobody_declared(attempt: Callable[..., AttemptRecord]) -> None:
    record = replace(attempt(), scores={"reward": 1.0, "cost": None})
    assert attempt_from_line(to_line(attempt_to_json(record))) == record


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("duration", "-1", "duration: -1.0 is no number of seconds"),
        ("duration", "1e999", "duration: inf is no number of seconds"),
        ("duration", "NaN", "duration: nan is no number of seconds"),
        ("time_limit", "-0.5", "time_limit: -0.5 is no number of seconds"),
        ("time_limit", "1e999", "time_limit: inf is no number of seconds"),
        ("scores", f'{{"fine": 1, "tokens": {10**308 + 1}}}', "scores.tokens: the number is larger than 1e308"),
        ("scores", f'{{"tokens": -{10**308 + 1}}}', "scores.tokens: the number is larger than 1e308"),
    ],
)
def test_numbers_that_no_run_writes_are_refused(
    attempt: Callable[..., AttemptRecord], field: str, text: str, said: str
) -> None:
    line = json.dumps(attempt_to_json(attempt()) | {field: "here"}).replace('"here"', text)
    with pytest.raises(RecordError) as caught:
        attempt_from_line(line)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "changed",
    [
        {"duration": 0.0},
        {"time_limit": 0.0},
        {"time_limit": 120.5},
        {"time_limit": None},
        {"scores": {"tokens": 10**308}},
        {"scores": {"tokens": -(10**308)}},
        {"scores": {"tokens": math.inf, "passed": True, "label": "x", "died": None}},
    ],
    ids=repr,
)
def test_numbers_at_the_edge_are_taken(attempt: Callable[..., AttemptRecord], changed: dict[str, Any]) -> None:
    record = attempt(**changed)
    assert attempt_from_line(to_line(attempt_to_json(record))) == record


# ---------------------------------------------------------------- the checksum


def test_a_line_ends_with_the_checksum_of_all_before_it() -> None:
    checksum = zlib.crc32(b'{"a":1')
    assert seal('{"a":1}') == f'{{"a":1,"check":"{checksum:08x}"}}'
    assert json.loads(seal('{"a":1}')).keys() == {"a", "check"}


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("body", ['{"a":1}', "{}", f'{{"a":"{"x" * 5000}"}}'])
def test_a_sealed_line_is_as_it_was_written(body: str, end: bytes) -> None:
    line = seal(body).encode() + end
    assert unsealed(line) == line


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "does not end with its checksum"),
        (b"{}", "does not end with its checksum"),
        (seal('{"a":1}').encode() + b" ", "does not end with its checksum"),
        (seal('{"a":1}').encode() + b"\n\n", "does not end with its checksum"),
        (seal('{"a":1}').encode()[:-1], "does not end with its checksum"),
        (seal('{"a":1}').encode().replace(b"1,", b"2,"), "is not as it was written"),
        (b" " + seal('{"a":1}').encode(), "is not as it was written"),
    ],
)
def test_a_line_without_its_checksum_is_refused(line: bytes, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        unsealed(line)
