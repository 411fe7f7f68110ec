"""How a check's command is pointed at a canary, and when that was detected."""

import json
import re
from typing import Any

import pytest

from fixloop.integrity.canary import canary_of, unseen
from fixloop.integrity.tool_call import Canary, Project

PYTHON = (
    *("pyproject.toml", "conftest.py", "src/shop/__init__.py", "src/shop/cart.py", "tool.py"),
    *("tests/unit/conftest.py", "tests/unit/test_cart.py", "tests/test_shop.py"),
)
NODE = (
    "package.json",
    "src/cart.js",
    "src/jest.setup.js",
    "test/cart.test.js",
    "lib/price.spec.ts",
    "tsconfig.json",
)
TOKEN = "c0"


def project(*files: str, **keys: Any) -> Project:
    texts = keys.pop("texts", {})
    told: dict[str, Any] = {"changed": ("src/shop/cart.py",), "roots": ("src",), **keys}
    return Project(files=frozenset(files), read=lambda path: texts.get(path, ""), **told)


def made(command: str | tuple[str, ...], files: tuple[str, ...] = PYTHON, **keys: Any) -> Canary:
    words = command.split() if isinstance(command, str) else command
    found = canary_of(words, project(*files, **keys), TOKEN)
    assert found is not None
    return found


def line(canary: Canary) -> str:
    return " ".join(canary.command)


RUN = "-k  -m  --maxfail=0 --junitxml={junit}"
AT_TOP, AT_UNIT = "tests/test_c00.py", "tests/unit/test_c00.py"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest", f"pytest {RUN} {AT_TOP}"),
        ("pytest -q tests --cov=src", f"pytest -q --no-cov {RUN} {AT_TOP}"),
        ("pytest --cov src --cov-report json:{coverage} --cov-fail-under=80", f"pytest --no-cov {RUN} {AT_TOP}"),
        ("python -m pytest -x -k foo", f"python -m pytest -x {RUN} {AT_TOP}"),
        ("python -m pytest --junitxml={junit} tests/unit", f"python -m pytest {RUN} {AT_UNIT}"),
        ("pytest tests/unit/test_cart.py::test_total", f"pytest {RUN} {AT_UNIT}"),
        ("coverage run -m pytest tests/unit", f"coverage run -m pytest {RUN} {AT_UNIT}"),
        ("uv run pytest -n auto", f"uv run pytest -n auto -n0 {RUN} {AT_TOP}"),
        ("env A=1 .venv/bin/pytest -p no:xdist -- tests", f"env A=1 .venv/bin/pytest -p no:xdist {RUN} {AT_TOP}"),
        ("pytest -c pyproject.toml --rootdir tests", f"pytest -c pyproject.toml --rootdir tests {RUN} {AT_TOP}"),
        ("pytest -m unit --ds shop.settings", f"pytest --ds shop.settings {RUN} {AT_TOP}"),
    ],
)  # fmt: skip
def test_pytest_runs_two_canary_tests_with_its_options(command: str, expected: str) -> None:
    assert line(made(command)) == expected


def test_pytest_canaries_go_where_tests_passed_and_next_to_a_changed_conftest() -> None:
    canary = made(
        "pytest", changed=("conftest.py", "src/shop/cart.py"), passed=("tests/unit/test_cart.py::test_total",)
    )

    assert list(canary.files) == [AT_UNIT, "test_c01.py"]
    assert (canary.fails, canary.passes) == (("c00b", "c01b"), ("c00a", "c01a"))


def test_a_canary_imports_the_changed_modules_but_no_tests_or_scripts() -> None:
    changed = (
        "setup.py",
        "scripts/a.py",
        "src/shop/__init__.py",
        "src/shop/cart.py",
        "tests/test_shop.py",
        "tool.py",
    )

    text = made("pytest", (*PYTHON, "setup.py", "scripts/a.py"), changed=changed).files[AT_TOP]

    assert "load(['shop', 'shop.cart', 'tool'])" in text
    assert not {"TOKEN", "SECONDS", "END_SECONDS", "NAMES"} & set(re.findall(r"\w+", text))
    compile(text, AT_TOP, "exec")


