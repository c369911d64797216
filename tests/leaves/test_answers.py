"""Responses of other people's code: what counts, and what every malformed one is told."""

import enum
import json
import math
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench import answers
from pytest_metricbench.answers import (
    as_score_value,
    as_scores,
    named,
    read_json_file,
    read_scores,
)
from pytest_metricbench.contracts import ContractError


@pytest.fixture
def response(tmp_path: Path) -> Path:
    return tmp_path / "response.json"


def scores_of(response: Path, content: str | bytes) -> dict[str, Any]:
    response.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_scores(response)


def refusal(response: Path, content: str | bytes) -> str:
    with pytest.raises(ContractError) as caught:
        scores_of(response, content)
    assert "response.json" in str(caught.value) or "score" in str(caught.value)
    assert len(str(caught.value)) < 500
    return str(caught.value)


# ---------------------------------------------------------------- what an attempt may answer


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1", 1),
        ("0.25", 0.25),
        ("-3", -3),
        ("true", True),
        ("false", False),
        ("null", None),
        ('"polite"', "polite"),
        ('"1"', "1"),
        ('"NaN"', "NaN"),
        ('""', ""),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("1e999", math.inf),
        ("123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_a_score_is_taken_as_it_is(response: Path, written: str, value: object) -> None:
    scores = scores_of(response, f'{{"scores": {{"reward": {written}}}}}')
    assert scores == {"reward": value}
    assert type(scores["reward"]) is type(value)


def test_a_bare_nan_is_a_number(response: Path) -> None:
    scores = scores_of(response, '{"scores": {"reward": NaN}}')
    assert math.isnan(scores["reward"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_every_encoding_of_json_is_read(response: Path, encoding: str) -> None:
    text = '{"scores": {"ton": "freundlich \N{SMILING FACE WITH SMILING EYES}"}}'
    assert scores_of(response, text.encode(encoding)) == {"ton": "freundlich \N{SMILING FACE WITH SMILING EYES}"}


@pytest.mark.parametrize("lone", [rb'"half \ud83d"', b'"half \xed\xa0\xbd"'])
def test_half_a_character_becomes_the_replacement_character(response: Path, lone: bytes) -> None:
    """A text cut in the middle of an emoji is no UTF-8: no file or terminal could take it."""
    assert scores_of(response, b'{"scores": {"tone": ' + lone + b"}}") == {"tone": "half \N{REPLACEMENT CHARACTER}"}
    (name,) = scores_of(response, b'{"scores": {' + lone + b": 1}}")
    assert name == "half \N{REPLACEMENT CHARACTER}"


# ---------------------------------------------------------------- what is no response


def test_no_file(response: Path) -> None:
    with pytest.raises(ContractError, match=r"response\.json was not written"):
        read_scores(response)


@pytest.mark.parametrize("content", [b"", b" \n\t "])
def test_an_empty_file(response: Path, content: bytes) -> None:
    assert "is empty" in refusal(response, content)


def test_a_huge_file_is_not_read(response: Path) -> None:
    with response.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ContractError, match="at most 1048576 are read"):
        read_scores(response)


def test_the_limit_itself_is_fine(response: Path) -> None:
    content = b'{"scores": {"reward": 1}}'
    assert scores_of(response, content.ljust(answers.RESPONSE_LIMIT)) == {"reward": 1}
    refusal(response, content.ljust(answers.RESPONSE_LIMIT + 1))


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"{'scores': 1}",
        b'{"scores": {"reward": 1}',
        b'{"scores": {"reward": 1}} trailing',
        b'{"scores": {"reward": .5}}',
        b'{"scores": {"reward": nan}}',
        b"\xff\xfe\x00",
        b"\x80abc",
        b"\0\0\0\0",
        b"reward=1",
        b"[" * 100_000,
        b'{"scores":' * 100_000,
        b'{"scores": {"reward": ' + b"9" * 5000 + b"}}",
    ],
)
def test_what_is_not_json(response: Path, content: bytes) -> None:
    assert "is not JSON" in refusal(response, content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", "a list [1]"),
        ("1", "the number 1"),
        ('"ok"', 'the text "ok"'),
        ("true", "the boolean true"),
        ("null", "holds null"),
        ("{}", "a mapping {}"),
        ('{"reward": 1}', "is expected"),
        ('{"scores": [1]}', "the scores are a list [1]"),
        ('{"scores": null}', "the scores are null"),
        ('{"scores": 1}', "the scores are the number 1"),
        ('{"scores": {}}', "is empty"),
        ('{"scores": {"reward": [1]}}', "'reward' is a list [1]"),
        ('{"scores": {"reward": {"value": 1}}}', "'reward' is a mapping"),
        ('{"scores": {"": 1}}', "'' is no name of a score"),
        ('{"scores": {"reward": 1}, "score": 1}', "has the key 'score'"),
        ('{"scores": {"reward": 1}, "metricbench": 1}', "has the key 'metricbench'"),
        ('{"scores": {"reward": 0, "reward": 1}}', "has the key 'reward' twice"),
        ('{"scores": {"reward": 1}, "scores": {"reward": 0}}', "has the key 'scores' twice"),
        (f'{{"scores": {{"reward": {"9" * 400}}}}}', "has 400 digits"),
    ],
)
def test_another_form_is_told(response: Path, content: str, words: str) -> None:
    assert words in refusal(response, content)


