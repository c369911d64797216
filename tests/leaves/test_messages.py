"""What messages of all parts have in common: counts, the word that was meant, and what was raised."""

from pathlib import Path

import pytest

from pytest_metricbench.answers import MESSAGE_LIMIT, kept_message, said_by
from pytest_metricbench.messages import counted, did_you_mean, joined, without_traceback
from pytest_metricbench.named_files import problem_of
from pytest_metricbench.plain_files import strays


class SpeechlessError(Exception):
    """One that cannot say what is wrong."""

    def __str__(self) -> str:
        raise RuntimeError("nor can it say why")


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks"), (1200, "1,200 tasks"), (-1, "-1 tasks")]
)
def test_a_number_with_its_noun(number: int, text: str) -> None:
    assert counted(number, "task") == text


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((), ""),
        (("", ""), ""),
        (("there is no 'x'",), "there is no 'x'"),
        (("there is no 'x'", "", "there are 'y', 'z'"), "there is no 'x'; there are 'y', 'z'"),
        (("there is no 'x'", "did you mean 'y'?", "there are 'y'"), "there is no 'x'; did you mean 'y'? there are 'y'"),
    ],
)
def test_parts_of_a_message(parts: tuple[str, ...], text: str) -> None:
    assert joined(*parts) == text


@pytest.mark.parametrize(
    ("word", "cutoff", "text"),
    [
        ("atempts", 0.6, "did you mean 'attempts'?"),
        ("PASS_AT-K", 0.99, "did you mean 'pass at k'?"),
        ("atempts", 0.99, ""),
        ("seed", 0.6, ""),
        ("", 0.6, ""),
        ("attempts" + "s" * 1_000_000, 0.6, ""),
    ],
)
def test_the_word_that_was_meant(word: str, cutoff: float, text: str) -> None:
    assert did_you_mean(word, ["attempts", "pass at k"], cutoff=cutoff) == text


def test_what_was_raised() -> None:
    assert without_traceback(ValueError("no\nnumber")) == "ValueError: no\nnumber"
    assert without_traceback(SystemExit()) == "SystemExit"
    assert without_traceback(SpeechlessError()).endswith("SpeechlessError: <exception str() failed>")


def test_what_an_exception_says_is_kept_within_bounds() -> None:
    assert said_by(ValueError("half \ud800 a pair")) == "half \ufffd a pair"
    assert said_by(SpeechlessError()) == ""
    assert kept_message("x" * MESSAGE_LIMIT) == "x" * MESSAGE_LIMIT
    assert kept_message("x" * (MESSAGE_LIMIT + 7)) == "x" * MESSAGE_LIMIT + " [... 7 more characters]"
    assert kept_message(None) == kept_message(3) == kept_message("") == ""


def test_which_names_lead_out_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "experiment"
    (folder / "below").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (folder / "link").symlink_to(tmp_path / "other")
    (folder / "round").symlink_to(folder / "round")

    def leads_out(written: str) -> bool:
        return strays(written, folder / written, folder)

    assert not any(map(leads_out, ("agent.py", "below", "below/../agent.py", ".", "round", str(tmp_path / "other"))))
    assert all(map(leads_out, ("..", "../other", "link/agent.py", "below/../../other")))


def test_a_file_that_is_a_circle_of_links_is_none(tmp_path: Path) -> None:
    (tmp_path / "round.json").symlink_to(tmp_path / "round.json")
    assert problem_of("round.json", tmp_path / "round.json", tmp_path) == "is no regular file"


def test_what_a_name_is_of_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert problem_of("file", tmp_path / "file", tmp_path) is None
    assert problem_of("a\0b", tmp_path, tmp_path) == "has a null character, which no name can hold"
    assert problem_of(".", tmp_path, tmp_path) == "is a folder; name a file"
    assert problem_of("none", tmp_path / "none", tmp_path) == f"does not exist; it is looked for in {tmp_path}"
    leaves = "leaves the experiment's folder; copy the file into it, or name it absolutely"
    assert problem_of("../x", tmp_path / "../x", tmp_path) == leaves
