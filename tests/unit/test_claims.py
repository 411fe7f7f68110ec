"""An agent's claimed changes against the real ones: the change is recorded, the difference noted."""

import pytest
from hypothesis import given, strategies as st

from fixloop.protocol.claims import MOST_SHOWN, differences
from tests.unit.hostile import HOSTILE

CHANGED = ("src/a.py", "src/b c.py", "tests/test_a.py")


@pytest.mark.proves("A32")
@pytest.mark.parametrize(
    "entry",
    [
        "src/a.py",
        "./src/a.py",
        "src/a.py (both calls)",
        "src/a.py - the second branch",
        "src/a.py: the second branch",
        "src/a.py:12",
        "`src/a.py`",
        "/elsewhere/47/src/a.py",
    ],
)
def test_a_file_is_recognised_in_any_spelling_of_its_path(entry: str) -> None:
    assert differences([entry], ["src/a.py"]) == ((), ())


@pytest.mark.proves("A32")
def test_unchanged_named_files_and_unnamed_changes_are_reported_separately() -> None:
    found = differences(["src/a.py", "src/b c.py", "README.md"], CHANGED)

    assert found.unchanged == ("README.md",)
    assert found.unnamed == ("tests/test_a.py",)


def test_naming_a_folder_names_its_files() -> None:
    assert differences(["src/"], CHANGED) == ((), ("tests/test_a.py",))
    assert differences(["docs/"], CHANGED).unchanged == ("docs/",)


@pytest.mark.proves("K35")
def test_naming_nothing_names_no_changed_file() -> None:
    assert differences([], CHANGED) == ((), CHANGED)
    assert differences([], []) == ((), ())


def test_a_long_difference_is_counted_and_not_listed() -> None:
    found = differences([], [f"{number:04}.py" for number in range(5000)])

    assert len(found.unnamed) == MOST_SHOWN + 1
    assert found.unnamed[-1] == f"and {5000 - MOST_SHOWN} more"


@pytest.mark.heavy
@given(st.lists(HOSTILE, max_size=5), st.lists(HOSTILE, max_size=5))
def test_any_texts_can_be_compared(named: list[str], changed: list[str]) -> None:
    found = differences(named, changed)

    assert set(found.unchanged) <= set(named)
    assert set(found.unnamed) <= set(changed)
    assert differences(changed, changed).unnamed == ()
