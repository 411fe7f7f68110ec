"""Which years are leap years."""


def is_leap(year: int) -> bool:
    """True when February has 29 days."""
    return year % 4 == 0
