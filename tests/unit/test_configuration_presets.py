"""Which presets a project gets, by what lies in it."""

from pathlib import Path

import pytest

from fixloop.app_folder import app_folder
from fixloop.configuration.loading import load_configuration
from fixloop.configuration.presets import given_paths, paths_without_files
from fixloop.errors import UsageError
from fixloop.protocol.specialists import NAMES
from tests.unit.configuration_project import check_of, commands_of, written

CODE = {"src/shop/__init__.py": "", "src/shop/cart.py": "x = 1\n"}
TESTS = {"tests/unit/test_cart.py": "def test_x(): pass\n"}
TOOLS = {
    "pyproject.toml": '[dependency-groups]\ndev = ["pytest>=8", "Pytest_Cov", "ruff", "mypy[d]==1", "bandit ~=1"]\n'
}


@pytest.mark.proves("U1", "U2")
def test_each_specialist_has_a_file_of_presets() -> None:
    folder = app_folder() / "config" / "presets"

    assert {path.stem for path in folder.glob("*.toml")} == set(NAMES)


@pytest.mark.proves("U2", "U3", "K28")
def test_a_project_with_all_tools_gets_five_specialists_in_the_order_of_the_phases(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, **TESTS, **TOOLS, "tests/integration/test_all.py": ""})

    configuration = load_configuration(tmp_path)

    assert [entry.name for entry in configuration.specialists] == list(NAMES[:5])
    assert commands_of(configuration) == {
        "unit-test": {"pytest": "python -m pytest --junitxml={junit} --no-cov tests/unit"},
        "integration-test": {"pytest": "python -m pytest --junitxml={junit} --no-cov tests/integration"},
        "test-runner": {
            "pytest": "python -m pytest --junitxml={junit} --cov=src --cov-report=json:{coverage}"
            " --cov-fail-under=0"
        },
        "code-quality": {
            "ruff": "ruff check --output-format sarif --output-file {sarif} .",
            "format": "env RUFF_OUTPUT_FORMAT=concise ruff format --check .",
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
    assert check_of(configuration, "test-runner", "pytest").coverage_percent == 80
    assert check_of(configuration, "test-runner", "pytest").preset == "test-runner"
    assert configuration.detected_not_configured == ()


def test_each_preset_names_the_paths_it_is_given(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, **TESTS, **TOOLS})

    configuration = load_configuration(tmp_path)

    given = {c.name: given_paths(c) for entry in configuration.specialists[1:] for c in entry.checks}
    assert given.pop("pytest") == ()
    assert (given.pop("ruff"), given.pop("format")) == ((".",), (".",))
    assert given == dict.fromkeys(("mypy", "bandit", "secrets", "parse"), ("src",))
    assert given_paths(check_of(configuration, "unit-test", "pytest")) == ("tests/unit",)


def test_a_preset_whose_code_has_moved_away_is_told_from_one_that_found_nothing(tmp_path: Path) -> None:
    written(tmp_path, {"cart.py": "", "shop/__init__.py": "", "requirements.txt": "bandit"})
    check = check_of(load_configuration(tmp_path), "security", "bandit")
    before = paths_without_files(check, tmp_path)

    (tmp_path / "cart.py").rename(tmp_path / "basket.py")
    (tmp_path / "shop/__init__.py").unlink()

    assert before == ()
    assert paths_without_files(check, tmp_path) == ("shop", "cart.py")
    assert paths_without_files(check.model_copy(update={"preset": ""}), tmp_path) == ()


def test_a_project_without_tools_gets_only_what_its_tests_need(tmp_path: Path) -> None:
    written(tmp_path, {"calc.py": "", "test_calc.py": ""})

    configuration = load_configuration(tmp_path)

    assert commands_of(configuration) == {"test-runner": {"pytest": "python -m pytest --junitxml={junit}"}}
    assert configuration.detected_not_configured == (
        "coverage gate (test-runner: needs pytest-cov among the project's dependencies)",
    )


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
def test_where_no_preset_applies_nothing_passes(tmp_path: Path, files: dict[str, str]) -> None:
    written(tmp_path, files)

    with pytest.raises(
        UsageError, match=r"^nothing to check in .*; write a fixloop.toml \(`fixloop init`\)$"
    ):
        load_configuration(tmp_path)


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
    ("files", "importable", "has_gate"),
    [
        ({"pyproject.toml": "[tool.coverage.run]"}, None, True),
        ({".coveragerc": "[run]\n"}, None, True),
        ({"requirements.txt": "coverage\n"}, None, True),
        ({"requirements.txt": "coverage\n"}, False, False),
        ({"requirements.txt": "pytest-cov\n"}, False, True),
        ({"pytest.ini": "[pytest]\naddopts = -q --cov=src\n"}, False, True),
        ({}, True, True),
        ({}, None, False),
    ],
)
@pytest.mark.proves("A29", "B68")
def test_the_coverage_gate_needs_what_can_measure_it(
    tmp_path: Path, files: dict[str, str], importable: bool | None, has_gate: bool
) -> None:
    written(tmp_path, {**CODE, **TESTS, **files})
    answer = None if importable is None else {"pytest_cov": importable}.__getitem__

    configuration = load_configuration(tmp_path, importable=answer)

    gate = check_of(configuration, "test-runner", "pytest").coverage_percent
    assert gate == (80 if has_gate else None)
    assert bool(configuration.detected_not_configured) is not has_gate


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
def test_what_is_measured_follows_the_layout_unless_the_project_says_so(
    tmp_path: Path, files: dict[str, str], measured: str
) -> None:
    written(tmp_path, {**TESTS, "requirements.txt": "pytest-cov", **files})

    command = commands_of(load_configuration(tmp_path))["test-runner"]["pytest"]

    middle = f" {measured} " if measured else " "
    assert command == (
        f"python -m pytest --junitxml={{junit}}{middle}--cov-report=json:{{coverage}} --cov-fail-under=0"
    )


@pytest.mark.parametrize(
    ("files", "gate"),
    [
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 95.5"}, 95.5),
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 60"}, 80),
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 'much'"}, 80),
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = nan"}, 80),
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 1000"}, 100),
        ({"setup.cfg": "[coverage:report]\nfail_under = 90\n"}, 90),
        ({"tox.ini": "[pytest]\naddopts = --cov --cov-fail-under=85\n"}, 85),
    ],
)
@pytest.mark.proves("B68")
def test_a_project_that_asks_for_more_coverage_is_held_to_it(
    tmp_path: Path, files: dict[str, str], gate: float
) -> None:
    written(tmp_path, {**CODE, **TESTS, "requirements.txt": "pytest-cov", **files})

    assert check_of(load_configuration(tmp_path), "test-runner", "pytest").coverage_percent == gate


def test_mypy_keeps_to_the_files_of_its_own_configuration(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, "mypy.ini": "[mypy]\nfiles = src/shop\n"})

    assert commands_of(load_configuration(tmp_path))["code-quality"] == {"mypy": "python -m mypy --no-pretty"}


def test_another_formatter_stays_in_charge_and_is_named(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, "pyproject.toml": "[tool.ruff]\n[tool.black]\n"})

    configuration = load_configuration(tmp_path)

    assert list(commands_of(configuration)["code-quality"]) == ["ruff"]
    assert configuration.detected_not_configured == ("black (code-quality)",)


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


def test_test_files_of_another_name_are_found_where_pytest_is_told_of_them(tmp_path: Path) -> None:
    written(tmp_path, {"checks/check_x.py": "", "setup.cfg": "[tool:pytest]\npython_files = check_*.py\n"})

    assert list(commands_of(load_configuration(tmp_path))) == ["test-runner"]
