"""``docs/reference/keys.md``: every key of an experiment file, from the models that check it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from making.words import anchor, default_words, type_words
from pytest_metricbench import coverage, runners
from pytest_metricbench.definition.schema import experiment_schema
from pytest_metricbench.generating.builtin import BUILTIN as GENERATORS
from pytest_metricbench.interop.table.columns import Columns
from pytest_metricbench.runners.harbor.tasks import HarborTask
from pytest_metricbench.runners.harbor.variants import HarborVariant
from pytest_metricbench.runners.suite import TestParams

EXAMPLES = Path(__file__).with_name("examples.yml")

ROOT_NAME = "ExperimentForm"

SECTIONS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "The experiment",
        (
            (ROOT_NAME, "The experiment", "the file"),
            ("Budget", "A budget", "`budget`"),
            ("ScoreForm", "The score", "`score`"),
            ("AnalysisForm", "The analysis", "`analysis`"),
            ("KillForm", "A kill rule", "`analysis.kill`"),
            ("ResamplesForm", "Resamples", "`analysis.resamples`"),
        ),
    ),
    (
        "Cases",
        (
            ("CaseForm", "A case", "an entry of `cases`, or a file that is named there"),
            ("TaskForm", "A task", "an entry of `tasks`, or of `listed` below it"),
            ("BaselineForm", "The baseline", "`baseline`"),
            ("MutantForm", "A mutant", "an entry of `mutants`, or of `listed` below it"),
            ("SubsetForm", "A subset", "an entry of `subsets`, or of the file that is named there"),
            ("DrawForm", "Drawn subsets", "`subsets`"),
            ("HarborTasks", "Tasks of a Harbor dataset", "`tasks`, with the runner `harbor`"),
            ("SuiteTests", "Tests of a project", "`tasks`, with the runner `suite`"),
            ("GeneratedMutants", "Generated mutants", "`mutants`"),
        ),
    ),
    (
        "Generators of mutants",
        (
            ("TextGenerator", "Texts damaged", "`generate`, with `from: text`"),
            ("ToolsGenerator", "Tools damaged", "`generate`, with `from: tools`"),
            ("ParamsGenerator", "Params damaged", "`generate`, with `from: params`"),
            ("CosmicRayGenerator", "Source damaged", "`generate`, with `from: cosmic-ray` and the runner `suite`"),
        ),
    ),
    (
        "Runners",
        (
            ("CommandRunner", "Runner command", "`runner`, with `kind: command`"),
            ("PythonRunner", "Runner python", "`runner`, with `kind: python`"),
            ("SuiteRunner", "Runner suite", "`runner`, with `kind: suite`"),
            ("TestParams", "A test", "`params` of a task, with the runner `suite`"),
            ("RecordedRunner", "Runner recorded", "`runner`, with `kind: recorded`"),
            ("Columns", "Columns of a table", "`columns`, with `form: table`"),
            ("ScoreColumn", "A score's column", "an entry of `columns.scores`"),
            ("HarborRunner", "Runner harbor", "`runner`, with `kind: harbor`"),
            ("HarborEnvironment", "Harbor's environment", "`environment` of the runner `harbor`"),
            ("HarborVerifier", "Harbor's verifier", "`verifier` of the runner `harbor`"),
            ("HarborRetry", "Harbor's repeats", "`retry` of the runner `harbor`"),
            ("HarborVariant", "A Harbor variant", "`params` of the baseline and of mutants, with the runner `harbor`"),
            ("HarborTask", "A Harbor task", "`params` of a task, with the runner `harbor`"),
            ("HelixRunner", "Runner helix", "`runner`, with `kind: helix`"),
            ("Executor", "What a job runs in", "`executor` of the runner `helix`"),
            ("Resources", "Resources of a job", "`executor.resources`"),
            ("Quantities", "Quantities of a job", "`requests` and `limits`"),
        ),
    ),
    (
        "Executors",
        (
            ("LocalSettings", "Executor local", "`executor`, with `kind: local`"),
            ("ThreadsSettings", "Executor threads", "`executor`, with `kind: threads`"),
            ("DaskSettings", "Executor dask", "`executor`, with `kind: dask`"),
        ),
    ),
    (
        "Coverage systems",
        (
            ("ToolCallCoverage", "Coverage tool-calls", "an entry of `coverage`, with `kind: tool-calls`"),
            ("LineCoverage", "Coverage line", "an entry of `coverage`, with `kind: line`"),
            ("CommandCoverage", "Coverage command", "an entry of `coverage`, with `kind: command`"),
            ("PythonCoverage", "Coverage python", "an entry of `coverage`, with `kind: python`"),
            ("AuditCoverage", "Coverage audit", "an entry of `coverage`, with `kind: audit`"),
            ("EvalAuthorCoverage", "Coverage eval-author", "an entry of `coverage`, with `kind: eval-author`"),
        ),
    ),
)
"""Chapter -> the mappings in it: the model's name, the section's title, and where in a file such a mapping stands."""

BEYOND_THE_SCHEMA: tuple[type[BaseModel], ...] = (HarborVariant, HarborTask, TestParams, Columns)
"""Forms of params and of columns: their place in the schema takes any mapping, and the runner checks them."""

TITLES = {name: title for _, sections in SECTIONS for name, title, _ in sections}


@dataclass(frozen=True)
class Key:
    """A key of one of the mappings."""

    mapping: str
    """The model's name."""
    name: str
    type: str
    default: str
    meaning: str


