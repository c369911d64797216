"""Experiments of attempts that Harbor made, through the whole plugin."""

import json
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.interop.harbor.stats import stats_by_group, stored_trials
from pytest_metricbench.runners.recorded import FORMS
from pytest_metricbench.stages import open_store
from tests.recorded.recorded_lab import RecordedLab, without

TOY = {"baseline": "toy"}
COVERAGE = [{"id": "tools", "kind": "tool-calls", "tools": ["bash", "browser"]}]


class TestWholeRuns:
    @pytest.mark.parametrize("sample", ["variants-0.25", "variants-0.26"])
    @pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])
    def test_naming_the_baseline_is_enough(self, recorded: RecordedLab, sample: str, workers: list[str]) -> None:
        """The figures are the same for both versions, though Harbor's own differ."""
        recorded.samples(sample)
        recorded.make(runner=TOY)
        found = recorded.run(*workers)
        assert found.ret == 0
        assert found.parseoutcomes() == {"passed": 10, "died": 6, "missed": 8}
        case = recorded.case()
        verdicts = {name: variant["verdicts"] for name, variant in case["variants"].items()}
        assert {name: (found["solved"], found["failed"]) for name, found in verdicts.items()} == {
            "baseline": (3, 0),
            "toy-mutant-crash": (0, 3),
            "toy-mutant-m1": (2, 1),
            "toy-mutant-slow": (0, 3),
        }
        assert {name: variant["valid"] for name, variant in case["variants"].items()}["toy-mutant-crash"] is False
        pass_at_1 = {name: variant["pass_at_k"]["reward"]["1"]["value"] for name, variant in case["variants"].items()}
        assert pass_at_1 == {
            "baseline": 1.0,
            "toy-mutant-crash": 0.0,
            "toy-mutant-m1": pytest.approx(2 / 3),
            "toy-mutant-slow": 0.0,
        }
        assert case["kills"]["toy-mutant-m1"] == {"alpha": "killed", "beta": "survived", "gamma": "survived"}
        assert case["pool"]["kill_share"]["value"] == 1.0

    def test_attempts_are_called_what_harbor_calls_them(self, recorded: RecordedLab) -> None:
        recorded.samples("oracle-0.25")
        recorded.make()
        assert recorded.run().ret == 0
        attempts = recorded.case()["variants"]["baseline"]["attempts"]
        assert attempts["alpha"]["reward"] == [{"trial_id": "alpha__tJnCEkb", "value_type": "number", "value": 1.0}]

    def test_traces_are_evidence(self, recorded: RecordedLab) -> None:
        recorded.samples("variants-0.26")
        recorded.make(runner=TOY, case={"subsets": [{"id": "one", "tasks": ["alpha"]}]}, coverage=COVERAGE)
        assert recorded.run().ret == 0
        assert recorded.case()["pool"]["coverage"]["tools"]["value"] == 0.5
        baseline = [line for line in recorded.journal() if line["variant"] == "baseline"]
        assert all(
            {"agent/trajectory.json", "result.json", "verifier/reward.txt"} <= set(line["files"]) for line in baseline
        )

    def test_evidence_may_be_chosen(self, recorded: RecordedLab) -> None:
        recorded.samples("variants-0.26")
        recorded.make(runner={**TOY, "evidence": []})
        assert recorded.run().ret == 0
        assert {tuple(line["files"]) for line in recorded.journal()} == {("result.json",)}

    def test_the_report_says_what_was_decided(self, recorded: RecordedLab) -> None:
        recorded.samples("variants-0.26")
        recorded.make(runner=TOY)
        found = recorded.run()
        text = " ".join(found.outlines)
        assert "6 attempts have rewards and count as died, for an error" in " ".join(text.split())
        notes = {note["text"]: note["count"] for note in recorded.case()["notes"]}
        assert notes["attempts are scored in spite of an error (AgentTimeoutError 6)"] == 6

    def test_what_is_said_about_tasks_and_mutants_is_added(self, recorded: RecordedLab) -> None:
        recorded.samples("variants-0.26")
        recorded.make(
            runner=TOY,
            case={
                "tasks": [{"id": "alpha", "tags": ["greeting"]}],
                "mutants": [
                    {"id": "toy-mutant-m1", "description": "Never says hello."},
                    {"id": "toy-mutant-slow", "equivalent": "only slower"},
                ],
            },
        )
        assert recorded.run("-m", "greeting and mutant").ret == 0
        assert recorded.run().ret == 0
        assert recorded.case()["pool"]["kill_share"]["value"] == 1.0
        assert recorded.case()["variants"]["toy-mutant-m1"]["description"] == "Never says hello."

    def test_params_are_not_for_users(self, recorded: RecordedLab) -> None:
        recorded.samples("variants-0.26")
        recorded.make(runner=TOY, case={"mutants": [{"id": "toy-mutant-m1", "params": {"x": 1}}]})
        assert "params: recorded attempts take no params; remove the key" in recorded.refused()


