"""Agent configurations: what a mutant inherits, which files one names, and what is told of kwargs and variables."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_metricbench.runners.harbor.variants import HarborVariant, inherited, read_servers
from pytest_metricbench.sources import SourceError
from tests.harbor_runner.harbor_runner_lab import make_runner

AGENT = """\
from harbor.agents.base import BaseAgent
from harbor.agents.options import AgentOptions
from pydantic import Field


class Options(AgentOptions):
    mutant: str = "none"
    words: list[str] = Field(default_factory=list)


class Strict(BaseAgent):
    options_model = Options


class Stricter(Strict):
    pass


class Named(BaseAgent):
    def __init__(self, logs_dir, *args, depth=1, **kwargs):
        super().__init__(logs_dir, *args, **kwargs)
        self.breadth = kwargs.get("breadth")


class Closed(BaseAgent):
    def __init__(self, logs_dir, depth=1, *, model_name=None):
        super().__init__(logs_dir, model_name)


class Plain(BaseAgent):
    pass


class Foreign(SomebodyElsesAgent):
    pass


class Open(BaseAgent):
    options_model = imported_options
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "toy.py").write_text(AGENT)
    return tmp_path


def files_of(folder: Path, **params: object) -> set[str]:
    return set(make_runner(folder, checked=False).variant_files({"agent": "oracle", **params}, folder))


def refusal(folder: Path, **params: object) -> tuple[str, str]:
    with pytest.raises(SourceError) as caught:
        files_of(folder, **params)
    return caught.value.message, caught.value.remedy


# ---------------------------------------------------------------- what a mutant inherits


def test_a_mutant_says_only_what_differs() -> None:
    baseline = {"agent": "a:B", "model": "m", "kwargs": {"x": 1, "y": 2}, "env": {"A": "1"}, "skills": ["s"]}
    assert inherited(baseline, {}) == baseline
    assert inherited(baseline, {"kwargs": {"y": 3}}) == {**baseline, "kwargs": {"x": 1, "y": 3}}
    assert inherited(baseline, {"kwargs": {"y": None}})["kwargs"] == {"x": 1}
    assert inherited(baseline, {"env": {"A": None, "B": "2"}})["env"] == {"B": "2"}
    assert inherited(baseline, {"skills": ["t"]})["skills"] == ["t"]  # lists are replaced whole
    assert "model" not in inherited(baseline, {"model": None})
    assert "kwargs" not in inherited(baseline, {"kwargs": None})


def test_inheriting_leaves_the_baseline_as_it_is() -> None:
    baseline = {"agent": "a:B", "kwargs": {"x": 1}}
    inherited(baseline, {"kwargs": {"x": 2}})
    assert baseline == {"agent": "a:B", "kwargs": {"x": 1}}


def test_another_agent_inherits_no_kwargs() -> None:
    baseline = {"agent": "a:B", "model": "m", "kwargs": {"x": 1}, "env": {"A": "1"}}
    assert inherited(baseline, {"agent": "c:D"}) == {"agent": "c:D", "model": "m", "env": {"A": "1"}}
    assert inherited(baseline, {"agent": "a:B"}) == baseline


VALUES = st.none() | st.integers(0, 2)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "agent": st.sampled_from(["a:A", "b:B"]),
        "model": st.none() | st.sampled_from(["m", "n"]),
        "kwargs": st.none() | st.dictionaries(st.sampled_from("xyz"), VALUES),
        "env": st.none() | st.dictionaries(st.sampled_from("XYZ"), st.none() | st.sampled_from(["0", "1"])),
        "skills": st.none() | st.lists(st.sampled_from(["s", "t"]), max_size=2),
    },
)


@given(PARAMS, PARAMS)
def test_inheriting_twice_is_inheriting_once(baseline: dict[str, Any], mutant: dict[str, Any]) -> None:
    whole = inherited(baseline, mutant)
    assert inherited(whole, mutant) == whole
    assert None not in whole.values()
    for key, value in mutant.items():
        if value is None:
            assert key not in whole
        elif isinstance(value, dict):
            assert {name: whole[key].get(name) for name in value} == value
        else:
            assert whole[key] == value