@cache
def definitions() -> dict[str, dict[str, Any]]:
    """The JSON Schema of every mapping that may stand in an experiment file, by the name of its model."""
    schema = experiment_schema(runners.BUILTIN, coverage.BUILTIN, GENERATORS)
    _, further = models_json_schema([(model, "validation") for model in BEYOND_THE_SCHEMA])
    found = {**further["$defs"], **schema["$defs"]}
    root = {key: schema[key] for key in ("properties", "required", "additionalProperties")}
    return found | {ROOT_NAME: {**root, "description": f"An experiment: {schema['description']}."}}


def schema_of(name: str) -> dict[str, Any]:
    """The whole JSON Schema of one mapping, to check an example against."""
    found = definitions()
    return {**found[name], "$defs": found}


def every_key() -> Iterator[Key]:
    """Every key there is."""
    for name, definition in definitions().items():
        needed = definition.get("required") or []
        for key, schema in definition["properties"].items():
            yield Key(
                name,
                key,
                type_words(schema, TITLES),
                default_words(schema, key in needed),
                _meaning(schema),
            )


def examples() -> dict[str, str]:
    """The examples of each mapping, by the name of its model: YAML, several of one mapping as documents."""
    found: dict[str, str] = yaml.safe_load(EXAMPLES.read_text("utf-8"))
    return found


def page() -> str:
    """The page."""
    rows: dict[str, list[Key]] = {}
    for key in every_key():
        rows.setdefault(key.mapping, []).append(key)
    shown, all_definitions = examples(), definitions()
    parts = [INTRODUCTION, *_contents()]
    for chapter, sections in SECTIONS:
        parts.append(f"\n## {chapter}\n")
        for name, title, place in sections:
            heading = "" if title == chapter else f"### {title}\n\n"
            parts.append(f"{heading}{_sentence(all_definitions[name])}\n\nWhere: {place}.\n")
            parts.append(_table(rows[name]))
            parts.append(f"```yaml\n{shown[name].strip()}\n```\n")
    return "\n".join(parts)


INTRODUCTION = """\
# Keys of the experiment file

Every key of every mapping, with its type, its default and an example. [The experiment file](../experiment.md) explains
how they work together. The same as a JSON Schema, for editors: [experiment.schema.json](../experiment.schema.json).

*Needed* keys have no default. Where the default is *none*, the meaning says what holds without the key.
"""


def _contents() -> Iterator[str]:
    """A list of the sections: the page is long."""
    for chapter, sections in SECTIONS:
        links = ", ".join(f"[{title}](#{anchor(title)})" for _, title, _ in sections)
        yield f"- **{chapter}**: {links}"


def _table(rows: list[Key]) -> str:
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{row.name}` | {row.type} | {row.default} | {row.meaning} |" for row in rows]
    return "\n".join(lines) + "\n"


def _meaning(schema: Mapping[str, Any]) -> str:
    """What a key means; a mapping of its own is described in its section."""
    text = schema.get("description", "")
    if not text and "$ref" in schema:
        text = definitions()[schema["$ref"].rpartition("/")[2]]["description"].split("\n\n")[0]
    return _plain(text).replace("|", "\\|").replace("<", "&lt;")


def _sentence(definition: Mapping[str, Any]) -> str:
    """The first paragraph of a model's docstring."""
    return _plain(definition["description"].split("\n\n")[0])


def _plain(text: str) -> str:
    """Text of a docstring as Markdown, in one line."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return re.sub(r"\s+", " ", text.replace("``", "`")).strip()
