"""An experiment about what was found: an agent, a program, a dataset, a project's tests or a table."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pytest_metricbench.definition.ids import derive_id
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.starting.agents import prompts_in
from pytest_metricbench.starting.filling import filled, id_of, scalar, scalars, subsets_of, templates
from pytest_metricbench.starting.finding import Finding, Kind
from pytest_metricbench.starting.proposing import EXPERIMENT, EXTRAS, Proposal

_GLUE: Final = "metricbench_attempt.py"


def about(finding: Finding, folder: Path, name: str) -> Proposal:
    """The experiment about a finding in a folder; what only its author knows is marked in it."""
    files = _WRITERS[finding.kind](finding.values, folder, name)
    return Proposal(finding.kind, name, files, finding, EXTRAS[finding.kind])


# ---------------------------------------------------------------- agents


def _python(values: Mapping[str, Any], folder: Path, name: str) -> dict[str, str]:
    module, function, file = values["module"], values["function"], values["file"]
    prompts = prompts_in(folder)
    package = PurePosixPath(file).parent.as_posix()
    source = file if package == "." else f"{package}/**"
    direct = values["verifier"] is not None
    mutants = _MUTANTS_OF_A_REQUEST if values["takes_request"] else _MUTANTS_OF_A_TEXT
    given = {
        "name": name,
        "case": id_of(PurePosixPath(file).stem if package == "." else package, "agent"),
        "file": file,
        "module": module,
        "function": function,
        "imported": function if function == "answer" else f"{function} as answer",
        "agent": f"{module}:{function}" if direct else "metricbench_attempt:agent",
        "verifier": f"{module}:{values['verifier']}" if direct else "metricbench_attempt:verify",
        "inputs": scalars([source, *prompts]),
        "mutants": _MUTANTS_TO_NAME if direct else mutants,
        "prompt": _about_prompts(prompts, 'request.variant.params["files"]'),
        "def": "async def" if values["is_async"] else "def",
        "await": "await " if values["is_async"] else "",
        "argument": "request" if values["takes_request"] else "asked",
        "asked": _ASKED_BY_REQUEST if values["takes_request"] else _ASKED_AS_TEXT,
    }
    files = {file: filled(text, given) for file, text in templates("found_python").items()}
    return {file: text for file, text in files.items() if not direct or file != _GLUE}


_ASKED_BY_REQUEST: Final = "# The agent takes what it needs from the request, so no mutant changes what it is asked."
_ASKED_AS_TEXT: Final = """\
asked = request.task.params["asks"]
    if damage.get("hears") == "half":
        asked = asked[: len(asked) // 2]"""


_SAYS_HALF: Final = "      - {id: says-half, description: Says the first half of its answer., params: {says: half}}"
_MUTANTS_OF_A_TEXT: Final = f"""\
    # Damaged versions. These two damage what goes in and what comes out, so they fit any agent; the ones that tell most
    # are damage that you think of (a rule less, another model): the agent reads request.variant.params.
    mutants:
      - {{id: hears-half, description: Hears the first half of what it is asked., params: {{hears: half}}}}
{_SAYS_HALF}"""
_MUTANTS_OF_A_REQUEST: Final = f"""\
    # Damaged versions. This one damages what comes out, so it fits any agent; the ones that tell most are damage that
    # you think of (a rule less, another model): the agent reads request.variant.params.
    mutants:
{_SAYS_HALF}"""
_MUTANTS_TO_NAME: Final = """\
    # Damaged versions: a rule less, another model, a tool that fails. The agent reads request.variant.params and
    # becomes the version that they say.
    mutants:
      - {id: damaged, description: "FILL IN: what it does wrong", params: {damage: "FILL IN: what the agent reads"}}"""


def _command(values: Mapping[str, Any], folder: Path, name: str) -> dict[str, str]:
    script = values["script"]
    prompts = prompts_in(folder)
    given = {
        "name": name,
        "case": id_of(PurePosixPath(script).stem, "agent"),
        "script": script,
        "command": scalars(values["words"]),
        "words": "sys.executable, *sys.argv[1:]" if values["is_python"] else "*sys.argv[1:]",
        "inputs": scalars([script, *prompts]),
        "prompt": _about_prompts(prompts, 'request["variant"]["params"]["files"]'),
    }
    return {file: filled(text, given) for file, text in templates("found_command").items()}


def _about_prompts(prompts: Sequence[str], where: str) -> str:
    """How mutants are made of the texts beside an agent, as a comment: the agent has to take part."""
    lines = [
        f"To have mutants made of {prompts[0] if prompts else 'a prompt'}, the agent takes its text from",
        f"{where} where it stands there (docs/mutants.md), and this stands here:",
        f"  generate: {{from: text, files: [{scalar(prompts[0]) if prompts else 'prompt.md'}], sample: 10, seed: 1}}",
        "  listed: [the mutants above]",
    ]
    return "\n".join(f"      # {line}" for line in lines)


# ---------------------------------------------------------------- datasets and projects


def _harbor(values: Mapping[str, Any], folder: Path, name: str) -> dict[str, str]:
    dataset = values["dataset"]
    written = scalar(dataset)
    if values["strangers"]:
        written += f", exclude: [{scalars(values['strangers'])}]"
    given = {
        "name": name,
        "dataset": "this folder" if dataset == "." else f"{dataset}/",
        "dataset_yaml": written,
        "case": id_of(PurePosixPath(dataset).name, name),
        "subsets": subsets_of(values["tasks"]),
    }
    return {file: filled(text, given) for file, text in templates("found_harbor").items()}


def _suite(values: Mapping[str, Any], folder: Path, name: str) -> dict[str, str]:
    source = values["source"]
    given = {
        "name": name,
        "source": scalars(source),
        "tests": scalar(values["tests"]),
        "case": id_of(name if source == ["src"] else PurePosixPath(source[0]).stem, "project"),
        "sample": "20",
        "subsets": subsets_of(values["count"]),
    }
    return {EXPERIMENT: filled(templates("suite")[EXPERIMENT], given)}


# ---------------------------------------------------------------- tables


def _table(values: Mapping[str, Any], folder: Path, name: str) -> dict[str, str]:
    files, roles = values["files"], values["roles"]
    columns = [f"    {key}: {scalar(roles[key])}" for key in ("variant", "task", "trial", "error") if key in roles]
    if "versions" in values:
        columns.insert(0, f"    variant: [{scalars(values['versions'])}]")
        columns.append("    scores: [reward]    # what the values are called")
    else:
        columns.append(_scores(roles["scores"], values["words"]))
    if values["rest"] and "versions" not in values:
        columns.append(f"    # not used: {', '.join(' '.join(one.split()) for one in values['rest'][:12])}")
    given = {
        "name": name,
        "shown": first_names(files, 1),
        "read": scalars(files),
        "baseline": scalar(values["baseline"]),
        "why": values["why"],
        "columns": "\n".join(columns),
        "score": _passing(values),
        "cases": _cases(values, name),
    }
    return {file: filled(text, given) for file, text in templates("found_table").items()}


def _scores(column: str, words: Mapping[str, bool]) -> str:
    if not words:
        return f"    scores: [{scalar(column)}]"
    meaning = ", ".join(f"{scalar(word)}: {str(good).lower()}" for word, good in sorted(words.items()))
    return f"    scores: {{{scalar(column)}: {{values: {{{meaning}}}}}}}"


def _passing(values: Mapping[str, Any]) -> str:
    if values["pass_at_least"] is None:
        return ""
    low, high = values["span"]
    return (
        f"score: {{pass_at_least: {json.dumps(values['pass_at_least'])}}}"
        f"    # CHECK: from which value on an attempt passes; the values go from {low:g} to {high:g}"
    )


def _cases(values: Mapping[str, Any], name: str) -> str:
    """The cases of the table, or one where it has no column of them."""
    ids = [derive_id(case)[0] for case in values["cases"]] or [id_of(PurePosixPath(values["files"][0]).stem, name)]
    lines = []
    for case in ids:
        lines.append(f"  - id: {scalar(case)}")
        lines.append("    # Versions and tasks come from the table. What more there is to say is listed here, by id:")
        lines.append("    # mutants: [{id: ..., description: ..., tags: [...], equivalent: why}]")
        if len(ids) == 1 and (subsets := subsets_of(len(values["tasks"]))):
            lines += ["", subsets]
    return "\n".join(lines) + "\n"


_WRITERS: Final[Mapping[Kind, Callable[[Mapping[str, Any], Path, str], dict[str, str]]]] = {
    "python": _python,
    "command": _command,
    "harbor": _harbor,
    "suite": _suite,
    "table": _table,
}
