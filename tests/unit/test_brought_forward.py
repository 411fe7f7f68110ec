"""A test that was renamed, moved or parametrized is recognised by what it does; one that asserts less is not."""

import time

import pytest

from fixloop.integrity.cases import brought_forward, is_seen

OLD = """
import pytest
from calc import add

def test_adds():
    \"\"\"Two and two.\"\"\"
    result = add(2, 2)
    assert result == 4

def test_adds_more():
    assert add(2, 3) == 5
"""


def forward(name: str, now: str, old: str, new: str, *others: str, file: str = "tests/test_calc.py") -> str:
    """The name under which `name` is recognised among those that passed; empty: none."""
    passed = {now, *others}
    old_file = name.partition("::")[0]
    return brought_forward([name], passed, {old_file: old}, {file: new}).get(name, "")


SAME = [
    ("renamed", "test_sum_of_two", "def test_sum_of_two():\n    assert add(2, 2) == 4\n"),
    (
        "with another variable",
        "test_sum",
        "def test_sum():\n    total = add(2, 2)\n    assert total == 4, 'sum'\n",
    ),
    (
        "into a class",
        "TestAdd::test_adds",
        "class TestAdd:\n    def test_adds(self):\n        assert add(2, 2) == 4\n",
    ),
    (
        "to unittest",
        "TestAdd::test_adds",
        "import unittest\nclass TestAdd(unittest.TestCase):\n"
        "    def test_adds(self):\n        self.assertEqual(add(2, 2), 4)\n",
    ),
    (
        "with parameters",
        "test_sums[2-2-4]",
        "import pytest\n@pytest.mark.parametrize('a, b, total', [(2, 2, 4), (5, 5, 10)])\n"
        "def test_sums(a, b, total):\n    assert add(a, b) == total\n",
    ),
    (
        "with parameters of a table",
        "test_sums[2-4]",
        "import pytest\nCASES = [(2, 4), (5, 10)]\n@pytest.mark.parametrize(('a', 'total'), CASES)\n"
        "def test_sums(a, total):\n    assert add(a, a) == total\n",
    ),
    (
        "with one assertion more",
        "test_sum",
        "def test_sum():\n    assert add(2, 2) == 4\n    assert add(0, 0) == 0\n",
    ),
    ("with sides turned", "test_sum", "def test_sum():\n    assert 4 == add(2, 2)\n"),
    (
        "with a mark",
        "test_sum",
        "import pytest\n@pytest.mark.slow\ndef test_sum():\n    assert add(2, 2) == 4\n",
    ),
]
OTHER = [
    ("another value", "test_sum", "def test_sum():\n    assert add(2, 2) == 5\n"),
    ("another call", "test_sum", "def test_sum():\n    assert add(2, 3) == 4\n"),
    ("a looser comparison", "test_sum", "def test_sum():\n    assert add(2, 2) >= 4\n"),
    ("no call", "test_sum", "def test_sum():\n    result = 4\n    assert result == 4\n"),
    ("no assertion", "test_sum", "def test_sum():\n    add(2, 2)\n"),
    ("an early return", "test_sum", "def test_sum():\n    return\n    assert add(2, 2) == 4\n"),
    ("a patch", "test_sum", "@patch('calc.add', lambda *_: 4)\ndef test_sum():\n    assert add(2, 2) == 4\n"),
    ("a condition", "test_sum", "def test_sum():\n    if False:\n        assert add(2, 2) == 4\n"),
    (
        "a table without the case",
        "test_sums[5-5-10]",
        "import pytest\n@pytest.mark.parametrize('a, b, total', [(5, 5, 10)])\n"
        "def test_sums(a, b, total):\n    assert add(a, b) == total\n",
    ),
    (
        "a table with another result",
        "test_sums[2-2-5]",
        "import pytest\n@pytest.mark.parametrize('a, b, total', [(2, 2, 5)])\n"
        "def test_sums(a, b, total):\n    assert add(a, b) == total\n",
    ),
]


