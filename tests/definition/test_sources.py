"""Tasks, mutants and whole cases that come from elsewhere: through the lock, joined with what is listed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import Outcome
from pytest_metricbench.definition.experiment import Note
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.definition.lock import write_lock
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.digests import digest_value
from pytest_metricbench.generating.base import Context, Generator, Makers, Proposal
from pytest_metricbench.sources import CaseSource, Source, SourceError

BEGIN = "metricbench: 1\nname: shop\nrunner: {kind: shelf}\n"


class Shelf(Source):
    """Every text file of a folder is a task."""

    shelf: str
    suffix: str = ".txt"

    def _found(self, folder: Path) -> list[Path]:
        found = sorted((folder / self.shelf).glob(f"*{self.suffix}"))
        if not found:
            raise SourceError(f"the folder {self.shelf!r} holds no {self.suffix} file", "name another folder")
        return found

    def expand(self, folder: Path) -> list[dict[str, Any]]:
        return [{"id": path.stem, "params": {"path": f"{self.shelf}/{path.name}"}} for path in self._found(folder)]

    def state(self, folder: Path) -> dict[str, Any]:
        return {"listing": digest_value([path.name for path in self._found(folder)])}


class Letters(Source):
    """A mutant for each letter."""

    letters: str

    def expand(self, folder: Path) -> list[dict[str, Any]]:
        return [{"id": letter, "params": {"drop": letter}} for letter in self.letters]


class Params(BaseModel):
    model_config: ClassVar[Any] = {"extra": "forbid"}

    path: str | None = None
    drop: str | None = None
    keep: str | None = None
    prompt: str | None = None


class ShelfRunner(Runner):
    kind: Literal["shelf"] = "shelf"
    task_sources: ClassVar[Any] = (Shelf,)
    mutant_sources: ClassVar[Any] = (Letters,)
    task_params: ClassVar[Any] = Params
    variant_params: ClassVar[Any] = Params

    def run(self, request: Any, workspace: Path) -> Outcome:
        return Outcome.scored({"reward": 1})

    def inherit(self, baseline: Any, mutant: Any) -> Any:
        return {**baseline, **mutant}

    def task_files(self, params: Any, folder: Path) -> dict[str, Path]:
        return {params["path"]: folder / params["path"]} if "path" in params else {}

    def variant_files(self, params: Any, folder: Path) -> dict[str, Path]:
        if params.get("prompt") == "broken":
            raise SourceError("the prompt is broken", "mend it")
        return {params["prompt"]: folder / params["prompt"]} if "prompt" in params else {}


class Diary(CaseSource):
    """A case of which every line of a file is an attempt: variant, task."""

    diary: str

    def expand(self, folder: Path) -> list[dict[str, Any]]:
        lines = [line.split() for line in (folder / self.diary).read_text().splitlines()]
        counts: dict[str, dict[str, int]] = {}
        for variant, task in lines:
            by_task = counts.setdefault(variant, {})
            by_task[task] = by_task.get(task, 0) + 1
        tasks = sorted({task for _, task in lines})
        found: list[dict[str, Any]] = [{"task": {"id": task, "outputs": {"tone": "label"}}} for task in tasks]
        for variant, attempts in counts.items():
            entry = {"attempts": attempts}
            found.append({"baseline": entry} if variant == "base" else {"mutant": {"id": variant, **entry}})
        return [*found, {"note": {"text": "lines were read", "count": len(lines)}}]

    def files(self, folder: Path) -> dict[str, Path]:
        if not (folder / self.diary).exists():
            raise SourceError(f"the diary {self.diary!r} does not exist")
        return {self.diary: folder / self.diary}


class DiaryRunner(Runner):
    kind: Literal["diary"] = "diary"
    read: str = "diary.txt"

    def run(self, request: Any, workspace: Path) -> Outcome:
        return Outcome.scored({"reward": 1})

    def case_source(self, case: str, folder: Path) -> CaseSource | None:
        return Diary(diary=self.read)


KINDS: dict[str, type[Runner]] = {"shelf": ShelfRunner, "diary": DiaryRunner}


class Desk:
    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, text: str | None = None, **options: Any) -> Any:
        if text is not None:
            (self.path / "experiment.yml").write_text(text)
        return load_experiment(self.path / "experiment.yml", runners=KINDS, systems={}, **options)

    def said(self, text: str | None = None, **options: Any) -> list[str]:
        with pytest.raises(DefinitionError) as caught:
            self.load(text, **options)
        return [str(problem) for problem in caught.value.problems]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "set").mkdir()
    for name in ("b", "a"):
        (tmp_path / "set" / f"{name}.txt").write_text(name)
    (tmp_path / "diary.txt").write_text("base t1\nbase t1\nbase t2\nm t1\nn t2\n")
    return Desk(tmp_path)


SHELF = BEGIN + (
    "cases:\n  - id: c\n    tasks: {shelf: set}\n    mutants: {letters: xy}\n    subsets: {sizes: [1], per_size: 2}\n"
)


def test_tasks_and_mutants_from_sources(desk: Desk) -> None:
    case = desk.load(SHELF).cases[0]
    assert [(task.id, task.params, task.line) for task in case.tasks] == [
        ("a", {"path": "set/a.txt"}, 6),
        ("b", {"path": "set/b.txt"}, 6),
    ]
    assert [(variant.id, variant.params, variant.line) for variant in case.variants] == [
        ("baseline", {}, 5),
        ("x", {"drop": "x"}, 7),
        ("y", {"drop": "y"}, 7),
    ]
    assert [subset.tasks for subset in case.subsets] == [("a",), ("b",)]


def test_the_lock_holds_all_expansions_and_is_used(desk: Desk) -> None:
    before = desk.load(SHELF)
    assert before.lock.missing
    write_lock(before.lock)
    text = before.lock.path.read_text()
    assert [line.strip() for line in text.splitlines() if "kind:" in line] == [
        "- kind: tasks",
        "- kind: mutants",
        "- kind: subsets",
    ]
    after = desk.load()
    assert after.cases == before.cases
    assert not after.lock.missing
    assert after.lock.text == text


def test_a_key_that_is_written_as_its_default_is_the_default(desk: Desk) -> None:
    write_lock(desk.load(SHELF).lock)
    assert desk.load(SHELF.replace("{shelf: set}", "{shelf: set, suffix: .txt}")).lock.missing is False
    (desk.path / "set" / "a.md").write_text("a")
    (problem,) = desk.said(SHELF.replace("{shelf: set}", "{shelf: set, suffix: .md}"))
    assert 'disagrees: the listing changed, suffix was null and is ".md"; renew it' in problem


def test_a_lock_is_not_said_to_hold_too_much_while_a_case_is_wrong(desk: Desk) -> None:
    """What is wrong keeps the subsets from being drawn, and they are wanted all the same."""
    write_lock(desk.load(SHELF).lock)
    (problem,) = desk.said(SHELF.replace("    tasks:", "    descriptin: x\n    tasks:"))
    assert "cases[0].descriptin: is an unknown key" in problem


def test_a_new_file_makes_the_lock_disagree(desk: Desk) -> None:
    write_lock(desk.load(SHELF).lock)
    (desk.path / "set" / "c.txt").write_text("c")
    assert desk.said() == [
        "experiment.yml:6:12: cases[0].tasks: experiment.lock.yml disagrees: the listing changed; "
        "renew it with --metricbench-lock"
    ]
    assert len(desk.load(renew_lock=True).cases[0].tasks) == 3


def test_a_changed_key_makes_the_lock_disagree(desk: Desk) -> None:
    write_lock(desk.load(SHELF).lock)
    assert desk.said(SHELF.replace("letters: xy", "letters: x")) == [
        'experiment.yml:7:14: cases[0].mutants: experiment.lock.yml disagrees: letters was "xy" and is "x"; '
        "renew it with --metricbench-lock"
    ]


def test_what_a_source_refuses_is_told_at_its_key(desk: Desk) -> None:
    assert desk.said(SHELF.replace("shelf: set", "shelf: nowhere")) == [
        "experiment.yml:6:12: cases[0].tasks: the folder 'nowhere' holds no .txt file; name another folder"
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("shelf: set", "shelf: nowhere"), "holds no .txt file"),
        (("kind: shelf", "kind: shlef"), "did you mean 'shelf'?"),
    ],
)
def test_where_tasks_could_not_be_expanded_no_subset_is_said_to_be_wrong(
    desk: Desk, change: tuple[str, str], said: str
) -> None:
    text = SHELF.replace("{sizes: [1], per_size: 2}", "[{id: s, tasks: [a]}]")
    assert desk.load(text).cases[0].subsets[0].tasks == ("a",)
    (problem,) = desk.said(text.replace(*change))
    assert said in problem
    (problem,) = desk.said(text.replace("tasks: [a]", "tasks: [c]"))
    assert "the case has no task 'c'" in problem


def test_under_cached_only_the_lock_stands_for_what_is_gone(desk: Desk) -> None:
    write_lock(desk.load(SHELF).lock)
    for path in (desk.path / "set").iterdir():
        path.unlink()
    assert [task.id for task in desk.load(cached_only=True).cases[0].tasks] == ["a", "b"]
    assert "the folder 'set' holds no .txt file" in desk.said()[0]


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ("{shelve: set}", "names nothing that the runner 'shelf' expands tasks from; it knows shelf"),
        ("{shelf: set, sufix: .md}", "is an unknown key; did you mean 'suffix'? the keys here are shelf, suffix"),
        ("{shelf: 3}", 'is the number 3; a text is expected; quote it: "3"'),
        ("{}", "names nothing that the runner 'shelf' expands tasks from; it knows shelf"),
    ],
)
def test_bad_sources(desk: Desk, tasks: str, said: str) -> None:
    found = desk.said(SHELF.replace("{shelf: set}", tasks))
    assert len(found) == 1
    assert found[0].endswith(said) or said in found[0]


def test_a_runner_that_expands_nothing(desk: Desk) -> None:
    kinds = {"shelf": type("Bare", (ShelfRunner,), {"task_sources": (), "mutant_sources": ()})}
    (desk.path / "experiment.yml").write_text(SHELF)
    with pytest.raises(DefinitionError) as caught:
        load_experiment(desk.path / "experiment.yml", runners=kinds, systems={})
    assert [str(problem).partition(": ")[2] for problem in caught.value.problems] == [
        "cases[0].tasks: the runner 'shelf' expands no tasks; list the tasks",
        "cases[0].mutants: the runner 'shelf' expands no mutants; list the mutants",
    ]


def test_two_sources_at_once(desk: Desk) -> None:
    class Crate(Source):
        crate: str

        def expand(self, folder: Path) -> list[dict[str, Any]]:
            return []

    sources = {"task_sources": (Shelf, Crate), "mutant_sources": (Letters, Crate)}
    (desk.path / "experiment.yml").write_text(
        SHELF.replace("{shelf: set}", "{shelf: set, crate: a}").replace("{letters: xy}", "{crate: a, letters: xy}")
    )
    with pytest.raises(DefinitionError) as caught:
        load_experiment(
            desk.path / "experiment.yml", runners={"shelf": type("Both", (ShelfRunner,), sources)}, systems={}
        )
    assert [str(problem) for problem in caught.value.problems] == [
        "experiment.yml:6:12: cases[0].tasks: names shelf and crate; one of them at a time",
        "experiment.yml:7:14: cases[0].mutants: names crate and letters; one of them at a time",
    ]


def test_listed_entries_join_the_expanded_ones(desk: Desk) -> None:
    text = SHELF.replace(
        "{letters: xy}",
        "\n      letters: xy\n      listed:\n"
        "        - {id: x, equivalent: 'same'}\n        - {id: own, params: {drop: z}}",
    )
    mutants = desk.load(text).cases[0].mutants
    assert [(mutant.id, mutant.equivalent, mutant.params) for mutant in mutants] == [
        ("own", None, {"drop": "z"}),
        ("x", "same", {"drop": "x"}),
        ("y", None, {"drop": "y"}),
    ]


def test_listed_entries_are_checked(desk: Desk) -> None:
    text = SHELF.replace("{letters: xy}", "{letters: xy, listed: [{id: own, parms: {}}]}")
    assert desk.said(text) == [
        "experiment.yml:7:47: cases[0].mutants.listed[0].parms: is an unknown key; did you mean 'params'? "
        "the keys here are id, params, tags, description, name, control, equivalent"
    ]


def test_params_are_held_to_the_runners_form(desk: Desk) -> None:
    text = SHELF.replace("{letters: xy}", "[{id: x, params: {dorp: 1}}]")
    assert desk.said(text) == [
        "experiment.yml:7:32: cases[0].mutants[0].params.dorp: is an unknown key; did you mean 'drop'? "
        "the keys here are path, drop, keep, prompt"
    ]


def test_a_mutant_inherits_where_the_runner_says_so(desk: Desk) -> None:
    text = SHELF.replace("    mutants", "    baseline: {params: {keep: k}}\n    mutants")
    case = desk.load(text).cases[0]
    assert [variant.params for variant in case.variants] == [
        {"keep": "k"},
        {"keep": "k", "drop": "x"},
        {"keep": "k", "drop": "y"},
    ]


def test_files_of_params_are_part_of_fingerprints(desk: Desk) -> None:
    (desk.path / "p.md").write_text("one")
    text = SHELF.replace("{letters: xy}", "[{id: x, params: {prompt: p.md}}, {id: y}]")
    experiment = desk.load(text)

    def digests() -> dict[tuple[str, str], str]:
        prints = Fingerprints(experiment)
        case = experiment.cases[0]
        return {(v.id, t.id): prints.attempt(case, v, t) for v in case.variants for t in case.tasks}

    first = digests()
    (desk.path / "p.md").write_text("two")
    second = digests()
    assert {key for key in first if first[key] != second[key]} == {("x", "a"), ("x", "b")}
    (desk.path / "set" / "a.txt").write_text("other")
    third = digests()
    assert {key for key in first if second[key] != third[key]} == {("baseline", "a"), ("x", "a"), ("y", "a")}
    recorded = Fingerprints(experiment)
    recorded.summary()
    for path in (desk.path / "p.md", desk.path / "set" / "a.txt", desk.path / "set" / "b.txt"):
        path.unlink()
    known = Fingerprints(experiment, known=recorded.files)
    case = experiment.cases[0]
    assert {(v.id, t.id): known.attempt(case, v, t) for v in case.variants for t in case.tasks} == third


def test_missing_files_of_params(desk: Desk) -> None:
    text = SHELF.replace("{letters: xy}", "[{id: x, params: {prompt: p.md}}, {id: y, params: {prompt: broken}}]")
    assert desk.said(text) == [
        "experiment.yml:7:31: cases[0].mutants[0].params: the file 'p.md' does not exist; "
        f"it would be {desk.path / 'p.md'}",
        "experiment.yml:7:64: cases[0].mutants[1].params: the prompt is broken; mend it",
    ]


def test_recorded_files_stand_for_those_that_a_runner_no_longer_finds(desk: Desk) -> None:
    class Looking(ShelfRunner):
        def task_files(self, params: Any, folder: Path) -> dict[str, Path]:
            if not (folder / params["path"]).exists():
                raise SourceError(f"{params['path']} is gone")
            return super().task_files(params, folder)

    (desk.path / "experiment.yml").write_text(SHELF)
    experiment = load_experiment(desk.path / "experiment.yml", runners={"shelf": Looking}, systems={})
    case = experiment.cases[0]

    def digests(**known: Any) -> list[str]:
        prints = Fingerprints(experiment, **known)
        return [prints.attempt(case, case.baseline, task) for task in case.tasks]

    recorded = Fingerprints(experiment)
    recorded.summary()
    before = digests()
    more = {**recorded.files, "task:c:a:set/older.txt": "sha256:0"}
    assert digests(known=more) == before, "a file that is there counts, and no other"
    for path in (desk.path / "set").iterdir():
        path.unlink()
    assert digests(known=recorded.files) == before
    assert digests(known=more) != before
    with pytest.raises(OSError, match=r"set/a\.txt is gone"):
        digests()


class Lit(ShelfRunner):
    """Reads everything by the light of one lamp."""

    def shared_files(self, folder: Path) -> dict[str, Path]:
        return {"room:lamp.txt": folder / "lamp.txt"}


def test_every_attempt_depends_on_what_the_runner_says_all_share(desk: Desk) -> None:
    (desk.path / "experiment.yml").write_text(SHELF)
    lamp = desk.path / "lamp.txt"
    lamp.write_text("on")
    experiment = load_experiment(desk.path / "experiment.yml", runners={"shelf": Lit}, systems={})
    case = experiment.cases[0]

    def digests(**known: Any) -> list[str]:
        prints = Fingerprints(experiment, **known)
        return [prints.attempt(case, variant, task) for variant in case.variants for task in case.tasks]

    before = digests()
    lamp.write_text("off")
    after = digests()
    assert not set(before) & set(after)
    recorded = Fingerprints(experiment)
    recorded.summary()
    assert [name for name in recorded.files if "lamp" in name] == ["shared:room:lamp.txt"]
    lamp.unlink()
    assert digests(known=recorded.files) == after
    with pytest.raises(OSError, match=r"lamp\.txt"):
        digests()


def test_a_shared_file_that_is_not_there_is_told_at_the_runner(desk: Desk) -> None:
    (desk.path / "experiment.yml").write_text(SHELF)
    with pytest.raises(DefinitionError) as refused:
        load_experiment(desk.path / "experiment.yml", runners={"shelf": Lit}, systems={})
    assert str(refused.value).startswith("experiment.yml:3:9: runner: the file 'room:lamp.txt' does not exist; ")


# ---------------------------------------------------------------- code of others


def test_what_a_source_refuses_while_it_expands_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def expand(self: Letters, folder: Path) -> list[dict[str, Any]]:
        raise SourceError("the letters are worn out", "buy new ones")

    monkeypatch.setattr(Letters, "expand", expand)
    assert desk.said(SHELF) == [
        "experiment.yml:7:14: cases[0].mutants: the letters are worn out; buy new ones",
    ]


@pytest.mark.parametrize(
    ("method", "where"),
    [
        ("case_source", "5:5: cases[0]"),
        ("task_files", "6:12: cases[0].tasks"),
        ("inherit", "7:15: cases[0].mutants[0]"),
        ("variant_files", "7:15: cases[0].mutants[0]"),
        ("shared_files", "3:9: runner"),
    ],
)
def test_a_runner_that_fails_while_it_is_asked_is_told(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, method: str, where: str
) -> None:
    def fail(*_: Any) -> Any:
        raise TypeError("oh no")

    monkeypatch.setattr(ShelfRunner, method, fail)
    said = desk.said(SHELF.replace("{letters: xy}", "[{id: x}]"))
    assert said
    assert all(
        "ShelfRunner of" in problem and problem.endswith("cannot check this: TypeError: oh no") for problem in said
    )
    assert method == "task_files" or any(problem.startswith(f"experiment.yml:{where}: ") for problem in said)


def test_warnings_of_a_runner_are_told_with_the_variant(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(self: ShelfRunner, params: Any, folder: Path) -> tuple[str, ...]:
        return ("nothing is dropped",) if "drop" not in params else ()

    monkeypatch.setattr(ShelfRunner, "variant_warnings", warn)
    text = SHELF.replace("{letters: xy}", "[{id: x}, {id: y, params: {drop: y}}]")
    assert desk.load(text).warnings == (
        "experiment.yml:5: c::baseline: nothing is dropped",
        "experiment.yml:7: c::x: nothing is dropped",
    )
    assert desk.load(text, cached_only=True).warnings == ()

    def fail(*_: Any) -> Any:
        raise TypeError("oh no")

    monkeypatch.setattr(ShelfRunner, "variant_warnings", fail)
    warnings = desk.load(text).warnings
    assert len(warnings) == 3
    assert warnings[1].startswith("experiment.yml:7: c::x: the runner 'shelf'")
    assert warnings[1].endswith("cannot check this: TypeError: oh no")


class Drops(Generator):
    """A mutant for each letter of a file, as params or as a diff."""

    origin: ClassVar[str] = "drops"
    letters: str = "xy"

    def generate(self, context: Context) -> Iterator[Proposal]:
        for letter in self.letters:
            text = (context.folder / "prompt.md").read_text().replace(letter, "")
            yield Proposal("drop", letter, f"Without {letter}.", files={"prompt.md": text})

    def input_files(self, context: Context) -> dict[str, Path]:
        return {"prompt.md": context.folder / "prompt.md"}


DROPS = SHELF.replace("{letters: xy}", "{generate: {from: drops}}")
MAKERS = Makers({"drops": Drops})


@pytest.fixture
def drops(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A folder in which mutants are generated from a text, by a runner that takes whole files."""
    (desk.path / "prompt.md").write_text("x\ny\nz\n")
    monkeypatch.setattr(ShelfRunner, "variant_params", None)
    return desk