def test_settings_that_measure_or_use_several_processes_are_overruled() -> None:
    assert line(made("pytest", addopts="--cov=shop -n 4")) == f"pytest -n0 --no-cov {RUN} {AT_TOP}"


@pytest.mark.parametrize(
    ("command", "expected", "file"),
    [
        ("python -m unittest", "discover -v -s . -p test_c0.py", "test_c0.py"),
        ("python -m unittest discover -s tests", "discover -v -s tests -p test_c0.py", "tests/test_c0.py"),
        (
            "python -m unittest discover tests -t . -v",
            "discover -v -s tests -t . -p test_c0.py",
            "tests/test_c0.py",
        ),
        ("python -m unittest -v tests.unit.test_cart", "-v tests.unit.test_c0", "tests/unit/test_c0.py"),
        ("python -m unittest tests.test_shop.Case.test_a", "-v tests.test_c0", "tests/test_c0.py"),
        ("coverage run -m unittest tests/test_shop.py", "-v tests.test_c0", "tests/test_c0.py"),
    ],
)
def test_unittest_runs_a_separate_canary_file(command: str, expected: str, file: str) -> None:
    canary = made(command)

    assert line(canary) == f"{command.partition('unittest')[0]}unittest {expected}"
    assert list(canary.files) == [file]
    assert canary.is_printed


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("", ""),
        ("shop.tests.Total --parallel 4 -v 0", ""),
        ("--settings shop.settings --tag slow --keepdb", "--settings shop.settings --keepdb "),
    ],
)
def test_django_s_runner_runs_a_canary_next_to_its_tests(words: str, kept: str) -> None:
    canary = made(f"python manage.py test {words}", ("manage.py", "shop/models.py", "shop/tests.py"))

    assert line(canary) == f"python manage.py test {kept}--verbosity=2 shop.test_c0"
    assert list(canary.files) == ["shop/test_c0.py"]
    assert canary.is_printed


def test_discovery_finds_a_canary_in_the_package_where_the_tests_are() -> None:
    files = ("shop.py", "tests/__init__.py", "tests/test_shop.py", "other/test_b.py")

    assert list(made("python -m unittest", files).files) == ["tests/test_c0.py"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "npx jest --ci",
            "npx jest --ci --json --outputFile={jest} --coverage=false --forceExit --runTestsByPath test/c0.test.js",
        ),
        (
            "node_modules/.bin/jest --coverage -t total --json --outputFile={jest} test",
            "node_modules/.bin/jest --json --outputFile={jest} --coverage=false --forceExit --runTestsByPath "
            "test/c0.test.js",
        ),
        (
            "npx vitest run --reporter=junit --outputFile={junit} lib",
            "npx vitest run --reporter=junit --outputFile={junit} --coverage.enabled=false lib/c0.spec.ts",
        ),
        (
            ("sh", "-c", 'node_modules/.bin/mocha "test/**/*.js" --reporter dot'),
            "node_modules/.bin/mocha --reporter xunit --reporter-options output={junit} --exit --grep c0 "
            "test/c0.test.js",
        ),
        (
            ("sh", "-c", 'pnpm run build:lib && node_modules/.bin/mocha test -R xunit -O "output={junit}"'),
            "node_modules/.bin/mocha --reporter xunit --reporter-options output={junit} --exit --grep c0 "
            "test/c0.test.js",
        ),
        (
            "node --import ./src/jest.setup.js --test --test-name-pattern=a test",
            "node --import ./src/jest.setup.js --test --test-reporter=junit --test-reporter-destination={junit} "
            "test/c0.test.js",
        ),
    ],
)
def test_javascripts_runners_run_one_file(command: str | tuple[str, ...], expected: str) -> None:
    canary = made(command, NODE, changed=("src/cart.js", "src/jest.setup.js", "test/cart.test.js"))

    assert line(canary) == expected
    [text] = canary.files.values()
    assert '../src/cart.js"' in text
    assert "setup" not in text
    assert not {"TOKEN", "BEGIN", "END", "LOADS", "LOAD"} & set(re.findall(r"\w+", text))


