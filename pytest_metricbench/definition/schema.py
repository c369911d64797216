"""The JSON Schema of an experiment file, for editors: what the models say, with the kinds that are known."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from pytest_metricbench.bases import CoverageSystem, Runner
from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.expanding import LISTED
from pytest_metricbench.definition.generated import FROM, GENERATE
from pytest_metricbench.definition.ids import ID_LIMIT, ID_PATTERN
from pytest_metricbench.definition.models import CaseForm, ExperimentForm
from pytest_metricbench.executor_settings import SETTINGS
from pytest_metricbench.generating.base import Generator

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REF: Final = "#/$defs/"


def experiment_schema(
    runners: Mapping[str, type[Runner]],
    systems: Mapping[str, type[CoverageSystem]],
    generators: Mapping[str, type[Generator]] | None = None,
) -> dict[str, Json]:
    """The JSON Schema (draft 2020-12) of an experiment file that may name these runners, coverage systems, generators.

    It says what an editor can check and complete in one file. Whether ids are unique and names are known is told when
    the file is collected.
    """
    sources = _sources(runners)
    makers = dict(generators or {})
    models: list[type[BaseModel]] = [ExperimentForm, CaseForm, *runners.values(), *systems.values(), *SETTINGS.values()]
    names, definitions = _definitions([*models, *sources["tasks"], *sources["mutants"], *makers.values()])
    form = definitions[names[CaseForm]]["properties"]
    for key, found in sources.items():
        form[key] = _list_or_sources(form[key], {names[source]: source for source in found}, definitions)
    if makers:
        form["mutants"] = _or_generated(form["mutants"], {key: names[cls] for key, cls in makers.items()}, definitions)
    for kind, cls in [*runners.items(), *systems.items(), *SETTINGS.items()]:
        _require_kind(definitions[names[cls]], kind)
    for cls in systems.values():
        _add_id(definitions[names[cls]])
    root = definitions.pop(names[ExperimentForm])
    _name_kinds(root["properties"], names, runners, systems)
    return {
        "$schema": DIALECT,
        "title": "Experiment of pytest-metricbench",
        "description": "cases, a runner, coverage systems, analysis settings and gates",
        **{key: root[key] for key in ("type", "properties", "required", "additionalProperties")},
        "$defs": dict(sorted(definitions.items())),
    }


def _sources(runners: Mapping[str, type[Runner]]) -> dict[str, list[type[BaseModel]]]:
    """What runners take in place of a list of tasks or of mutants."""
    ranked = [runners[kind] for kind in sorted(runners)]
    return {
        "tasks": list(dict.fromkeys(source for runner in ranked for source in runner.task_sources)),
        "mutants": list(dict.fromkeys(source for runner in ranked for source in runner.mutant_sources)),
    }


def _name_kinds(
    properties: dict[str, Any],
    names: Mapping[type[BaseModel], str],
    runners: Mapping[str, type[Runner]],
    systems: Mapping[str, type[CoverageSystem]],
) -> None:
    """Say of the keys at the top which definitions they may be."""

    def references(kinds: Mapping[str, type[BaseModel]]) -> list[dict[str, str]]:
        return [{"$ref": f"{_REF}{names[cls]}"} for _, cls in sorted(kinds.items())]

    properties["runner"] = {"description": properties["runner"]["description"], "anyOf": references(runners)}
    short = {"type": "string", "pattern": f"^({'|'.join(sorted(SETTINGS))})(:.+)?$"}
    properties["executor"] = {
        "description": properties["executor"]["description"],
        "anyOf": [short, *references(SETTINGS)],
    }
    in_a_file = {"type": "string", "minLength": 1, "description": "A file beside this one that holds the case."}
    properties["cases"]["items"] = {"anyOf": [{"$ref": f"{_REF}{names[CaseForm]}"}, in_a_file]}
    properties["coverage"]["items"] = {"anyOf": references(systems)}


def schema_text(schema: Mapping[str, Json]) -> str:
    """The text of a schema's file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _definitions(models: Iterable[type[BaseModel]]) -> tuple[dict[type[BaseModel], str], dict[str, Any]]:
    """The name of each model's definition, and all definitions."""
    wanted = list(dict.fromkeys(models))
    references, schema = models_json_schema([(model, "validation") for model in wanted])
    names = {model: str(references[model, "validation"]["$ref"]).removeprefix(_REF) for model in wanted}
    definitions = schema["$defs"]
    for definition in definitions.values():
        for field in definition.get("properties", {}).values():
            field.pop("title", None)  # the key in other letters
    return names, definitions


