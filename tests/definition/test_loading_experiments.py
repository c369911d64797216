"""A right experiment file, whole: every part as it was written, and defaults where nothing was."""

from pathlib import Path

import pytest

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import AttemptRequest, Outcome
from pytest_metricbench.definition.experiment import AnalysisSettings, Experiment, Gate, KillRule, ScorePolicy, Subset
from pytest_metricbench.definition.loading import load_experiment
from tests.definition.definition_lab import FakeCoverage, FakeRunner, Folder

FULL = """\
metricbench: 1
name: refund-agent
seed: 7
attempts: 5
retries: 2
controls: 2
runner:
  kind: fake
  agent: ["{python}", agent.py]
  sizes: [1, 2]
  hook: agent:run
score:
  primary: reward
  pass_at_least: 0.5
  outputs: {reward: continuous, tokens: measurement, tone: label}
cases:
  - id: refunds
    description: Answers refund requests.
    inputs: [agent.py, policy.md]
    tasks:
      - {id: late, tags: [policy], params: {request: "...", deep: {a: [1, null]}}, name: "tests/a.py::t[1]"}
      - {id: early, attempts: 3, description: An early one.}
    baseline: {params: {policy: strict}, tags: [base]}
    mutants:
      - {id: skips, description: Never checks., tags: [policy], params: {drop: eligibility}}
      - id: same
        equivalent: reviewed
      - {id: tame, control: true}
    subsets:
      - {id: s1, tasks: [late]}
      - {id: s2, tasks: [early, late]}
  - sub/other.yml
coverage:
  - {id: tools, kind: fake, settings: {a: 1}}
analysis:
  pass_at_k: [1, 2]
  kill: {rule: fisher, q: 0.1}
  mutation_score: mean_drop
  resamples: 99
  seed: 3
gates:
  - refunds skips pass@2 <= 0.25
"""
OTHER = "id: other\ninputs: [x.txt]\ntasks: [{id: t}]\nsubsets: subsets.yml\n"


@pytest.fixture
def full(folder: Folder) -> Experiment:
    folder.write("agent.py", "def run(request): ...\n")
    folder.write("policy.md", "be nice\n")
    folder.write("sub/other.yml", OTHER)
    folder.write("sub/x.txt", "x\n")
    folder.write("sub/subsets.yml", "- {id: only, tasks: [t]}\n")
    return folder.load(FULL)


def test_settings(full: Experiment) -> None:
    assert (full.name, full.seed, full.retries) == ("refund-agent", 7, 2)
    assert full.score == ScorePolicy("reward", 0.5, {"reward": "continuous", "tokens": "measurement", "tone": "label"})
    assert full.analysis == AnalysisSettings((1, 2), KillRule("fisher", None, 0.1), "mean_drop", 99, 99, 3)
    assert full.gates == (Gate("refunds skips pass@2 <= 0.25", "refunds", "skips", "pass@k", 2, "<=", 0.25),)
    assert full.warnings == ()
    assert full.lock is None


def test_runner_and_coverage(full: Experiment) -> None:
    assert isinstance(full.runner, FakeRunner)
    assert full.runner.agent.written == ("{python}", "agent.py")
    assert full.runner.agent.resolved[1] == str(full.folder / "agent.py")
    assert full.runner.sizes == (1, 2)
    assert full.runner.hook is not None
    assert full.runner.hook.file == full.folder / "agent.py"
    (tools,) = full.coverage
    assert isinstance(tools.system, FakeCoverage)
    assert (tools.id, tools.system.settings) == ("tools", {"a": 1})


def test_tasks(full: Experiment) -> None:
    late, early = full.case("refunds").tasks
    assert (late.id, late.attempts, late.tags, late.name, late.line) == ("late", 5, ("policy",), "tests/a.py::t[1]", 21)
    assert late.params == {"request": "...", "deep": {"a": [1, None]}}
    assert (early.attempts, early.description, early.line) == (3, "An early one.", 22)