# ---------------------------------------------------------------- the form


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "auth_mode", "MyPassword", "SECRET", "GH_TOKEN", "CREDENTIALS"])
def test_a_value_that_harbor_would_mask_is_refused(name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        HarborVariant.model_validate({"env": {name: "hello"}})
    assert caught.value.errors()[0]["msg"] == (
        f"{name} has a value that Harbor takes for a secret: it replaces the value by [REDACTED] in every file that a "
        f"trial leaves, the trajectory too; write ${{{name}}} and name the variable in the runner's env, or call it "
        "otherwise"
    )


@pytest.mark.parametrize("value", ["${OPENAI_API_KEY}", "${OTHER:-x}", "true", "1", "", None])
def test_a_secret_is_taken_from_the_environment(value: str | None) -> None:
    assert HarborVariant.model_validate({"env": {"API_KEY": value}})
    assert HarborVariant.model_validate({"env": {"MAX_TOKENS": "100"}})  # no token


def test_unknown_keys_are_refused() -> None:
    with pytest.raises(ValidationError) as caught:
        HarborVariant.model_validate({"agent": "a", "kwarg": {}})
    assert caught.value.errors()[0]["loc"] == ("kwarg",)


# ---------------------------------------------------------------- files


def test_the_agents_module_is_part_of_the_variant(folder: Path) -> None:
    assert files_of(folder, agent="toy:Strict") == {"toy.py"}
    assert files_of(folder, agent="claude-code") == set()
    assert files_of(folder, agent="acp:opencode") == set()  # a name in Harbor's own spelling
    assert files_of(folder, agent="installed.elsewhere:Agent") == set()


def test_the_whole_package_is_part_of_the_variant(folder: Path) -> None:
    (folder / "pack" / "deep" / "__pycache__").mkdir(parents=True)
    for name in ("__init__.py", "agent.py", "prompt.md", "deep/__init__.py", "deep/__pycache__/x.pyc", "deep/y.pyc"):
        (folder / "pack" / name).write_text("class Agent: pass\n")
    expected = {"pack/__init__.py", "pack/agent.py", "pack/prompt.md", "pack/deep/__init__.py"}
    assert files_of(folder, agent="pack.agent:Agent") == expected


def test_a_folder_that_is_no_package_is_not_taken_whole(folder: Path) -> None:
    (folder / "src" / "pack").mkdir(parents=True)
    for name in ("src/alone.py", "src/other.py", "src/pack/__init__.py", "src/pack/agent.py"):
        (folder / name).write_text("class Agent: pass\n")
    assert files_of(folder, agent="src.alone:Agent") == {"src/alone.py"}
    assert files_of(folder, agent="src.pack.agent:Agent") == {"src/pack/__init__.py", "src/pack/agent.py"}


def test_modules_are_looked_for_on_the_python_path(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "other.py").write_text("class Agent: pass\n")
    runner = make_runner(folder, checked=False, python_path=["src"])
    assert set(runner.variant_files({"agent": "other:Agent"}, folder)) == {"src/other.py"}
    assert set(runner.variant_files({"agent": "toy:Strict"}, folder)) == set()


def test_code_that_is_not_there_is_told(folder: Path) -> None:
    assert refusal(folder, agent="toy:Strickt") == (
        f"{folder}/toy.py defines no class 'Strickt'",
        "it defines Options, Strict, Stricter, Named, Closed, Plain, Foreign, Open",
    )
    (folder / "pack").mkdir()
    (folder / "pack" / "__init__.py").write_text("")
    assert refusal(folder, agent="pack.agnt:Agent") == (
        f"the module 'pack.agnt' is not in the package {folder}/pack",
        f"it would be {folder}/pack/agnt.py",
    )
    (folder / "broken.py").write_text("class Agent(:\n")
    assert refusal(folder, agent="broken:Agent")[0].startswith(f"{folder}/broken.py cannot be read as Python: invalid")


def test_what_only_running_tells_is_not_refused(folder: Path) -> None:
    (folder / "made.py").write_text("from elsewhere import Agent\nMade = type('Made', (), {})\n")
    assert files_of(folder, agent="made:Agent") == files_of(folder, agent="made:Made") == {"made.py"}


def test_no_agent(folder: Path) -> None:
    runner = make_runner(folder, checked=False)
    with pytest.raises(SourceError, match=r"^no agent is named$"):
        runner.variant_files({}, folder)


def test_skills_prompts_and_instructions_are_part_of_the_variant(folder: Path) -> None:
    (folder / "skills" / "refunds").mkdir(parents=True)
    (folder / "skills" / "refunds" / "SKILL.md").write_text("---\n")
    (folder / "prompt.j2").write_text("{{ instruction }}")
    (folder / "more.md").write_text("Be brief.")
    (folder / "mcp.json").write_text('{"mcpServers": {"shop": {"command": "shop"}}}')
    found = files_of(
        folder,
        skills=["skills", "owner/name@v1", "https://example.org/skills.git"],
        kwargs={"prompt_template_path": "prompt.j2"},
        extra_instruction_files=["more.md"],
        mcp_servers=["mcp.json", {"name": "other", "url": "http://localhost"}],
    )
    assert found == {"skills/refunds/SKILL.md", "prompt.j2", "more.md", "mcp.json"}


def test_named_files_that_are_not_there(folder: Path) -> None:
    assert refusal(folder, skills=["skils"])[0] == "the folder of skills 'skils' does not exist"
    assert refusal(folder, skills=["owner/name"])[0] == "the folder of skills 'owner/name' does not exist"
    assert refusal(folder, kwargs={"prompt_template_path": "no.j2"})[0] == "the file 'no.j2' does not exist"
    assert refusal(folder, extra_instruction_files=["."])[0] == "the file '.' is no file"
    (folder.parent / "secret.md").write_text("")
    assert refusal(folder, extra_instruction_files=["../secret.md"])[0] == "'..' leaves the experiment's folder"
    (folder / "link.md").symlink_to(folder.parent / "secret.md")
    assert refusal(folder, extra_instruction_files=["link.md"])[0] == "'link.md' leaves the experiment's folder"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"mcpServers": {"shop": {"command": "shop", "args": ["-v"], "unknown": 1}}}'),
        ("a.yml", "mcp_servers:\n  - {name: shop, command: shop, args: [-v]}\n"),
        ("a.toml", '[mcp_servers.shop]\ncommand = "shop"\nargs = ["-v"]\n'),
    ],
)
def test_lists_of_servers_are_read_as_harbor_reads_them(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    server = {"name": "shop", "command": "shop", "args": ["-v"], "transport": "stdio"}
    assert read_servers(name, tmp_path) == [server]


def test_servers_over_http(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"mcpServers": {"shop": {"type": "http", "url": "http://x"}}}))
    assert read_servers("a.json", tmp_path) == [{"name": "shop", "url": "http://x", "transport": "streamable-http"}]


