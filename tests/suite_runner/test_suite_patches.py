"""Unified diffs: applied exactly where they say, or refused with the hunk."""

import difflib
import shutil
import subprocess
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.suite.patches import PatchError, parse_patch

LINES = st.lists(st.sampled_from(["a", "b", "\tb", "", "c c", "-x", "+y", "@@", "\\", "é", "--- a/z"]), max_size=12)
SOURCE = "one\ntwo\nthree\nfour\nfive\nsix\n"


def joined(lines: list[str], ending: str, *, bare: bool) -> str:
    text = "".join(line + ending for line in lines)
    return text.removesuffix(ending) if bare and lines and lines[-1] else text


def unified(old: str, new: str) -> str:
    """A unified diff as ``diff -u`` writes it, the remark on a missing newline included."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True) if "\r" not in old else split(old), split(new), "a/f.py", "b/f.py", n=2
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def split(text: str) -> list[str]:
    pieces = text.split("\n")
    return [f"{piece}\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_a_diff_of_two_texts_makes_one_of_the_other(
    old_lines: list[str], new_lines: list[str], ending: str, old_bare: bool, new_bare: bool
) -> None:
    old, new = joined(old_lines, ending, bare=old_bare), joined(new_lines, ending, bare=new_bare)
    if old == new:
        return
    (part,) = parse_patch(unified(old, new))
    assert part.name == "b/f.py"
    if "\n" in old:  # else it has no line endings to keep
        assert part.apply(old, "f.py") == new


@given(LINES, LINES)
def test_a_diff_without_the_returns_of_its_source_applies_and_keeps_them(
    old_lines: list[str], new_lines: list[str]
) -> None:
    if old_lines == new_lines or not old_lines:
        return
    (part,) = parse_patch(unified(joined(old_lines, "\n", bare=False), joined(new_lines, "\n", bare=False)))
    assert part.apply(joined(old_lines, "\r\n", bare=False), "f.py") == joined(new_lines, "\r\n", bare=False)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=15)
@given(LINES, LINES, st.booleans(), st.booleans())
def test_what_git_writes(
    tmp_path_factory: pytest.TempPathFactory, old_lines: list[str], new_lines: list[str], old_bare: bool, new_bare: bool
) -> None:
    old, new = joined(old_lines, "\n", bare=old_bare), joined(new_lines, "\n", bare=new_bare)
    if old == new or not old:
        return
    folder = tmp_path_factory.mktemp("git")
    (folder / "old.py").write_text(old, encoding="utf-8")
    (folder / "new.py").write_text(new, encoding="utf-8")
    command = ["git", "diff", "--no-index", "--no-color", "old.py", "new.py"]
    made = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    (part,) = parse_patch(made.stdout.decode())
    assert part.name == "b/new.py"
    assert part.apply(old, "old.py") == new


def test_several_files_and_hunks() -> None:
    text = (
        "diff --git a/x.py b/x.py\nindex 1..2 100644\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1 @@\n-one\n two\n@@ -5 +4 @@\n"
        "-five\n+FIVE\n--- a/y.py\t2020-01-01\n+++ b/y.py\t2020-01-01\n@@ -6,0 +7 @@ def f():\n+seven\n"
    )
    first, second = parse_patch(text)
    assert (first.name, second.name) == ("b/x.py", "b/y.py")
    assert first.apply(SOURCE, "x.py") == "two\nthree\nfour\nFIVE\nsix\n"
    assert second.apply(SOURCE, "y.py") == SOURCE + "seven\n"


def test_an_empty_line_that_lost_its_space() -> None:
    (part,) = parse_patch("--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n one\n\n-three\n+3\n")
    assert part.apply("one\n\nthree\n", "x.py") == "one\n\n3\n"


HEAD = "--- a/x.py\n+++ b/x.py\n"


@pytest.mark.parametrize(
    ("patch", "error"),
    [
        (
            HEAD + "@@ -2 +2 @@\n-three\n+3\n",
            "hunk 1 (@@ -2 +2 @@) does not apply: line 2 of x.py is 'two', the patch expects 'three' "
            "(it fits at line 3: make the patch again)",
        ),
        (
            HEAD + "@@ -1 +1 @@\n-one\n+1\n@@ -4,2 +4,2 @@\n four\n-5\n+V\n",
            "hunk 2 (@@ -4,2 +4,2 @@) does not apply: line 5 of x.py is 'five', the patch expects '5'",
        ),
        (
            HEAD + "@@ -7 +7 @@\n-seven\n+7\n",
            "hunk 1 (@@ -7 +7 @@) does not apply: line 7 of x.py does not exist, the patch expects 'seven'",
        ),
        (HEAD + "@@ -9,0 +10 @@\n+ten\n", "hunk 1 (@@ -9,0 +10 @@) does not apply: x.py has 6 lines"),
        (
            HEAD + "@@ -3 +3 @@\n-three\n+3\n@@ -1 +1 @@\n-one\n+1\n",
            "hunk 2 (@@ -1 +1 @@) begins before the one above it ends",
        ),
        (
            HEAD + "@@ -1,2 +1 @@\n-one\n",
            "hunk 1 (@@ -1,2 +1 @@) has 1 old and 0 new lines; its head says 2 and 1",
        ),
        (HEAD + "nothing\n", "line 3: '@@ -N,N +N,N @@' is expected after the names of the file"),
        ("some text\n", "no '--- a/FILE' line followed by '+++ b/FILE': it is no unified diff"),
        ("@@ -1 +1 @@\n-a\n+b\n", "line 1: a hunk without a file above it ('--- a/FILE', '+++ b/FILE')"),
        (
            "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+a\n",
            "it adds the file b/n.py; a mutant changes files that exist",
        ),
        (
            "--- a/n.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
            "it removes the file a/n.py; a mutant changes files that exist",
        ),
        (
            "diff --git a/x b/y\nrename from x\nrename to y\n",
            "line 2 is 'rename from x'; a mutant changes the text of files, nothing else",
        ),
    ],
)
def test_what_is_refused(patch: str, error: str) -> None:
    with pytest.raises(PatchError) as refused:
        apply_all(patch)
    assert str(refused.value) == error


def apply_all(patch: str) -> None:
    for part in parse_patch(patch):
        part.apply(SOURCE, "x.py")


@given(st.text(max_size=200))
def test_any_text_is_a_patch_or_refused(text: str) -> None:
    with suppress(PatchError):
        apply_all(text)


@given(st.lists(st.sampled_from(["--- a/x", "+++ b/x", "@@ -1 +1 @@", "@@ -1,2 +1,3 @@", "-a", "+b", " c", "\\", ""])))
def test_any_lines_of_patches_are_one_or_refused(lines: list[str]) -> None:
    with suppress(PatchError):
        apply_all("\n".join(lines))