@pytest.mark.parametrize(("what", "now", "text"), SAME, ids=[each[0] for each in SAME])
def test_a_test_that_does_the_same_is_recognised(what: str, now: str, text: str) -> None:
    new = f"from calc import add\n{text}"

    assert forward("tests/test_a.py::test_adds", f"tests/test_calc.py::{now}", OLD, new) != "", what


@pytest.mark.parametrize(
    ("shown", "is_same"), [("{file}.txt", True), ("{file}.md", False), ("{file!r}.txt", False)]
)
def test_a_text_put_together_from_parameters_is_the_same_text(shown: str, is_same: bool) -> None:
    old = "def test_a():\n    assert draw('long.txt') == 1\n"
    new = (
        "import pytest\n@pytest.mark.parametrize('file', ['long', 'short'])\n"
        f"def test_b(file):\n    assert draw(f'{shown}') == 1\n"
    )

    found = forward("tests/test_calc.py::test_a", "tests/test_calc.py::test_b[long]", old, new)

    assert bool(found) is is_same


@pytest.mark.parametrize(("what", "now", "text"), OTHER, ids=[each[0] for each in OTHER])
def test_a_test_with_another_assertion_is_another_test(what: str, now: str, text: str) -> None:
    new = f"from calc import add\n{text}"

    assert forward("tests/test_a.py::test_adds", f"tests/test_calc.py::{now}", OLD, new) == "", what


def test_a_moved_test_that_imports_the_same_helper_differently_is_recognised() -> None:
    old = "from tests.helpers import check\ndef test_a():\n    assert check(1)\n"
    new = "from .helpers import check\ndef test_a():\n    assert check(1)\n"
    now = "tests/unit/test_a.py::test_a"

    assert forward("tests/test_a.py::test_a", now, old, new, file="tests/unit/test_a.py") == now


def test_a_case_of_a_table_is_recognised_as_a_separate_test() -> None:
    old = (
        "import pytest\nfrom calc import add\n@pytest.mark.parametrize('a, total', [(1, 2), (2, 4)])\n"
        "def test_doubles(a, total):\n    assert add(a, a) == total\n"
    )
    new = "from calc import add\ndef test_twice_two():\n    assert add(2, 2) == 4\n"
    now = "tests/test_calc.py::test_twice_two"

    assert forward("tests/test_a.py::test_doubles[2-4]", now, old, new) == now
    assert forward("tests/test_a.py::test_doubles[1-2]", now, old, new) == ""


LOOP = (
    "from calc import add\nTABLE = [(1, 2), (2, 4)]\n"
    "def test_doubles():\n    for a, total in TABLE:\n        assert add(a, a) == total\n"
)
LINES = "from calc import add\ndef test_doubles():\n    assert add(1, 1) == 2\n    assert add(2, 2) == 4\n"
RAISES = (
    "import pytest\ndef test_doubles():\n    for a in ('x', 'y'):\n"
    "        with pytest.raises(ValueError):\n            add(a, 1)\n"
)
CASES = (
    "import pytest\n@pytest.mark.parametrize('a, total', [{}])\n"
    "def test_doubles(a, total):\n    assert add(*[a, a]) == total\n"
)


@pytest.mark.parametrize("old", [LOOP, LINES])
def test_cases_of_a_loop_or_lines_of_a_test_may_become_parameters(old: str) -> None:
    name = "tests/test_a.py::test_doubles"
    now = ["tests/test_a.py::test_doubles[1-2]", "tests/test_a.py::test_doubles[2-4]"]

    assert forward(name, now[0], old, CASES.format("(1, 2), (2, 4)"), now[1], file="tests/test_a.py")
    assert not forward(name, now[0], old, CASES.format("(1, 2), (2, 4)"), file="tests/test_a.py")
    assert not forward(name, now[0], old, CASES.format("(1, 2)"), file="tests/test_a.py")
    assert not forward(name, now[0], old, CASES.format("(1, 2), (2, 5)"), now[1], file="tests/test_a.py")


