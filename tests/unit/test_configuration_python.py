"""Which checks a Python project gets, by its files."""

from pathlib import Path

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.errors import UsageError
from fixloop.protocol.specialists import NAMES
from tests.fixtures.configuration_project import check_of, commands_of, installed, written

CODE = {"src/shop/__init__.py": "", "src/shop/cart.py": "x = 1\n"}
TESTS = {"tests/unit/test_cart.py": "def test_x(): pass\n"}
TOOLS = {
    "pyproject.toml": (
        '[dependency-groups]\ndev = ["pytest>=8", "Pytest_Cov", "ruff", "mypy[d]==1", "bandit ~=1"]\n'
        "[tool.ruff.format]\n"
    )
}


@pytest.mark.proves("U2", "U3", "K28")
def test_a_project_with_all_tools_gets_five_specialists_in_the_order_of_the_phases(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, **TESTS, **TOOLS, "tests/integration/test_all.py": ""})

    configuration = load_configuration(tmp_path)

    assert [entry.name for entry in configuration.specialists] == list(NAMES[:5])
    assert commands_of(configuration) == {
        "unit-test": {"pytest": "python -m pytest --junitxml={junit} tests/unit"},
        "integration-test": {"pytest": "python -m pytest --junitxml={junit} tests/integration"},
        "test-runner": {"pytest": "python -m pytest --junitxml={junit}"},
        "code-quality": {
            "ruff": "ruff check --no-fix --output-format sarif --output-file {sarif} .",
            "format": "ruff format --check .",
            "mypy": "python -m mypy --no-pretty src",
        },
        "security": {
            "bandit": "bandit -q -r --severity-level medium --format custom --msg-template"
            " {relpath}:{line}: {test_id} {severity}: {msg} src",
            "secrets": "bandit -q -r --tests B105,B106,B107 --format custom --msg-template"
            " {relpath}:{line}: {test_id} {severity}: {msg} src",
            "parse": "python -m compileall -q src",
        },
    }
    assert check_of(configuration, "test-runner", "pytest").coverage_percent is None
    assert check_of(configuration, "security", "bandit").why == "pyproject.toml: bandit"
    assert configuration.unverified == ()


WORKSPACE = {
    "pyproject.toml": "[tool.uv.workspace]\nmembers = ['packages/*']\n",
    "packages/my-a/pyproject.toml": "[tool.pytest.ini_options]\nfilterwarnings = ['error']\n",
    "packages/my-a/tests/test_core.py": "def test_x(): pass\n",
    "packages/b/pytest.ini": "[pytest]\naddopts = --cov=b --cov-fail-under=90\n",
    "packages/b/pyproject.toml": "[project]\nname = 'b'\n",
    "packages/b/tests/test_core.py": "def test_x(): pass\n",
    "examples/c/pytest.ini": "[pytest]\n",
    "examples/c/setup.py": "",
    "examples/c/test_c.py": "def test_x(): pass\n",
}


def test_packages_with_pytest_settings_of_their_own_are_tested_with_these(tmp_path: Path) -> None:
    written(tmp_path, WORKSPACE)

    configuration = load_configuration(tmp_path)

    assert commands_of(configuration) == {
        "test-runner": {
            "pytest packages/b": "python -m pytest --junitxml={junit} --no-cov --rootdir=. packages/b",
            "pytest packages/my-a": "python -m pytest --junitxml={junit} --rootdir=. packages/my-a",
            "pytest": "python -m pytest --junitxml={junit} --ignore=packages/b --ignore=packages/my-a",
        }
    }
    check = check_of(configuration, "test-runner", "pytest packages/b")
    assert check.why == "packages/b: pytest.ini"
    assert [each.name for each in configuration.unverified] == ["coverage gate of packages/b"]


def test_tests_that_all_lie_in_such_packages_are_not_looked_for_elsewhere(tmp_path: Path) -> None:
    written(tmp_path, {name: text for name, text in WORKSPACE.items() if not name.startswith("examples")})

    checks = commands_of(load_configuration(tmp_path))["test-runner"]

    assert list(checks) == ["pytest packages/b", "pytest packages/my-a"]


@pytest.mark.parametrize(
    "files", [{"Makefile": "test:\n\tuv run pytest -q\n"}, {"pytest.ini": "[pytest]\ntestpaths = packages\n"}]
)
def test_a_project_that_says_how_pytest_runs_all_its_packages_is_run_so(
    tmp_path: Path, files: dict[str, str]
) -> None:
    written(tmp_path, {**WORKSPACE, **files})

    assert list(commands_of(load_configuration(tmp_path))["test-runner"]) == ["pytest"]