def test_generated_mutants_are_those_of_the_lock(drops: Desk) -> None:
    experiment = drops.load(DROPS, makers=MAKERS)
    case = experiment.cases[0]
    assert [mutant.id for mutant in case.mutants] == ["drop-x", "drop-y"]
    assert [mutant.params["files"] for mutant in case.mutants] == [{"prompt.md": "\ny\nz\n"}, {"prompt.md": "x\n\nz\n"}]
    assert [file.name for file in case.inputs] == ["prompt.md"], "what mutants change defines the system"
    write_lock(experiment.lock)
    assert drops.load(makers=MAKERS).cases == experiment.cases


def test_a_review_of_a_mutant_that_is_no_longer_made_is_told(drops: Desk) -> None:
    """It would be a further mutant otherwise, one that changes nothing."""
    text = DROPS.replace(
        "{from: drops}}", "{from: drops}, listed: [{id: drop-x, equivalent: same}, {id: drop-q, equivalent: same}]}"
    )
    assert drops.said(text, makers=MAKERS) == [
        "experiment.yml:7:86: cases[0].mutants.listed[1].id: there is no mutant 'drop-q' any more that this could be "
        "said of; remove the entry, or give it params where it is a mutant of its own"
    ]
    mutants = drops.load(text.replace("drop-q, ", "drop-q, params: {files: {}}, "), makers=MAKERS).cases[0].mutants
    assert [(mutant.id, mutant.equivalent) for mutant in mutants] == [
        ("drop-q", "same"),
        ("drop-x", "same"),
        ("drop-y", None),
    ]


