"""What the parts of the analysis hand one another: values that nobody changes, and that cost no second computation."""

import dataclasses
import importlib
import pkgutil
import typing
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pytest_metricbench.analysis as package
from pytest_metricbench.analysis.comparing_tasks import fisher_two_sided
from pytest_metricbench.analysis.detection import Tallies, fisher_p
from pytest_metricbench.analysis.estimates import PairedDifference
from pytest_metricbench.analysis.pass_at_k import pass_at_k, pass_hat_k
from pytest_metricbench.analysis.proportions import wilson


def values_of_the_analysis() -> dict[str, type[Any]]:
    found: dict[str, type[Any]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == module.__name__ and dataclasses.is_dataclass(value):
                found[f"{info.name}.{name}"] = value
    assert len(found) > 30
    return found


def test_no_value_is_changed_but_those_that_are_counted_up() -> None:
    changing = {name for name, value in values_of_the_analysis().items() if not _parameters(value).frozen}
    assert changing == {"outcomes.Tally", "outcomes.Cell"}, "filled attempt by attempt"


def test_no_value_carries_more_than_its_fields() -> None:
    open_ended = [name for name, value in values_of_the_analysis().items() if "__slots__" not in vars(value)]
    assert open_ended == []


def test_what_holds_arrays_is_equal_to_nothing_but_itself() -> None:
    """Compared field by field, == of two arrays raises, or says something of their only elements."""
    compared = [
        name
        for name, value in values_of_the_analysis().items()
        if _parameters(value).eq and any("ndarray" in str(hint) for hint in typing.get_type_hints(value).values())
    ]
    assert compared == []
    numbers = np.array([1, 2], dtype=np.int64)
    one, other = (Tallies(numbers, numbers, numbers[None], numbers[None]) for _ in range(2))
    assert one != other
    assert {one: "one", other: "other"}[one] == "one"


def test_an_estimate_is_equal_by_what_it_says_and_stays_as_it_is() -> None:
    value: Any = PairedDifference(0.5, 0.25, 0.75)
    assert value == PairedDifference(0.5, 0.25, 0.75) != PairedDifference(0.5, 0.25, 0.5)
    assert repr(value) == "PairedDifference(mean=0.5, error=0.25, unpaired=0.75)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.mean = 1.0


def _parameters(value: Any) -> Any:
    return value.__dataclass_params__


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        (pass_at_k, (97, 3, 2), 1 - Fraction(94 * 93, 97 * 96)),
        (pass_hat_k, (97, 3, 2), Fraction(3 * 2, 97 * 96)),
        (fisher_p, (2, 2, 0, 2), Fraction(1, 6)),
        (fisher_two_sided, (2, 2, 0, 2), 1 / 3),
        (wilson, (97, 97), (97 / (97 + 1.959963984540054**2), 1.0)),
    ],
    ids=["pass_at_k", "pass_hat_k", "fisher_p", "fisher_two_sided", "wilson"],
)
def test_equal_tallies_are_computed_once(function: Callable[..., Any], arguments: tuple[int, ...], result: Any) -> None:
    """A case of 10,000 cells has a handful of different tallies, and exact fractions are slow."""
    first = function(*arguments)
    assert first == pytest.approx(result)
    assert function(*arguments) is first
