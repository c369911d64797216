"""``docs/reference/summary-fields.md``: every field of ``summary.json`` with an example of a run.

What a field means stands in ``docs/summary.md``, which is written by hand. The examples are kept in
``summary_examples.json`` beside this file; they are those of the experiment in ``summary_example/``, which is run only
when the page is written.
"""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from making.words import anchor
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.analysis.summary_json import summary_from_json, summary_to_json

HERE = Path(__file__).parent
KEPT = HERE / "summary_examples.json"
EXPERIMENT = HERE / "summary_example"
MEANINGS = HERE.parent / "summary.md"
LONGEST = 70

BY_HAND: dict[str, tuple[str, str]] = {
    "Summary.part": (".part", '"-k late"'),
    "CaseSummary.notes": (".cases.refunds.notes", "[]"),
    "RecordedNote.text": (".cases.refunds.notes[0].text", '"results.csv: null taken for died"'),
    "RecordedNote.count": (".cases.refunds.notes[0].count", "3"),
    "BaselineCheck.reason": (".cases.refunds.baseline_check.reason", '"no attempt of the baseline passes"'),
    "Detection.alpha": (".cases.refunds.detection.alpha", "0.05"),
    "Detection.q": (".cases.refunds.detection.q", "0.1"),
    "MutantGroups.unmeasured": (".cases.refunds.mutants.unmeasured", '["no-photo"]'),
    "MutantGroups.outside": (".cases.refunds.mutants.outside", '["no-photo"]'),
    "MutantGroups.invalid_controls": (".cases.refunds.mutants.invalid_controls", '["same-again"]'),
    "DiedKills.time_outs": (".cases.refunds.died_kills.time_outs", '[{"mutant": "slow", "task": "late"}]'),
    "RunComparison.part": (".comparison.part", '"-k late"'),
    "ExperimentParts.cases": (".comparison.added.cases", '["parcels"]'),
    "ExperimentParts.systems": (".comparison.added.systems", '["words"]'),
    "CaseComparison.other_groups": (
        ".comparison.cases.refunds.other_groups",
        '[{"mutant": "polite", "then": "undetected", "now": "equivalent"}]',
    ),
    "GroupChange.mutant": (".comparison.cases.refunds.other_groups[0].mutant", '"polite"'),
    "GroupChange.then": (".comparison.cases.refunds.other_groups[0].then", '"undetected"'),
    "GroupChange.now": (".comparison.cases.refunds.other_groups[0].now", '"equivalent"'),
    "MutantChange.gone": (".comparison.cases.refunds.new_survivors[0].gone", '["gift"]'),
    "TaskThenOrNow.died_trials": (".comparison.cases.parcels.verdicts[0].then.died_trials", "1"),
    "Figure.outside": (".cases.refunds.pool.kill_share.outside", "true"),
    "OverCasesFigure.interval": (".over_cases.rules.kill_share.kendall.interval", "[0.31, 0.62]"),
}
"""Fields that the experiment leaves empty: model and field -> where such a field stands, and what it could be."""

INTRODUCTION = """\
# Fields of summary.json

Every field with its type and an example: what it was in a run of a small experiment with two cases
(`docs/making/summary_example`), and where in the file it stood, in the form that `jq` takes.
[summary.json](../summary.md) explains how the fields belong together. Long values are cut (`...`).
"""


def page() -> str:
    """The page, with the examples that are kept."""
    kept = json.loads(KEPT.read_text("utf-8"))
    return "\n".join([INTRODUCTION, *_sections(kept)])


def write_examples() -> None:
    """Run the experiment and keep an example of each field."""
    by_hand = {key: list(value) for key, value in BY_HAND.items()}
    found = {**by_hand, **examples_of_a_run()}
    KEPT.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def examples_of_a_run() -> dict[str, list[str]]:
    """``Model.field`` -> where such a field stands, and what it is, for each that is not empty somewhere in a run.

    Raises:
        RuntimeError: the run does not end as it should.
    """
    summary = _run()
    found: dict[str, list[str]] = {}
    _walk(summary, json.loads(summary_to_json(summary)), "", found)
    return found