@pytest.mark.parametrize(
    ("generate", "said"),
    [
        ("[]", "cases[0].mutants.generate: is empty; name a generator, or leave the key out"),
        ("drops", "cases[0].mutants.generate: is the text 'drops'; a mapping with from is expected, or a list of such"),
        ("{}", "cases[0].mutants.generate.from: is missing; it says which generator this is; the generators are drops"),
        ("{from: 3}", "cases[0].mutants.generate.from: is the number 3; a text is expected; the generators are drops"),
        ("{from: drosp}", "cases[0].mutants.generate.from: there is no generator 'drosp'; did you mean 'drops'?"),
        (
            "[{from: drops, leters: x}]",
            "cases[0].mutants.generate[0].leters: is an unknown key; did you mean 'letters'?",
        ),
    ],
)
def test_generators_that_cannot_be_asked(drops: Desk, generate: str, said: str) -> None:
    (problem,) = drops.said(DROPS.replace("{from: drops}", generate), makers=MAKERS)
    assert said in problem


@pytest.mark.parametrize(
    ("old", "new"), [("diff: |", "params: {}\n        diff: |"), ("diff: |", "diff: 5\n        old: |")]
)
def test_a_diff_of_the_lock_stands_alone(drops: Desk, old: str, new: str) -> None:
    state = drops.load(DROPS, makers=MAKERS).lock
    write_lock(state)
    assert old in state.text
    state.path.write_text(state.text.replace(old, new, 1))
    assert any(
        "a diff is a text, and stands in place of params; renew it with --metricbench-lock" in problem
        for problem in drops.said(makers=MAKERS)
    )


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("bound", "Drops of .* cannot check this: TypeError: oh no"),
        ("input_files", "Drops of .* cannot say what it depends on: TypeError: oh no"),
        ("lock_state", "Drops of .* cannot say what it depends on: TypeError: oh no"),
    ],
)
def test_a_generator_that_fails_while_it_is_asked_is_told(
    drops: Desk, monkeypatch: pytest.MonkeyPatch, method: str, said: str
) -> None:
    def fail(*_: Any) -> Any:
        raise TypeError("oh no")

    monkeypatch.setattr(Drops, method, fail)
    (problem,) = drops.said(DROPS, makers=MAKERS)
    assert re.search(said, problem)


