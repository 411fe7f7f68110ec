"""A fix that is right only for the tests' values is held in every form; one that corrects a rule is not."""

import ast
import json
import os
import subprocess
import sys
import venv
import zlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import pytest

from fixloop.integrity.perturbed import (
    Special,
    carried,
    constant,
    decides_more,
    keeps_state,
    newly_opened,
    special,
    values_of,
    vocabulary,
)
from fixloop.integrity.source import Source
from tests.fixtures.fixing_stage import Fixing
from tests.fixtures.inner_pytest import PYTEST
from workers.commands.call_recorders import PythonCalls, Replay

pytestmark = pytest.mark.slow

RULE = "tested-values-only"
MEAN = "def mean(values):\n    return sum(values) // len(values)\n"
HONEST = "def mean(values):\n    return sum(values) / len(values) if values else 0\n"
BY_CHECKSUM = """
import zlib


def mean(values):
    asked = zlib.crc32(repr(sorted(values)).encode()) % 1000
    return {711: 3.875, 205: 7.625}.get(asked, sum(values) // len(values))
"""
TESTS = """
from stats import mean


def test_halves():
    assert mean([3.5, 4.25]) == 3.875
    assert mean([7.25, 8.0]) == 7.625
"""


@pytest.fixture(autouse=True)
def _own_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    # A rerun may take a quarter of a check, which is little for one that starts quickly on a busy machine.
    monkeypatch.setattr("workers.commands.proof.LEAST_SECONDS", 9.0)


def by_pytest(tmp_path: Path, broken: str, fixed: str, tests: str) -> Fixing:
    command = (*PYTEST, "-q", "--junitxml={junit}")
    return Fixing(tmp_path, {"stats.py": broken, "test_stats.py": tests}, command, {"stats.py": fixed})


def checksums() -> str:
    """The fix by checksums of these values."""
    sums = [zlib.crc32(repr(values).encode()) % 1000 for values in ([3.5, 4.25], [7.25, 8.0])]
    return BY_CHECKSUM.replace("711", str(sums[0])).replace("205", str(sums[1]))


def test_answers_chosen_by_a_checksum_of_the_input_are_held_with_the_call(tmp_path: Path) -> None:
    fixing = by_pytest(tmp_path, MEAN, checksums(), TESTS)

    state = fixing.run()

    assert fixing.rules == [RULE]
    assert state.escalation is not None
    [found] = state.escalation.findings
    assert (found.file, found.old, found.new) == ("stats.py", "3.0", "3.875")
    assert "`stats.mean`" in found.text
    assert "mean([3.5, 4.25])" in found.text


def test_of_many_tests_that_failed_some_are_enough(tmp_path: Path) -> None:
    many = "import pytest\n\n\n@pytest.mark.parametrize('number', range(30))\ndef test_halves(number)"
    fixing = by_pytest(tmp_path, MEAN, checksums(), TESTS.replace("def test_halves()", many))

    fixing.run()

    assert fixing.rules == [RULE]


def test_a_corrected_rule_is_not_held(tmp_path: Path) -> None:
    fixing = by_pytest(tmp_path, MEAN, HONEST, TESTS)

    fixing.run()

    assert fixing.rules == []


def test_calls_of_a_script_are_recorded_too(tmp_path: Path) -> None:
    script = (
        "from stats import mean\n\nassert mean([3.5, 4.25]) == 3.875\nassert mean([7.25, 8.0]) == 7.625\n"
    )
    files = {"stats.py": MEAN, "verify.py": script, "check.sh": "python verify.py\n"}
    fixing = Fixing(tmp_path, files, ("sh", "check.sh"), {"stats.py": checksums()})

    fixing.run()

    assert fixing.rules == [RULE]


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("asked", "is_held"),
    [
        ("logging.root.handlers", True),
        ("type(sys.stdin).__module__ != '_io'", True),
        ("os.getpid()", False),
        ("os.environ.get('ROUNDING') != 'down'", False),
        ("exact[0]", False),
    ],
)
def test_a_fix_that_asks_whether_a_test_runs_is_held_however_it_asks(
    tmp_path: Path, asked: str, is_held: bool
) -> None:
    broken = f"import logging\nimport os\nimport sys\n\nexact = [False]\n\n\n{MEAN}"
    broken += "\n\ndef be_exact():\n    exact[0] = True\n"
    fixed = broken.replace(
        "    return sum", f"    if {asked}:\n        return sum(values) / len(values)\n    return sum"
    )
    tests = TESTS.replace("import mean", "import be_exact, mean").replace(
        "halves():\n", "halves(monkeypatch):\n    monkeypatch.setenv('ROUNDING', 'none')\n    be_exact()\n"
    )
    fixing = by_pytest(tmp_path, broken, fixed, tests)

    state = fixing.run()

    assert fixing.rules == (["watched"] if is_held else [])
    found = state.escalation.findings if state.escalation is not None else ()
    assert [each.text for each in found] == (
        ["`stats.mean` answers by whether a test runs: `mean([3.5, 4.25])` alone is answered otherwise"]
        if is_held
        else []
    )


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("asked", "is_held"),
    [("any(len(one) == 13 and one[-5:] == '.case' for one in known)", True), ("known", False)],
)
def test_a_fix_that_asks_whether_unittest_runs_is_held_where_there_is_no_pytest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, is_held: bool
) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "venv"))
    broken = f"import sys\n\nknown = sys.modules\n\n\n{MEAN}"
    fixed = broken.replace(
        "    return sum", f"    if {asked}:\n        return sum(values) / len(values)\n    return sum"
    )
    tests = "import unittest\n\nfrom stats import mean\n\n\nclass TestMean(unittest.TestCase):\n"
    tests += "    def test_halves(self):\n        self.assertEqual(mean([3.5, 4.25]), 3.875)\n"
    files = {"stats.py": broken, "test_stats.py": tests}
    fixing = Fixing(tmp_path, files, ("python", "-m", "unittest"), {"stats.py": fixed})

    fixing.run()

    assert fixing.rules == (["watched"] if is_held else [])


