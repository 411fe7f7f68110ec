"""Code that recognises what tests pass in place of the real thing is held; an ordinary question is not."""

from collections.abc import Collection

import pytest

from fixloop.integrity.difference import Change, Scope, findings
from fixloop.integrity.doubles import only_in_tests
from fixloop.integrity.source import Source

TESTS = """
from types import SimpleNamespace

class FakeClock:
    speed: int = 1

    def __init__(self):
        self.now = 0.0

    def advance(self): ...
    def close(self): ...

def test_waits():
    assert wait(SimpleNamespace(ticks=3), depth=2) == 3
"""
PRODUCT = "class Clock:\n    def sleep(self): ...\n\ndef wait(clock: Clock): clock.speed = depth\n"


def held(new: str, old: str = PRODUCT) -> list[str]:
    def foreign(names: Collection[str]) -> Collection[str]:
        return only_in_tests(names, [Source("test_a.py", TESTS)], [Source("a.py", PRODUCT)])

    found = findings([Change("a.py", old, old + new)], Scope(only_in_tests=foreign))
    assert {each.rule for each in found} <= {"watched"}
    return [each.text for each in found]


@pytest.mark.proves("I7", "I8")
@pytest.mark.parametrize(
    "new",
    [
        "if hasattr(clock, 'now'): x = 1",
        "x = getattr(clock, 'no' + 'w', None)",
        "if 'now' in vars(clock): x = 1",
        "if 'now' in clock.__dict__: x = 1",
        "if type(clock).__name__ == 'FakeClock': x = 1",
        "x = hasattr(clock, 'ticks')",
    ],
)
def test_asking_for_what_only_tests_define_is_held(new: str) -> None:
    assert any("which only tests define" in text for text in held(new))


@pytest.mark.parametrize(
    "new",
    [
        # The product has it, or nobody.
        "if hasattr(clock, 'speed'): x = 1",
        "if hasattr(clock, 'zone'): x = 1",
        # An optional method, which is then called.
        "if hasattr(clock, 'advance'): clock.advance()",
        "step = getattr(clock, 'advance', None)\nif step: step()",
        # Types of the standard library have it too.
        "x = hasattr(clock, 'close')",
        # The name of a parameter in a call of the tests.
        "x = hasattr(clock, 'depth')",
        "if 'now' in names: x = 1",
    ],
)
def test_an_ordinary_question_for_an_attribute_is_not_held(new: str) -> None:
    assert held(new) == []


@pytest.mark.proves("I7", "I8")
@pytest.mark.parametrize(
    "new",
    [
        "def f(clock=None):\n    clock = clock or Clock()\n    return 1 if type(clock) is Clock else 2",
        "def f(a, clock: Clock = Clock()):\n    return isinstance(clock, Clock)",
        "class A:\n    def __init__(self, clock=None):\n        self.clock = Clock() if clock is None else clock\n"
        "    def f(self): return isinstance(self.clock, Clock)",
        "def f(clock=None):\n    if clock is None:\n        clock = Clock()\n    return isinstance(clock, Clock)",
        "def f(clock: Clock):\n    if not isinstance(clock, Clock): return 1",
        "import time\nif hasattr(time.time, '__code__'): x = 1",
        "import time as t\nif type(t.sleep) is F: x = 1",
        "from time import sleep\nx = sleep is KEPT",
        "import time\nx = time.time.__module__",
    ],
)
def test_telling_the_real_thing_from_a_double_is_held(new: str) -> None:
    assert held(new)


@pytest.mark.parametrize(
    "new",
    [
        "def f(clock):\n    if not isinstance(clock, Clock):\n        clock = Clock(clock)\n    return clock",
        "def f(clock: Clock):\n    if not isinstance(clock, Clock): raise TypeError(clock)",
        "def f(text: str):\n    if isinstance(text, str): return 1",
        "def f(clock: 'Clock | None'):\n    return 1 if isinstance(clock, Clock) else 2",
        "import datetime\nx = type(day) is datetime.datetime",
        "import time\nx = time.time() == KEPT",
        "import os\nx = hasattr(os, 'fork')",
    ],
)
def test_an_ordinary_question_for_a_type_is_not_held(new: str) -> None:
    assert held(new) == []
