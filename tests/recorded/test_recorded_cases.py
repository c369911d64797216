"""A case made of recordings: ids, baseline, slots, and what the lock keeps of it."""

import math
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.contracts import Outcome
from pytest_metricbench.definition.experiment import Note
from pytest_metricbench.interop.recorded_cases import build_case, lock_state
from pytest_metricbench.interop.recordings import (
    RecordedTask,
    RecordedVariant,
    Recording,
    RecordingError,
    Recordings,
    not_recorded,
)
from pytest_metricbench.runners import recorded as runner_module
from pytest_metricbench.runners.recorded import RecordedRunner, find_paths


def attempt(variant: str, task: str, trial: str = "t", value: Any = 1.0, **more: Any) -> Recording:
    return Recording(variant, task, trial, "origin", Outcome.scored({"reward": value}, trial_name=trial), **more)


def recordings(*attempts: Recording, **more: Any) -> Recordings:
    return Recordings(attempts, **more)


def entries(found: Recordings, baseline: str | None = None) -> dict[str, list[Any]]:
    listed: dict[str, list[Any]] = {}
    for entry in build_case(found, baseline).entries:
        for key, value in entry.items():
            listed.setdefault(key, []).append(value)
    return listed


class TestEntries:
    def test_variants_tasks_and_counts(self) -> None:
        found = entries(
            recordings(attempt("good", "a"), attempt("good", "a"), attempt("bad", "a"), attempt("bad", "b")), "good"
        )
        assert [task["id"] for task in found["task"]] == ["a", "b"]
        assert [(entry["name"], entry["attempts"]) for entry in found["baseline"]] == [("good", {"a": 2})]
        assert [(entry["id"], entry["attempts"]) for entry in found["mutant"]] == [("bad", {"a": 1, "b": 1})]

    def test_names_become_ids_and_are_kept(self) -> None:
        found = entries(
            recordings(
                attempt("base", "org/task"),
                attempt("pool", "org/task"),
                tasks={"org/task": RecordedTask("org/task", "Does it.", {"cost": "measurement"}, ("a b",))},
                variants={"pool": RecordedVariant("pool", "Broken.")},
            ),
            "base",
        )
        assert found["task"] == [
            {
                "id": "org-task-e05942",
                "name": "org/task",
                "description": "Does it.",
                "tags": ["a-b-c8687a"],
                "outputs": {"cost": "measurement"},
            }
        ]
        (mutant,) = found["mutant"]
        assert mutant["id"].startswith("pool-")
        assert (mutant["name"], mutant["description"]) == ("pool", "Broken.")

    def test_a_task_that_nobody_tried_is_listed(self) -> None:
        found = entries(recordings(attempt("only", "a"), tasks={"b": RecordedTask("b")}))
        assert [task["id"] for task in found["task"]] == ["b", "a"]

    def test_notes(self) -> None:
        assert entries(recordings(attempt("only", "a"), notes=(Note("were strange", 3),)))["note"] == [
            {"text": "were strange", "count": 3}
        ]

    def test_slots_keep_the_order(self) -> None:
        case = build_case(
            recordings(attempt("only", "a", "2"), attempt("only", "a", "1"), attempt("only", "a", "1")), None
        )
        assert [found.trial for found in case.slots["baseline", "a"]] == ["2", "1", "1"]


class TestDigests:
    """What is stored of a variant is stale when anything of its recordings changes, and only then."""

    def digest(self, *attempts: Recording) -> str:
        found = entries(recordings(*attempts, attempt("other", "a")), "base")
        digest: str = found["baseline"][0]["params"]["recorded"]
        return digest

    def test_it_is_of_the_variant_only(self) -> None:
        alone = entries(recordings(attempt("base", "a")))["baseline"][0]["params"]["recorded"]
        assert self.digest(attempt("base", "a")) == alone

    @pytest.mark.parametrize(
        "other",
        [
            attempt("base", "a", value=0.0),
            attempt("base", "a", value=1),
            attempt("base", "a", value=True),
            attempt("base", "a", value="1.0"),
            attempt("base", "a", value=math.nan),
            attempt("base", "a", "u"),
            attempt("base", "b"),
            not_recorded("base", "a", "origin", "gone"),
            attempt("base", "a", files={"x": Path(__file__)}),
        ],
    )
    def test_every_part_counts(self, other: Recording) -> None:
        assert self.digest(other) != self.digest(attempt("base", "a"))

    def test_evidence_counts_by_its_size(self, tmp_path: Path) -> None:
        file = tmp_path / "trace.json"
        digests = []
        for text in ("{}", "[]", "{ }"):
            file.write_text(text)
            digests.append(self.digest(attempt("base", "a", files={"trace.json": file})))
        assert digests[0] == digests[1] != digests[2]