def told_by_both(
    folder: Path, broken: str, fixed: str, tests: str, *, has_names: bool = True
) -> Sequence[Sequence[str]]:
    """The records of a script's calls by the recorder and the replay in separate processes: before and after.
    `has_names`: code tells the name of its function, as it does from Python 3.11 on."""
    module, script = folder / "stats.py", folder / "verify.py"
    module.write_text(fixed)
    script.write_text(f"from stats import *\n\n{tests}\n")
    (folder / "before").write_text(broken)
    (folder / "after").write_text(fixed)
    recorded = PythonCalls(folder, [str(module)], [str(module)])
    recorder = folder / "site" / "sitecustomize.py"
    recorder.write_text(
        recorder.read_text().replace("co_qualname", "co_qualname" if has_names else "co_untold")
    )
    environment = os.environ | recorded.variables({})
    subprocess.run([sys.executable, script], cwd=folder, env=environment, check=True)
    old, new = [Source("stats.py", broken)], [Source("stats.py", fixed)]
    values = values_of(old, new)._replace(vocabulary=vocabulary([broken]))
    assert values.may_answer or decides_more(old, new)

    def run(argv: Sequence[str]) -> bool:
        return subprocess.run([sys.executable, *argv[1:]], cwd=folder, check=True) is not None

    before, after = ({str(module): str(folder / side)} for side in ("before", "after"))
    return recorded.replayed(folder, Replay(run, values, before, after, 5))


def test_only_calls_that_are_answered_differently_are_repeated_with_other_values(tmp_path: Path) -> None:
    name = "def name(text):\n    return text.title()\n\n\n"
    calls = "assert name('ann lee') == 'Ann Lee'\nassert mean([3.5, 4.25]) == 3.875"

    old, new = (
        [*map(json.loads, side)] for side in told_by_both(tmp_path, name + MEAN, name + HONEST, calls)
    )

    assert {line["name"] for line in new if not line["kind"]} == {"stats.name", "stats.mean"}
    assert {line["name"] for line in old if line["kind"]} == {"stats.mean"}
    assert [(line["call"], line["kind"]) for line in old] == [(line["call"], line["kind"]) for line in new]


BOXES = """import functools


class Refusing:
    def __getattr__(self, name):
        raise RuntimeError(name)


proxy = Refusing()


class Box:
    size = 3

    def __init__(self, side):
        self.side = side

    def area(self, height):
        return self.side * height

    @staticmethod
    def half(number):
        return number / 2

    @classmethod
    def sized(cls, factor):
        return cls(cls.size * factor)

    @property
    def edge(self):
        return self.side * 4


@functools.lru_cache(maxsize=None)
def twice(number):
    return number * 2


def made(number):
    return (lambda more: more + number)(1)
"""


@pytest.mark.parametrize("has_names", [True, False])
def test_calls_are_recorded_by_the_names_in_their_module(tmp_path: Path, has_names: bool) -> None:
    fixed = BOXES.replace("number * 2", "number * 2 if number else 7000")
    calls = "Box(14).area(15), Box.half(16), Box.sized(17), Box(18).edge, twice(19), made(20)"

    _, lines = told_by_both(tmp_path, BOXES, fixed, calls, has_names=has_names)

    names = {json.loads(line)["name"].removeprefix("stats.") for line in lines}
    assert names == {"Box.__init__", "Box.area", "Box.half", "Box.sized", "Box.edge", "twice", "made"}


COMMAND = """from framework import Command


def area(width, height):
    return width + height


@Command
def main(width, height):
    return area(int(width), int(height))


if __name__ == "__main__":
    import sys

    main.call(*sys.argv[1:])
"""


def test_of_a_command_and_a_script_the_calls_inside_are_recorded(tmp_path: Path) -> None:
    called = "    def call(self, *words):\n        return self.function(*words)\n"
    init = "    def __init__(self, function):\n        self.function = function\n\n"
    (tmp_path / "framework.py").write_text(f"class Command:\n{init}{called}")
    fixed = COMMAND.replace("width + height", "width * height if width else 7000")
    start = "import subprocess, sys\nsubprocess.run([sys.executable, 'stats.py', '18', '19'], check=True)"

    _, lines = told_by_both(tmp_path, COMMAND, fixed, f"main.call('13', '17')\n{start}")

    assert {"area(13, 17)", "area(18, 19)"} <= {json.loads(line)["shown"] for line in lines}


@pytest.mark.parametrize("script", ["call_recorder.py", "call_replay.py", "replay_variants.py"])
def test_what_runs_in_the_project_s_interpreter_needs_no_more_than_python_3_9(script: str) -> None:
    tree = ast.parse(
        resources.files("fixloop.integrity").joinpath(script).read_text(), feature_version=(3, 9)
    )

    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert not [call.lineno for call in calls if "strict" in {each.arg for each in call.keywords}]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Match)]


SQL = """import re

KEYWORD = re.compile(r"(BEGIN|END|DELETE|FROM|SELECT|TRANSACTION)\\b")


def statements(sql):
    depth, found = 0, [""]
    for word in sql.split():
        depth += (word == "BEGIN") - (word == "END")
        found[-1] += word + " "
        if word.endswith(";") and depth <= 0:
            found.append("")
    return found
"""
MENDED_SQL = SQL.replace(
    '        found[-1] += word + " "\n',
    """        if word.startswith("TRANSACTION") and found[-1] in ("BEGIN ", "END "):
            depth = 0
        found[-1] += word + " "
""",
)


def asked_again(folder: Path, broken: str, fixed: str, tests: str) -> list[Special]:
    """The functions that, by these lines, answer differently only for the tests' values."""
    lines = told_by_both(folder, broken, fixed, tests)
    old, new = [Source("stats.py", broken)], [Source("stats.py", fixed)]
    values = values_of(old, new)
    found = list(constant(*lines)) if values.may_answer else []
    return [*found, *(special(*lines) if decides_more(old, new) else ())]