def test_each_check_names_the_paths_it_is_given(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, **TESTS, **TOOLS})

    configuration = load_configuration(tmp_path)

    given = {c.name: c.paths for entry in configuration.specialists[1:] for c in entry.checks}
    assert given.pop("pytest") == ()
    assert (given.pop("ruff"), given.pop("format")) == ((".",), (".",))
    assert given == dict.fromkeys(("mypy", "bandit", "secrets", "parse"), ("src",))
    assert check_of(configuration, "unit-test", "pytest").paths == ("tests/unit",)


def test_a_project_without_tools_gets_only_what_its_tests_need(tmp_path: Path) -> None:
    written(tmp_path, {"calc.py": "", "test_calc.py": ""})

    configuration = load_configuration(tmp_path)

    assert commands_of(configuration) == {"test-runner": {"pytest": "python -m pytest --junitxml={junit}"}}
    assert configuration.unverified == ()


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README.md": ""},
        {"app.py": ""},
        {"app.py": "", "tests/data.txt": ""},
        {"app.py": "", "tests/unit/readme.txt": ""},
        {".venv/lib/test_x.py": "", "node_modules/test_x.py": "", ".git/test_x.py": ""},
        {"pyproject.toml": "[tool.mypy]\n[tool.ruff]\n[tool.bandit]\n[tool.pytest.ini_options]\n"},
        {"tests/x.py": "", "docs/conf.py": "", "pyproject.toml": "[tool.mypy]\n[tool.bandit]\n"},
    ],
)
@pytest.mark.proves("K38")
def test_if_no_preset_applies_nothing_passes(tmp_path: Path, files: dict[str, str]) -> None:
    written(tmp_path, files)

    with pytest.raises(UsageError) as raised:
        load_configuration(tmp_path, project="https://example.org/shop.git")

    assert str(raised.value) == (
        f"nothing to check in {tmp_path}: nothing was detected; write a fixloop.toml (`fixloop init`)"
    )


@pytest.mark.parametrize(
    ("files", "specialist", "check"),
    [
        ({"ruff.toml": ""}, "code-quality", "ruff"),
        ({".ruff.toml": ""}, "code-quality", "ruff"),
        ({"pyproject.toml": "[tool.ruff.lint]"}, "code-quality", "ruff"),
        ({"requirements-dev.txt": "# tools\nRuff>=0.5 ; python_version > '3'\n"}, "code-quality", "ruff"),
        ({"requirements/dev.in": "ruff"}, "code-quality", "ruff"),
        ({"pyproject.toml": "[project]\ndependencies = ['ruff']"}, "code-quality", "ruff"),
        ({"pyproject.toml": "[project.optional-dependencies]\ndev = ['ruff']"}, "code-quality", "ruff"),
        ({"pyproject.toml": "[tool.poetry.group.dev.dependencies]\nruff = '^1'"}, "code-quality", "ruff"),
        ({"pyproject.toml": "[tool.uv]\ndev-dependencies = ['ruff']"}, "code-quality", "ruff"),
        ({"pyproject.toml": "[tool.pdm.dev-dependencies]\nx = ['ruff']"}, "code-quality", "ruff"),
        ({"pyproject.toml": "[tool.hatch.envs.x]\nextra-dependencies = ['ruff']"}, "code-quality", "ruff"),
        ({"Pipfile": "[dev-packages]\nruff = '*'"}, "code-quality", "ruff"),
        ({"setup.cfg": "[options.extras_require]\ndev =\n  ruff\n  x\n"}, "code-quality", "ruff"),
        ({"setup.cfg": "[mypy]\nstrict = True\n"}, "code-quality", "mypy"),
        ({"setup.cfg": "no header\n[mypy]\n"}, "code-quality", "mypy"),
        ({"mypy.ini": "[mypy-x.*]\n"}, "code-quality", "mypy"),
        ({"pyproject.toml": "[tool.bandit]"}, "security", "bandit"),
        ({".bandit": "[bandit]\n"}, "security", "bandit"),
    ],
)
def test_a_tool_is_used_where_the_project_has_or_configures_it(
    tmp_path: Path, files: dict[str, str], specialist: str, check: str
) -> None:
    written(tmp_path, {**CODE, **files})

    assert check in commands_of(load_configuration(tmp_path))[specialist]


