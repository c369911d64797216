"""Which agents' configurations are one variant, and what variants are called."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.definition.ids import derive_id
from pytest_metricbench.interop.harbor.variants import (
    agent_settings,
    describe_settings,
    name_variants,
    settings_key,
)


def named(*agents: dict[str, Any], label: str = "toy") -> list[str]:
    return name_variants([(label, agent_settings(agent)) for agent in agents])


class TestSettings:
    def test_defaults_given_or_not_are_the_same(self) -> None:
        whole: dict[str, Any] = {
            "name": None,
            "import_path": "toy:Toy",
            "model_name": None,
            "skills": [],
            "kwargs": {},
            "env": {},
            "skip_model_parsing": False,
            "override_timeout_sec": 5.0,
            "n_concurrent": 4,
        }
        short = {"import_path": "toy:Toy", "override_timeout_sec": 5}
        assert agent_settings(whole) == agent_settings(short) == {"agent": "toy:Toy", "override_timeout_sec": 5}

    def test_the_command_lines_way_to_name_a_class_is_the_same(self) -> None:
        assert agent_settings({"name": "toy:Toy"}) == agent_settings({"import_path": "toy:Toy"})

    def test_arguments_that_are_false_or_empty_are_kept(self) -> None:
        """Only Harbor's own keys have defaults that are known; an agent's argument False is something it was told."""
        assert agent_settings({"name": "a", "kwargs": {"plan": False, "words": []}}) == {
            "agent": "a",
            "kwargs.plan": False,
            "kwargs.words": [],
        }

    def test_what_may_be_secret_is_a_digest(self) -> None:
        """Settings stand in ids, in descriptions and in the lock, which is committed."""
        settings = agent_settings(
            {
                "name": "a",
                "kwargs": {"api_key": "sk-123456", "max_tokens": 100, "word": "hello"},
                "env": {"DATABASE": "postgres://me:pw@host", "AUTH_MODE": "stri****ong", "API_KEY": "****"},
                "mcp_servers": [{"name": "x", "headers": {"Authorization": "Bearer 123"}}],
                "base_url": "https://me:pw@host/v1",
            }
        )
        shown = str(settings)
        for secret in ("sk-123456", "pw@", "stri", "Bearer"):
            assert secret not in shown
        assert (settings["kwargs.max_tokens"], settings["kwargs.word"]) == (100, "hello")
        assert str(settings["env.API_KEY"]).startswith("masked #")

    def test_other_secrets_are_other_settings(self) -> None:
        one, two = (agent_settings({"name": "a", "env": {"MODE": value}}) for value in ("x", "y"))
        assert one != two
        assert name_variants([("toy", one), ("toy", two)]) == ["toy-MODE-ba2df4", "toy-MODE-2bc983"]

    def test_order_is_nothing(self) -> None:
        first, second = {"name": "a", "kwargs": {"x": 1, "y": 2}}, {"kwargs": {"y": 2, "x": 1}, "name": "a"}
        assert settings_key(agent_settings(first)) == settings_key(agent_settings(second))


class TestNames:
    def test_one_agent_is_called_like_itself(self) -> None:
        assert named({"name": "toy", "kwargs": {"mutant": "m1"}}) == ["toy"]

    def test_different_agents_need_nothing_else(self) -> None:
        agents = [
            ("toy", agent_settings({"name": "toy"})),
            ("other", agent_settings({"name": "other", "kwargs": {"x": 1}})),
        ]
        assert name_variants(agents) == ["toy", "other"]

    def test_the_setting_that_tells_all_apart_is_enough(self) -> None:
        agents: list[dict[str, Any]] = [
            {"name": "toy"},
            {"name": "toy", "kwargs": {"mutant": "m1", "words": ["hello"], "x": 1}},
            {"name": "toy", "kwargs": {"mutant": "m2", "x": 1}, "override_timeout_sec": 5},
        ]
        assert named(*agents) == ["toy", "toy-mutant-m1", "toy-mutant-m2"]

    def test_two_settings_where_one_is_not_enough(self) -> None:
        agents = [{"kwargs": {"a": a, "b": b}} for a in (1, 2) for b in (1, 2)]
        assert named(*agents) == ["toy-a-1-b-1", "toy-a-1-b-2", "toy-a-2-b-1", "toy-a-2-b-2"]

    def test_a_model_is_named_by_itself(self) -> None:
        assert named({"model_name": "acme/big"}, {"model_name": "acme/small"}) == ["toy-acme-big", "toy-acme-small"]

    def test_long_values_are_cut_and_stay_different(self) -> None:
        names = named({"kwargs": {"prompt": "x" * 300 + "a"}}, {"kwargs": {"prompt": "x" * 300 + "b"}})
        assert len(set(names)) == 2
        assert all(name.startswith("toy-prompt-" + "x" * 32 + "-") and len(name) < 60 for name in names)

    def test_values_that_look_alike_stay_different(self) -> None:
        names = named({"kwargs": {"t": "a b"}}, {"kwargs": {"t": "a/b"}})
        assert len(set(names)) == 2

    def test_a_name_that_is_no_id(self) -> None:
        assert named({}, label="my agent!") == ["my-agent"]
        assert named({}, label="..") == ["agent"]

    @given(
        st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["toy", "t o y", "", "ünï"])},
                optional={
                    "model_name": st.sampled_from(["a/b", "a b"]),
                    "kwargs": st.dictionaries(
                        st.sampled_from(["x", "y", "-", "é"]),
                        st.none() | st.booleans() | st.text(max_size=3) | st.just([1]),
                    ),
                },
            ),
            min_size=1,
            max_size=6,
        )
    )
    def test_names_are_ids_and_all_different(self, agents: list[dict[str, Any]]) -> None:
        settings = {settings_key(agent_settings(agent)): (agent["name"], agent_settings(agent)) for agent in agents}
        names = name_variants([settings[key] for key in sorted(settings)])
        assert len(set(names)) == len(settings)
        assert all(len(derive_id(name)[0]) <= 100 for name in names)
        assert all(derive_id(name) == (name, "") for name in names if len(name) <= 100 and name not in ("pool",))


class TestDescriptions:
    def test_only_what_differs_is_told(self) -> None:
        all_settings = [
            agent_settings({"name": "toy"}),
            agent_settings({"name": "toy", "kwargs": {"mutant": "m1", "words": ["a", "b"]}}),
        ]
        assert [describe_settings(settings, all_settings) for settings in all_settings] == [
            "",
            'kwargs.mutant=m1, kwargs.words=["a","b"]',
        ]

    def test_of_a_single_variant_all_is_told(self) -> None:
        only = agent_settings({"name": "toy", "kwargs": {"mutant": "m1"}})
        assert describe_settings(only, [only]) == "agent=toy, kwargs.mutant=m1"
