"""Job folders read as recordings: variants, tasks, what is missing, and what is refused."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.interop_harbor.harbor_lab import SAMPLES, HarborLab, error, kinds, notes, read_sample, result


def agent(**config: Any) -> dict[str, Any]:
    return {"config": {"agent": {"name": "toy", **config}}}


class TestSamples:
    @pytest.mark.parametrize("version", ["0.25", "0.26"])
    def test_one_job_with_four_configurations_is_four_variants(self, version: str) -> None:
        """Harbor itself calls all of them ``toy__ds``. What the agent did counts the same in both versions."""
        found = kinds(read_sample(f"variants-{version}"))
        wanted: dict[tuple[str, str], list[str]] = {}
        for task in ("alpha", "beta", "gamma"):
            wanted["toy", task] = ["1.0"] * 2
            wanted["toy-mutant-m1", task] = ["0.0" if task == "alpha" else "1.0"] * 2
            wanted["toy-mutant-crash", task] = ["died RuntimeError"] * 2
            wanted["toy-mutant-slow", task] = ["0.0 AgentTimeoutError"] * 2
        assert found == wanted

    def test_the_notes_say_what_errors_did_to_rewards(self) -> None:
        assert notes(read_sample("variants-0.26")) == {
            "attempts by Harbor 0.26.0": 24,
            "attempts are scored in spite of an error (AgentTimeoutError 6)": 6,
            "attempts have rewards and count as died, for an error (RuntimeError 6)": 6,
        }
        assert notes(read_sample("variants-0.25")) == {
            "attempts by Harbor 0.25.0": 24,
            "attempts are scored in spite of an error (AgentTimeoutError 6)": 6,
        }

    def test_two_jobs_of_one_agent_are_one_variant(self) -> None:
        """Whatever version ran them, and whether defaults were written out or not."""
        found = kinds(read_sample("variants-0.25", "variants-0.26"))
        assert found["toy", "alpha"] == ["1.0"] * 4
        assert len({variant for variant, _ in found}) == 4

    @pytest.mark.parametrize("version", ["0.25", "0.26"])
    def test_errors(self, version: str) -> None:
        found = read_sample(f"errors-{version}")
        missing = "unmeasured NotRecorded"
        assert kinds(found) == {
            ("toy", "emptyreward"): ["unmeasured RewardFileEmptyError", missing],
            ("toy", "jsonreward"): ["['a', 'b']", missing],
            ("toy", "noreward"): ["unmeasured RewardFileNotFoundError", missing],
            ("toy", "ok"): ["1.0", missing],
            ("toy", "vtimeout"): ["unmeasured VerifierTimeoutError", missing],
        }
        assert notes(found) == {
            f"attempts of jobs/errors-{version} have no result, although the job has ended": 5,
            f"attempts by Harbor {version}.0": 5,
            "different sets of rewards, depending on the task (none is common to all); see score.primary": 2,
        }

    @pytest.mark.parametrize("version", ["0.25", "0.26"])
    def test_steps(self, version: str) -> None:
        """``late`` crashes in its second step; Harbor gives 1.0 for it where the second step has no verifier."""
        found = read_sample(f"steps-{version}")
        assert kinds(found) == {
            ("toy", "two"): ["1.0"],
            ("toy-mutant-late", "two"): ["died RuntimeError"],
            ("toy-mutant-wrong", "two"): ["0.5"],
            ("toy", "lone"): ["unmeasured RewardFileNotFoundError"],
            ("toy-mutant-late", "lone"): ["died RuntimeError"],
            ("toy-mutant-wrong", "lone"): ["unmeasured RewardFileNotFoundError"],
        }
        assert dict(found.tasks["two"].outputs) == {
            "step.first.reward": "measurement",
            "step.second.reward": "measurement",
        }

    def test_a_killed_job_says_what_is_missing(self) -> None:
        found = read_sample("killed-0.26")
        assert notes(found) == {
            "attempts of jobs/killed-0.26 have no result: the job was interrupted or is still running": 4,
            "attempts by Harbor 0.26.0": 8,
        }
        missing = [entry for entry in found.attempts if entry.outcome.kind == "unmeasured"]
        assert sorted((entry.variant, entry.task) for entry in missing) == [
            ("toy", "beta"),
            ("toy", "gamma"),
            ("toy-mutant-m1", "beta"),
            ("toy-mutant-m1", "gamma"),
        ]
        why = {entry.trial: entry.outcome.error.message for entry in missing if entry.outcome.error}
        assert why["beta__YcELT3x"] == (
            "jobs/killed-0.26/beta__YcELT3x has no result.json: the job was interrupted or is still running"
        )
        assert why[""] == (
            "the job jobs/killed-0.26 planned it and holds no folder of it: the job was interrupted or is still running"
        )

    def test_evidence_and_files(self) -> None:
        found = read_sample("variants-0.26")
        first = next(entry for entry in found.attempts if entry.variant == "toy")
        assert list(first.files) == [
            "agent/trajectory.json",
            "result.json",
            "verifier/reward.txt",
            "verifier/test-stdout.txt",
        ]
        assert first.files["result.json"] == SAMPLES / "variants-0.26" / first.trial / "result.json"
        assert len(found.files) == 24 + 3
        assert all(path.is_file() for path in found.files.values())

    def test_steps_leave_evidence_too(self) -> None:
        found = read_sample("steps-0.26", evidence=["*/trajectory.json"])
        whole = next(entry for entry in found.attempts if (entry.variant, entry.task) == ("toy", "two"))
        assert list(whole.files) == [
            "result.json",
            "steps/first/agent/trajectory.json",
            "steps/second/agent/trajectory.json",
        ]

    def test_reading_again_gives_the_same(self) -> None:
        names = ("killed-0.26", "variants-0.26", "variants-0.25")
        assert read_sample(*names) == read_sample(*names)


class TestVariants:
    def test_by_folder(self, harbor_lab: HarborLab) -> None:
        one = harbor_lab.job(result({"reward": 1.0}), name="monday")
        two = harbor_lab.job(result({"reward": 0.0}, id="other"), name="tuesday")
        assert list(kinds(harbor_lab.read(one, two))) == [("toy", "alpha")]
        assert list(kinds(harbor_lab.read(one, two, variants="folder"))) == [("monday", "alpha"), ("tuesday", "alpha")]

    def test_a_folder_with_two_configurations_is_told(self, harbor_lab: HarborLab) -> None:
        job = harbor_lab.job(
            result({"reward": 1.0}), result({"reward": 1.0}, name="beta__7654321", **agent(kwargs={"x": 1}))
        )
        found = notes(harbor_lab.read(job, variants="folder"))
        assert found == {"different configurations of agents in jobs/made, which counts as one variant": 2}

    def test_instructions_that_a_job_adds_make_a_variant(self, harbor_lab: HarborLab) -> None:
        """They stand in the job, and not with the agent."""
        one = harbor_lab.job(result({"reward": 1.0}), name="plain")
        two = harbor_lab.job(result({"reward": 0.0}, id="other"), name="terse")
        config = json.loads((two / "config.json").read_text())
        (two / "config.json").write_text(json.dumps({**config, "extra_instructions": ["Be terse."]}))
        assert list(kinds(harbor_lab.read(one, two))) == [
            ("toy", "alpha"),
            ("toy-extra_instructions-Be-terse.", "alpha"),
        ]

    def test_masked_variables_are_told(self, harbor_lab: HarborLab) -> None:
        job = harbor_lab.job(result({"reward": 1.0}, **agent(env={"AUTH_MODE": "****", "API_KEY": "sk-1****234"})))
        assert notes(harbor_lab.read(job)) == {
            "environment variables are masked by Harbor (API_KEY, AUTH_MODE): agents that differ only there may count "
            "as one": 2
        }

    def test_one_masked_variable_is_one(self, harbor_lab: HarborLab) -> None:
        job = harbor_lab.job(result({"reward": 1.0}, **agent(env={"API_KEY": "****"})))
        assert notes(harbor_lab.read(job)) == {
            "environment variable is masked by Harbor (API_KEY): agents that differ only there may count as one": 1
        }

    def test_an_edited_skill_makes_a_variant(self, harbor_lab: HarborLab) -> None:
        jobs = []
        for name, digest in (("before", "sha256:aa"), ("after", "sha256:bb")):
            job = harbor_lab.job(result({"reward": 1.0}, id=name, **agent(skills=["skills/x"])), name=name)
            planned = {
                "task": {"name": "alpha"},
                "agent": {"name": "toy", "skills": ["skills/x"]},
                "skills": [{"name": "x", "digest": digest}],
            }
            (job / "lock.json").write_text(json.dumps({"harbor": {"version": "0.26.0"}, "trials": [planned]}))
            jobs.append(job)
        assert len({variant for variant, _ in kinds(harbor_lab.read(*jobs))}) == 2

    def test_a_single_trial(self, harbor_lab: HarborLab) -> None:
        trial = harbor_lab.job(result({"reward": 1.0})) / "alpha__1234567"
        found = harbor_lab.read(trial)
        assert kinds(found) == {("toy", "alpha"): ["1.0"]}
        assert found.attempts[0].origin == "jobs/made"


class TestWhatIsMissing:
    def test_more_results_than_planned_are_told(self, harbor_lab: HarborLab) -> None:
        """Two processes with one job name: Harbor has no lock."""
        trials = [result({"reward": 1.0}, name=f"alpha__{number:07}") for number in range(5)]
        found = harbor_lab.read(harbor_lab.job(*trials, n_total_trials=3))
        assert notes(found) == {
            "more results in jobs/made than it planned (3): two processes wrote into it; all count": 2
        }
        assert kinds(found)["toy", "alpha"] == ["1.0"] * 5

    def test_a_job_without_a_plan_says_how_many_are_missing(self, harbor_lab: HarborLab) -> None:
        found = harbor_lab.read(harbor_lab.job(result({"reward": 1.0}), n_total_trials=4, finished_at=None))
        assert notes(found) == {
            "attempts of jobs/made have no result: the job was interrupted or is still running": 3,
            "of the missing attempts of jobs/made cannot be placed: no plan says of which agent and task": 3,
        }

    def test_a_plan_of_other_agents_is_not_used(self, harbor_lab: HarborLab) -> None:
        """Otherwise everything would be missing beside what is there."""
        job = harbor_lab.job(result({"reward": 1.0}))
        planned = {"task": {"name": "alpha"}, "agent": {"name": "toy", "skills": ["/resolved/elsewhere"]}}
        (job / "lock.json").write_text(json.dumps({"trials": [planned]}))
        assert kinds(harbor_lab.read(job)) == {("toy", "alpha"): ["1.0"]}

    def test_a_job_of_which_nothing_ended(self, harbor_lab: HarborLab) -> None:
        job = harbor_lab.copy("killed-0.26")
        for file in job.glob("*__*/result.json"):
            file.unlink()
        assert harbor_lab.refused(job) == ("no trial of jobs/killed-0.26 has a result", "run the job to its end")

    def test_a_folder_that_is_no_trial_is_passed_over(self, harbor_lab: HarborLab) -> None:
        job = harbor_lab.job(result({"reward": 1.0}))
        (job / "notes").mkdir()
        (job / "notes" / "config.json").write_text('{"mine": true}')
        assert kinds(harbor_lab.read(job)) == {("toy", "alpha"): ["1.0"]}


class TestTasks:
    def test_a_task_that_was_edited_between_jobs_is_told(self, harbor_lab: HarborLab) -> None:
        one = harbor_lab.job(result({"reward": 1.0}, task_checksum="a"), name="one")
        two = harbor_lab.job(result({"reward": 1.0}, task_checksum="b", id="2"), name="two")
        assert notes(harbor_lab.read(one, two)) == {
            "task had other files in some of the trials than in others (alpha)": 1
        }

    def test_names_of_tasks_stay_as_they_are(self, harbor_lab: HarborLab) -> None:
        job = harbor_lab.job(
            result({"reward": 1.0}, name="a__b__1234567", task_name="org/a__b"),
            result({"reward": 1.0}, name="c__1234567", task_name="c__d"),
        )
        assert list(harbor_lab.read(job).tasks) == ["c__d", "org/a__b"]


class TestRefusals:
    """Every broken file is named; none is left out."""

    def test_a_copy_of_a_job(self, harbor_lab: HarborLab) -> None:
        one, two = harbor_lab.copy("oracle-0.25", "a"), harbor_lab.copy("oracle-0.25", "b")
        message, remedy = harbor_lab.refused(one, two)
        assert message == "jobs/b/alpha__tJnCEkb is a copy of jobs/a/alpha__tJnCEkb: the id of both is the same"
        assert remedy == "read one of the two"

    def test_a_trial_beside_one_that_verified_it_again(self, harbor_lab: HarborLab) -> None:
        one = harbor_lab.job(result({"reward": 0.0}), name="first")
        again = {"agent": {"name": "toy"}, "source_trial": {"action": "regrade", "trial_id": "id of alpha__1234567"}}
        two = harbor_lab.job(result({"reward": 1.0}, name="alpha__7654321", config=again), name="again")
        assert kinds(harbor_lab.read(two)) == {("toy", "alpha"): ["1.0"]}
        assert harbor_lab.refused(one, two) == (
            "jobs/again/alpha__7654321 is jobs/first/alpha__1234567, verified again",
            "read one of the two",
        )

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ('{"task_name": "alp', "jobs/made/broken__1234567: result.json is not JSON: "),
            ("", "jobs/made/broken__1234567: result.json is empty"),
            ("[]", "jobs/made/broken__1234567/result.json holds a list []; a mapping is expected"),
            ("{}", "jobs/made/broken__1234567/result.json has no config.agent"),
            ('{"a": 1, "a": 2}', "jobs/made/broken__1234567: result.json has the key 'a' twice"),
            (
                '{"schema_version": 2}',
                "jobs/made/broken__1234567/result.json has the schema_version the number 2; 1 is known",
            ),
        ],
    )
    def test_a_broken_result(self, harbor_lab: HarborLab, content: str, said: str) -> None:
        job = harbor_lab.job(result({"reward": 1.0}))
        harbor_lab.trial(job, content)
        message, remedy = harbor_lab.refused(job)
        assert message.startswith(said)
        if content == "{}":
            assert remedy == "it is no result of a trial of Harbor 0.13 or newer"
        if "schema_version" in content:
            assert remedy == "it was written by a newer Harbor; look for a newer pytest-metricbench"

    def test_a_result_cut_in_the_middle_says_what_to_do(self, harbor_lab: HarborLab) -> None:
        job = harbor_lab.job(result({"reward": 1.0}))
        harbor_lab.trial(job, '{"task_na')
        assert harbor_lab.refused(job)[1] == (
            "if the job is still running, wait for its end; otherwise repair or remove the folder of the trial"
        )

    def test_a_wrong_part_of_a_result(self, harbor_lab: HarborLab) -> None:
        job = harbor_lab.job(result([1.0]))
        assert harbor_lab.refused(job) == (
            "jobs/made/alpha__1234567/result.json: verifier_result.rewards is a list [1.0]; "
            "a mapping or null is expected",
            "it is no result of Harbor 0.13 or newer",
        )

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("lock.json", {"harbor": {"version": "0.9.2"}}),
            ("result.json", {"n_total_trials": 1, "stats": {"n_trials": 1, "n_errors": 0}}),
        ],
    )
    def test_an_old_version(self, harbor_lab: HarborLab, name: str, content: dict[str, Any]) -> None:
        job = harbor_lab.job(result({"reward": 1.0}))
        (job / name).write_text(json.dumps(content))
        shown = "0.9.2" if name == "lock.json" else "before 0.13"
        assert harbor_lab.refused(job) == (
            f"jobs/made was written by Harbor {shown}; 0.13 and newer are read",
            "run the job again with a newer Harbor",
        )

    def test_a_newer_version_is_read_and_told(self, harbor_lab: HarborLab) -> None:
        job = harbor_lab.job(result({"reward": 1.0}))
        (job / "lock.json").write_text(json.dumps({"harbor": {"version": "0.31.0"}}))
        assert notes(harbor_lab.read(job)) == {
            "attempt by Harbor 0.31.0, which is newer than what is known here: read like 0.26": 1
        }

    def test_folders_that_are_none(self, harbor_lab: HarborLab) -> None:
        jobs = harbor_lab.copy("oracle-0.25").parent
        assert harbor_lab.refused(jobs) == ("jobs is no job of Harbor: jobs/oracle-0.25 is one", "name jobs/*")
        file = jobs / "notes.txt"
        file.write_text("x")
        assert harbor_lab.refused(file) == (
            "jobs/notes.txt is no folder",
            "name a job folder of Harbor, which holds a folder for each trial",
        )
        empty = jobs / "empty"
        empty.mkdir()
        assert harbor_lab.refused(empty) == (
            "jobs/empty holds no trial of Harbor",
            "name a job folder, as in jobs/2026-01-31__12-00-00",
        )
        for inner in ("day/made/trial", "made/trial"):  # with the job two levels below, and one
            (empty / inner).mkdir(parents=True)
            (empty / inner).parent.joinpath("config.json").write_text("{}")
            advice = "it holds folders of jobs: name jobs/empty/*"
            assert harbor_lab.refused(empty) == ("jobs/empty holds no trial of Harbor", advice)
            shutil.rmtree(empty / inner.partition("/")[0])
        (empty / "task" / "x").mkdir(parents=True)
        (empty / "task" / "task.toml").write_text("")
        assert harbor_lab.refused(empty) == (
            "jobs/empty holds tasks of Harbor and no trials",
            "name the folder of the job that ran them",
        )

    def test_options_that_do_not_fit(self, harbor_lab: HarborLab) -> None:
        job = harbor_lab.job(result({"reward": 1.0}, error("AgentTimeoutError")))
        assert harbor_lab.refused(job, variants="label:x") == (
            "runner.variants: 'label:x' is nothing that the form harbor tells variants apart by",
            "one of agent, folder is expected",
        )
        assert harbor_lab.refused(job, columns={"task": "t"})[0] == "runner.columns: the form harbor has no columns"
        assert harbor_lab.refused(job, outcomes={"AgentTimeOutError": "died"}) == (
            "runner.outcomes: no attempt has an error of the type 'AgentTimeOutError'",
            "did you mean 'AgentTimeoutError'?",
        )
        assert kinds(harbor_lab.read(job, outcomes={"AgentTimeoutError": "died", "ApiError": "died"})) == {
            ("toy", "alpha"): ["died AgentTimeoutError"]
        }


class TestFilesOfStrangers:
    def test_links_are_not_followed(self, harbor_lab: HarborLab, tmp_path: Path) -> None:
        job = harbor_lab.job(result({"reward": 1.0}))
        secret = tmp_path / "secret"
        secret.mkdir()
        (secret / "trajectory.json").write_text("{}")
        trial = job / "alpha__1234567"
        (trial / "agent").symlink_to(secret)
        (trial / "verifier").mkdir()
        (trial / "verifier" / "reward.txt").symlink_to(secret / "trajectory.json")
        (job / "beta__1234567").symlink_to(trial)
        found = harbor_lab.read(job)
        assert [list(entry.files) for entry in found.attempts] == [["result.json"]]

    def test_a_pipe_in_place_of_a_result_is_not_waited_for(self, harbor_lab: HarborLab) -> None:
        job = harbor_lab.job(result({"reward": 1.0}))
        (job / "beta__1234567").mkdir()
        os.mkfifo(job / "beta__1234567" / "result.json")
        assert harbor_lab.refused(job)[0] == "jobs/made/beta__1234567: result.json cannot be read: not a regular file"