def _list_form(form: Mapping[str, Any]) -> dict[str, Any]:
    """What a key that is a list, or a mapping that stands for one, says of the list."""
    return next(dict(part) for part in form["anyOf"] if part.get("type") == "array")


def _list_or_sources(
    form: Mapping[str, Any], sources: Mapping[str, type[BaseModel]], definitions: dict[str, Any]
) -> dict[str, Any]:
    """A key that is a list or one of these sources, which may list further entries."""
    listed = _list_form(form)
    rest = {key: value for key, value in form.items() if key not in ("anyOf", "default")}
    for name, source in sources.items():
        first = next(iter(source.model_fields))
        definition = definitions[name]
        own = {"description": "Further entries, or more about expanded ones, by id.", **listed}
        definition["properties"][LISTED] = own
        definition["required"] = [first, *(key for key in definition.get("required", []) if key != first)]
    references = [{"$ref": f"{_REF}{name}"} for name in sources]
    return {**rest, "anyOf": [listed, *references]} if sources else {**rest, **listed}


def _or_generated(form: Mapping[str, Any], makers: Mapping[str, str], definitions: dict[str, Any]) -> dict[str, Any]:
    """The key ``mutants`` with what generators make: origin -> name of its definition."""
    for origin, name in makers.items():
        definition = definitions[name]
        own = {"const": origin, "type": "string", "description": "Which generator this is."}
        definition["properties"] = {FROM: own, **definition["properties"]}
        definition["required"] = [FROM, *definition.get("required", [])]
    kept = {key: value for key, value in form.items() if key in ("description",)}
    others = form.get("anyOf") or [{key: value for key, value in form.items() if key not in kept and key != "default"}]
    listed = next(part for part in others if part.get("type") == "array")
    one = {"anyOf": [{"$ref": f"{_REF}{makers[origin]}"} for origin in sorted(makers)]}
    definitions["GeneratedMutants"] = {
        "type": "object",
        "description": "Mutants that are made, fixed in the lock, and further ones.",
        "properties": {
            GENERATE: {
                "description": "What makes them: a generator, or a list of such.",
                "anyOf": [*one["anyOf"], {"type": "array", "minItems": 1, "items": one}],
            },
            LISTED: {"description": "Further mutants, or more about generated ones, by id.", **listed},
        },
        "required": [GENERATE],
        "additionalProperties": False,
    }
    return {**kept, "anyOf": [*others, {"$ref": f"{_REF}GeneratedMutants"}]}


def _require_kind(definition: dict[str, Any], kind: str) -> None:
    """A runner's ``kind`` has a default for its constructor, and is never left out in a file."""
    description = definition["properties"].get("kind", {}).get("description", "Which kind this is.")
    definition["properties"]["kind"] = {"const": kind, "type": "string", "description": description}
    definition["required"] = ["kind", *(name for name in definition.get("required", []) if name != "kind")]


def _add_id(definition: dict[str, Any]) -> None:
    own = {
        "description": "The coverage system's id, unique in the experiment.",
        "type": "string",
        "pattern": ID_PATTERN,
        "minLength": 1,
        "maxLength": ID_LIMIT,
    }
    definition["properties"] = {"id": own, **definition["properties"]}
    definition["required"] = ["id", *definition["required"]]
