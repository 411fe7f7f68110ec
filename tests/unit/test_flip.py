"""A flipped test expects another value, and only where that has to make it fail."""

import ast

import pytest

from fixloop.integrity.flip import flipped


def flip(body: str, above: str = "", *, is_near: bool = False) -> str:
    """The function `test_a` of this body with a changed constant; empty if there is none to change."""
    lines = "\n".join(f"    {line}" for line in body.split("; "))
    changed = flipped(f"{above}\ndef test_a(a=1, b=2):\n{lines}\n", {"test_a": 0}, is_near=is_near)
    if not changed.flips:
        return ""
    module = ast.parse(changed.text)
    return ast.unparse(module.body[-1])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("assert add(2, 3) == 5", "assert add(2, 3) == 1000008"),
        ("assert 5 == add(2, 3)", "assert 1000008 == add(2, 3)"),
        ("assert name() == 'ann'", "assert name() == 'ann~'"),
        ("assert name() == b'ann'", "assert name() == b'ann~'"),
        ("assert flag() == True", "assert flag() == False"),
        ("assert nothing() == None", "assert nothing() == 'flipped'"),
        ("assert half() == -0.5", "assert half() == -1000003.5"),
        ("assert half() == pytest.approx(0.5, abs=9)", "assert half() == pytest.approx(1000003.5, abs=9)"),
        ("assert some() == [1, 2]", "assert some() == [1000004, 2]"),
        ("assert some() == []", "assert some() == ['flipped']"),
        ("assert some() == {}", "assert some() == {'flipped': 'flipped'}"),
        ("assert some() == {'a': 1}", "assert some() == {'a~': 1}"),
        ("self.assertEqual(add(2, 3), 5)", "self.assertEqual(add(2, 3), 1000008)"),
        ("result = add(1, 1); assert result == 2", "assert result == 1000005"),
        ("expected = [3]; assert add(1, 2) == expected", "expected = [1000006]"),
        ("with open('x') as file:;     assert file.read() == 'y'", "assert file.read() == 'y~'"),
    ],
)
def test_an_expected_constant_is_changed(body: str, expected: str) -> None:
    assert expected in flip(body)


@pytest.mark.parametrize(
    "body",
    [
        "assert add(2, 3)",
        "assert add(2, 3) > 5",
        "assert 5 == 5",
        "assert add(2, 3) == add(3, 2)",
        "assert add(2, 3) == int('5')",
        "if windows():;     assert sep() == 'b'",
        "for each in found():;     assert each == 1",
        "with pytest.raises(ValueError):;     assert add(2, 3) == 5",
        "if late():;     return; assert add(2, 3) == 5",
        "if late():;     pytest.skip('late'); assert add(2, 3) == 5",
        "data = [1]; assert same(data) == data",
        "data = 1; data = 2; assert add(1, 1) == data",
        "assert 1 < add(0, 2) == 2",
    ],
)
def test_an_assertion_that_need_not_fail_is_not_changed(body: str) -> None:
    assert flip(body) == ""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("assert add(2, 3) == 5", "assert add(2, 3) == 4"),
        ("assert half() == -0.5", "assert half() == -0.45"),
        ("assert none() == 0.0", "assert none() == -1.0"),
        ("assert huge() == 1e20", "assert huge() == 9e+19"),
        ("assert name() == 'ann'", "assert name() == 'xnn'"),
        ("assert name() == '12 x'", "assert name() == '12 y'"),
        ("assert name() == '12'", "assert name() == '12~'"),
        ("assert half() == pytest.approx(0.5, abs=9)", ""),
        ("assert half() == pytest.approx(0.5); assert add(1, 1) == 2", "assert add(1, 1) == 1"),
        ("self.assertAlmostEqual(half(), 0.5)", ""),
    ],
)
def test_a_constant_is_changed_a_little_where_the_test_allows_for_no_difference(
    body: str, expected: str
) -> None:
    changed = flip(body, is_near=True)

    assert expected in changed
    assert bool(changed) == bool(expected)


def test_the_expected_values_of_a_table_are_changed_in_each_case() -> None:
    table = "@pytest.mark.parametrize('a, b', [(1, 2), (2, 4)])"

    assert "[(1, 1000005), (2, 1000007)]" in flip("assert double(a) == b", table)
    assert flip("assert double(a) == a", table) == ""
    assert flip("assert double(a) == b", "@pytest.mark.parametrize('a, b', CASES)") == ""
    assert flip("assert double(a) == b", "@pytest.mark.parametrize('a, b', [(1, two())])") == ""


def test_only_the_tests_that_are_named_are_changed() -> None:
    text = "class TestA:\n    def test_b(self):\n        assert one() == 1\n\ndef test_c():\n    assert two() == 2\n"

    changed = flipped(text, {"TestA::test_b": 0})

    assert "one() == 1000004" in changed.text
    assert "two() == 2" in changed.text
    assert changed.flips["TestA::test_b"].line == 3
    assert changed.flips["TestA::test_b"].old == "assert one() == 1"


def test_a_file_that_is_no_python_has_nothing_to_change() -> None:
    assert flipped("def broken(:", {"broken": 0}).flips == {}


@pytest.mark.parametrize(
    ("line", "expected"), [(4, "deep() == 1000005"), (6, "other() == 1000006"), (8, "last() == 1000007")]
)
def test_the_failed_assertion_is_changed_even_in_a_branch(line: int, expected: str) -> None:
    text = (
        "def test_a():\n    assert first() == 1\n    if store.rolls_back:\n        assert deep() == 2\n"
        "    else:\n        assert other() == 3\n    with open('x'):\n        assert last() == 4\n"
    )

    assert expected in flipped(text, {"test_a": line}).text


@pytest.mark.parametrize(
    "above", ["for each in found():", "with pytest.raises(ValueError):", "try:", "while waits():"]
)
def test_if_the_failed_assertion_may_not_be_reached_another_is_changed(above: str) -> None:
    rest = "\n    except KeyError:\n        pass" if above == "try:" else ""
    text = f"def test_a():\n    assert first() == 1\n    {above}\n        assert deep() == 2{rest}\n"

    changed = flipped(text, {"test_a": 4}).text

    assert "first() == 1000004" in changed
    assert "deep() == 2" in changed