@pytest.mark.parametrize(
    "pyproject", ["[dependency-groups]\nd = [{include-group = 'x'}, 'ruffian']", "[tool]\nx = 1"]
)
def test_a_similar_name_is_not_the_tool(tmp_path: Path, pyproject: str) -> None:
    written(tmp_path, {**CODE, "pyproject.toml": pyproject})

    with pytest.raises(UsageError, match="nothing to check"):
        load_configuration(tmp_path)


@pytest.mark.parametrize(
    ("files", "gate"),
    [
        ({}, None),
        ({"requirements.txt": "coverage\npytest-cov\n"}, None),
        ({"pyproject.toml": "[tool.coverage.run]\nbranch = true"}, None),
        ({"pytest.ini": "[pytest]\naddopts = -q --cov=src\n"}, None),
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 95.5"}, 95.5),
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 60"}, 60),
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 'much'"}, None),
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = nan"}, None),
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 1000"}, 100),
        ({"setup.cfg": "[coverage:report]\nfail_under = 90\n"}, 90),
        ({"tox.ini": "[pytest]\naddopts = --cov --cov-fail-under=85\n"}, 85),
        ({"pytest.toml": '[pytest]\naddopts = ["--cov", "--cov-fail-under=85"]\n'}, 85),
        ({".pytest.toml": '[pytest]\naddopts = ["--cov", "--cov-fail-under=85"]\n'}, 85),
        ({"fixloop.toml": "[specialist.test-runner]\ncoverage_percent = 70\n"}, 70),
    ],
)
@pytest.mark.proves("A29", "B68")
def test_coverage_is_gated_only_on_request(tmp_path: Path, files: dict[str, str], gate: float | None) -> None:
    written(tmp_path, {**CODE, **TESTS, **files})

    configuration = load_configuration(
        tmp_path, installed=installed(tmp_path, modules=("pytest", "pytest_cov"))
    )

    assert check_of(configuration, "test-runner", "pytest").coverage_percent == gate


def test_a_gate_over_combined_runs_does_not_apply_to_a_single_one(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "[tool.coverage.report]\nfail_under = 100",
        "tox.ini": "[testenv]\ncommands = coverage run -m pytest\n[testenv:report]\ncommands = coverage combine\n",
    }

    configuration = load_configuration(written(tmp_path, {**CODE, **TESTS, **files}))

    assert check_of(configuration, "test-runner", "pytest").coverage_percent is None


@pytest.mark.parametrize(
    ("commands", "paths"),
    [
        ("pytest README.rst\n    pytest --hypothesis-profile=slow {posargs:}", ""),
        ("pytest README.rst\n    pytest --benchmark-skip tests", ""),
        ("pytest README.rst\n    pytest tests", ""),
        ("pytest README.rst\n    pytest {envsitepackagesdir}/shop", ""),
        ("pytest tests\n    pytest --benchmark-skip tests", " tests"),
        ("pytest tests\n    pytest --benchmark-only README.rst", " tests"),
        ("coverage run -p --source shop -m pytest tests", " tests"),
        ("pytest tests", " tests"),
        ("pytest --basetemp={envtmpdir} -p a {posargs:tests}", " -p a tests"),
        ("pytest -p a tests\n    pytest tests/unit/ --codspeed", " -p a tests"),
        ("pytest -p a\n    pytest -p b tests/unit", " -p a"),
        ("pytest -p a tests\n    pytest --codspeed", ""),
        ("pytest -p a tests\n    pytest -p b", " -p b"),
    ],
)
def test_a_partial_run_of_the_project_is_not_taken_for_all_of_it(
    tmp_path: Path, commands: str, paths: str
) -> None:
    files = {"README.rst": ">>> 1\n1\n", "tox.ini": f"[testenv]\ncommands =\n    {commands}\n"}

    configuration = load_configuration(written(tmp_path, {**CODE, **TESTS, **files}))

    command = f"python -m pytest --junitxml={{junit}}{paths}"
    assert commands_of(configuration)["test-runner"]["pytest"] == command


@pytest.mark.parametrize("folder", ["", "src/"])
@pytest.mark.parametrize("place", ["{envsitepackagesdir}", "{env_site_packages_dir}"])
def test_what_tox_installs_is_tested_where_the_project_has_it(
    tmp_path: Path, folder: str, place: str
) -> None:
    called = f"changedir = .tox\ncommands = pytest -vv --doctest-modules {place}/shop {{posargs}}\n"
    tests = {f"{folder}shop/__init__.py": "", f"{folder}shop/test/test_cart.py": "def test_x(): pass\n"}

    configuration = load_configuration(written(tmp_path, {**tests, "tox.ini": f"[testenv]\n{called}"}))

    command = f"python -m pytest --junitxml={{junit}} --doctest-modules {folder}shop"
    assert commands_of(configuration)["test-runner"]["pytest"] == command