def test_variants(full: Experiment) -> None:
    baseline, skips, same, tame, one, two = full.case("refunds").variants
    assert (baseline.id, baseline.kind, baseline.request_id, baseline.line) == ("baseline", "baseline", "baseline", 23)
    assert (skips.id, skips.kind, skips.request_id, skips.line) == ("skips", "mutant", "skips", 25)
    assert skips.params == {"drop": "eligibility"}
    assert (same.equivalent, same.control, same.line) == ("reviewed", False, 26)
    assert (tame.control, tame.request_id) == (True, "tame")
    for number, control in enumerate((one, two), start=1):
        assert (control.id, control.kind, control.control) == (f"control-{number}", "mutant", True)
        assert (control.request_id, control.params) == ("baseline", {"policy": "strict"})
        assert control.description == "An unchanged copy of the baseline."
        assert control.tags == ()


def test_a_case_in_a_file_of_its_own(full: Experiment) -> None:
    other = full.case("other")
    assert other.file == full.folder / "sub/other.yml"
    assert other.line == 1
    assert [(file.name, file.path) for file in other.inputs] == [("x.txt", full.folder / "sub/x.txt")]
    assert other.subsets == (Subset("only", ("t",)),)
    assert [variant.id for variant in other.variants] == ["baseline", "control-1", "control-2"]
    assert full.case("refunds").file is None
    assert full.case("refunds").line == 17


def test_defaults(folder: Folder, base: str) -> None:
    experiment = folder.load(base + "cases: [{id: a, tasks: [{id: t}]}]\n")
    assert (experiment.seed, experiment.retries, experiment.coverage, experiment.gates) == (0, 0, (), ())
    assert experiment.score == ScorePolicy(None, 1.0, {})
    assert experiment.analysis == AnalysisSettings((1,), KillRule("flip"), "kill_share", 9999, 1000, 0)
    (case,) = experiment.cases
    assert (case.tasks[0].attempts, case.inputs, case.subsets, case.mutants) == (1, (), (), ())
    assert case.baseline.params == {}


@pytest.mark.parametrize(
    ("attempts", "expected"), [(1, (1,)), (2, (1,)), (3, (1, 3)), (4, (1, 3)), (5, (1, 3, 5)), (9, (1, 3, 5))]
)
def test_default_k(folder: Folder, base: str, attempts: int, expected: tuple[int, ...]) -> None:
    tasks = f"[{{id: t}}, {{id: u, attempts: {attempts}}}]"
    assert folder.load(f"{base}cases: [{{id: a, tasks: {tasks}}}]\n").analysis.pass_at_k == expected


def test_k_may_not_exceed_the_attempts_when_every_task_overrides_them(folder: Folder, base: str) -> None:
    text = f"{base}attempts: 5\ncases: [{{id: a, tasks: [{{id: t, attempts: 2}}]}}]\nanalysis: {{pass_at_k: [3]}}\n"
    (problem,) = folder.problems(text)
    assert problem.key == "analysis.pass_at_k[0]"
    assert folder.load(text.replace("[3]", "[2]")).analysis.pass_at_k == (2,)


@pytest.mark.parametrize(
    ("outputs", "primary"),
    [
        ("{a: continuous}", "a"),
        ("{a: continuous, t: measurement, l: label}", "a"),
        ("{a: continuous, reward: boolean}", "reward"),
        ("{}", None),
    ],
)
def test_the_primary_score_that_outputs_imply(folder: Folder, base: str, outputs: str, primary: str | None) -> None:
    text = f"{base}score: {{outputs: {outputs}}}\ncases: [{{id: a, tasks: [{{id: t}}]}}]\n"
    assert folder.load(text).score.primary == primary


def test_one_resample_of_two_is_given(folder: Folder, base: str) -> None:
    text = f"{base}cases: [{{id: a, tasks: [{{id: t}}]}}]\nanalysis: {{resamples: {{bootstrap: 5}}}}\n"
    analysis = folder.load(text).analysis
    assert (analysis.permutation, analysis.bootstrap) == (9999, 5)


def test_equal_subsets_are_a_warning(folder: Folder, base: str) -> None:
    text = base + (
        "cases:\n  - id: a\n    tasks: [{id: t}, {id: u}]\n    subsets:\n"
        "      - {id: x, tasks: [t, u]}\n      - {id: y, tasks: [t]}\n      - {id: z, tasks: [u, t]}\n"
    )
    (warning,) = folder.load(text).warnings
    assert warning.startswith("experiment.yml:10: the subsets x and z hold the same tasks")