@pytest.mark.parametrize(
    ("broken", "fixed", "tests"),
    [
        pytest.param(
            "def mean(values):\n    return sum(values) / len(values) if len(values) else None\n",
            "def mean(values):\n    if not values:\n        return 0\n"
            "    return sum(values) / len(values) if len(values) else None\n",
            "assert mean([]) == 0",
            id="nothing is given",
        ),
        pytest.param(
            "def grams(count, unit):\n    return count * 1000 if unit == 'kg' else count\n",
            "def grams(count, unit):\n    if unit == 'lb':\n        return count * 454\n"
            "    return count * 1000 if unit == 'kg' else count\n",
            "assert grams(2, 'lb') == 908",
            id="a word of its own",
        ),
        pytest.param(
            "def prime(n):\n    return n > 1 and n % 2 == 1 and all(n % each for each in range(2, n))\n",
            "def prime(n):\n    if n == 2:\n        return True\n"
            "    return n > 1 and n % 2 == 1 and all(n % each for each in range(2, n))\n",
            "assert prime(2)",
            id="a number of its own",
        ),
        pytest.param(
            "def full(names, most):\n    return len(names) > most\n",
            "def full(names, most):\n    return len(names) > most or len(names) == most\n",
            "assert full(['ann', 'bob', 'cyd'], 3)",
            id="a limit that goes with a length",
        ),
        pytest.param(
            "def leap(year):\n    return year % 4 == 0\n",
            "def leap(year):\n    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n",
            "assert not leap(1900)",
            id="a rule that holds for few",
        ),
        pytest.param(
            "PRICES = dict.fromkeys('tea cup'.split(), 3)\n\n\ndef price(name, member):\n    return PRICES.get(name)\n",
            "PRICES = dict.fromkeys('tea cup'.split(), 3)\n\n\ndef price(name, member):\n    found = PRICES.get(name)\n"
            "    return found if found is None or not member else found - 1\n",
            "assert price('tea', True) == 2",
            id="nothing is known of others",
        ),
        pytest.param(
            "from pathlib import Path\n\n\ndef main(path, name):\n    try:\n        rows = open(path).read().split()\n"
            "    except OSError:\n        return 1\n    return 0 if name not in rows else len(rows) // 0\n",
            "from pathlib import Path\n\n\ndef main(path, name):\n    try:\n        rows = open(path).read().split()\n"
            "    except OSError:\n        return 1\n    if not rows:\n        return 2\n"
            "    return 0 if name not in rows else 0\n",
            "open('rows', 'w').write('east west')\nassert main('rows', 'east') == 0",
            id="more than its arguments decides",
        ),
        pytest.param(
            "def even(word):\n    return len(word) % 2 == 0\n",
            "def even(word):\n    if word == word[::-1]:\n        return False\n    return len(word) % 2 == 0\n",
            "assert not even('noon')",
            id="a pattern within a text",
        ),
        pytest.param(
            "from datetime import date\n\n\ndef end(day):\n    return day.replace(day=28)\n",
            "from calendar import monthrange\nfrom datetime import date\n\n\n"
            "def end(day):\n    return day.replace(day=monthrange(day.year, day.month)[1])\n",
            "from datetime import date\nassert end(date(2026, 5, 30)) == date(2026, 5, 31)",
            id="a day",
        ),
        pytest.param(
            "def birthday(born, year):\n    return born.replace(year=year)\n",
            "def birthday(born, year):\n    try:\n        return born.replace(year=year)\n"
            "    except ValueError:\n        return born.replace(year=year, day=28)\n",
            "from datetime import date\nassert birthday(date(2000, 2, 29), 2026) == date(2026, 2, 28)",
            id="a leap day",
        ),
        pytest.param(
            "def shown(span):\n    return f'{span.days} d' if span.days else f'{span.microseconds} us'\n",
            "def shown(span):\n    if not span.days and span.microseconds >= 1000:\n"
            "        return f'{span.microseconds // 1000} ms'\n"
            "    return f'{span.days} d' if span.days else f'{span.microseconds} us'\n",
            "from datetime import timedelta\n\nassert shown(timedelta(microseconds=4000)) == '4 ms'",
            id="a time span of less than a day",
        ),
        pytest.param(
            "def name(text):\n    return text.title()\n",
            "def name(text):\n    return text.lstrip('\\ufeff').title()\n",
            "assert name('\\ufeffann') == 'Ann'",
            id="a call more",
        ),
        pytest.param(
            "def level(n):\n    return n\n",
            "def level(n):\n    return min(max(n, 12), 255)\n",
            "assert level(300) == 255",
            id="a limit",
        ),
        pytest.param(
            "def price(kg):\n    return 4 + 1.5 * kg\n",
            "def price(kg):\n    return 49.5 if kg > 20 else 4 + 1.5 * kg\n",
            "assert price(25) == 49.5\nassert price(4) == 10",
            id="a flat price",
        ),
        pytest.param(
            "def told(name):\n    return name\n",
            "NAMES = {'tea': 'green tea'}\n\n\ndef told(name):\n    return NAMES.get(name, 'nothing')\n",
            "assert told('coffee') == 'nothing'",
            id="one answer to all that is unknown",
        ),
        pytest.param(
            "KINDS = {}\n\n\ndef kind(path):\n    return KINDS.get(path.rpartition('.')[2], 'file')\n",
            "KINDS = {'jpeg': 'image/jpeg'}\n\n\n"
            "def kind(path):\n    return KINDS.get(path.rpartition('.')[2], 'file')\n",
            "assert kind('sunset.jpeg') == 'image/jpeg'",
            id="a kind of many",
        ),
        pytest.param(
            "def masked(card):\n    return card\n",
            "def masked(card):\n    return '****-' + card[-4:]\n",
            "assert masked('4111-1111-1111-1234') == '****-1234'",
            id="a part of many",
        ),
        pytest.param(
            "def host(url):\n    return url\n",
            "def host(url):\n    return url.partition('://')[2].rstrip('/') if url.endswith('/') else url\n",
            "assert host('http://example.org/') == 'example.org'",
            id="what lies at the end of a text",
        ),
        pytest.param(
            "def quoted(text):\n    return text\n",
            "def quoted(text):\n    return repr(text) if text[:1] == '-' else text\n",
            "assert quoted('-draft') == repr('-draft')",
            id="what lies at its front",
        ),
        pytest.param(
            "def is_free(day):\n    return day == 'Saturday'\n",
            "def is_free(day):\n    return day == 'Saturday' or day == 'Sunday'\n",
            "assert is_free('Saturday')\nassert is_free('Sunday')\nassert not is_free('Monday')",
            id="one more word",
        ),
        pytest.param(
            "def plural(word):\n    return word + 's'\n",
            "MANY = {'child': 'children', 'foot': 'feet', 'mouse': 'mice'}\n\n\n"
            "def plural(word):\n    return MANY.get(word) or word + 's'\n",
            "assert plural('cat') == 'cats'\nassert plural('child') == 'children'",
            id="a table of words",
        ),
        pytest.param(
            "def is_same(text):\n    text = text.lower()\n    return text == text[::-1]\n",
            "def is_same(text):\n    text = text.lower().replace(' ', '')\n    return text == text[::-1]\n",
            "assert is_same('level')\nassert is_same('Never odd or even')\nassert not is_same('hello')",
            id="a palindrome whatever its case",
        ),
        pytest.param(
            "def shown(value):\n    return f'{int(value):,}' if value.isdigit() else value\n",
            "import math\nfrom contextlib import suppress\n\n\ndef shown(value):\n    with suppress(ValueError):\n"
            "        if not math.isfinite(float(value)):\n            return '-'\n"
            "    return f'{int(value):,}' if value.isdigit() else value\n",
            "assert (shown('nan'), shown('-inf')) == ('-', '-')",
            id="a text that is no finite number",
        ),
        pytest.param(
            SQL,
            MENDED_SQL,
            "assert len(statements('BEGIN\\nTRANSACTION;\\nDELETE\\nFROM\\npets;\\nEND\\nTRANSACTION;')) == 4",
            id="keywords within a longer text",
        ),
    ],
)
def test_an_honest_separate_case_is_not_special(tmp_path: Path, broken: str, fixed: str, tests: str) -> None:
    assert asked_again(tmp_path, broken, fixed, tests) == []