@pytest.mark.parametrize(
    ("called", "taken"),
    [
        ("python -W error::ResourceWarning -m coverage run -m pytest", "-W error::ResourceWarning "),
        ("python -X dev -Werror -m pytest -q", "-W error "),
        ("python -X dev -m pytest", ""),
    ],
)
def test_the_warnings_that_fail_the_project_s_own_tests_fail_its_check(
    tmp_path: Path, called: str, taken: str
) -> None:
    files = {"tox.ini": f"[testenv]\ncommands = {called} {{posargs:tests}}\n"}

    configuration = load_configuration(written(tmp_path, {**CODE, **TESTS, **files}))

    command = f"python -m pytest --junitxml={{junit}} {taken}tests"
    assert commands_of(configuration)["test-runner"]["pytest"] == command


def test_coverage_that_costs_nothing_is_measured_without_a_gate(tmp_path: Path) -> None:
    files = {"pytest.ini": "[pytest]\naddopts = --cov=src\n"}

    configuration = load_configuration(written(tmp_path, {**CODE, **TESTS, **files}))

    assert commands_of(configuration)["test-runner"]["pytest"] == (
        "python -m pytest --junitxml={junit} --cov-report=json:{coverage} --cov-fail-under=0"
    )
    assert commands_of(configuration)["unit-test"]["pytest"].endswith("--no-cov tests/unit")


def test_a_gate_that_cannot_be_measured_is_reported_and_the_tests_run(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, **TESTS, "pyproject.toml": "[tool.coverage.report]\nfail_under = 90"})

    configuration = load_configuration(tmp_path, installed=installed(tmp_path, modules=("pytest",)))

    assert commands_of(configuration)["test-runner"] == {"pytest": "python -m pytest --junitxml={junit}"}
    (entry,) = configuration.unverified
    assert (entry.name, entry.blocks) == ("coverage gate", False)
    assert entry.reason == "pytest_cov is not installed in .venv"


@pytest.mark.parametrize(
    ("files", "measured"),
    [
        ({"src/a/x.py": "", "other.py": ""}, "--cov=src"),
        ({"a/__init__.py": "", "b/__init__.py": "", "tests/__init__.py": ""}, "--cov=a --cov=b"),
        ({"calc.py": "", "a/__init__.py": "", "setup.py": "", "conftest.py": ""}, "--cov=a --cov=calc"),
        ({"plain/x.py": "", "docs/conf.py": "", "build/x.py": ""}, "--cov=plain"),
        ({"a/__init__.py": "", "-rf.py": "", "not-a-name/__init__.py": ""}, "--cov=a"),
        ({"src/a/x.py": "", ".coveragerc": "[run]\nsource = a\n"}, "--cov"),
        ({"src/a/x.py": "", "pyproject.toml": "[tool.coverage.run]\nsource = ['a']"}, "--cov"),
        ({"src/a/x.py": "", "pytest.ini": "[pytest]\naddopts = --cov=a"}, ""),
        ({"src/a/x.py": "", "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['--cov']"}, ""),
        ({"src/a/x.py": "", "pytest.ini": "[pytest]\naddopts = --cov-report=term"}, "--cov=src"),
        ({}, "--cov"),
    ],
)
def test_the_measured_packages_follow_the_layout_unless_configured(
    tmp_path: Path, files: dict[str, str], measured: str
) -> None:
    gated = {"fixloop.toml": "[specialist.test-runner]\ncoverage_percent = 1\n"}
    written(tmp_path, {**TESTS, **gated, **files})

    command = commands_of(load_configuration(tmp_path))["test-runner"]["pytest"]

    middle = f" {measured} " if measured else " "
    assert command == (
        f"python -m pytest --junitxml={{junit}}{middle}--cov-report=json:{{coverage}} --cov-fail-under=0"
    )


@pytest.mark.parametrize(
    ("tox", "measured"),
    [
        ("", "--cov"),
        ("[testenv]\ncommands = coverage run -m pytest\n", "--cov"),
        ("[testenv]\ncommands = coverage run --source a -m pytest\n", "--cov=a --cov=old"),
        ("[testenv]\ncommands = pytest --cov={envsitepackagesdir}/a\n", "--cov=a --cov=old"),
    ],
)
@pytest.mark.proves("B68")
def test_a_gate_counts_files_that_never_run_only_if_the_project_names_what_is_measured(
    tmp_path: Path, tox: str, measured: str
) -> None:
    gate = "[tool.coverage.report]\nfail_under = 100"
    files = {"a/__init__.py": "", "old/__init__.py": "", "pyproject.toml": gate, "tox.ini": tox}

    command = commands_of(load_configuration(written(tmp_path, {**TESTS, **files})))["test-runner"]["pytest"]

    assert command == (
        f"python -m pytest --junitxml={{junit}} {measured} --cov-report=json:{{coverage}} --cov-fail-under=0"
    )


