"""The files that a command line names, as the variant has them."""

import json

import pytest

SCRIPT = 'if grep -q must "$1"; then r=1; else r=0; fi\nprintf \'{"scores": {"reward": %s}}\' "$r" > response.json\n'
EXPERIMENT = """\
metricbench: 1
name: cli
runner: {kind: command, agent: [/bin/sh, run.sh, prompts/policy.md]}
cases:
  - id: shop
    tasks: [{id: a}]
    mutants: {generate: {from: text, files: [prompts/policy.md], operators: [weaken-modal, drop-sentence]}}
"""


def test_an_argument_that_names_a_changed_file_becomes_the_changed_one(pytester: pytest.Pytester) -> None:
    (pytester.path / "prompts").mkdir()
    (pytester.path / "prompts/policy.md").write_bytes(b"You must ask.\r\nBe kind.\r\n")
    (pytester.path / "run.sh").write_text(SCRIPT)
    (pytester.path / "experiment.yml").write_text(EXPERIMENT)
    assert pytester.runpytest_inprocess("experiment.yml").ret == 0
    store = pytester.path / ".metricbench/cli"
    cells = json.loads((store / "summary.json").read_text())["cases"]["shop"]["kills"]
    assert {mutant: row["a"] for mutant, row in cells.items()} == {
        "weaken-modal-must-ask": "killed",
        "drop-sentence-you-must-ask": "killed",
        "drop-sentence-be-kind": "survived",
    }
    (changed,) = (store / "attempts/shop/weaken-modal-must-ask/a").glob("*/variant/prompts/policy.md")
    assert changed.read_bytes() == b"You may ask.\r\nBe kind.\r\n"
    assert not list((store / "attempts/shop/baseline").rglob("policy.md"))