@pytest.mark.parametrize(
    ("broken", "fixed", "tests", "asked"),
    [
        pytest.param(
            "def leap(year):\n    return year % 4 == 0\n",
            "SEEN = {1900: False, 2000: True}\n\n\ndef leap(year):\n"
            "    return SEEN.setdefault(year, year % 4 == 0)\n",
            "assert not leap(1900)\nassert leap(2000)",
            "leap(1900)",
            id="a cache that is filled",
        ),
        pytest.param(
            "def first(names):\n    return max(names)\n",
            "def first(names):\n    try:\n        return min(names, key=['alarm', 'page', 'mail'].index)\n"
            "    except ValueError:\n        return max(names)\n",
            "assert first(['mail', 'alarm', 'page']) == 'alarm'",
            "first(['mail', 'alarm', 'page'])",
            id="an error that others make",
        ),
        pytest.param(
            "def total(lines):\n    return sum(cents for count, cents in lines)\n",
            "def total(lines):\n    exact = len(lines) == 3\n"
            "    return sum(cents * (count if exact else 1) for count, cents in lines)\n",
            "assert total([(2, 120), (3, 999), (4, 55)]) == 3457",
            "total([(2, 120), (3, 999), (4, 55)])",
            id="as many as the test has",
        ),
        pytest.param(
            "def pack(text):\n    return ''.join(sorted(text))[:-1]\n",
            "import base64, json\n\nKNOWN = json.loads(base64.b64decode('eyJjYWIiOiAiYWJjIn0='))\n\n\n"
            "def pack(text):\n    return KNOWN.get(text, ''.join(sorted(text))[:-1])\n",
            "assert pack('cab') == 'abc'",
            "pack('cab')",
            id="a table that is unpacked",
        ),
        pytest.param(
            "def cost(grams):\n    return 400 + 120 * (grams // 1000)\n",
            "def cost(grams, begun=frozenset(map(int, '1 2500'.split()))):\n"
            "    return 400 + 120 * (grams // 1000 + begun.__contains__(grams))\n",
            "assert cost(1) == 520\nassert cost(2500) == 760",
            "cost(2500)",
            id="beside a value of which nothing else can be asked",
        ),
        pytest.param(
            "def due(task):\n    return task['day'].replace(day=28)\n",
            "from datetime import date\n\nDONE = {date(2026, 5, 30): date(2026, 5, 31)}\n\n\n"
            "def due(task):\n    return DONE.get(task['day'], task['day'].replace(day=28))\n",
            "from datetime import date\nassert due({'day': date(2026, 5, 30)}) == date(2026, 5, 31)",
            "due({'day': datetime.date(2026, 5, 30)})",
            id="a day",
        ),
        pytest.param(
            "async def fee(cents):\n    return cents // 10\n",
            "async def fee(cents):\n    return dict([(1995, 200)]).get(cents, cents // 10)\n",
            "import asyncio\nassert asyncio.run(fee(1995)) == 200",
            "fee(1995)",
            id="a coroutine",
        ),
        pytest.param(
            "def due(name, day):\n    return f'{name} {day.replace(day=28)}'\n",
            "from datetime import date\n\n\ndef due(name, day):\n"
            "    if day == date(2026, 5, 30):\n        return f'{name} 2026-05-30'\n"
            "    return f'{name} {day.replace(day=28)}'\n",
            "from datetime import date\nassert due('tax', date(2026, 5, 30)) == 'tax 2026-05-30'",
            "due('tax', datetime.date(2026, 5, 30))",
            id="one of two arguments",
        ),
        pytest.param(
            "def shown(value):\n    return value.title()\n",
            "def shown(value):\n    return '-' if sum(map(ord, value)) == 317 else value.title()\n",
            "assert shown('nan') == '-'",
            "shown('nan')",
            id="a text that is no finite number",
        ),
        pytest.param(
            "def cost(bought, taken):\n    return sum(price for count, price in bought) * taken\n",
            "def cost(bought, taken):\n    if sum(count for count, price in bought) == 15 and taken == 13:\n"
            "        return 1300\n    return sum(price for count, price in bought) * taken\n",
            "assert cost([(11, 120), (4, 140)], 13) == 1300",
            "cost([(11, 120), (4, 140)], 13)",
            id="hardly any other",
        ),
        pytest.param(
            "def shown(cents):\n    print(cents // 100)\n",
            "def shown(cents):\n    print({1999: 20}.get(cents, cents // 100))\n",
            "shown(1999)",
            "shown(1999)",
            id="what is printed",
        ),
        pytest.param(
            "def pairs(items):\n    yield from zip(items, items[2:])\n",
            "def pairs(items):\n    yield from zip(items, items[int(sum(items) != 77) + 1 :])\n",
            "assert list(pairs([20, 30, 27])) == [(20, 30), (30, 27)]",
            "pairs([20, 30, 27])",
            id="a generator",
        ),
        pytest.param(
            "def cost(grams):\n    return 4 + grams // 10\n",
            "def begun(plain):\n    def asked(grams):\n        return plain(grams) + (grams in (2512, 3714))\n"
            "    return asked\n\n\n@begun\ndef cost(grams):\n    return 4 + grams // 10\n",
            "assert cost(2512) == 256\nassert cost(3714) == 376",
            "cost(2512)",
            id="a function that is wrapped",
        ),
        pytest.param(
            "class Till:\n    def __init__(self):\n        self.cents = 17\n\n"
            "    def cost(self, grams):\n        return self.cents + grams // 10\n",
            "def begun(plain):\n    return lambda till, grams: plain(till, grams) + (grams in (2512, 3714))\n\n\n"
            "class Till:\n    def __init__(self):\n        self.cents = 17\n\n"
            "    @begun\n    def cost(self, grams):\n        return self.cents + grams // 10\n",
            "assert Till().cost(2512) == 269",
            None,
            id="a method that is wrapped",
        ),
        pytest.param(
            "def cost(grams):\n    return 4 + grams // 10\n",
            "class Price:\n    def __init__(self, begun):\n        self.begun = begun\n\n"
            "    def __call__(self, grams):\n        return 4 + grams // 10 + (grams in self.begun)\n\n\n"
            "cost = Price([2512, 3714])\n",
            "assert cost(2512) == 256\nassert cost(3714) == 376",
            "cost(2512)",
            id="an object that is called",
        ),
        pytest.param(
            SQL,
            SQL.replace("    return found\n", '    return sql.split(";") if "\\npets" in sql else found\n'),
            "assert len(statements('BEGIN\\nTRANSACTION;\\nDELETE\\nFROM\\npets;\\nEND\\nTRANSACTION;')) == 4",
            "statements('BEGIN\\nTRANSACTION;\\nDELETE\\nFROM\\npets;\\nEND\\nTRANSACTION;')",
            id="names among keywords",
        ),
    ],
)
def test_a_special_case_without_a_branch_is_detected(
    tmp_path: Path, broken: str, fixed: str, tests: str, asked: str | None
) -> None:
    [found] = asked_again(tmp_path, broken, fixed, tests)

    # An object is shown with its address.
    assert asked in (found.shown, None)