def test_a_loop_that_expects_errors_may_become_parameters_with_labels() -> None:
    new = (
        "import pytest\n@pytest.mark.parametrize('a', ['x', pytest.param({}, id='letter')], ids=str)\n"
        "def test_doubles(a):\n    with pytest.raises(ValueError):\n        add(a, 1)\n"
    )
    name = "tests/test_a.py::test_doubles"
    now = [f"{name}[x]", f"{name}[letter]"]

    assert forward(name, now[0], RAISES, new.format("'y'"), now[1], file="tests/test_a.py")
    assert not forward(name, now[0], RAISES, new.format("'z'"), now[1], file="tests/test_a.py")


@pytest.mark.parametrize("loop", ["for a, b in [(1, 2), (2, 4)]", "for a, b in ((2, 4), (3, 6), (1, 2))"])
def test_tests_may_become_cases_of_a_loop(loop: str) -> None:
    new = f"def test_all(self):\n    {loop}:\n        with self.subTest(a=a):\n            assert add(a, a) == b\n"
    old = "def test_two():\n    assert add(2, 2) == 4\n"
    now = "tests/test_calc.py::test_all"

    assert forward("tests/test_a.py::test_two", now, old, new) == now
    assert not forward("tests/test_a.py::test_two", now, old, new.replace("(2, 4)", "(2, 5)"))
    assert not forward(
        "tests/test_a.py::test_two", now, old, new.replace("assert", "break\n            assert")
    )


def test_an_unreadable_table_must_be_the_same_with_the_same_case() -> None:
    text = "import pytest\n@pytest.mark.parametrize('a', {})\ndef test_{}(a):\n    assert a.ok\n"
    old, name = text.format("load()", "a"), "tests/test_a.py::test_a[three]"
    now = "tests/test_calc.py::test_b[three]"

    assert forward(name, now, old, text.format("load()", "b")) == now
    assert forward(name, "tests/test_calc.py::test_b[four]", old, text.format("load()", "b")) == ""
    assert forward(name, now, old, text.format("load()[1:]", "b")) == ""


def test_a_table_with_custom_labels_is_recognised_if_all_of_it_passed() -> None:
    text = (
        "import pytest\n@pytest.mark.parametrize('a', [Box(1), Box(2)])\ndef test_{}(a):\n    assert a.ok\n"
    )
    name, new = "tests/test_a.py::test_a[x]", text.format("b")
    first, second = "tests/test_calc.py::test_b[x]", "tests/test_calc.py::test_b[y]"

    assert forward(name, first, text.format("a"), new, second)
    assert forward(name, first, text.format("a"), new) == ""


def test_a_table_without_cases_recognises_nothing() -> None:
    old = "import pytest\n@pytest.mark.parametrize('a', [])\ndef test_a(a):\n    assert a\n"

    assert forward("tests/test_a.py::test_a[x]", "tests/test_calc.py::test_a[x]", old, old) == ""


def test_a_test_that_did_not_pass_is_not_recognised() -> None:
    new = "from calc import add\ndef test_sum():\n    assert add(2, 2) == 4\n"

    assert forward("tests/test_a.py::test_adds", "tests/test_calc.py::test_other", OLD, new) == ""


def test_a_file_that_is_no_python_recognises_nothing() -> None:
    now = "tests/test_calc.py::test_sum"

    assert forward("tests/test_a.py::test_adds", now, "def broken(:", "def test_sum(): pass") == ""
    assert forward("tests/test_a.py::test_adds", now, OLD, "def broken(:") == ""


TITLED = "describe('calc', () => {{\n  {}('{}', () => {{\n    // why\n    expect(add(1, 2)).toBe({});\n  }});\n}});\n"


