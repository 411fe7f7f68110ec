"""Shelf labels with a check digit, so that a mistyped number is noticed."""

WIDTH = 32


def check_digit(number: str) -> str:
    digits = [int(character) for character in reversed(number)]
    weighted = sum(digit * (3 if place % 2 == 0 else 1) for place, digit in enumerate(digits))
    return str(-weighted % 10)


def is_valid(number: str) -> bool:
    """True when the last digit is the check digit of the others."""
    if len(number) < 2 or not number.isdigit():
        return False
    return check_digit(number[:-1]) == number[-1]


def label(name: str, number: str, cents: int) -> str:
    """Three lines: the name, the price, the number with its check digit."""
    if not number.isdigit():
        raise ValueError(f"not an article number: {number!r}")
    price = f"{cents // 100}.{cents % 100:02}"
    lines = [name[:WIDTH].center(WIDTH), price.rjust(WIDTH)]
    lines.append(f"{number}{check_digit(number)}".ljust(WIDTH))
    return "\n".join(lines)