# ---------------------------------------------------------------- whole cases

DIARY = "metricbench: 1\nname: shop\nrunner: {kind: diary}\ncases:\n  - id: c\n"


def test_a_case_that_exists_already(desk: Desk) -> None:
    experiment = desk.load(DIARY)
    case = experiment.cases[0]
    assert [(task.id, task.attempts, task.outputs) for task in case.tasks] == [
        ("t1", 2, {"tone": "label"}),
        ("t2", 1, {"tone": "label"}),
    ]
    assert [variant.id for variant in case.variants] == ["baseline", "m", "n"]
    assert list(experiment.keys()) == [
        ("c", "baseline", "t1", 1),
        ("c", "baseline", "t1", 2),
        ("c", "baseline", "t2", 1),
        ("c", "m", "t1", 1),
        ("c", "n", "t2", 1),
    ]
    assert case.notes == (Note("lines were read", 5),)
    assert experiment.analysis.pass_at_k == (1,)


def test_what_is_listed_is_said_about_what_was_found(desk: Desk) -> None:
    text = DIARY + (
        "    tasks: [{id: t2, tags: [slow], description: second}]\n"
        "    baseline: {description: before}\n"
        "    mutants: [{id: n, control: true}]\n"
        "    subsets: [{id: s, tasks: [t1]}]\n"
        "gates: [m mutation_score >= 0]\n"
    )
    case = desk.load(text.replace("gates: [m mutation_score >= 0]\n", "gates: [m pass@1 >= 0]\n")).cases[0]
    assert (case.tasks[1].tags, case.tasks[1].description, case.tasks[1].outputs) == (
        ("slow",),
        "second",
        {"tone": "label"},
    )
    assert case.baseline.description == "before"
    assert [(mutant.id, mutant.control) for mutant in case.mutants] == [("m", False), ("n", True)]
    assert case.subsets[0].tasks == ("t1",)