@pytest.mark.parametrize("text", ["[]", "{}", '{"mcpServers": [1]}', '{"mcpServers": {}}', "{"])
def test_files_that_list_no_servers(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(SourceError, match=r"^a\.json (lists no MCP servers|is broken: )") as caught:
        read_servers("a.json", tmp_path)
    if text != "{":
        assert caught.value.remedy == "they stand under mcpServers or mcp_servers"


# ---------------------------------------------------------------- kwargs


def test_a_kwarg_that_harbor_would_refuse_is_told_before_anything_runs(folder: Path) -> None:
    assert refusal(folder, agent="toy:Strict", kwargs={"mutnt": "x"}) == (
        "toy:Strict takes no kwarg 'mutnt': Harbor would refuse it",
        "did you mean 'mutant'? it takes base_url, disable_web_search, mutant, reasoning_effort, words",
    )
    assert refusal(folder, agent="toy:Stricter", kwargs={"zzz": 1})[0].startswith("toy:Stricter takes no kwarg 'zzz'")
    assert refusal(folder, agent="toy:Closed", kwargs={"dept": 1})[1] == (
        "did you mean 'depth'? it takes depth, logs_dir, model_name"
    )


@pytest.mark.parametrize(
    ("agent", "kwargs"),
    [
        ("toy:Strict", {"mutant": "a", "words": [], "reasoning_effort": "low"}),
        ("toy:Stricter", {"mutant": "a"}),
        ("toy:Named", {"depth": 2, "breadth": 3}),
        ("toy:Foreign", {"anything": 1}),
        ("toy:Open", {"anything": 1}),
        ("installed.elsewhere:Agent", {"anything": 1}),
        ("claude-code", {"anything": 1}),
    ],
)
def test_kwargs_that_may_be_meant_are_accepted(folder: Path, agent: str, kwargs: dict[str, Any]) -> None:
    files_of(folder, agent=agent, kwargs=kwargs)
    runner = make_runner(folder, checked=False)
    assert runner.variant_warnings({"agent": agent, "kwargs": kwargs}, folder) == []


@pytest.mark.parametrize("agent", ["toy:Named", "toy:Plain"])
def test_a_kwarg_that_nothing_reads_is_a_warning(folder: Path, agent: str) -> None:
    params = {"agent": agent, "kwargs": {"brdth": 3}}
    runner = make_runner(folder, checked=False)
    runner.variant_files(params, folder)
    assert runner.variant_warnings(params, folder) == [
        f"nothing in {folder}/toy.py reads the kwarg 'brdth' of {agent}, and Harbor passes it on whatever it is "
        "called: a mutant that differs in nothing else survives"
    ]
