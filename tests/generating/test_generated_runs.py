"""Runs with generated mutants as users have them: in one process and in two, from a lock and without, with hooks."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_metricbench import load_experiment

ROOT = Path(__file__).parents[2]

AGENT = """\
from pathlib import Path

def run(request):
    files = request.variant.params.get("files", {})
    policy = files.get("policy.md") or Path(__file__).with_name("policy.md").read_text()
    return 1 if request.task.params["words"] in policy else 0
"""
POLICY = """\
You must identify the customer. Never refund more than 500 EUR within 30 days.

- Leave a note.
"""
EXPERIMENT = """\
metricbench: 1
name: shop
runner: {kind: python, agent: "agent:run"}
cases:
  - id: desk
    tasks:
      - {id: asks, params: {words: must identify}}
      - {id: limits, params: {words: 500 EUR}}
    mutants:
      generate: {from: text, files: [policy.md], operators: [drop-sentence, drop-rule, invert-modal, swap-numbers]}
      listed: [{id: silent, description: Made by hand., params: {files: {policy.md: nothing}}}]
"""
KILLED = {
    "silent": {"asks", "limits"},
    "drop-sentence-you-must-identify-the-customer": {"asks"},
    "drop-sentence-never-refund-more-than-500-eur": {"limits"},
    "drop-rule-leave-a-note": set(),
    "invert-modal-must-identify-the-customer": {"asks"},
    "invert-modal-never-refund-more-than": set(),
    "swap-numbers-500-and-30": {"limits"},
}


@pytest.fixture
def shop(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name, text in (("agent.py", AGENT), ("policy.md", POLICY), ("experiment.yml", EXPERIMENT)):
        (pytester.path / name).write_text(text)
    return pytester


def run(shop: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """A run in this process, or in one of its own where workers are started."""
    return (shop.runpytest_subprocess if "-n2" in arguments else shop.runpytest_inprocess)("experiment.yml", *arguments)


def summary(folder: Path) -> dict[str, Any]:
    desk: dict[str, Any] = json.loads((folder / ".metricbench/shop/summary.json").read_text())["cases"]["desk"]
    return desk


def killed(case: dict[str, Any]) -> dict[str, set[str]]:
    return {mutant: {task for task, cell in row.items() if cell == "killed"} for mutant, row in case["kills"].items()}


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.benchmark)], ids=["plain", "n2"])
def test_generated_and_listed_mutants_are_measured_and_the_lock_is_written_once(
    shop: pytest.Pytester, workers: list[str]
) -> None:
    result = run(shop, *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*note: wrote *experiment.lock.yml: review it and commit it*"])
    case = summary(shop.path)
    assert killed(case) == KILLED
    lock = (shop.path / "experiment.lock.yml").read_text()
    again = run(shop, *workers)
    again.stdout.fnmatch_lines(["*16 reused*"])
    assert (shop.path / "experiment.lock.yml").read_text() == lock


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.benchmark)], ids=["plain", "n2"])
def test_a_prompt_that_changed_makes_the_lock_disagree_until_it_is_renewed(
    shop: pytest.Pytester, workers: list[str]
) -> None:
    assert run(shop, *workers).ret == 0
    (shop.path / "policy.md").write_text(POLICY + "- Be kind.\n")
    result = run(shop, *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "*experiment.yml:10:17: cases?0?.mutants.generate: experiment.lock.yml disagrees: the file policy.md "
            "changed; renew*"
        ]
    )
    assert run(shop, "--metricbench-lock").ret == 0
    renewed = run(shop, *workers)
    assert renewed.ret == 0
    assert "reused" not in renewed.parseoutcomes()  # the file defines the system: nothing older counts
    assert set(killed(summary(shop.path))) == {*KILLED, "drop-rule-be-kind"}


def test_operators_are_tags_to_select_by(shop: pytest.Pytester) -> None:
    result = shop.runpytest_subprocess(
        "experiment.yml", "--collect-only", "-q", "-m", "swap-numbers", "--strict-markers"
    )
    result.stdout.fnmatch_lines(["*experiment.yml::desk::swap-numbers-500-and-30::asks?1?"])
    assert not result.stdout.str().count("drop-")


HOOKS = """\
from typing import ClassVar
from pytest_metricbench.generating.base import Generator, Proposal, TextChange, TextOperator

