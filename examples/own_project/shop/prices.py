"""What a basket costs."""


def shipping(total, country="DE"):
    """Free from 50 at home; elsewhere it always costs."""
    if country == "DE":
        return 0 if total >= 50 else 5
    return 15


def discount(total, customer_years):
    """A per cent for every whole year, ten at most."""
    percent = min(int(customer_years), 10)
    return total - total * percent / 100


def price(basket, country="DE", customer_years=0):
    """The sum of a basket (name -> price and number), less the discount, and shipping."""
    total = sum(cost * number for cost, number in basket.values())
    total = discount(total, customer_years)
    return round(total + shipping(total, country), 2)
