"""Amounts of money, kept as whole cents."""

from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation


def parse_amount(text: str) -> int:
    """Cents for a text such as `12.50`, `-3` or `1,200.00`."""
    try:
        value = Decimal(text.replace(",", "").strip())
    except InvalidOperation:
        raise ValueError(f"not an amount of money: {text!r}")
    return int((value * 100).to_integral_value(rounding=ROUND_HALF_EVEN))


def format_amount(cents: int) -> str:
    """`1,200.00` for 120000."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole:,}.{rest:02}"