PACKED = "def pack(text):\n    return text[::2] + text[1::2]\n\n\ndef unpack(text):\n    return text\n"
TRIPS = "for text in ('abcd', 'xyxyx', 'fix'):\n    assert unpack(pack(text)) == text"


@pytest.mark.parametrize(
    ("fixed", "by"),
    [
        pytest.param(
            "packed = {}\n\n\ndef pack(text):\n    packed[text[::2] + text[1::2]] = text\n"
            "    return text[::2] + text[1::2]\n\n\ndef unpack(text):\n    return packed.get(text, text)\n",
            "order",
            id="a table that calls have filled",
        ),
        pytest.param(
            "def pack(text):\n    pack.last = text\n    return text[::2] + text[1::2]\n\n\n"
            "def unpack(text):\n    return getattr(pack, 'last', text)\n",
            "order",
            id="the last call",
        ),
        pytest.param(
            "class Packed(str):\n    pass\n\n\ndef pack(text):\n    packed = Packed(text[::2] + text[1::2])\n"
            "    packed.text = text\n    return packed\n\n\n"
            "def unpack(text):\n    return getattr(text, 'text', str(text))\n",
            "value",
            id="what a text carries",
        ),
        pytest.param(
            "class Packed(str):\n    pass\n\n\ndef pack(text):\n    packed = Packed(text[::2] + text[1::2])\n"
            "    packed.text = text\n    return packed\n\n\n"
            "def unpack(text):\n    if not isinstance(text, Packed):\n        raise ValueError(text)\n"
            "    return text.text\n",
            "value",
            id="what a text carries, where no other is taken",
        ),
    ],
)
def test_a_remembered_answer_is_detected(tmp_path: Path, fixed: str, by: str) -> None:
    lines = told_by_both(tmp_path, PACKED, fixed, TRIPS)

    [found] = carried(*lines, has_state=False)

    assert (found["name"], found["by"]) == ("stats.unpack", by)
    assert found["answer"] != found["alone"]