@pytest.mark.parametrize(
    ("name", "now", "old", "new", "same"),
    [
        ("a.test.ts::calc > adds", "b.test.ts::sums > adds up", TITLED.format("it", "adds", "3"),
         TITLED.format("test", "adds up", "3").replace("// why", ""), True),
        ("a.test.ts::calc > adds", "b.test.ts::calc > adds up", TITLED.format("it", "adds", "3"),
         TITLED.format("it", "adds up", "4"), False),
        ("m/calc.TestAdds/one", "m/sum.TestSums/one", "func TestAdds(t *testing.T) {\n\tif add(1) != 2 {}\n}\n",
         "func TestSums(t *testing.T) {\n\t// two\n\tif add(1) != 2 {}\n}\n", True),
        ("m/calc.TestAdds", "m/calc.TestSums", "func TestAdds(t *testing.T) {\n\tif add(1) != 2 {}\n}\n",
         "func TestSums(t *testing.T) {\n\tif add(1) != 3 {}\n}\n", False),
        ("calc::tests::adds", "sum::tests::sums", "#[test]\nfn adds() {\n  assert_eq!(add(1), 2);\n}\n",
         "#[test]\nfn sums() {\n  assert_eq!(add(1), 2);\n}\n", True),
    ],
)  # fmt: skip
def test_tests_with_braces_are_recognised_by_their_tokens(
    name: str, now: str, old: str, new: str, same: bool
) -> None:
    ending = {"m": "_test.go", "c": ".rs", "a": ".test.ts"}[name[0]]

    found = brought_forward([name], [now], {f"a{ending}": old}, {f"b{ending}": new})

    assert found == ({name: now} if same else {})


PLAIN = "test('adds up', () => {\n  assert.equal(add(1), 2);\n  assert.equal(add(2), 4);\n});\n"
TABLE = (
    "const sums = [\n  [1, 2],\n  // two\n  [2, {}],\n];\n"
    "for (const [a, sum] of sums) {{\n  test(`adds up: ${{a}}`, () => {{\n    assert.equal(add(a), sum);\n  }});\n}}\n"
)


def test_a_javascript_test_may_become_a_table() -> None:
    def found(new: str, *now: str) -> dict[str, str]:
        return brought_forward(["a.test.js::adds up"], now, {"a.test.js": PLAIN}, {"a.test.js": new})

    first, second = "a.test.js::adds up: 1", "a.test.js::adds up: 2"
    inside = TABLE.replace("for (", "test('all', () => {{\n  for (").replace(
        "test(`adds up: ${{a}}`, () => {{", ""
    )
    inside = inside.replace("  }});\n}}\n", "}}\n}});\n")

    assert found(TABLE.format(4), first, second) == {"a.test.js::adds up": first}
    assert found(TABLE.format(4), first) == {}
    assert found(TABLE.format(5), first, second) == {}
    assert found(TABLE.format(4).replace("assert.equal", "return; assert.equal"), first, second) == {}
    assert found(TABLE.format(4).replace("assert.equal", "assert.ok"), first, second) == {}
    assert found(inside.format(4), "a.test.js::all") != {}


@pytest.mark.heavy
@pytest.mark.parametrize("text", ["for (const a of b", "for (const [a] of [", "for (const a of [1]) {"])
def test_loops_that_never_end_are_read_in_seconds(text: str) -> None:
    began = time.process_time()

    assert (
        brought_forward(["a.test.js::a"], ["a.test.js::b"], {"a.test.js": PLAIN}, {"a.test.js": text * 9999})
        == {}
    )
    assert time.process_time() - began < 30


def test_a_go_test_that_became_a_table_is_recognised_by_its_subtests() -> None:
    old, new = (
        "func TestAdds(t *testing.T) {\n}\n",
        "func TestAdds(t *testing.T) {\n\tt.Run(c.name, run)\n}\n",
    )

    def found(now: str) -> dict[str, str]:
        return brought_forward(["m/calc.TestAdds"], [now], {"a_test.go": old}, {"a_test.go": new})

    assert found("m/calc.TestAdds/one") == {"m/calc.TestAdds": "m/calc.TestAdds/one"}
    assert found("m/calc.TestAddsMore/one") == {}


