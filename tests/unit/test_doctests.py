"""Examples in docstrings that a fix has changed with the product."""

import pytest

from fixloop.integrity.difference import Change, edited

WORDS = '''
def initials(text):
    """
    The first letters.

    >>> initials("Fresh bread")
    'FB'
    >>> initials("")
    ''
    """
    return text[0]
'''


def old_examples(*changes: Change, run: tuple[str, ...] = ("words.py",)) -> list[str]:
    return [found.old for found in edited(changes, run)]


def test_another_expected_value_is_found_with_what_was_expected() -> None:
    changed = Change("words.py", WORDS, WORDS.replace("'FB'", "'fb'"))

    assert old_examples(changed) == [">>> initials(\"Fresh bread\")\n'FB'"]


def test_a_removed_example_is_found_and_the_others_are_counted() -> None:
    (found,) = edited([Change("words.py", WORDS, "def initials(text): ...\n")], ["words.py"])

    assert found.text == "an example in a docstring is not as it was, and 1 more"


@pytest.mark.parametrize(
    "new",
    [
        WORDS.replace("text[0]", "'FB'"),
        WORDS.replace("The first letters.", "Of each word the first letter."),
        WORDS.replace('    >>> initials("")', "    >>> initials('a')\n    'a'\n    >>> initials(\"\")"),
    ],
)
def test_other_code_other_prose_and_more_examples_are_a_fix(new: str) -> None:
    assert old_examples(Change("words.py", WORDS, new)) == []


def test_an_example_that_moved_with_its_function_is_unchanged() -> None:
    moved = Change("words.py", WORDS, "from letters import initials\n"), Change("letters.py", None, WORDS)

    assert old_examples(*moved) == []


@pytest.mark.parametrize("text", ["def initials(:", "def f():\n    '''\n    >>>f()\n    '''\n", "\0"])
def test_unreadable_code_has_no_examples(text: str) -> None:
    assert old_examples(Change("words.py", text, text + "\n")) == []


def test_examples_of_tests_and_those_that_never_run_do_not_count() -> None:
    changed = WORDS.replace("'FB'", "'fb'")

    assert old_examples(Change("words.py", WORDS, changed), run=()) == []
    assert old_examples(Change("words.py", WORDS, changed, is_test=True)) == []