def test_mypy_keeps_to_the_files_of_its_configuration(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, "mypy.ini": "[mypy]\nfiles = src/shop\n"})

    assert commands_of(load_configuration(tmp_path))["code-quality"] == {"mypy": "python -m mypy --no-pretty"}


@pytest.mark.parametrize(
    ("files", "formatter"),
    [
        ({"pyproject.toml": "[tool.ruff]\nline-length = 90\n"}, None),
        ({"pyproject.toml": "[tool.ruff.lint]\n"}, None),
        ({"requirements.txt": "ruff\n"}, None),
        ({"pyproject.toml": "[tool.ruff.format]\n"}, "ruff format --check ."),
        ({"ruff.toml": "[format]\n"}, "ruff format --check ."),
        ({"pyproject.toml": "[tool.ruff]\n[tool.black]\n"}, "black --check ."),
        ({"pyproject.toml": "[tool.ruff.format]\n", "requirements.txt": "black"}, "ruff format --check ."),
        ({"Makefile": "fmt:\n\truff format src\n"}, "ruff format --check src"),
        ({"pyproject.toml": "[tool.ruff]\n[tool.yapf]\n"}, None),
    ],
)
def test_the_formatter_is_the_one_the_project_declares(
    tmp_path: Path, files: dict[str, str], formatter: str | None
) -> None:
    written(tmp_path, {**CODE, **TESTS, **files})

    commands = commands_of(load_configuration(tmp_path)).get("code-quality", {})

    assert (commands.get("format") or commands.get("black")) == formatter


@pytest.mark.parametrize(
    ("files", "options", "has_secrets"),
    [
        ({"requirements.txt": "bandit"}, "", True),
        ({"pyproject.toml": "[tool.bandit]\nexclude_dirs = ['x']"}, "-c pyproject.toml ", True),
        ({"pyproject.toml": "[tool.bandit]\nskips = ['B105']"}, "-c pyproject.toml ", False),
        ({".bandit": "[bandit]\nexclude = /x\n"}, "--ini .bandit ", True),
        ({".bandit": "[bandit]\ntests = B602\n"}, "--ini .bandit ", False),
        ({".bandit": "skips: [B602]\n"}, "-c .bandit ", False),
        ({"bandit.yaml": "tests: [B602]\n"}, "-c bandit.yaml ", False),
    ],
)
@pytest.mark.proves("U3")
def test_bandit_reads_the_settings_of_the_project(
    tmp_path: Path, files: dict[str, str], options: str, has_secrets: bool
) -> None:
    written(tmp_path, {**CODE, **files})

    commands = commands_of(load_configuration(tmp_path))["security"]

    assert commands["bandit"].startswith(f"bandit -q -r {options}--severity-level medium ")
    assert ("secrets" in commands) is has_secrets


def test_test_files_with_configured_names_are_found(tmp_path: Path) -> None:
    written(tmp_path, {"checks/check_x.py": "", "setup.cfg": "[tool:pytest]\npython_files = check_*.py\n"})

    assert list(commands_of(load_configuration(tmp_path))) == ["test-runner"]


@pytest.mark.parametrize(
    ("recipe", "calls"),
    [
        ("PURE=1 pytest -v tests", ["pytest PURE=1"]),
        ("PURE=1 pytest -v tests\n\tSLOW=1 PURE=1 pytest tests", ["pytest PURE=1", "pytest SLOW=1 PURE=1"]),
        ("pytest -v tests", []),
    ],
)
def test_pytest_runs_once_more_with_the_variables_that_the_project_sets(
    tmp_path: Path, recipe: str, calls: list[str]
) -> None:
    written(tmp_path, {**TESTS, "Makefile": f"test:\n\tpytest -v tests\n\t{recipe}\n"})

    found = commands_of(load_configuration(tmp_path))["test-runner"]

    assert list(found) == ["pytest", *calls]
    for name in calls:
        variables = name.removeprefix("pytest ")
        assert found[name] == f"env {variables} python -m pytest --junitxml={{junit}} tests"