def meanings() -> dict[str, tuple[str, dict[str, tuple[str, str]]]]:
    """Model -> its heading in ``docs/summary.md``, and its fields with their types and meanings there."""
    found: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {}
    for line in MEANINGS.read_text("utf-8").splitlines():
        if heading := re.fullmatch(r"#+ (.*?`(\w+)`.*)", line):
            rows: dict[str, tuple[str, str]] = {}
            found[heading[2]] = (heading[1], rows)
        elif row := re.fullmatch(r"\| `(\w+)` \| (.*?) \| (.*?) ?\|", line):
            rows[row[1]] = (row[2], row[3])
    return found


def _sections(kept: dict[str, list[str]]) -> Iterator[str]:
    for model, (heading, rows) in meanings().items():
        yield f"## {heading}\n"
        yield f"[In context](../summary.md#{anchor(heading)})\n"
        yield "| field | type | example | where | meaning |\n|---|---|---|---|---|"
        for name, (kind, meaning) in rows.items():
            where, example = kept[f"{model}.{name}"]
            on_site = re.sub(r"\]\((?!\w+:)([\w/]+\.md)", r"](../\1", meaning)
            yield f"| `{name}` | {kind} | {_code(example)} | `{where}` | {on_site} |"
        yield ""


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _run() -> Summary:
    """The summary of the experiment, compared with an earlier run of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "shown"
        shutil.copytree(EXPERIMENT, folder)
        results = _module(folder / "results.py")
        results.write(folder / "results.csv", earlier=True)
        _pytest(folder)
        shutil.move(folder / ".metricbench/shop/summary.json", folder / "earlier.json")
        shutil.rmtree(folder / ".metricbench")
        (folder / "experiment.lock.yml").unlink()
        results.write(folder / "results.csv")
        _pytest(folder, "--metricbench-compare", "earlier.json")
        return summary_from_json((folder / ".metricbench/shop/summary.json").read_text("utf-8"))


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("shown_results", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _pytest(folder: Path, *options: str) -> None:
    """Run it; one attempt and one request fail, as they are to."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "metricbench", "experiment.yml", *options]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 1:
        raise RuntimeError(f"the example of a summary ended with status {done.returncode}:\n{done.stdout}{done.stderr}")


def _walk(value: Any, written: Any, where: str, found: dict[str, list[str]]) -> None:
    if isinstance(value, BaseModel) or is_dataclass(value):
        for name in _names(value):
            inner = getattr(value, name)
            if inner not in (None, (), {}, []):
                key = f"{_declared_by(type(value), name)}.{name}"
                found.setdefault(key, [f"{where}.{name}", _shortened(written[name])])
                _walk(inner, written[name], f"{where}.{name}", found)
    elif isinstance(value, dict):
        for key, inner in value.items():
            step = f".{key}" if re.fullmatch(r"[A-Za-z_]\w*", str(key)) else f'["{key}"]'
            _walk(inner, written[key], where + step, found)
    elif isinstance(value, tuple | list):
        for number, inner in enumerate(value):
            _walk(inner, written[number], f"{where}[{number}]", found)


def _names(value: Any) -> list[str]:
    if isinstance(value, BaseModel):
        return list(type(value).model_fields)
    return [entry.name for entry in dataclass_fields(value)]


def _declared_by(model: type, name: str) -> str:
    """The class that a field comes from: it is explained there."""
    owners = (base for base in reversed(model.__mro__) if issubclass(base, BaseModel) and name in base.model_fields)
    return next(owners, model).__name__


def _shortened(value: Any) -> str:
    text = json.dumps(_rounded(value), ensure_ascii=False)
    return text if len(text) <= LONGEST else text[: LONGEST - 4].rstrip() + " ..."


def _rounded(value: Any) -> Any:
    """Four digits are enough of an example."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value
