"""What a request says of a failing test: where to start, the code around it, and how to run it alone."""

from pathlib import Path

import pytest

from fixloop.protocol.checks import CheckResult, Evidence, RunOutcome
from fixloop.protocol.failures import Failure
from fixloop.protocol.limits import plain
from fixloop.reports.examples import (
    digest,
    explained,
    narrower,
    with_examples,
    with_subtests,
    without_reports,
)
from fixloop.reports.report import SourceTree
from fixloop.reports.tracebacks import deepest, source_around
from tests.fixtures.repositories import write

LONG = """TypeError: Unknown kind
def test_kind():
>       total([{"kind": "x"}])

tests/test_cart.py:11:
_ _ _ _ _ _ _ _ _ _
src/shop/cart.py:13: in total
    result += key(item)
              ^^^^^^^^^
_ _ _ _ _ _ _ _ _ _

kind = 'x'

    def key(kind):
>       raise TypeError("Unknown kind")
E       TypeError: Unknown kind

src/shop/cart.py:7: TypeError"""
CHAINED = """ValueError: no price
    def test_price():
>       total([{}])
E       KeyError: 'price'

src/shop/cart.py:13: KeyError

The above exception was the direct cause of the following exception:

>       raise ValueError("no price") from error
E       ValueError: no price

src/shop/errors.py:3: ValueError"""
NATIVE = """KeyError: 'price'
Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/_pytest/runner.py", line 361, in from_call
    result = func()
             ^^^^^^
  File "{root}/tests/test_cart.py", line 11, in test_kind
    total([{{}}])
  File "{root}/src/shop/cart.py", line 13, in total
    item["price"]
    ~~~~^^^^^^^^^
KeyError: 'price'"""
VITEST = """AssertionError: expected 1 to be 2
 at add (/w/node_modules/vitest/dist/index.js:3:4)
 at total (src/cart.ts:5:11)
 at tests/cart.test.ts:9:3"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (
        "src/shop/cart.py",
        "src/shop/errors.py",
        "tests/test_cart.py",
        "src/cart.ts",
        "tests/cart.test.ts",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("".join(f"line {number}\n" for number in range(1, 21)))
    (tmp_path / "src/lib.rs").write_text("fn main() {}\n" * 20)
    (tmp_path / "cart.go").write_text("package cart\n" * 20)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (LONG, "src/shop/cart.py:7"),
        (CHAINED, "src/shop/errors.py:3"),
        (NATIVE, "src/shop/cart.py:13"),
        (VITEST, "src/cart.ts:5"),
        ("thread 'x' panicked at src/lib.rs:12:5:\nboom", "src/lib.rs:12"),
        ("panic: boom\n\t{root}/cart.go:8 +0x1d", "cart.go:8"),
        (
            ">   assert 1 == 2\nE   assert 1 == 2\n\ntests/test_cart.py:4: AssertionError",
            "tests/test_cart.py:4",
        ),
        ("no place at all", "None"),
    ],
)
def test_the_place_to_start_is_the_deepest_frame_of_the_project(root: Path, text: str, place: str) -> None:
    assert str(deepest(text.replace("{root}", str(root)), SourceTree(root))) == place


def test_a_place_outside_the_workspace_is_never_the_place_to_start(root: Path, tmp_path: Path) -> None:
    (root / "link.py").symlink_to("/etc/passwd")

    assert (
        deepest('File "/etc/passwd", line 1\nlink.py:1: in x\n../../etc/hosts.py:1', SourceTree(root)) is None
    )


def test_a_traceback_is_reduced_to_values_and_one_line_for_each_frame(root: Path) -> None:
    assert digest(LONG, SourceTree(root)).split("\n") == [
        "TypeError: Unknown kind",
        'tests/test_cart.py:11: total([{"kind": "x"}])',
        "src/shop/cart.py:13: result += key(item)",
        "kind = 'x'",
        'src/shop/cart.py:7: raise TypeError("Unknown kind")',
    ]


def test_a_native_traceback_is_shown_without_the_runner_s_frames(root: Path) -> None:
    assert digest(NATIVE.format(root=root), SourceTree(root)).split("\n") == [
        "KeyError: 'price'",
        "tests/test_cart.py:11: total([{}])",
        'src/shop/cart.py:13: item["price"]',
    ]


def test_what_imports_a_test_is_left_out_of_its_traceback(tmp_path: Path) -> None:
    text = (
        "/v/lib/python3.11/site-packages/_pytest/python.py:528: in importtestmodule\n    mod = import_path(\n"
        "/usr/lib/python3.11/importlib/__init__.py:126: in import_module\n    return _gcd_import(name)\n"
        "<frozen importlib._bootstrap>:1204: in _gcd_import\n    ???\n"
        "src/_pytest/own.py:3: in <module>\n    import shop\n"
        "/v/lib/python3.11/site-packages/other.py:9: in <module>\n    import more\n"
        "E     File \"/w/shop.py\", line 2\nE       return sum(\nE   SyntaxError: '(' was never closed\n"
    )

    assert digest(text, SourceTree(tmp_path)).split("\n") == [
        "src/_pytest/own.py:3: import shop",
        "/v/lib/python3.11/site-packages/other.py:9: import more",
        'File "/w/shop.py", line 2',
        "  return sum(",
        "SyntaxError: '(' was never closed",
    ]


def test_all_equal_lines_of_a_comparison_are_kept(root: Path) -> None:
    values = "E     - x\nE     + y\nE     - x\n"
    text = f"assert a == b\n>   assert a == b\nE   assert a == b\n{values}\ntests/test_cart.py:4: A"

    assert digest(text, SourceTree(root)).split("\n").count("  - x") == 2


def test_an_example_has_the_lines_around_its_frame_without_secrets(root: Path) -> None:
    failure = Failure(
        name="tests/test_cart.py::test_kind",
        file="tests/test_cart.py",
        message=LONG,
        frame="src/shop/cart.py:7",
    )

    argv = ("python", "-m", "pytest", "--cov", "--rootdir=.", "-o", "pythonpath=src", "tests")
    told = explained(failure, argv, root, lambda text: text.replace("line 8", "***"))

    assert told.source.split("\n")[2:5] == ["   6 line 6", ">  7 line 7", "   8 ***"]
    assert told.rerun == "python -m pytest -o pythonpath=src --no-cov tests/test_cart.py::test_kind"
    assert told.message == digest(LONG, SourceTree(root))


def test_a_stack_of_javascript_has_the_project_s_frames_and_no_path_of_the_workspace(root: Path) -> None:
    message = f"""0.5 == 1
    at TestContext.<anonymous> ({root}/src/shop/cart.py:3:29)
    at file://{root}/tests/test_cart.py:1:2
    at new Promise (<anonymous>)
    at Array.map (<anonymous>)
      Test.run (node:internal/test_runner/test:796:25)
      node:internal/test_runner/test:1133:71
