"""The experiment whose answers were computed without the product, by every kind of item, with and without workers."""

import json
import shutil
from pathlib import Path

import pytest

from tests.known_answers.check_summary import differences
from tests.plugin import plugin_lab

FOLDER = Path(__file__).parents[1] / "known_answers"


@pytest.mark.parametrize(
    ("unit", "workers"),
    [
        ("task", []),
        ("variant", []),
        pytest.param("task", ["-n2"], marks=pytest.mark.benchmark),
        pytest.param("variant", ["-n2"], marks=pytest.mark.slow),
    ],
    ids=["task", "variant", "task n2", "variant n2"],
)
def test_the_known_answers(lab: plugin_lab.Lab, unit: str, workers: list[str]) -> None:
    for name in ("agent.py", "outcomes.json"):
        shutil.copy(FOLDER / name, lab.path / name)
    text = (FOLDER / "experiment.yml").read_text()
    lab.write("experiment.yml", text.replace("\nname: known-answers", f"\nitems: {unit}\nname: shop"))
    result = lab.run("experiment.yml", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    expected = json.loads((FOLDER / "expected.json").read_text())
    assert differences(lab.summary(), expected) == []
    assert len(lab.journal()) == expected["attempts"]
    assert result.parseoutcomes()["failed"] == 7
