"""What the parts of the analysis hand one another: values that nobody changes, and that cost no second computation."""

import dataclasses
import importlib
import pkgutil
import typing
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pytest_metricbench.analysis as package
from pytest_metricbench.analysis.comparing_tasks import fisher_two_sided
from pytest_metricbench.analysis.detection import Tallies, fisher_p
from pytest_metricbench.analysis.estimates import ClusteredError, PairedDifference
from pytest_metricbench.analysis.outcomes import Cell, Tally
from pytest_metricbench.analysis.pass_at_k import pass_at_k, pass_hat_k
from pytest_metricbench.analysis.proportions import wilson

COUNTED_UP = {Cell, Tally}
"""Filled attempt by attempt, so the only ones that change."""


def dataclasses_of_the_analysis() -> Iterator[type[Any]]:
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for found in vars(module).values():
            if isinstance(found, type) and found.__module__ == module.__name__ and dataclasses.is_dataclass(found):
                yield found


EVERY = [pytest.param(found, id=found.__name__) for found in dataclasses_of_the_analysis()]


def parameters(value: type[Any]) -> Any:
    return value.__dataclass_params__


def test_there_are_values() -> None:
    assert len(EVERY) > 30


@pytest.mark.parametrize("value", EVERY)
def test_no_value_can_be_changed_or_carry_more_than_its_fields(value: type[Any]) -> None:
    assert parameters(value).frozen is (value not in COUNTED_UP)
    assert "__slots__" in vars(value)
    assert not hasattr(value, "__dict__") or "__dict__" not in dir(value)


@pytest.mark.parametrize("value", EVERY)
def test_what_holds_arrays_is_equal_to_nothing_but_itself(value: type[Any]) -> None:
    """Where one is compared field by field, == of two arrays raises, or says something of one element only."""
    if any("ndarray" in str(hint) for hint in typing.get_type_hints(value).values()):
        assert not parameters(value).eq


def test_two_sets_of_tallies_can_be_compared_and_be_keys() -> None:
    numbers = np.array([1, 2], dtype=np.int64)
    one, other = (Tallies(numbers, numbers, numbers[None], numbers[None]) for _ in range(2))
    assert one == one  # noqa: PLR0124
    assert one != other
    assert len({one, other}) == 2


@pytest.mark.parametrize(
    "value", [PairedDifference(0.5, 0.25, 0.5), ClusteredError(0.25, 0.5)], ids=lambda value: type(value).__name__
)
def test_estimates_are_equal_by_what_they_say_and_stay_as_they_are(value: Any) -> None:
    assert value == dataclasses.replace(value)
    assert "=0.25" in repr(value)
    name = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, 1.0)


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
    assert function(*arguments) == pytest.approx(result)
    assert function(*arguments) is function(*arguments)
