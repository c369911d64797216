import pytest
from shop.prices import discount, price, shipping


def test_shipping_at_home():
    assert shipping(10) == 5
    assert shipping(80) == 0


def test_shipping_abroad():
    assert shipping(80, "FR") == 15


@pytest.mark.parametrize(("years", "expected"), [(0, 100), (3, 97), (3.9, 97)])
def test_discount(years, expected):
    assert discount(100, years) == expected


def test_price():
    assert price({"tea": (4.5, 2), "pot": (20, 1)}) == 34


def test_price_of_a_regular():
    assert price({"pot": (100, 1)}, customer_years=5) == 95