def test_a_name_may_have_200_characters(response: Path) -> None:
    assert scores_of(response, f'{{"scores": {{"{"n" * 200}": 1}}}}')
    assert "1 to 200 characters" in refusal(response, f'{{"scores": {{"{"n" * 201}": 1}}}}')


def test_a_huge_value_is_named_by_its_kind_only(response: Path) -> None:
    assert "'reward' is a list;" in refusal(response, json.dumps({"scores": {"reward": list(range(9999))}}))


@pytest.mark.parametrize("deep", [50, 500, 900, 990, 1000])
def test_a_value_nested_to_any_depth_is_refused(response: Path, deep: int) -> None:
    refusal(response, '{"scores": {"reward": ' + "[" * deep + "]" * deep + "}}")


@pytest.mark.parametrize("kind", ["link", "loop", "zero", "pipe", "folder"])
def test_what_stands_in_place_of_the_file(response: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "elsewhere.json").write_text('{"scores": {"reward": 1}}')
    match kind:
        case "pipe":
            os.mkfifo(response)
        case "folder":
            response.mkdir()
        case _:
            response.symlink_to({"link": "elsewhere.json", "loop": "response.json", "zero": "/dev/zero"}[kind])
    with pytest.raises(ContractError, match=r"response\.json .*not a regular file"):
        read_scores(response)


def test_a_file_that_cannot_be_read_is_named(response: Path) -> None:
    with pytest.raises(ContractError, match=r"response\.json cannot be read: File name too long"):
        read_json_file(response.parent / ("x" * 300) / "response.json")


@given(st.binary(max_size=200))
def test_any_bytes_are_scores_or_a_contract_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.json"
    path.write_bytes(content)
    with pytest.raises(ContractError):
        read_scores(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    JSON | st.fixed_dictionaries({"scores": JSON}) | st.fixed_dictionaries({"scores": st.dictionaries(st.text(), JSON)})
)
def test_any_json_is_scores_or_a_contract_error(tmp_path_factory: pytest.TempPathFactory, answer: object) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.json"
    path.write_text(json.dumps(answer))
    try:
        scores = read_scores(path)
    except ContractError:
        return
    assert scores
    assert all(value is None or type(value) in (bool, int, float, str) for value in scores.values())
    "".join(scores).encode()


# ---------------------------------------------------------------- values from Python


class Tone(str, enum.Enum):  # noqa: UP042
    POLITE = "polite"


class Grade(enum.StrEnum):
    GOOD = "good"


class Level(enum.IntEnum):
    THREE = 3


