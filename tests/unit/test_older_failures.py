"""Which failures are older than the feature: moved lines are recognised, and none of its own is hidden."""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

import pytest
from hypothesis import given, strategies as st

from fixloop.protocol.failures import Failure
from fixloop.reports.baseline import comparable, tell_apart
from fixloop.reports.output import whole_failure
from fixloop.repository.moves import LineMap


class Edited:
    """One file of which both versions are known."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        changes = [
            change
            for change in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
            if change[0] != "equal"
        ]
        self.map = LineMap(
            hunks=tuple((a + (b > a), b - a, c + (d > c), d - c) for _, a, b, c, d in changes),
            removed={line + 1: before[line] for _, a, b, _, _ in changes for line in range(a, b)},
            added={line + 1: after[line] for _, _, _, c, d in changes for line in range(c, d)},
        )

    def name_after(self, path: str) -> str:
        return path

    def lines(self, path: str) -> LineMap:
        return self.map


def finding(line: int | None, message: str = "unused") -> Failure:
    return Failure(name="F401", file="a.py", line=line, error_type="unused-import", message=message)


def findings(lines: Sequence[str]) -> list[Failure]:
    """Each line that starts with a `b` is bad in the same way: only the line distinguishes two of them."""
    return [finding(number) for number, text in enumerate(lines, 1) if text.startswith("b")]


def told(before: Sequence[str], after: Sequence[str]) -> tuple[list[int | None], list[int | None]]:
    split = tell_apart(findings(before), findings(after), Edited(before, after))
    return [each.line for each in split.new], [each.line for each in split.old]


def test_a_failure_below_an_added_line_is_old() -> None:
    assert told(["a", "b", "c"], ["x", "y", "a", "b", "c"]) == ([], [4])


def test_of_several_equal_failures_the_one_on_the_added_line_is_new() -> None:
    assert told(["b1", "a", "b2"], ["b1", "a", "b3", "b2"]) == ([3], [1, 4])


def test_a_failure_that_replaces_another_is_new() -> None:
    assert told(["a", "b1", "c"], ["a", "c", "b2"]) == ([3], [])


def test_a_moved_and_indented_line_keeps_its_failure() -> None:
    before = ["b1", "a", "c", "d"]
    split = tell_apart(findings(before), [finding(4)], Edited(before, ["a", "c", "d", "    b1"]))

    assert [each.line for each in split.old] == [4]


def test_a_copy_of_a_bad_line_is_new() -> None:
    assert told(["b1", "a"], ["b1", "a", "b1"]) == ([3], [1])


def test_two_failures_on_a_line_that_had_one_are_one_old_and_one_new() -> None:
    split = tell_apart([finding(1)], [finding(1), finding(1)], Edited(["b"], ["b"]))

    assert (len(split.new), len(split.old)) == (1, 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("redefined from line 3", "redefined from line 14"),
        ("see a.py:10:2", "see a.py:110:3"),
        ("<X object at 0x7f00>", "<X object at 0x7f12>"),
    ],
)
def test_line_numbers_and_addresses_in_a_message_do_not_count(before: str, after: str) -> None:
    split = tell_apart([finding(2, before)], [finding(2, after)], Edited([], []))

    assert split.new == ()


def test_another_message_on_the_same_line_is_new() -> None:
    split = tell_apart(
        [finding(2, "too complex (11 > 10)")], [finding(2, "too complex (12 > 10)")], Edited([], [])
    )

    assert split.old == ()


def test_a_failure_of_a_whole_file_is_old_wherever_the_file_was_changed() -> None:
    split = tell_apart([finding(None)], [finding(None)], Edited(["a"], ["x", "a"]))

    assert split.new == ()


def test_a_whole_output_is_old_only_if_it_is_the_same() -> None:
    before = Failure(name="black", error_type="exit code 1", message="would reformat src/a.py", measure="1")
    after = before.model_copy(update={"message": "would reformat src/c.py"})

    assert tell_apart([before], [after], Edited([], [])).new == (after,)
    assert tell_apart([before], [before], Edited([], [])).old == (before,)


def test_a_whole_output_whose_lines_came_in_another_order_is_old() -> None:
    rows = [f"{number}. {'long ' * 30}error in src/{number}.py" for number in range(20)]
    before, after = (whole_failure("\n".join(each), "lint", "lint", 1) for each in (rows, rows[::-1]))

    assert tell_apart([before], [after], Edited([], [])).old == (after,)


@pytest.mark.parametrize("output", ["", "found 3 problems", "would reformat a.py… [9 bytes cut] … b"])
def test_a_whole_output_that_names_no_faults_is_new(output: str) -> None:
    whole = whole_failure(output, "lint", "python lint.py", 1)

    assert tell_apart([whole], [whole], Edited([], [])).new == (whole,)


def test_coverage_below_its_gate_is_never_old() -> None:
    low = Failure(
        name="coverage", error_type="CoverageBelowTarget", message="coverage is 60%", measure="60.0"
    )

    assert tell_apart([low], [low], Edited([], [])).new == (low,)


def test_the_workspace_s_own_path_does_not_count() -> None:
    before = comparable([finding(1, "/cache/attempt-1/tree/p/a.py is broken")], "/cache/attempt-1/tree/p")
    after = [finding(1, "/cache/attempt-2/tree/p/a.py is broken")]

    assert tell_apart(before, after, Edited([], []), workspace="/cache/attempt-2/tree/p").new == ()


LINES = st.lists(st.sampled_from(["a1", "a2", "a3", "b1", "b2", "b3", "b4"]), max_size=12)


@given(before=LINES, data=st.data(), added=LINES)
def test_moved_lines_never_hide_a_failure_of_the_feature(
    before: list[str], data: st.DataObject, added: list[str]
) -> None:
    after = data.draw(st.permutations([*before, *added]))

    split = tell_apart(findings(before), findings(after), Edited(before, after))

    assert len(split.new) + len(split.old) == len(findings(after))
    had = Counter(text for text in before if text.startswith("b"))
    old = Counter(after[each.line - 1] for each in split.old if each.line)
    # By the text of their lines: no more of each are old than the base had.
    assert old <= had


@given(before=LINES, data=st.data())
def test_if_lines_only_moved_every_failure_is_old(before: list[str], data: st.DataObject) -> None:
    after = data.draw(st.permutations(before))

    assert tell_apart(findings(before), findings(after), Edited(before, after)).new == ()