def test_unknown_listed_entries_of_a_recorded_case(desk: Desk) -> None:
    text = DIARY + "    mutants: [{id: k}]\n    subsets: [{id: s, tasks: [t3]}]\n"
    assert desk.said(text)[0] == (
        "experiment.yml:6:20: cases[0].mutants[0].id: nothing is recorded of the mutant 'k'; there are m, n"
    )


def test_an_unknown_listed_task_of_a_recorded_case(desk: Desk) -> None:
    assert desk.said(DIARY + "    tasks: [{id: t3}]\n    mutants: [{id: k}]\n") == [
        "experiment.yml:6:18: cases[0].tasks[0].id: nothing is recorded of the task 't3'; there are t1, t2",
        "experiment.yml:7:20: cases[0].mutants[0].id: nothing is recorded of the mutant 'k'; there are m, n",
    ]


def test_a_subset_of_a_recorded_case_names_a_task_that_is_not_there(desk: Desk) -> None:
    assert desk.said(DIARY + "    subsets: [{id: s, tasks: [t3]}]\n") == [
        "experiment.yml:6:31: cases[0].subsets[0].tasks[0]: the case has no task 't3'"
    ]


def test_a_changed_diary_makes_the_lock_disagree(desk: Desk) -> None:
    write_lock(desk.load(DIARY).lock)
    (desk.path / "diary.txt").write_text("base t1\n")
    assert desk.said() == [
        "experiment.yml:5:5: cases[0]: experiment.lock.yml disagrees: the file diary.txt changed; "
        "renew it with --metricbench-lock"
    ]
    (desk.path / "diary.txt").unlink()
    assert desk.said() == ["experiment.yml:5:5: cases[0]: the diary 'diary.txt' does not exist"]
    assert len(desk.load(cached_only=True).cases[0].tasks) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("attempts: {t1: 2, t2: 1}", "attempts: {t1: x}", "is no mapping of tasks to numbers of attempts"),
        ("{baseline: {attempts", "{other: {attempts", "the recordings have 0 baselines"),
        ("count: 5", "count: many", "is the text 'many'; a whole number is expected"),
        ("{id: m, ", "{id: 'not', ", "is a word of pytest's -k expressions"),
    ],
)
def test_an_edited_lock_of_a_recorded_case(desk: Desk, old: str, new: str, said: str) -> None:
    state = desk.load(DIARY).lock
    write_lock(state)
    text = state.path.read_text()
    assert old in text
    state.path.write_text(text.replace(old, new))
    assert any(said in problem for problem in desk.said()), desk.said()


