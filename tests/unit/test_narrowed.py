"""An equality that a fix narrows is held; one that it widens, or that follows the fields, is not."""

import pytest

from fixloop.integrity.difference import Change, Scope, findings

IMPORTS = "from dataclasses import dataclass, field\n"
MONEY = IMPORTS + "@dataclass(frozen=True)\nclass Money:\n    cents: int\n    currency: str\n"
EQUAL = "    def __eq__(self, other):\n        return {}\n"
ORDER = "class Order:\n    def __init__(self): self.id, self.name = 1, ''\n" + EQUAL.format(
    "isinstance(other, Order) and self.id == other.id and self.name == other.name"
)
CACHED = "class Order:\n    def key(self):\n        if self.kept is None: self.kept, self.empty = self.parsed(), None\n"
CACHED += "        return self.kept\n    def parsed(self): return self.a\n" + EQUAL.format(
    "self.key() == other.key()"
)
KEYED = "class Order:\n    def key(self): return {}\n" + EQUAL.format("self.key() == other.key()")


@pytest.mark.proves("I7", "I8")
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (MONEY, MONEY.replace("cents: int", "cents: int = field(compare=False)"), "another `cents`"),
        (MONEY, MONEY + EQUAL.format("self.currency == other.currency"), "another `cents`"),
        (
            MONEY,
            MONEY + EQUAL.format("abs(self.cents - other.cents) < 2 and self.currency == other.currency"),
            "with `<`",
        ),
        (
            MONEY,
            MONEY
            + EQUAL.format("isinstance(other, (Money, int)) and (self.cents, self.currency) == other.key"),
            "with `int`",
        ),
        (ORDER, ORDER.replace(" and self.name == other.name", ""), "another `name`"),
        (
            ORDER,
            ORDER.replace("self.name == other.name", "self.name.lower() == other.name.lower()"),
            "with `lower`",
        ),
        (
            KEYED.format("self.a, self.b"),
            KEYED.format("self.a") + "    def f(self): return self.b\n",
            "another `b`",
        ),
    ],
)
def test_an_equality_that_lets_more_values_be_equal_is_held(old: str, new: str, told: str) -> None:
    (found,) = findings([Change("money.py", old, new)], Scope())

    assert found.rule == "equals-everything"
    assert told in found.text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (MONEY, MONEY.replace("    cents: int\n", "")),
        (MONEY, MONEY + EQUAL.format("(self.cents, self.currency) == (other.cents, other.currency)")),
        (MONEY, MONEY.replace("frozen=True", "eq=False")),
        (MONEY, MONEY + "    rate: float = field(default=1.0, compare=False)\n"),
        (MONEY, MONEY + EQUAL.format("astuple(self) == astuple(other)")),
        (ORDER, ORDER.replace("self.id, self.name = 1, ''", "self.id, self.name, self.at = 1, '', 0")),
        (KEYED.format("self.a"), KEYED.format("self.a, self.b")),
        # What `key` sets is not compared, and what it now asks by another name still is.
        (
            CACHED,
            CACHED.replace(", self.empty = self.parsed(), None", " = self.required()")
            + "    def required(self): return self.parsed() or self.empty\n",
        ),
        # Before, only the object itself was equal; a number may identify it.
        (
            "class Order:\n    name: str\n",
            "class Order:\n    name: str\n" + EQUAL.format("self.id == other.id"),
        ),
        (ORDER.replace("self.id ==", "round(self.id) =="), ORDER.replace("self.id ==", "round(self.id) //")),
    ],
)
def test_an_equality_that_compares_as_much_is_not_held(old: str, new: str) -> None:
    assert findings([Change("money.py", old, new)], Scope()) == []