class TestScores:
    def test_rewards_between_0_and_1_pass_from_a_threshold_on(self, recorded: RecordedLab) -> None:
        recorded.samples("steps-0.26")
        recorded.make(runner=TOY, score={"pass_at_least": 0.5})
        recorded.run()
        variants = recorded.case()["variants"]
        assert variants["toy-mutant-wrong"]["verdicts"]["solved"] == 1
        assert "step.first.reward" not in variants["baseline"]["pass_at_k"]
        steps = variants["baseline"]["attempts"]["two"]["step.first.reward"]
        assert [cell["value"] for cell in steps] == [1.0]

    def test_a_reward_that_is_nan_passes_nothing(self, recorded: RecordedLab) -> None:
        recorded.samples("oracle-0.25")
        recorded.make()
        path = recorded.path / "jobs" / "oracle-0.25" / "beta__fcd929o" / "result.json"
        content = json.loads(path.read_text())
        content["verifier_result"]["rewards"]["reward"] = float("nan")
        path.write_text(json.dumps(content))
        assert recorded.run().ret == 0
        baseline = recorded.case()["variants"]["baseline"]
        assert baseline["attempts"]["beta"]["reward"][0]["value"] == "NaN"
        assert baseline["verdicts"]["failed"] == 1

    def test_tasks_without_the_primary_reward_are_not_measured(self, recorded: RecordedLab) -> None:
        recorded.samples("errors-0.26")
        recorded.make(score={"primary": "reward"})
        found = recorded.run("-k", "jsonreward and 1")
        assert "the primary score 'reward' is missing; the verifier gave a, b" in "\n".join(found.outlines)

    def test_the_table_of_exceptions_may_be_overridden(self, recorded: RecordedLab) -> None:
        recorded.samples("variants-0.26")
        recorded.make(runner={**TOY, "outcomes": {"AgentTimeoutError": "died", "RuntimeError": "scored"}})
        recorded.run()
        valid = {name: variant["valid"] for name, variant in recorded.case()["variants"].items()}
        assert (valid["toy-mutant-slow"], valid["toy-mutant-crash"]) == (False, True)


class TestAgreement:
    @pytest.mark.parametrize("sample", ["oracle-0.25", "variants-0.25", "variants-0.26", "steps-0.25", "steps-0.26"])
    def test_harbors_figures_come_out_of_the_store(self, recorded: RecordedLab, sample: str) -> None:
        """Also where an attempt died or was not measured here and Harbor counted its reward."""
        recorded.samples(sample)
        recorded.make(runner=TOY if "oracle" not in sample else {})
        recorded.run()
        shutil.rmtree(recorded.path / "jobs")
        kept = open_store(recorded.store)
        version = f"{sample.rpartition('-')[2]}.0"
        trials = stored_trials(kept.attempts.values(), kept.layout.left_by)
        found = {group: stats.to_json() for group, stats in stats_by_group(trials, version).items()}
        assert found == harbors_own(sample)

    @pytest.mark.parametrize("sample", ["errors-0.25", "errors-0.26"])
    def test_of_trials_with_several_rewards_too(self, recorded: RecordedLab, sample: str) -> None:
        """Of each pair of equal trials one is in the sample: all counts are halved, and the means are the same."""
        recorded.samples(sample)
        recorded.make(score={"primary": "reward"})
        recorded.run()
        kept = open_store(recorded.store)
        trials = stored_trials(kept.attempts.values(), kept.layout.left_by)
        found = stats_by_group(trials, f"{sample.rpartition('-')[2]}.0")["toy__ds2"].to_json()
        wanted = harbors_own(sample)["toy__ds2"]
        assert found["metrics"] == wanted["metrics"]
        assert (found["n_trials"], found["n_errors"]) == (wanted["n_trials"] / 2, wanted["n_errors"] / 2)
        for name, values in found["reward_stats"].items():
            for value, names in values.items():
                assert set(names) < set(wanted["reward_stats"][name][value])


