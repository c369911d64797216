"""What is collected: ids, the tree of collectors, marks."""

import pytest

from tests.plugin.plugin_lab import Lab, node_ids

IDS = [
    f"experiment.yml::shop::{variant}::{task}[{slot}]"
    for variant in ("baseline", "no-pay", "quiet")
    for task in ("find", "pay", "refund")
    for slot in (1, 2)
]


def collected(lab: Lab, *args: str) -> list[str]:
    return node_ids(lab.run("--collect-only", "-q", *args))


def test_ids_are_file_case_variant_task_slot(lab: Lab) -> None:
    lab.make()
    assert collected(lab, "experiment.yml") == IDS


def test_ids_in_a_folder_begin_with_it(lab: Lab) -> None:
    lab.make("deep/er/experiment.yml")
    assert collected(lab) == [f"deep/er/{nodeid}" for nodeid in IDS]


def test_ids_from_within_the_folder_of_an_experiment(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.make("deep/experiment.yml")
    lab.write("pytest.ini", "[pytest]\n")
    monkeypatch.chdir(lab.path / "deep")
    assert collected(lab, "experiment.yml") == [f"deep/{nodeid}" for nodeid in IDS]


def test_a_task_may_have_attempts_of_its_own(lab: Lab) -> None:
    lab.make(
        case={"tasks": [{"id": "find", "attempts": 3}, {"id": "pay", "attempts": 1}], "mutants": None, "subsets": None}
    )
    assert [nodeid.rpartition("::")[2] for nodeid in collected(lab)] == ["find[1]", "find[2]", "find[3]", "pay[1]"]


def test_controls_come_last(lab: Lab) -> None:
    lab.make(controls=2)
    variants = list(dict.fromkeys(nodeid.split("::")[2] for nodeid in collected(lab)))
    assert variants == ["baseline", "no-pay", "quiet", "control-1", "control-2"]


def test_the_tree_of_collectors(lab: Lab) -> None:
    lab.make(attempts=1)
    result = lab.run("--collect-only")
    result.stdout.fnmatch_lines(
        [
            "  <ExperimentFile experiment.yml>",
            "    <CaseCollector shop>",
            "      <VariantCollector baseline>",
            "        <AttemptItem find[[]1]>",
            "        <AttemptItem pay[[]1]>",
            "        <AttemptItem refund[[]1]>",
            "      <VariantCollector no-pay>",
            "        <AttemptItem find[[]1]>",
        ],
        consecutive=True,
    )


@pytest.mark.slow
def test_ids_do_not_depend_on_hashes_or_the_store(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    tags = [f"tag-{number}" for number in range(20)]
    tasks = [{"id": f"task-{number}", "tags": tags[number:]} for number in range(6)]
    lab.make(case={"tasks": tasks, "subsets": {"sizes": [2, 3], "per_size": 5}})
    seen = []
    for seed in ("0", "1", "77"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        seen.append(node_ids(lab.run("--collect-only", "-q", apart=True)))
    assert len(seen[0]) == 36
    assert seen[0] == seen[1] == seen[2]
    lab.run("experiment.yml", "-k", "task-3")
    assert collected(lab) == seen[0]


# ---------------------------------------------------------------- marks


@pytest.mark.parametrize(
    ("expression", "number"),
    [
        ("baseline", 6),
        ("mutant", 12),
        ("quick", 6),  # a tag of a task
        ("money", 6),  # a tag of a mutant
        ("money and quick", 2),
        ("not baseline and not money", 6),
        ("metricbench(case='shop')", 18),
        ("metricbench(variant='quiet')", 6),
        ("metricbench(variant='quiet', task='pay')", 2),
        ("metricbench(case='shop', variant='baseline', task='pay')", 2),
        ("metricbench(task='pay') and mutant", 4),
        ("metricbench(case='other')", 0),
    ],
)
def test_selection_by_mark(lab: Lab, expression: str, number: int) -> None:
    lab.make()
    assert len(collected(lab, "--strict-markers", "-m", expression)) == number


def test_tags_that_are_no_names_of_python(lab: Lab) -> None:
    lab.make(case={"tasks": [{"id": "find", "tags": ["needs-policy", "v1.2", "c++"]}], "subsets": None})
    for tag in ("needs-policy", "v1.2", "c++"):
        assert len(collected(lab, "--strict-markers", "-m", tag)) == 6


def test_every_mark_is_registered(lab: Lab) -> None:
    lab.make()
    result = lab.run("experiment.yml", "--strict-markers", "--strict-config", "-W", "error")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*warning*")


def test_marks_are_listed(lab: Lab) -> None:
    result = lab.run("--markers")
    result.stdout.fnmatch_lines_random(
        ["@pytest.mark.baseline:*", "@pytest.mark.mutant:*", "@pytest.mark.metricbench(case, variant, task):*"]
    )


def test_a_tag_that_a_project_registered_keeps_its_line(lab: Lab) -> None:
    lab.make()
    lab.write("pytest.ini", "[pytest]\nmarkers =\n    quick: takes no time\n")
    lab.write(
        "conftest.py",
        "def pytest_collection_finish(session):\n"
        "    print([line for line in session.config.getini('markers') if line.startswith(('quick', 'money'))])\n",
    )
    result = lab.run("--collect-only", "-s")
    result.stdout.fnmatch_lines(["*'quick: takes no time', 'money: a tag of the experiment shop']"])