class TestBaseline:
    def test_the_only_variant_is_it(self) -> None:
        assert len(entries(recordings(attempt("x", "a")))["baseline"]) == 1

    @pytest.mark.parametrize("asked", ["a/b", "a-b-c14cdd", "short"])
    def test_by_name_id_or_alias(self, asked: str) -> None:
        found = recordings(
            attempt("a/b", "t"), attempt("x", "t"), variants={"a/b": RecordedVariant("a/b", alias="short")}
        )
        assert entries(found, asked)["baseline"][0]["name"] == "a/b"

    @pytest.mark.parametrize(
        ("asked", "message", "remedy"),
        [
            (
                None,
                "2 variants are recorded, and runner.baseline does not say which is the baseline: good, bad",
                "write baseline: good, or whichever it is",
            ),
            ("godo", "runner.baseline: no variant 'godo' is recorded", "did you mean 'good'? there are good, bad"),
            ("zzz", "runner.baseline: no variant 'zzz' is recorded", "there are good, bad"),
        ],
    )
    def test_otherwise_it_says_what_there_is(self, asked: str | None, message: str, remedy: str) -> None:
        with pytest.raises(RecordingError) as refusal:
            build_case(recordings(attempt("good", "a"), attempt("bad", "a")), asked)
        assert (refusal.value.message, refusal.value.remedy) == (message, remedy)

    def test_an_alias_of_two(self) -> None:
        variants = {name: RecordedVariant(name, alias="x") for name in ("good", "bad")}
        with pytest.raises(RecordingError, match=r"^runner.baseline: 'x' may be good or bad$") as caught:
            build_case(recordings(attempt("good", "a"), attempt("bad", "a"), variants=variants), "x")
        assert caught.value.remedy == "write the whole name"

    def test_nothing_recorded(self) -> None:
        with pytest.raises(RecordingError, match=r"^nothing is recorded$") as caught:
            build_case(recordings(), None)
        assert caught.value.remedy == "name what holds attempts under runner.read"


class TestLockState:
    def files(self, folder: Path, count: int) -> dict[str, Path]:
        found = {}
        for number in range(count):
            path = folder / f"{number}.json"
            path.write_text(str(number))
            found[f"jobs/{'ab'[number % 2]}/{number}.json"] = path
        return found

    def test_few_files_are_listed(self, tmp_path: Path) -> None:
        files = self.files(tmp_path, 3)
        listed, state = lock_state(recordings(attempt("v", "t"), files=files), ["jobs/a", "jobs/b"])
        assert listed == files
        assert list(state) == ["evidence"]

    def test_many_are_one_digest_for_each_thing_read(self, tmp_path: Path) -> None:
        files = self.files(tmp_path, 40)
        listed, state = lock_state(recordings(attempt("v", "t"), files=files), ["jobs/a", "jobs/b"])
        assert listed == {}
        assert list(state) == ["content of jobs/a", "content of jobs/b", "evidence"]
        (tmp_path / "0.json").write_text("other")
        changed = lock_state(recordings(attempt("v", "t"), files=files), ["jobs/a", "jobs/b"])[1]
        assert changed["content of jobs/a"] != state["content of jobs/a"]
        assert changed["content of jobs/b"] == state["content of jobs/b"]


class TestPaths:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name in ("jobs/b", "jobs/a", "jobs/.hidden", "other"):
            (tmp_path / "home" / name).mkdir(parents=True)
        (tmp_path / "outside").mkdir()
        return tmp_path / "home"

    def test_globs_are_sorted_and_nothing_is_read_twice(self, folder: Path) -> None:
        (folder / "link").symlink_to(folder / "jobs" / "a")
        assert list(find_paths(["other/", "jobs/*", "jobs/a", "link"], folder)) == ["other", "jobs/a", "jobs/b"]

    def test_absolute_names_may_be_anywhere(self, folder: Path) -> None:
        outside = str(folder.parent / "outside")
        assert find_paths([outside], folder) == {outside: Path(outside)}
        assert list(find_paths([str(folder.parent / "out*")], folder)) == [outside]

    def test_a_name_with_brackets_is_taken_as_it_is(self, folder: Path) -> None:
        (folder / "jobs[1]").mkdir()
        assert list(find_paths(["jobs[1]"], folder)) == ["jobs[1]"]

    @pytest.mark.parametrize("pattern", ["../outside", "../out*", "escape"])
    def test_relative_names_stay_inside(self, folder: Path, pattern: str) -> None:
        (folder / "escape").symlink_to(folder.parent / "outside")
        with pytest.raises(RecordingError, match="leaves the experiment's folder"):
            find_paths([pattern], folder)

    def test_no_name_has_a_null_character(self, folder: Path) -> None:
        with pytest.raises(RecordingError) as caught:
            find_paths(["jobs/*", "jobs/a\0"], folder)
        assert (caught.value.message, caught.value.remedy) == (
            "runner.read: a name has a null character, which no name can hold",
            "",
        )

    @given(st.text(max_size=12))
    def test_no_text_is_more_than_refused(self, pattern: str) -> None:
        try:
            found = find_paths([pattern], Path(__file__).parent / "nowhere")
        except RecordingError:
            return
        assert all(os.path.lexists(path) for path in found.values())


class TestChangesWhileReading:
    def test_a_file_that_is_written_meanwhile_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The module that reads writes, as the job does that still runs."""
        file = tmp_path / "results.json"
        file.write_text("old")

        class Form:
            @staticmethod
            def read(paths: Any, options: Any) -> Recordings:
                file.write_text("new")
                os.utime(file, ns=(time.time_ns(), time.time_ns()))
                return recordings(attempt("v", "t"), files={"results.json": file})

        monkeypatch.setattr(runner_module, "import_module", lambda name: Form)
        runner = RecordedRunner(form="table", read=["results.json"])
        source = runner.case_source("c", tmp_path)
        with pytest.raises(RecordingError, match=r"results.json changed while it was read"):
            source.expand(tmp_path)