ImportError while importing test module '{root}/tests/test_cart.py'.
read {root}/data.txt"""

    told = explained(Failure(name="half", message=message), ("node", "--test"), root, str)

    assert told.message.split("\n") == [
        "0.5 == 1",
        "    at TestContext.<anonymous> (src/shop/cart.py:3:29)",
        "    at tests/test_cart.py:1:2",
        "ImportError while importing test module 'tests/test_cart.py'.",
        f"read {root}/data.txt",
    ]


def test_a_file_at_the_end_of_a_sentence_is_named_without_the_path_of_the_workspace(root: Path) -> None:
    failure = Failure(name="cart", message=f"Failed to load x in {root}/tests/test_cart.py. Does it exist?")

    told = explained(failure, ("vitest", "run"), root, str)

    assert told.message == "Failed to load x in tests/test_cart.py. Does it exist?"


def test_a_failure_in_a_package_of_a_workspace_is_repeated_there(root: Path) -> None:
    write(root, {"packages/a/package.json": "{}", "packages/a/test/kv.js": "", "package.json": "{}"})
    argv = ("npm", "test", "--workspaces", "--if-present")

    told = explained(Failure(name="half", message="no", file="packages/a/test/kv.js"), argv, root, str)

    assert told.rerun == "npm test --workspace packages/a"


def test_a_frame_past_the_end_of_its_file_has_no_source(root: Path) -> None:
    from fixloop.reports.tracebacks import Frame

    assert source_around(root, Frame("src/shop/cart.py", 99)) == ""
    assert source_around(root, Frame("src/shop/none.py", 1)) == ""


@pytest.mark.parametrize(
    "output",
    [
        "SUBFAILED[quoted-unicode] tests/t.py::T::test_valid - x\nSUBFAILED[b] (i=2) tests/t.py::T::test_valid - y\n",
        "[quoted-unicode] SUBFAIL tests/t.py::T::test_valid - x\n[b] (i=2) SUBFAIL tests/t.py::T::test_valid - y\n",
    ],
)
def test_subtests_are_distinguished_by_their_names(output: str) -> None:
    failures = (
        Failure(name="tests/t.py::T::test_valid", message="ValueError: x"),
        Failure(name="tests/t.py::other"),
    )

    first, second = with_subtests(failures, output)

    assert first.message == "ValueError: x\nfailing subtests: [quoted-unicode], [b] (i=2)"
    assert second == failures[1]


@pytest.mark.parametrize(
    ("argv", "left"),
    [
        (
            ("python", "-m", "pytest", "--junitxml={junit}", "-o", "junit_logging=all", "-q"),
            "python -m pytest -q",
        ),
        (
            ("python", "-m", "pytest", "--cov=src", "--cov-report=json:{coverage}", "--cov-fail-under=0"),
            "python -m pytest --cov=src",
        ),
        (("ruff", "check", "--output-format", "sarif", "--output-file", "{sarif}", "."), "ruff check ."),
        (("npx", "vitest", "run", "--reporter=junit", "--outputFile={junit}"), "npx vitest run"),
        (
            ("mocha", "-r", "esm", "--reporter", "xunit", "--reporter-options", "output={junit}", "t"),
            "mocha -r esm t",
        ),
        (("eslint", ".", "-f", "json", "-o", "{eslint}"), "eslint ."),
        (("jest", "--ci", "--json", "--outputFile={jest}"), "jest --ci"),
        (
            ("node", "--test", "--test-reporter=junit", "--test-reporter-destination={junit}", "t.js"),
            "node --test t.js",
        ),
        (("npm", "run", "json"), "npm run json"),
    ],
)
def test_the_reproducing_command_writes_no_report(argv: tuple[str, ...], left: str) -> None:
    assert " ".join(without_reports(argv)) == left


@pytest.mark.parametrize(
    ("command", "failure", "alone"),
    [
        ("ruff check .", Failure(name="F401", file="a.py"), "ruff check --select F401 a.py"),
        ("python -m mypy --no-pretty src", Failure(name="x", file="a.py"), "python -m mypy --no-pretty a.py"),
        ("python -m mypy --strict -p a", Failure(name="x", file="a/b.py"), "python -m mypy --strict a/b.py"),
        (
            "npx vitest run",
            Failure(name="a.test.ts::math > adds", file="a.test.ts"),
            "npx vitest run a.test.ts -t math adds",
        ),
        (
            "npx vitest run",
            Failure(name="packages/a/a.test.ts::a.test.ts", file="packages/a/a.test.ts"),
            "npx vitest run packages/a/a.test.ts",
        ),
        (
            "npx mocha -r esm t",
            Failure(name="math of a cart::adds a::b", file="t/a.js"),
            "npx mocha -r esm t -f math of a cart adds a::b",
        ),
        (
            "python tests/alltests.py",
            Failure(name="__main__.CartTests.test_a"),
            "python tests/alltests.py CartTests.test_a",
        ),
        ("make test", Failure(name="__main__.CartTests.test_a"), ""),
        ("npx mocha", Failure(name='math::"before each" hook for "adds"', file="t/a.js"), ""),
        (
            "go test -json -race ./...",
            Failure(name="example.com/shop.v2/cart.TestTotal", file="cart/c_test.go"),
            "go test -race -run ^TestTotal$ example.com/shop.v2/cart",
        ),
        (
            "go test -json -tags a ./...",
            Failure(name="example.com/shop.TestTotal/no_price_(x/1.5)"),
            r"go test -tags a -run ^TestTotal$/^no_price_\(x$/^1\.5\)$ example.com/shop",
        ),
        (
            "go test -json ./...",
            Failure(name="example.com/shop.v2/cart", error_type="build failed"),
            "go test example.com/shop.v2/cart",
        ),
        (
            "cargo test --no-fail-fast --all-features -- --nocapture",
            Failure(name="shop::tests::test1", file="src/lib.rs"),
            "cargo test --no-fail-fast --all-features tests::test1 -- --exact",
        ),
        ("cargo test", Failure(name="shop::src/lib.rs - Cart::total"), "cargo test --doc Cart::total"),
        ("cargo test", Failure(name="shop::src/lib.rs -"), "cargo test --doc src/lib.rs"),
        ("cargo test", Failure(name="build", error_type="E0308"), "cargo test --no-run"),
        ("cargo test", Failure(name="shop", error_type="test binary died"), ""),
        (
            "pytest -q",
            Failure(name="tests/t.py::TestA::test_b[x::y.z]", file="tests/t.py"),
            "pytest tests/t.py::TestA::test_b[x::y.z]",
        ),
        (
            "pytest -q --doctest-modules --doctest-glob *.rst --doctest-glob=*.md shop",
            Failure(name="shop/a.py::shop.a", file="shop/a.py"),
            "pytest --doctest-modules --doctest-glob *.rst --doctest-glob=*.md shop/a.py::shop.a",
        ),
        (
            "pytest -q",
            Failure(name="tests/t.py::Mypy::check-it.test::testMypy", file="tests/t.py"),
            "pytest tests/t.py -k testMypy",
        ),
        (
            "python -m unittest discover -v",
            Failure(name="tests.test_a.T.test_b", file="tests/test_a.py"),
            "python -m unittest tests.test_a.T.test_b",
        ),
        (
            "python -m unittest discover -v",
            Failure(name="tests.test_a.T.setUpClass", file="tests/test_a.py"),
            "python -m unittest tests.test_a.T",
        ),
        (
            "python -m unittest discover -s tests",
            Failure(name="test_a.T.test_b", file="tests/test_a.py"),
            "python -m unittest discover -s tests -k *test_a.T.test_b",
        ),
        ("python -m unittest", Failure(name="unittest", measure="1"), ""),
        ("make smoke", Failure(name="smoke"), ""),
    ],
)
def test_a_runner_that_is_known_has_a_narrower_command(command: str, failure: Failure, alone: str) -> None:
    assert " ".join(narrower(command.split(), failure)) == alone


@pytest.mark.parametrize("escape", ["\x1b[31m", "#x1B[31m", "&#27;[31m", "[31m"])
def test_colour_codes_are_removed(escape: str) -> None:
    reset = escape.replace("31", "0")

    assert plain(f"{escape}[PARSE_ERROR] {reset}bad") == "[PARSE_ERROR] bad"


def test_the_parameter_of_a_test_is_no_colour() -> None:
    assert plain("tests/t.py::test_wait[5m] and x[31m-y]") == "tests/t.py::test_wait[5m] and x[31m-y]"


def test_one_failure_alone_is_shown_with_more_of_its_code_and_with_its_test(root: Path) -> None:
    failure = Failure(name="tests/test_cart.py::test_kind", message=LONG)

    def told(count: int) -> str:
        frames = [{"frame": f"src/shop/cart.py:{line}"} for line in range(7, 7 + count)]
        others = [failure.model_copy(update=frame) for frame in frames]
        result = CheckResult(
            check="pytest",
            outcome=RunOutcome.FAILED,
            failures=tuple(others),
            evidence=Evidence(check="pytest", command="pytest"),
        )
        return with_examples(result, ("pytest",), root, str).failures[0].source

    alone, of_twelve = told(1), told(12)
    assert "tests/test_cart.py\n" in alone
    assert "> 11 line 11" in alone
    assert "tests/test_cart.py" not in of_twelve
    assert len(of_twelve.split("\n")) < len(alone.split("\n")) - 8
