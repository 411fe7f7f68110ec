"""Which tests are new, and a product emptied while a test is called."""

import builtins
from typing import Any

import pytest

from fixloop.integrity.new_tests import SWITCH, emptied, new_or_changed, seems_to_check, without

OLD = "def test_a():\n    assert f() == 1\n"


def test_a_test_is_new_if_none_did_the_same_under_any_name() -> None:
    before = {"t.py": OLD}
    after = {
        "t.py": OLD.replace("test_a", "test_renamed"),
        "u.py": "def helper():\n    pass\n\nclass TestB:\n    def test_c(self):\n        assert f() == 2\n",
        "v.py": "def broken(:\n",
    }

    assert new_or_changed(before, after) == {"u.py::TestB::test_c"}


def test_a_test_with_another_body_or_other_parameters_is_a_changed_one() -> None:
    parametrized = f"@pytest.mark.parametrize('a', [1])\n{OLD}"

    assert new_or_changed({"t.py": OLD}, {"t.py": OLD.replace("== 1", "== 2")}) == {"t.py::test_a"}
    assert new_or_changed({"t.py": OLD}, {"t.py": parametrized}) == {"t.py::test_a"}
    assert new_or_changed({"t.py": OLD}, {"t.py": f"# a comment\n{OLD}"}) == set()


@pytest.mark.parametrize(
    "body",
    [
        "def f():\n    'Says what.'\n    return 1",
        "class A:\n    def f(self):\n        return 1\nf = A().f",
        "def f():\n    global x\n    x = 1\n    return x",
    ],
)
def test_an_emptied_function_does_nothing_while_the_switch_is_on(body: str) -> None:
    scope: dict[str, Any] = {}
    exec(compile(emptied(body), "f.py", "exec"), scope)

    usual = scope["f"]()
    builtins.__dict__[SWITCH] = type(None)
    try:
        empty = scope["f"]()
    finally:
        del builtins.__dict__[SWITCH]

    assert (usual, empty) == (1, None)


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n\n    def __init__(self):\n        self.a = 1",
        "async def f():\n    yield 1",
        "x = (lambda: 1)()",
    ],
)
def test_dunder_methods_and_asynchronous_generators_are_not_emptied(text: str) -> None:
    assert emptied(text) == text


def test_a_file_without_a_test_keeps_the_others() -> None:
    text = "class TestB:\n    def test_c(self):\n        pass\n\n" + OLD

    assert without(text, {"TestB::test_c"}) == "class TestB:\n    pass\n\ndef test_a():\n    assert f() == 1"


def test_a_test_without_an_assertion_does_not_seem_to_check() -> None:
    text = f"{OLD}\ndef test_b():\n    f() + 1\n"

    assert [seems_to_check(text, name) for name in ("test_a", "test_b", "test_none")] == [True, False, False]