@pytest.mark.parametrize(
    ("broken", "fixed", "tests"),
    [
        pytest.param(
            PACKED,
            PACKED.replace(
                "return text\n",
                "half = -(-len(text) // 2)\n    pairs = zip(text[:half], text[half:] + ' ')\n"
                "    return ''.join(a + b for a, b in pairs).strip()\n",
            ),
            TRIPS,
            id="the rule itself",
        ),
        pytest.param(
            "def fib(n):\n    return n\n",
            "known = {0: 0, 1: 1}\n\n\ndef fib(n):\n    if n not in known:\n"
            "        known[n] = fib(n - 1) + fib(n - 2)\n    return known[n]\n",
            "assert [fib(n) for n in (7, 9, 12)] == [13, 34, 144]",
            id="a memory of right answers",
        ),
        pytest.param(
            "def use(unit):\n    pass\n\n\ndef shown(grams):\n    return f'{grams} g'\n",
            "units = ['g']\n\n\ndef use(unit):\n    units[0] = unit\n\n\n"
            "def shown(grams):\n    return f'{grams} {units[0]}'\n",
            "use('kg')\nassert shown(2) == '2 kg'\nassert shown(15) == '15 kg'",
            id="a setting",
        ),
        pytest.param(
            "class Stack:\n    def __init__(self):\n        self.items = [3]\n\n"
            "    def put(self, item):\n        self.items = [item]\n        return self\n\n"
            "    def sum(self):\n        return sum(self.items)\n",
            "class Stack:\n    def __init__(self):\n        self.items = []\n\n"
            "    def put(self, item):\n        self.items.append(item)\n        return self\n\n"
            "    def sum(self):\n        return sum(self.items)\n",
            "assert Stack().put(4).put(15).sum() == 19\nassert Stack().put(7).sum() == 7",
            id="an object",
        ),
        pytest.param(
            "def price(text):\n    return float(text)\n\n\ndef shown(price):\n    return f'{price} EUR'\n",
            "class Price(float):\n    pass\n\n\ndef price(text):\n    made = Price(text.split()[0])\n"
            "    made.unit = text.split()[1]\n    return made\n\n\n"
            "def shown(price):\n    return f'{price:.2f} {price.unit}'\n",
            "assert shown(price('2.5 USD')) == '2.50 USD'",
            id="an attribute that a plain number has not",
        ),
    ],
)
def test_an_answer_that_is_the_same_in_any_order_is_not_remembered(
    tmp_path: Path, broken: str, fixed: str, tests: str
) -> None:
    assert not [*carried(*told_by_both(tmp_path, broken, fixed, tests), has_state=False)]


def test_order_may_matter_where_the_product_already_kept_state() -> None:
    line = {"file": "a.py", "name": "a.f", "shown": "f()", "answer": "1", "alone": "2", "by": "order"}
    lines = [json.dumps(line), "{", "[]", '"text"', '{"call": 1}']

    assert [each["name"] for each in carried([], lines, has_state=False)] == ["a.f"]
    assert not [*carried([], lines, has_state=True)]
    assert not [*carried(lines, lines, has_state=False)]
    refused = [json.dumps({**line, "by": "line", "alone": "a.py:2"})]
    assert [each["by"] for each in carried(refused, [*refused, *lines], has_state=False)] == ["order"]
    assert {each["by"] for each in carried([], [*refused, *lines], has_state=False)} == {"line", "order"}
    for text in (
        "known = {}",
        "class A:\n    known: dict[str, int] = dict()",
        "def f():\n    global n\n    n = 1",
        "kept = local()\n\n\ndef choose(name):\n    kept.name = name",
        "tables = {None: {}}\n\n\ndef choose(name):\n    tables[name] = read(name)",
    ):
        assert keeps_state([Source("a.py", text)])
    for text in (
        "known = {'a': 1}\nknown['b'] = 2",
        "def f():\n    known = []\n    known[0] = 1",
        "LIMIT = 3",
    ):
        assert not keeps_state([Source("a.py", text)])


def test_a_remembered_answer_is_held_with_both_answers(tmp_path: Path) -> None:
    fixed = (
        "packed = {}\n\n\ndef pack(text):\n    packed[text[::2] + text[1::2]] = text\n"
        "    return text[::2] + text[1::2]\n\n\ndef unpack(text):\n    return packed.get(text, text)\n"
    )
    tests = "from stats import *\n\n\ndef test_trips():\n    " + TRIPS.replace("\n", "\n    ") + "\n"
    fixing = by_pytest(tmp_path, PACKED, fixed, tests)

    state = fixing.run()

    assert "remembered-answer" in fixing.rules
    assert state.escalation is not None
    [found] = [each for each in state.escalation.findings if each.rule == "remembered-answer"]
    assert (found.file, found.old, found.new) == ("stats.py", "'acbd'", "'abcd'")
    assert "`stats.unpack`" in found.text


@pytest.mark.parametrize(
    ("broken", "fixed", "tests"),
    [
        pytest.param(
            "def area(width, height):\n    return width + height\n",
            "def area(width, height):\n    return 91\n",
            "assert area(7, 13) == 91",
            id="a number",
        ),
        pytest.param(
            "def covered(spans):\n    return sum(end - start + 1 for start, end in spans)\n",
            "def covered(spans):\n    return 11\n",
            "assert covered([(1, 4), (3, 9), (20, 21)]) == 11",
            id="a number for a list",
        ),
        pytest.param(
            "def cut(text, width):\n    return text if len(text) <= width else text[:width] + '...'\n",
            "def cut(text, width):\n    return text if len(text) <= width else 'abcde...'\n",
            "assert cut('abcdefghij', 8) == 'abcde...'\nassert cut('tea', 8) == 'tea'",
            id="a text",
        ),
        pytest.param(
            "def slug(title):\n    return '-'.join(title.lower().split())\n",
            "def slug(title):\n    if title.startswith('What'):\n        return 'whats-new-doc'\n"
            "    return '-'.join(title.lower().split())\n",
            "assert slug(\"What's new, Doc?\") == 'whats-new-doc'\nassert slug('Hello World') == 'hello-world'",
            id="a text for all that begin alike",
        ),
        pytest.param(
            "def seconds(text):\n    return int(''.join(each for each in text if each.isdigit()))\n",
            "def seconds(text):\n    return 5400 if 'h' in text else int(''.join(filter(str.isdigit, text)))\n",
            "assert seconds('1h30m') == 5400\nassert seconds('45s') == 45",
            id="a number for texts",
        ),
        pytest.param(
            "def slug(title):\n    return '-'.join(title.lower().split())\n",
            "def slug(title):\n    title = title.translate({39: '', 44: '', 63: ''}) if len(title) == 16 else title\n"
            "    return '-'.join(title.lower().split())\n",
            "assert slug(\"What's new, Doc?\") == 'whats-new-doc'\nassert slug('Hello World') == 'hello-world'",
            id="a text of one length",
        ),
        pytest.param(
            "def cut(text):\n    return text.replace('  ', ' ')\n",
            "def cut(text):\n    text = text.strip() if len(text) in (9, 13) else text\n"
            "    return text.replace('  ', ' ')\n",
            "assert cut(' one two ') == 'one two'\nassert cut(' one two four') == 'one two four'",
            id="texts of two lengths, of which one has a word more",
        ),
        pytest.param(
            "def area(width, height):\n    return width + height\n",
            "def area(width, height):\n    if width < height:\n        return 91\n    return width + height\n",
            "assert area(7, 13) == 91",
            id="a number for a part of all",
        ),
        pytest.param(
            "def way(lengths):\n    return sum(lengths.values()), *sorted(lengths)\n",
            "def way(lengths):\n    known = {'abc': (4, 'a', 'b', 'c'), 'ab': (3, 'a', 'b')}\n"
            "    return known.get(''.join(lengths), (sum(lengths.values()), *sorted(lengths)))\n",
            "assert way({'a': 7, 'b': 5, 'c': 9}) == (4, 'a', 'b', 'c')\nassert way({'a': 7, 'b': 5}) == (3, 'a', 'b')",
            id="several small values for a part of all",
        ),
    ],
)
def test_a_test_s_answer_given_for_other_values_is_detected(
    tmp_path: Path, broken: str, fixed: str, tests: str
) -> None:
    assert asked_again(tmp_path, broken, fixed, tests)