class Tensor:
    """As other array libraries have them."""

    ndim = 0

    def item(self) -> float:
        return 0.5


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.float16(0.5), 0.5),
        (np.int64(3), 3),
        (np.uint8(3), 3),
        (np.bool_(True), True),
        (np.str_("polite"), "polite"),
        (np.array(3), 3),
        (np.array(True), True),
        (Tone.POLITE, "polite"),
        (Grade.GOOD, "good"),
        (Level.THREE, 3),
        (Tensor(), 0.5),
    ],
)
def test_other_kinds_of_values_become_plain(value: object, plain: object) -> None:
    result = as_score_value("reward", value)
    assert result == plain
    assert type(result) is type(plain)


def test_a_numpy_nan_is_nan() -> None:
    value = as_score_value("reward", np.float32("nan"))
    assert isinstance(value, float)
    assert math.isnan(value)


class Itself:
    ndim = 0

    def item(self) -> object:
        return self


class Broken:
    ndim = 0

    def item(self) -> object:
        raise RuntimeError("no")


DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value",
    [
        [1],
        {"a": 1},
        (1,),
        {1},
        b"1",
        1j,
        Decimal(1),
        object(),
        len,
        np.array([1, 2]),
        np.complex64(1),
        np.array({"a": 1}, dtype=object),
        Itself(),
        Broken(),
        10**5000,
        -(10**400),
        DEEP,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_score(value: object) -> None:
    with pytest.raises(ContractError, match="score 'reward'"):
        as_score_value("reward", value)


@pytest.mark.parametrize("answer", [None, 1, [("reward", 1)], "reward", {1: 2}, {"": 1}, {None: 1}, {}])
def test_what_is_no_mapping_of_scores(answer: object) -> None:
    with pytest.raises(ContractError):
        as_scores(answer)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([("reward", 1)], 'the scores are a list [["reward", 1]]; a mapping of score names to values is expected'),
        (None, "the scores are null; a mapping of score names to values is expected"),
        ({}, "the mapping of scores is empty; at least the primary score is expected"),
        ({1: 2}, "1 is no name of a score; a text of 1 to 200 characters is expected"),
        ({"": 2}, "'' is no name of a score; a text of 1 to 200 characters is expected"),
        ({"x" * 201: 2}, f"{'x' * 201!r} is no name of a score; a text of 1 to 200 characters is expected"),
    ],
)
def test_what_scores_are_told(answer: object, said: str) -> None:
    with pytest.raises(ContractError) as caught:
        as_scores(answer)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", 'response.json holds a list []; {"scores": {name: value}} is expected'),
        ('{"reward": 1}', 'response.json holds a mapping {"reward": 1}; {"scores": {name: value}} is expected'),
    ],
)
def test_what_is_no_answer_of_a_verifier(response: Path, content: str, said: str) -> None:
    assert refusal(response, content) == said


def test_an_object_that_fails_when_it_is_asked_for_its_value_is_told_like_any_other() -> None:
    class Hostile:
        def item(self) -> object:
            raise RuntimeError("not now")

    with pytest.raises(ContractError, match=r"^score 'reward' is of type Hostile"):
        as_score_value("reward", Hostile())


def test_names_become_plain_texts() -> None:
    (name,) = as_scores({np.str_("reward"): 1})
    assert type(name) is str


# ---------------------------------------------------------------- naming


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        ("x" * 100, "a text of 100 characters"),
        (object(), "of type object"),
        ([[1]], "a list [[1]]"),
        (DEEP, "a list"),
        (10**5000, "a long number"),
        ({1: 2}, 'a mapping {"1": 2}'),
        ({(1,): 2}, "a mapping"),
    ],
    ids=["null", "long", "object", "short", "deep", "digits", "mapping", "odd keys"],
)
def test_a_wrong_value_is_named(value: object, words: str) -> None:
    assert named(value) == words


def test_a_value_that_holds_itself_is_named() -> None:
    value: list[Any] = []
    value.append(value)
    assert named(value) == "a list"