def test_changing_names_match_if_as_many_pass_in_a_file_no_fix_touched() -> None:
    before, after = ["t.py::test_a[0x1]", "t.py::test_a[0x2]"], ["t.py::test_a[0x3]", "t.py::test_a[0x4]"]

    assert is_seen(before[0], before, after, ())
    assert not is_seen(before[0], before, after[:1], ())
    assert not is_seen(before[0], before, after, {"t.py"})
    assert not is_seen("t.py::test_b", ["t.py::test_b"], after, ())


def test_changing_names_of_go_s_subtests_match_if_as_many_pass_and_no_file_of_tests_changed() -> None:
    before, after = ["m/calc.TestA/at_7_38"], ["m/calc.TestA/at_7_39", "m/calc.TestB/one"]

    assert is_seen(before[0], before, after, {"calc/calc.go"})
    assert not is_seen(before[0], before, after, {"calc/calc_test.go"})
    assert not is_seen(before[0], before, after[1:], ())
    assert not is_seen("m/calc.TestC", ["m/calc.TestC"], after, ())


LOOP = "def test_rows():\n    for line, total in CASES:\n        assert add(line) == total\n"
READ = "import json\nCASES = json.loads(open('cases.json').read())\n"
EACH = "@pytest.mark.parametrize(('line', 'total'), CASES, ids=str)\n"


@pytest.mark.parametrize(
    ("new", "is_same"),
    [
        (f"{READ}{EACH}def test_rows(line, total):\n    assert add(line) == total\n", True),
        (f"{READ}{EACH}def test_rows(line, total):\n    assert add(line)\n", False),
        (f"{READ}{EACH}def test_rows(line, total):\n    assert add(total) == line\n", False),
        (
            f"{READ}{EACH.replace('CASES', 'CASES[:1]')}def test_rows(line, total):\n    assert add(line) == total\n",
            False,
        ),
        (f"{READ}{EACH}def test_rows(line, total):\n    line = 1\n    assert add(line) == total\n", False),
    ],
)
def test_a_loop_over_a_table_in_a_file_may_become_parameters(new: str, is_same: bool) -> None:
    name = "tests/test_calc.py::test_rows"

    found = forward(name, f"{name}[2-4]", READ + LOOP, f"import pytest\n{new}", f"{name}[1-2]")

    assert (found == name) is is_same


def test_a_case_that_left_a_table_in_a_file_is_missing() -> None:
    name = "tests/test_calc.py::test_rows"
    text = f"import pytest\n{READ}{EACH}def test_rows(line, total):\n    assert add(line) == total\n"

    assert forward(f"{name}[2-4]", f"{name}[1-2]", text, text) == ""


@pytest.mark.proves("K7")
@pytest.mark.parametrize(
    ("name", "now", "changed", "is_same"),
    [
        ("test.js::0.6598871 is a number", "test.js::0.1200345 is a number", "index.js", True),
        ("test_a.py::test_b[2026-11-30 09:15]", "test_a.py::test_b[2026-12-01 10:00]", "a.py", True),
        ("test_a.py::test_b[<A at 0x7f3ac0d1>]", "test_a.py::test_b[<A at 0x81cc0aaf04>]", "a.py", True),
        ("test.js::0.6598871 is a number", "test.js::0.1200345 is a number", "test.js", False),
        ("test.js::0.6598871 is a number", "test.js::0.1200345 is none", "index.js", False),
        ("test_a.py::test_b[2026]", "test_a.py::test_b[2027]", "a.py", False),
    ],
)
def test_a_test_named_by_an_address_a_time_or_a_random_number_passes_under_another_name(
    name: str, now: str, changed: str, is_same: bool
) -> None:
    assert brought_forward([name], {now}, {changed: ""}, {changed: ""}) == ({name: now} if is_same else {})