@pytest.mark.parametrize(
    ("beside", "name"),
    [
        ("test/cart.unit.test.mjs", "c0.unit.test.mjs"),
        ("test/cart_spec.js", "c0_spec.js"),
        ("test/test-cart.js", "test-c0.js"),
        ("src/__tests__/cart.tsx", "c0.tsx"),
    ],
)
def test_a_canary_is_named_after_its_neighbour(beside: str, name: str) -> None:
    [file] = made("npx jest", (beside,), changed=()).files

    assert file.rpartition("/")[2] == name


def test_go_runs_one_package_where_something_was_changed() -> None:
    files = ("go.mod", "a/a.go", "a/a_test.go", "b/b.go", "b/b_test.go")

    canary = made(
        "go test -race -tags=slow -run TestB ./...",
        files,
        changed=("b/b.go",),
        texts={"b/b_test.go": "// b\npackage b_test\n"},
    )

    assert line(canary) == "go test -race -tags=slow -json -count=1 -run ^Test_c0[ab]$ ./b"
    assert canary.files["b/c0_test.go"].startswith("package b_test\n")
    assert canary.output == "go-test"


def test_a_command_that_is_called_in_a_folder_has_its_canary_there() -> None:
    texts = {"b/b_test.go": "package b\n", "src/test_cart.py": ""}

    go = made("env --chdir=b go test ./...", ("go.mod", *texts), changed=("b/b.go",), texts=texts)
    python = made(
        "env --chdir=src python -m unittest discover", tuple(texts), changed=("src/cart.py",), texts=texts
    )

    assert line(go) == "env --chdir=b go test -json -count=1 -run ^Test_c0[ab]$ ./"
    assert go.files["b/c0_test.go"].startswith("package b\n")
    assert line(python) == "env --chdir=src python -m unittest discover -v -s . -p test_c0.py"
    assert list(python.files) == ["src/test_c0.py"]


def test_cargo_runs_one_integration_test() -> None:
    files, texts = ("Cargo.toml", "src/lib.rs"), {"Cargo.toml": '[package]\nname = "shop"\n'}

    canary = made("cargo test --no-fail-fast -p shop total -- --test-threads=1", files, texts=texts)

    assert line(canary) == "cargo test --no-fail-fast -p shop --test c0"
    assert list(canary.files) == ["tests/c0.rs"]


@pytest.mark.parametrize(
    ("command", "expected", "files"),
    [
        ("ruff check .", "ruff check .", ["src/shop/c00.py", "src/shop/c01.py"]),
        (
            "ruff check --no-fix --output-format sarif --output-file {sarif} src",
            "ruff check --no-fix --output-format sarif --output-file {sarif} src",
            ["src/shop/c00.py", "src/shop/c01.py"],
        ),
        ("ruff check tool.py", "ruff check tool.py c00.py c01.py", ["c00.py", "c01.py"]),
        (
            "flake8 --config pyproject.toml src tests",
            "flake8 --config pyproject.toml src/shop/c00.py src/shop/c01.py",
            ["src/shop/c00.py", "src/shop/c01.py"],
        ),
        ("python -m mypy --strict src", "python -m mypy --strict src", ["src/shop/c00.py"]),
        ("mypy", "mypy", ["src/shop/c00.py"]),
        ("mypy tests", "mypy tests", ["tests/test_shop.py"]),
        (
            "npx pyright -p pyproject.toml src",
            "npx pyright -p pyproject.toml src/shop/c00.py",
            ["src/shop/c00.py"],
        ),
        (
            "bandit -q -r -c pyproject.toml --severity-level medium src",
            "bandit -q -r -c pyproject.toml --severity-level medium src/shop/c00.py",
            ["src/shop/c00.py"],
        ),
    ],
)
def test_linters_get_files_with_known_violations(command: str, expected: str, files: list[str]) -> None:
    canary = made(command)

    assert line(canary) == expected
    assert [path.rpartition("/")[0] for path in canary.files] == [path.rpartition("/")[0] for path in files]
    assert all(name in path for name, path in zip(canary.fails, canary.files, strict=True))


