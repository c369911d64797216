"""What an agent calls to become a variant."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pytest_metricbench.generating.agent_side import text_of, with_faults


def test_a_changed_file_is_the_variants_and_another_one_the_agents_own(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("own", "utf-8")
    assert text_of({"files": {"policy.md": "changed"}}, "policy.md", tmp_path) == "changed"
    assert text_of({"files": {"other.md": "changed"}}, "policy.md", tmp_path) == "own"
    assert text_of({}, "policy.md", tmp_path) == "own"
    with pytest.raises(FileNotFoundError):
        text_of({}, "none.md", tmp_path)


class Shop:
    def __init__(self) -> None:
        self.stock = 1
        self.calls = 0

    def look(self, name: str, deep: bool = False) -> dict[str, Any]:
        self.calls += 1
        return {"name": name, "stock": self.stock}


@pytest.fixture
def shop() -> Shop:
    return Shop()


def faulty(shop: Shop, **fault: object) -> Callable[..., Any]:
    return with_faults({"look": shop.look, "list": lambda: [1]}, {"tool_faults": {"look": fault}})["look"]


def test_without_faults_the_tools_are_the_same(shop: Shop) -> None:
    tools = {"look": shop.look}
    assert with_faults(tools, {}) == tools


def test_an_error(shop: Shop) -> None:
    assert faulty(shop, returns="error")("pen") == {"error": "look is not available"}
    assert shop.calls == 0

    def raising(message: str) -> NoReturn:
        raise LookupError(message)

    tool = with_faults({"look": shop.look}, {"tool_faults": {"look": {"returns": "error"}}}, as_error=raising)["look"]
    with pytest.raises(LookupError, match="look is not available"):
        tool("pen")


def test_empty_data(shop: Shop) -> None:
    assert faulty(shop, returns="empty")("pen") == {}
    assert shop.calls == 1
    kinds = {"list": [1], "tuple": (1,), "text": "x", "number": 3}
    tools = {name: (lambda value=value: value) for name, value in kinds.items()}
    empty = with_faults(tools, {"tool_faults": {name: {"returns": "empty"} for name in kinds}})
    assert {name: tool() for name, tool in empty.items()} == {"list": [], "tuple": (), "text": "", "number": None}


def test_stale_data_is_that_of_the_first_time_for_the_same_question(shop: Shop) -> None:
    look = faulty(shop, returns="stale")
    first = look("pen")
    first["stock"] = "changed by the agent"
    shop.stock = 0
    assert look("pen") == {"name": "pen", "stock": 1}
    assert look("ink") == {"name": "ink", "stock": 0}
    assert look("pen", deep=True) == {"name": "pen", "stock": 0}
    assert shop.calls == 3


def test_a_database_among_the_arguments_is_no_part_of_the_question() -> None:
    state = {"pen": 1}
    look = with_faults({"look": lambda db, name: db[name]}, {"tool_faults": {"look": {"returns": "stale"}}})["look"]
    assert look(state, name="pen") == 1
    state["pen"] = 2
    assert look(state, name="pen") == 1


def test_a_delay(shop: Shop) -> None:
    began = time.monotonic()
    assert faulty(shop, delay=0.05)("pen") == {"name": "pen", "stock": 1}
    assert time.monotonic() - began >= 0.05


def test_async_tools_stay_async(shop: Shop) -> None:
    async def look(name: str) -> dict[str, Any]:
        return shop.look(name)

    for fault, answer in (({"returns": "error"}, {"error": "look is not available"}), ({"returns": "empty"}, {})):
        tool = with_faults({"look": look}, {"tool_faults": {"look": fault}})["look"]
        assert asyncio.run(tool("pen")) == answer


@pytest.mark.parametrize("fault", [{}, {"returns": "nonsense"}, {"delay": "long"}, {"delay": -1}])
def test_a_fault_that_is_none_is_refused(shop: Shop, fault: dict[str, Any]) -> None:
    with pytest.raises(
        ValueError, match=r"tool_faults of look: .* is neither returns: error\|stale\|empty nor delay: seconds"
    ):
        faulty(shop, **fault)


def test_a_fault_of_no_tool_is_refused(shop: Shop) -> None:
    with pytest.raises(KeyError, match="tool_faults names the tool 'loook'; there are look"):
        with_faults({"look": shop.look}, {"tool_faults": {"loook": {"delay": 1}}})