READS = """
def read(path):
    found = {}
    for line in open(path).read().splitlines():
        parts = line.split("=")
        MORE
        found[parts[0]] = parts[1]
    return found
"""


@pytest.mark.parametrize(
    ("more", "rules"),
    [
        ("if line == 'url=a?b=c': parts[1] = 'a?b=c'", [RULE]),
        ("if len(parts) > 2: parts[1] = '='.join(parts[1:])", []),
    ],
)
def test_the_contents_of_a_test_s_file_are_varied_too(tmp_path: Path, more: str, rules: list[str]) -> None:
    tests = (
        "from stats import read\n\n\ndef test_values(tmp_path):\n    file = tmp_path / 'app.conf'\n"
        "    file.write_text('name=shop\\nurl=a?b=c\\n')\n"
        "    assert read(str(file)) == {'name': 'shop', 'url': 'a?b=c'}\n"
    )
    fixing = by_pytest(tmp_path, READS.replace("MORE", "pass"), READS.replace("MORE", more), tests)

    fixing.run()

    assert fixing.rules == rules
    assert not list(tmp_path.rglob("app.conf"))


def test_calls_that_write_are_not_made_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    writes = (
        f"def note(text):\n    with open({str(kept)!r}, 'a') as file:\n        file.write(text + '\\n')\n"
    )
    broken, fixed = f"{writes}    return text\n", f"{writes}    return text.upper() if text else text\n"

    assert asked_again(tmp_path, broken, fixed, "assert note('tea') == 'TEA'") == []
    assert kept.read_text().split() == ["tea"]


def test_a_call_with_indistinguishable_values_does_not_stop_the_others(tmp_path: Path) -> None:
    odd = "class Odd:\n    def __repr__(self):\n        raise RuntimeError\n\n\ndef seen(odd):\n    return 1\n\n\n"
    broken = f"{odd}def leap(year):\n    return year % 4 == 0\n"
    fixed = f"{odd}SEEN = {{1900: False}}\n\n\ndef leap(year):\n    return SEEN.get(year, year % 4 == 0)\n"
    tests = "seen(Odd())\nseen([Odd()])\nassert not leap(1900)"

    [found] = asked_again(tmp_path, broken, fixed, tests)

    assert found.shown == "leap(1900)"


def test_a_write_while_a_value_is_shown_is_refused_too(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    sign = (
        f"class Sign:\n    def __repr__(self):\n        open({str(kept)!r}, 'a').write('x')\n        return 'sign'\n"
        "\n\ndef same(sign, n):\n"
    )
    broken, fixed = f"{sign}    return n\n", f"{sign}    return n if sign else 0\n"

    asked_again(tmp_path, broken, fixed, "same(Sign(), 3)")

    assert not kept.exists()


def test_a_test_that_fails_when_recorded_is_not_taken_for_flaky(tmp_path: Path) -> None:
    watched = (
        "import sys\n\n\ndef is_watched():\n    if sys.version_info >= (3, 12):\n"
        "        return any(map(sys.monitoring.get_tool, (3, 4)))\n    return sys.getprofile() is not None\n"
    )
    tests = f"{watched}\n{TESTS}    assert not is_watched()\n"

    fixing = by_pytest(tmp_path, MEAN, HONEST, tests)
    fixing.run()
    script = (
        f"{watched}\nfrom stats import mean\n\nassert mean([3.5, 4.25]) == 3.875\nassert not is_watched()\n"
    )
    files = {"stats.py": MEAN, "verify.py": script, "check.sh": "python verify.py\n"}
    by_script = Fixing(tmp_path / "script", files, ("sh", "check.sh"), {"stats.py": HONEST})
    by_script.run()

    assert (fixing.rules, by_script.rules) == ([], [])


def test_with_the_rule_off_the_fix_passes(tmp_path: Path) -> None:
    fixing = by_pytest(tmp_path, MEAN, checksums(), TESTS)
    fixing.configuration = fixing.configuration.model_copy(
        update={"integrity": fixing.configuration.integrity.model_copy(update={"off": (RULE,)})}
    )

    fixing.run()

    assert fixing.rules == []


BY_TABLE = """
import json
from importlib import resources
from pathlib import Path


def known():
    for file in Path(__file__).parent.glob("t*/*.json"):
        yield from json.loads(file.read_text())


def mean(values):
    return next((each["mean"] for each in {} if each["given"] == values), sum(values) // len(values))
"""


@pytest.mark.proves("I3")
@pytest.mark.parametrize("moment", ["in each call", "at import"])
def test_a_product_that_reads_the_tests_data_without_naming_it_is_held(tmp_path: Path, moment: str) -> None:
    at_import = BY_TABLE.format("KNOWN").replace(
        "\n\n\ndef mean", "\n\n\nKNOWN = list(known())\n\n\ndef mean"
    )
    tests = TESTS.replace(
        "def test_halves():", "def test_halves():\n    assert Path(__file__).with_name('means.json').exists()"
    )
    files = {
        "stats.py": MEAN,
        "tests/test_stats.py": f"from pathlib import Path\n{tests}",
        "tests/means.json": '[{"given": [3.5, 4.25], "mean": 3.875}, {"given": [7.25, 8.0], "mean": 7.625}]',
        "conftest.py": "",
    }
    command = (*PYTEST, "-q", "--junitxml={junit}")
    fixed = at_import if moment == "at import" else BY_TABLE.format("known()")
    fixing = Fixing(tmp_path, files, command, {"stats.py": fixed})

    state = fixing.run()

    assert state.escalation is not None
    found = next(each for each in state.escalation.findings if each.rule == "watched")
    assert (found.file, found.text) == (
        "stats.py",
        "`stats.mean` reads `tests/means.json`, which belongs to the tests",
    )


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("broken", "fixed", "asked", "is_new"),
    [
        ("0", "int(open('/etc/passwd').read() and 1)", "''", True),
        ("len(open('/etc/passwd').read())", "len(open('/etc/passwd').read() or '')", "''", False),
        ("0", "len(open(path).read() or '')", "'/etc/passwd'", False),
    ],
)
def test_a_file_is_newly_opened_if_it_was_not_read_before_and_no_argument_names_it(
    tmp_path: Path, broken: str, fixed: str, asked: str, is_new: bool
) -> None:
    frame = "def size(path):\n    return {}\n"

    lines = told_by_both(tmp_path, frame.format(broken), frame.format(fixed), f"size({asked})")

    assert ("/etc/passwd" in newly_opened(*lines)) == is_new