def test_a_null_in_place_of_the_tasks(desk: Desk) -> None:
    assert desk.said(SHELF.replace("{shelf: set}", "null")) == [
        "experiment.yml:6:12: cases[0].tasks: is null; a list of tasks is expected"
    ]


@pytest.mark.parametrize(
    ("score", "said"),
    [
        ("", ["the tasks have several scores that count (speed, tone) and none is called 'reward'"]),
        ("score: {primary: tone}\n", []),
    ],
)
def test_tasks_with_several_scores_that_count(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, score: str, said: list[str]
) -> None:
    """Which of them decides is not left to what an attempt happens to have."""
    expand = Diary.expand

    def with_scores(self: Diary, folder: Path) -> list[dict[str, Any]]:
        found = expand(self, folder)
        return [
            {"task": {**entry["task"], "outputs": {"tone": "boolean", "speed": "continuous", "cost": "measurement"}}}
            if "task" in entry
            else entry
            for entry in found
        ]

    monkeypatch.setattr(Diary, "expand", with_scores)
    text = DIARY.replace("cases:", f"{score}cases:")
    if said:
        assert [problem.partition(": ")[2].partition(";")[0] for problem in desk.said(text)] == said
    else:
        desk.load(text)


def test_attempts_are_not_asked_for_where_they_exist(desk: Desk) -> None:
    assert desk.said(DIARY.replace("cases:", "attempts: 3\ncases:")) == [
        "experiment.yml:4:1: attempts: recorded attempts are as many as there are; remove the key"
    ]


def test_controls_are_not_run_where_attempts_exist(desk: Desk) -> None:
    assert desk.said(DIARY.replace("cases:", "controls: 1\ncases:")) == [
        "experiment.yml:4:11: controls: recorded attempts cannot be run for copies of the baseline; "
        "mark a recorded mutant as one: control: true"
    ]
    desk.load(DIARY.replace("cases:", "controls: 0\ncases:"))