class Personas(Generator):
    origin: ClassVar[str] = "personas"
    names: list[str]

    def generate(self, context):
        for name in self.names:
            yield Proposal("persona", name, f"speaks like {name}", params={**context.baseline, "persona": name})

def shout(text):
    yield TextChange(text.upper(), "everything", "all of it is shouted")

def pytest_metricbench_generators():
    return [Personas]

def pytest_metricbench_text_operators():
    return [TextOperator("shout", shout)]
"""


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.benchmark)], ids=["plain", "n2"])
def test_generators_and_operators_of_a_conftest(shop: pytest.Pytester, workers: list[str]) -> None:
    (shop.path / "conftest.py").write_text(HOOKS)
    path = shop.path / "experiment.yml"
    several = "generate: [{from: personas, names: [a pirate]}, {from: text, files: [policy.md], operators: [shout]}]"
    path.write_text(
        "".join(f"      {several}\n" if "generate:" in line else line for line in EXPERIMENT.splitlines(keepends=True))
    )
    assert run(shop, *workers).ret == 0
    assert killed(summary(shop.path)) == {
        "silent": {"asks", "limits"},
        "persona-a-pirate": set(),
        "shout-everything": {"asks"},
    }


def test_a_hook_that_gives_no_generator_is_told(shop: pytest.Pytester) -> None:
    (shop.path / "conftest.py").write_text("def pytest_metricbench_generators():\n    return [int]\n")
    result = run(shop)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = "the hook pytest_metricbench_generators of conftest.py: <class 'int'> is no generator; a subclass of"
    result.stderr.fnmatch_lines([f"*metricbench: {message} Generator *"])


# ---------------------------------------------------------------- the example


def test_the_functions_for_scripts_know_the_built_in_generators() -> None:
    experiment = load_experiment(ROOT / "examples/support_agent/generated.experiment.yml")
    (case,) = experiment.cases
    variants = {variant.id: variant for variant in case.variants}
    assert len(variants) == 27
    assert variants["remove-example-e-g-refund-or-cancellation"].equivalent is not None
    assert {file.name for file in case.inputs} >= {"handbook.md", "tools.json", "agent.py"}
    assert set(variants["remove-tool-escalate"].params) == {"files"}


@pytest.mark.benchmark
def test_the_example_is_as_its_page_says(pytester: pytest.Pytester) -> None:
    example = pytester.path / "support_agent"
    shutil.copytree(
        ROOT / "examples/support_agent", example, ignore=shutil.ignore_patterns(".metricbench", "__pycache__")
    )
    result = pytester.runpytest_subprocess(example / "generated.experiment.yml", "-n2")
    assert result.ret == 0
    assert "wrote" not in result.stdout.str()  # the lock is there and agrees
    case = json.loads((example / ".metricbench/support-agent-generated/summary.json").read_text())["cases"][
        "by-the-book"
    ]
    page = (example / "README.md").read_text("utf-8")
    share = case["pool"]["kill_share"]
    assert f"{share['killed']} of {share['mutants']} valid mutants killed = {share['value']:.2f}" in page
    entries = yaml.safe_load((example / "generated.experiment.lock.yml").read_text("utf-8"))["expansions"][0]["entries"]
    survivors = {mutant for mutant, tasks in killed(case).items() if not tasks}
    assert survivors - set(re.findall(r"`([a-z0-9-]+)`", page)) == set()
    assert len([entry for entry in entries if "id" in entry]) == 24