def test_if_settings_changed_a_linter_must_check_every_folder() -> None:
    canary = made("ruff check .", changed=("pyproject.toml",))

    folders = {path.rpartition("/")[0] for path in canary.files}
    assert folders == {"", "src/shop", "tests", "tests/unit"}
    assert len(canary.fails) == 8


def test_eslint_gets_a_file_of_the_kind_that_was_changed() -> None:
    canary = made("npx eslint . --ext .js -f stylish", NODE, changed=("src/cart.js",))

    assert line(canary) == "npx eslint --ext .js -f json -o {eslint} src/c00.js src/c01.js"


def test_typescript_extends_the_project_s_settings() -> None:
    canary = made("npx tsc --noEmit --pretty false", (*NODE, "src/a.ts"), changed=("src/a.ts",))

    assert line(canary) == "npx tsc --noEmit --pretty false -p c0.json"
    settings = json.loads(canary.files["c0.json"])
    assert (settings["extends"], settings["files"]) == ("./tsconfig.json", ["src/c00.ts"])


@pytest.mark.parametrize(
    "command",
    [
        *("tox -e py", "npm test", "npm run jest", "make test", "python run_tests.py", "pre-commit run --all-files"),
        *("ruff format --check .", "cargo clippy", "go vet ./...", "node tools/check.js", "npx tsc -b", "black ."),
        "docker run pytest",
    ],
)  # fmt: skip
def test_a_command_that_calls_no_known_tool_has_no_canary(command: str) -> None:
    files = (*PYTHON, *NODE, "go.mod", "Cargo.toml")

    assert canary_of(command.split(), project(*files), TOKEN) is None


def test_there_is_no_canary_if_a_shell_does_more_than_find_files() -> None:
    assert canary_of(("sh", "-c", "pytest || true"), project(*PYTHON), TOKEN) is None


@pytest.mark.parametrize(
    "command",
    [
        "pytest",
        "python -m unittest tests.test_x",
        "python manage.py test",
        "python manage.py check",
        "npx jest",
        "go test ./...",
        "cargo test",
        "npx tsc",
    ],
)
def test_there_is_no_canary_if_nothing_fits_it(command: str) -> None:
    assert canary_of(command.split(), project("README.md", changed=()), TOKEN) is None


TESTS = Canary((), {}, fails=("c0b",), passes=("c0a",))


@pytest.mark.parametrize(
    ("exit_code", "failed", "passed", "missing"),
    [
        (1, ["test_c0.py test_c0.py::test_c0b"], ["test_c0.py::test_c0a"], set()),
        (0, ["test_c0.py test_c0.py::test_c0b"], ["test_c0.py::test_c0a"], {"c0b"}),
        (0, [], ["test_c0.py::test_c0a", "test_c0.py::test_c0b"], {"c0b"}),
        (1, ["c0b"], ["c0b", "c0a"], {"c0b"}),
        (1, ["c0a", "c0b"], [], {"c0a"}),
        (0, [], [], {"c0a", "c0b"}),
        (None, [], [], {"c0a", "c0b"}),
        (1, ["another"], ["c0a"], {"c0b"}),
    ],
)
def test_a_canary_counts_if_one_test_fails_one_passes_and_the_command_fails(
    exit_code: int | None, failed: list[str], passed: list[str], missing: set[str]
) -> None:
    assert unseen(TESTS, exit_code=exit_code, failed=failed, passed=passed, output="") == missing


def test_a_runner_without_a_report_prints_a_line_for_each_test() -> None:
    canary, good = TESTS._replace(is_printed=True), "test_c0a (tests.Test.test_c0a) ... ok\n"
    bad = "test_c0b (tests.Test.test_c0b) ... FAIL\n"

    def missing(output: str) -> frozenset[str]:
        return unseen(canary, exit_code=1, failed=["c0b"], passed=["c0a"], output=output)

    assert missing(good + bad) == set()
    assert missing(good) == {"c0b"}
    assert missing(good + bad.replace("FAIL", "ok")) == {"c0b"}