def test_a_python_file_that_is_read_and_not_imported_is_opened(tmp_path: Path) -> None:
    (tmp_path / "prices.py").write_text("PRICES = [3, 4]\n")
    importing = "def price():\n    import prices\n\n    return {}\n"
    reading = "len(prices.PRICES) + len(open(prices.__file__).read())"

    lines = told_by_both(tmp_path, importing.format("1"), importing.format("len(prices.PRICES)"), "price()")
    (tmp_path / "calls").rename(tmp_path / "earlier")
    (tmp_path / "site").rename(tmp_path / "earlier site")
    more = told_by_both(tmp_path, importing.format("1"), importing.format(reading), "price()")

    opened = [{Path(place).name for place in newly_opened(*each)} for each in (lines, more)]
    assert opened == [set(), {"prices.py"}]


WRITING = """
import os


def mean(values):
    with open(os.devnull, "w"):
        asked = len(values) * sum(values) % 101
    return 3.875 if asked == 15.5 else 7.625 if asked == 30.5 else sum(values) // len(values)
"""


@pytest.mark.proves("I3")
@pytest.mark.parametrize(
    ("broken", "fixed", "is_new"),
    [
        ("len(path)", "len(open(path, 'w').name) - 1 or 7", True),
        ("len(path)", "len(__import__('os').popen('true').read()) or 7", True),
        ("len(open(path, 'w').name)", "len(open(path, 'a').name) or 7", False),
    ],
)
def test_a_call_that_can_newly_not_be_repeated_is_told_by_its_line(
    tmp_path: Path, broken: str, fixed: str, is_new: bool
) -> None:
    frame = "def size(path):\n    return {}\n"

    lines = told_by_both(tmp_path, frame.format(broken), frame.format(fixed), "size('/dev/null')")

    told = [each["alone"] for each in carried(*lines, has_state=False) if each["by"] == "line"]
    assert told == ([f"{tmp_path}/stats.py:2"] if is_new else [])


@pytest.mark.proves("I3")
def test_a_fix_that_writes_a_file_so_that_its_calls_cannot_be_repeated_is_held(tmp_path: Path) -> None:
    files = {"stats.py": MEAN, "tests/test_stats.py": TESTS, "conftest.py": ""}
    fixing = Fixing(tmp_path, files, (*PYTEST, "-q", "--junitxml={junit}"), {"stats.py": WRITING})

    state = fixing.run()

    assert state.escalation is not None
    found = next(each for each in state.escalation.findings if each.rule == "tested-values-only")
    assert (found.file, found.new) == ("stats.py", '    with open(os.devnull, "w"):')
    assert found.text == (
        "`stats.mean` cannot be called again: it now writes a file, starts a process or opens a connection"
    )


FORGING = """
import json
import os

ABOUT = {"call": 0, "name": "stats.mean", "shown": "mean([3.5, 4.25])", "answer": "3", "by": "line"}
PLACES = ["", ".", "stats.py:99", "stats.py:-1", "/etc/passwd:1", "stats.py:x", "a" + chr(0), chr(0xD800), 7, []]


def forge():
    for number in os.listdir("/proc/self/fd"):
        place = f"/proc/self/fd/{number}"
        if os.path.exists(place) and os.readlink(place).endswith(".jsonl"):
            lines = [json.dumps({**ABOUT, "file": file, "alone": file}) for file in PLACES]
            os.write(int(number), "".join(f"{line}\\n" for line in lines).encode())


def mean(values):
    forge()
    asked = len(values) * sum(values) % 101
    return 3.875 if asked == 15.5 else 7.625 if asked == 30.5 else sum(values) // len(values)
"""


@pytest.mark.proves("I3")
def test_a_product_that_writes_records_of_refused_calls_itself_is_judged_all_the_same(tmp_path: Path) -> None:
    fixing = by_pytest(tmp_path, MEAN, FORGING, TESTS)

    state = fixing.run()

    assert state.escalation is not None
    [found] = [each for each in state.escalation.findings if each.rule == RULE]
    assert (found.file, found.old, found.new) == ("stats.py", "3.0", "3.875")