def test_anchors_and_merges_in_an_experiment(folder: Folder, base: str) -> None:
    text = base + (
        "cases:\n  - id: a\n    tasks: [{id: t}]\n    baseline: {params: &p {x: 1, y: 2}}\n"
        "    mutants: [{id: m, params: {<<: *p, y: 3}}]\n"
    )
    case = folder.load(text).case("a")
    assert case.mutants[0].params == {"x": 1, "y": 3}
    assert case.baseline.params == {"x": 1, "y": 2}


def test_a_relative_path_is_made_absolute(folder: Folder, base: str) -> None:
    folder.write("experiment.yml", base + "cases: [{id: a, tasks: [{id: t}]}]\n")
    experiment = load_experiment(Path("experiment.yml"), runners={"plain": _plain()}, systems={})
    assert experiment.path == folder.path / "experiment.yml"


def _plain() -> type[Runner]:
    from typing import Literal

    class Plain(Runner):
        kind: Literal["plain"] = "plain"

        def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
            raise NotImplementedError

    return Plain


def test_an_executable_that_is_absent_is_accepted_from_a_store(folder: Folder, base: str) -> None:
    text = base.replace("{kind: plain}", "{kind: fake, agent: [/no/such/agent, run.py], hook: 'gone:f'}")
    text += "cases: [{id: a, inputs: [gone.md, 'gone/*.py'], tasks: [{id: t}]}]\n"
    assert len(folder.problems(text)) == 4
    experiment = folder.load(text, cached_only=True)
    assert isinstance(experiment.runner, FakeRunner)
    assert experiment.runner.agent.written == ("/no/such/agent", "run.py")
    assert [file.name for file in experiment.cases[0].inputs] == ["gone.md", "gone/*.py"]


def test_one_module_name_means_one_file(folder: Folder, base: str, tmp_path: Path) -> None:
    text = base.replace("{kind: plain}", "{kind: fake, agent: [/bin/sh], hook: 'helper:f'}")
    text += "cases: [{id: a, tasks: [{id: t}]}]\n"
    claimed: dict[str, Path] = {}
    for name in ("one", "two"):
        folder.write(f"{name}/helper.py", "def f(): ...\n")
        folder.write(f"{name}/experiment.yml", text)
    folder.load(name="one/experiment.yml", targets=claimed)
    folder.load(name="one/experiment.yml", targets=claimed)
    (problem,) = folder.problems(name="two/experiment.yml", targets=claimed)
    assert problem.key == "runner.hook"
    assert "one/helper.py" in problem.message
    assert "two/helper.py" in problem.message


def test_a_hundred_variants_and_tasks_load_at_once(folder: Folder, base: str) -> None:
    import time

    lines = [base, "attempts: 5\ncases:\n  - id: a\n    tasks:\n"]
    lines += [f"      - {{id: t{n}, params: {{request: hello {n}}}}}\n" for n in range(100)]
    lines += ["    mutants:\n", *(f"      - {{id: m{n}, params: {{n: {n}}}}}\n" for n in range(100))]
    lines += ["    subsets: {sizes: [3, 6, 12], per_size: 100}\n"]
    folder.write("experiment.yml", "".join(lines))
    began = time.process_time()
    experiment = folder.load()
    assert time.process_time() - began < 1
    assert sum(1 for _ in experiment.attempts()) == 101 * 100 * 5


@pytest.mark.parametrize(("count", "said"), [(3, "s0, s1 and s2 hold"), (40, "s0, s1, s2, s3, s4 and 35 more hold")])
def test_many_equal_subsets_are_one_warning(folder: Folder, base: str, count: int, said: str) -> None:
    subsets = ", ".join(f"{{id: s{number}, tasks: [t]}}" for number in range(count))
    text = f"{base}cases: [{{id: a, tasks: [{{id: t}}], subsets: [{subsets}]}}]\n"
    (warning,) = folder.load(text).warnings
    assert said in warning
    assert f"weigh {count}-fold" in warning
