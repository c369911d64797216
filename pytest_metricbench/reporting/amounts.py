"""Times, amounts and sums of money as people say them."""


def duration_text(seconds: float) -> str:
    """Seconds in one or two units: ``0.04 s``, ``3.2 s``, ``42 s``, ``3 min``, ``2 h 10 min``, ``3 d 4 h``."""
    if 0 < seconds < 0.095:
        return f"{seconds:.1g} s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days:,} d {hours} h" if hours else f"{days:,} d"


def money_text(amount: float, unit: str) -> str:
    """An amount: ``$1.20`` where the score is ``cost_usd``, ``cost 1.20`` where nobody says in which currency."""
    number = f"{amount:.2g}" if 0 < amount < 0.095 else f"{amount:,.2f}"
    return f"${number}" if unit == "cost_usd" else f"cost {number}"


def amount_text(value: float) -> str:
    """A number of any size to about three digits: ``0.00042``, ``3.14``, ``12,345``."""
    if value == 0:
        return "0"
    if abs(value) >= 999.5:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"
    return f"{value:.3g}"