def harbors_own(sample: str) -> Any:
    folder = Path(__file__).parents[1] / "interop_harbor" / "samples" / "jobs" / sample
    groups = json.loads((folder / "result.json").read_text())["stats"]["evals"]
    for stats in groups.values():
        for values in stats["reward_stats"].values():
            values.update({value: sorted(trials) for value, trials in values.items()})
        stats["exception_stats"] = {name: sorted(trials) for name, trials in stats["exception_stats"].items()}
    return groups


class TestWhatIsMissing:
    def test_attempts_without_a_result_are_missing(self, recorded: RecordedLab) -> None:
        recorded.samples("killed-0.26")
        recorded.make(runner=TOY)
        found = recorded.run()
        assert found.ret == 1
        counts = recorded.summary()["counts"]
        assert (counts["missing"], counts["unmeasured"]) == (4, 0)
        cells = recorded.case()["variants"]["baseline"]["attempts"]["beta"]["reward"]
        assert [cell["trial_id"] for cell in cells] == ["beta__USViVM4"]

    def test_a_job_that_went_on_makes_only_its_own_attempts_new(self, recorded: RecordedLab) -> None:
        """The lock says that it changed; renewed, the attempts of other variants stay as they are kept."""
        recorded.samples("variants-0.26")
        recorded.make(runner=TOY)
        recorded.run()
        trial = next(recorded.path.glob("jobs/*/alpha__4F9W5r3/result.json"))
        trial.write_text(trial.read_text().replace('"reward":0.0', '"reward":1.0'))
        assert (
            "experiment.lock.yml disagrees: the content of jobs/variants-0.26 changed; renew it" in recorded.refused()
        )
        assert recorded.run("--metricbench-lock").ret == 0
        found = recorded.run()
        assert recorded.summary()["counts"]["reused"] == 18
        assert found.ret == 0
        assert recorded.case()["variants"]["toy-mutant-m1"]["verdicts"]["flaky"] == 1

    def test_the_store_is_enough(self, recorded: RecordedLab) -> None:
        recorded.samples("variants-0.26")
        recorded.make(runner=TOY, coverage=COVERAGE)
        recorded.run()
        before = without(recorded.case(), "reused", "durations")
        shutil.rmtree(recorded.path / "jobs")
        assert recorded.run("--metricbench-cached-only").ret == 0
        assert without(recorded.case(), "reused", "durations") == before
        assert "runner.read: nothing matches 'jobs/*'" in recorded.refused()


class TestSeveralCases:
    def test_each_has_its_own_folders_and_baseline(self, recorded: RecordedLab) -> None:
        recorded.samples("variants-0.26", "steps-0.26")
        recorded.make(
            runner={
                "read": {"toy": ["jobs/variants-*"], "steps": ["jobs/steps-*"]},
                "baseline": {"toy": "toy", "steps": "toy"},
            },
            cases=[{"id": "toy"}, {"id": "steps"}],
        )
        recorded.run()
        summary = recorded.summary()
        assert sorted(summary["cases"]["steps"]["variants"]) == ["baseline", "toy-mutant-late", "toy-mutant-wrong"]
        assert len(summary["cases"]["toy"]["variants"]) == 4

    def test_a_case_without_folders(self, recorded: RecordedLab) -> None:
        recorded.samples("oracle-0.25")
        recorded.make(runner={"read": {"other": ["jobs/*"]}})
        assert "cases[0]: runner.read has nothing for the case 'toy'; it has other" in recorded.refused()


class TestByFolder:
    def test_one_job_a_variant(self, recorded: RecordedLab) -> None:
        """As those keep them whose variants differ in what stands in no configuration: code, prompts, data."""
        recorded.samples("oracle-0.25")
        jobs = recorded.path / "jobs"
        (jobs / "oracle-0.25").rename(jobs / "good")
        shutil.copytree(jobs / "good", jobs / "bad")
        for path in jobs.glob("bad/*__*/result.json"):
            content = json.loads(path.read_text())
            rewards = {"reward": 0.0 if content["task_name"] == "beta" else 1.0}
            path.write_text(
                json.dumps({**content, "id": f"{content['id']}-2", "verifier_result": {"rewards": rewards}})
            )
        recorded.make(runner={"variants": "folder", "baseline": "good"})
        assert recorded.run().ret == 0
        assert recorded.case()["kills"] == {"bad": {"alpha": "survived", "beta": "killed", "gamma": "survived"}}


