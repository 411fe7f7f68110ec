"""Coverage that rose without a test: removed lines, and lines that a module runs when it is imported."""

import pytest

from fixloop.integrity.bought import Measured, called_at_import, dead_lines, percent_earned, reached

SHOP = (
    "def sell():\n    return 1\n\n\ndef _old():\n    return Note()\n\n\n"
    "class Note:\n    def text(self):\n        return 2\n"
)


def test_uncovered_lines_that_are_gone_count_as_uncovered() -> None:
    before = {"shop.py": Measured("a\nb\nc\nd", [1, 2], [3, 4])}

    assert percent_earned({"shop.py": Measured("a\nb", [1, 2], [])}, before) == 50
    assert percent_earned({"shop.py": Measured("a\nb\nc", [1, 2], [3])}, before, dead={"shop.py": {4}}) == (
        pytest.approx(100 * 2 / 3)
    )


def test_uncovered_lines_that_now_run_count_as_uncovered() -> None:
    before, now = (
        {"shop.py": Measured("a\nb\nc", [1], [2, 3])},
        {"shop.py": Measured("x\na\nb\nc", [2, 3, 4])},
    )

    assert percent_earned(now, before) == pytest.approx(100 / 3)
    assert percent_earned(now, before, only={"shop.py": {4}}) == pytest.approx(100 * 2 / 3)
    assert percent_earned(now, before, only={}) == 100


def test_removed_definitions_that_were_unused_count_as_dead() -> None:
    mentions = {"_old": 1, "Note": 2, "text": 1}
    new = {"shop.py": "def sell():\n    return 1\n"}

    assert dead_lines({"shop.py": SHOP}, new, mentions.__getitem__) == {"shop.py": {5, 6, 9, 10, 11}}


@pytest.mark.parametrize(
    ("new", "mentions"), [("def sell():\n    return 1\n", 3), ("sell = _old = Note = text = None\n", 0)]
)
def test_definitions_that_are_used_or_moved_do_not_count_as_dead(new: str, mentions: int) -> None:
    assert dead_lines({"shop.py": SHOP}, {"shop.py": new}, lambda name: mentions) == {}


@pytest.mark.parametrize(
    "line",
    [
        "RESULT = [sell()]",
        "class Shop:\n    first = sell()",
        "def again(price=sell()): ...",
        "@sell()\ndef again(): ...",
        "if 1:\n    shop.sell()",
    ],
)
def test_a_call_that_a_module_makes_when_it_is_imported_is_found(line: str) -> None:
    assert called_at_import("", line) == {"sell"}
    assert called_at_import(line, line) == set()


@pytest.mark.parametrize(
    "line",
    [
        "def again():\n    sell()",
        "again = lambda: sell()",
        "if __name__ == '__main__':\n    sell()",
        "sell",
        "(",
    ],
)
def test_a_deferred_call_does_not_count_as_made_at_import(line: str) -> None:
    assert called_at_import("", line) == set()


def test_a_called_function_reaches_the_functions_it_calls() -> None:
    assert reached({"shop.py": SHOP}, {"_old"}) == {"shop.py": {5, 6, 9, 10, 11}}