class TestRefusals:
    """Messages in full: this is all that a user sees."""

    def test_nobody_says_which_is_the_baseline(self, recorded: RecordedLab) -> None:
        recorded.samples("variants-0.26")
        recorded.make()
        assert recorded.refused() == (
            "ERROR: experiment.yml:9:3: cases[0]: 4 variants are recorded, and runner.baseline does not say which is "
            "the baseline: toy, toy-mutant-crash (kwargs.boom=out of luck, kwargs.mutant=crash), toy-mutant-m1 "
            '(kwargs.break_words=["hello"], kwargs.mutant=m1), toy-mutant-slow (kwargs.mutant=slow, kwargs.sleep=20, '
            "override_timeout_sec=1); write baseline: toy, or whichever it is"
        )

    def test_the_baseline_is_not_there(self, recorded: RecordedLab) -> None:
        recorded.samples("steps-0.26")
        recorded.make(runner={"baseline": "tpy"})
        assert recorded.refused().startswith(
            "ERROR: experiment.yml:10:3: cases[0]: runner.baseline: no variant 'tpy' is recorded; did you mean 'toy'? "
            "there are toy, toy-mutant-late ("
        )

    @pytest.mark.parametrize(
        ("runner", "said"),
        [
            ({"read": ["jbos/*"]}, "cases[0]: runner.read: nothing matches 'jbos/*'; it is looked for in "),
            ({"read": ["jobs/none"]}, "cases[0]: runner.read: 'jobs/none' does not exist; it is looked for in "),
            ({"read": ["../*"]}, "leaves the experiment's folder; name it absolutely"),
            ({"read": []}, "runner.read: is empty; at least one entry is expected"),
            ({"form": "harbour"}, "runner.form: is the text 'harbour'; 'harbor', 'nemo', 'gym' or 'table' is expected"),
            ({"outcomes": {"RuntimeError": "dead"}}, "runner.outcomes.RuntimeError: is the text 'dead'; "),
            ({"variants": "model"}, "runner.variants: 'model' is nothing that the form harbor tells variants apart by"),
            ({"colums": {}}, "runner.colums: is an unknown key; did you mean 'columns'?"),
        ],
    )
    def test_keys(self, recorded: RecordedLab, runner: dict[str, Any], said: str) -> None:
        recorded.samples("oracle-0.25")
        recorded.make(runner=runner)
        assert said in recorded.refused()

    @pytest.mark.parametrize("module", FORMS.values())
    def test_every_form_can_be_read(self, module: str) -> None:
        assert callable(import_module(module).read)

    def test_a_broken_trial_is_named(self, recorded: RecordedLab) -> None:
        recorded.samples("oracle-0.25")
        recorded.make()
        (recorded.path / "jobs" / "oracle-0.25" / "beta__fcd929o" / "result.json").write_text('{"id": ')
        assert "cases[0]: jobs/oracle-0.25/beta__fcd929o: result.json is not JSON: " in recorded.refused()

    @pytest.mark.parametrize(
        ("sample", "runner", "held", "said"),
        [
            ("oracle-0.25", {}, 1, "1 attempt is recorded of baseline at alpha, and this would be number 2"),
            ("variants-0.26", TOY, 2, "2 attempts are recorded of baseline at alpha, and this would be number 3"),
        ],
        ids=["one", "two"],
    )
    def test_a_lock_that_was_edited_to_have_more_attempts(
        self, recorded: RecordedLab, sample: str, runner: dict[str, Any], held: int, said: str
    ) -> None:
        recorded.samples(sample)
        recorded.make(runner=runner)
        assert recorded.run("--metricbench-lock").ret == 0
        lock = recorded.path / "experiment.lock.yml"
        lock.write_text(lock.read_text().replace(f"alpha: {held},", f"alpha: {held + 1},", 1))
        assert recorded.run().ret == 1
        (more,) = [line for line in recorded.journal() if line["attempt"] == held + 1]
        assert (more["variant"], more["task"]) == ("baseline", "alpha")
        assert more["error"] == {"type": "NotRecorded", "message": said, "phase": "setup"}

    def test_a_mutant_that_is_not_recorded(self, recorded: RecordedLab) -> None:
        recorded.samples("variants-0.26")
        recorded.make(runner=TOY, case={"mutants": [{"id": "toy-mutant-m2"}]})
        assert "nothing is recorded of the mutant 'toy-mutant-m2'; did you mean 'toy-mutant-m1'?" in recorded.refused()
