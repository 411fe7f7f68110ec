"""What can run here and what cannot, reported with the file it comes from and the remedy."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fixloop.configuration.installed import Installed
from fixloop.configuration.loader import load_configuration
from fixloop.configuration.model import Configuration
from fixloop.configuration.preflight import lines, preflight_of
from fixloop.errors import NotVerifiedError, UsageError
from fixloop.machine.interpreters import Interpreter
from tests.fixtures.configuration_project import (
    check_of,
    commands_of,
    executable,
    installed,
    unverified_of,
    written,
)

CODE = {"src/shop/__init__.py": "", "tests/test_shop.py": "def test_x(): pass\n"}
HOOKS = """
repos:
  - repo: https://example.org/ruff-pre-commit
    rev: v0.9.0
    hooks:
      - id: ruff
        args: [--fix, --select, F]
        exclude: ^docs/
      - id: black
"""


def loaded(directory: Path, here: Installed | None) -> Configuration:
    return load_configuration(directory, installed=here)


def test_tests_that_only_testpaths_names_run(tmp_path: Path) -> None:
    pyproject = '[tool.pytest.ini_options]\ntestpaths = ["test.py"]\n'
    written(tmp_path, {"slugify/__init__.py": "", "test.py": "", "pyproject.toml": pyproject})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    check = check_of(configuration, "test-runner", "pytest")
    assert check.command == ("python", "-m", "pytest", "--junitxml={junit}")
    assert check.why == "pyproject.toml: [tool.pytest.ini_options]: testpaths"


TEST = "def test_load():\n    pass\n"
SCRIPT = "import sys\nwhile sys.argv:\n    print(1)\n"


@pytest.mark.parametrize(
    ("code", "exit_code", "runs"),
    [
        (TEST, 0, True),
        (TEST, 2, True),
        (TEST, 5, False),
        ("from shop.cases import *\n", 0, True),
        (SCRIPT, 0, False),
        (SCRIPT, 2, False),
    ],
)
def test_where_names_are_ambiguous_pytest_decides_whether_there_are_tests(
    tmp_path: Path, code: str, exit_code: int, runs: bool
) -> None:
    written(tmp_path, {"src/shop/load_test.py": code, "ruff.toml": ""})
    here = installed(tmp_path, modules=("pytest",), programs=("ruff",))
    executable(Path(here.interpreter.path), f"#!/bin/sh\nexit {exit_code}\n")

    configuration = loaded(tmp_path, here)

    assert ("test-runner" in commands_of(configuration)) is runs
    assert configuration.unverified == ()


def test_a_missing_test_runner_blocks_and_other_missing_tools_are_reported(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, "pyproject.toml": "[tool.pytest]\n[tool.ruff]\n[tool.mypy]\n"})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("mypy",)))

    assert list(commands_of(configuration)) == ["code-quality"]
    assert unverified_of(configuration) == {"pytest": True, "ruff": False}
    pytest_, ruff = configuration.unverified
    assert (pytest_.reason, ruff.reason) == ("not installed in .venv", "neither in .venv nor on the PATH")
    assert ruff.remedy == ".venv/bin/python -m pip install ruff"


def test_a_project_whose_tools_are_all_missing_gets_the_remedy(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, "pyproject.toml": "[tool.pytest]\n"})

    with pytest.raises(NotVerifiedError, match=r"pytest \(not installed in .*pip install pytest") as raised:
        loaded(tmp_path, installed(tmp_path))

    assert raised.value.exit_code == 3


@pytest.mark.parametrize(
    "imports",
    [
        "import unittest",
        "import os, sys as system, unittest, json",
        "from twisted.trial.unittest import TestCase",
        "from twisted.trial import unittest",
    ],
)
def test_unittest_tests_run_where_pytest_is_neither_used_nor_installed(tmp_path: Path, imports: str) -> None:
    written(tmp_path, {"shop.py": "", "tests/test_shop.py": f"{imports}\n"})

    configuration = loaded(tmp_path, installed(tmp_path))

    assert commands_of(configuration) == {"test-runner": {"unittest": "python -m unittest discover -s tests"}}


def test_unittest_tests_are_found_by_their_names(tmp_path: Path) -> None:
    package = {
        "shop/__init__.py": "",
        "shop/tests/__init__.py": "",
        "shop/tests/shop_test.py": "import unittest\n",
    }
    written(tmp_path, package)

    configuration = loaded(tmp_path, installed(tmp_path))

    command = "python -m unittest discover -s . -p *_test.py"
    assert commands_of(configuration) == {"test-runner": {"unittest": command}}


def test_unittest_tests_run_where_pytest_is_installed_and_would_collect_none(tmp_path: Path) -> None:
    written(tmp_path, {"shop/__init__.py": "", "test.py": "import unittest\n"})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    command = "python -m unittest discover -s ."
    assert commands_of(configuration) == {"test-runner": {"unittest": command}}


CASE = "import unittest\n"


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        (
            {
                "Makefile": "test:\n\tpython -m unittest discover -s tests\n"
                "\tpython -m unittest discover -s pkg -t .\n",
                "pkg/__init__.py": "",
                "pkg/test_b.py": CASE,
            },
            ["python -m unittest discover -s tests", "python -m unittest discover -s pkg -t ."],
        ),
        ({"makefile": "test:\n\tpython3 -munittest\n", "tests/__init__.py": ""}, ["python -m unittest"]),
        (
            {"tox.ini": "[testenv]\ncommands =\n  coverage run -p -m unittest discover -s tests {posargs}\n"},
            ["python -m unittest discover -s tests"],
        ),
        (
            {"Makefile": "test:\n\tPYTHONPATH=src python -m unittest discover -v tests\n"},
            ["env PYTHONPATH=src python -m unittest discover -v tests"],
        ),
        ({"Makefile": "test:\n\t./runtests.py\n", "runtests.py": ""}, ["python ./runtests.py"]),
        ({"Makefile": "test: all\n\t./test1\n\tpython test2.py\n"}, ["make test"]),
        ({"Makefile": "test: all\n\t./test1 -v\n", "test1": "\x7fELF\0"}, ["make test"]),
        ({"Makefile": "test:\n\t./test1 -v\n", "test1": "#!/bin/sh\n"}, ["./test1 -v"]),
        (
            {"tox.ini": "[testenv]\ncommands = python -W once -m testtools.run tests {posargs}\n"},
            ["python -W once -m testtools.run tests"],
        ),
        (
            {
                "tox.ini": "[testenv]\ncommands =\n  lint: codespell tests\n  tests: trial --version\n"
                "  tests: coverage run {envbindir}/trial shop\n  tests: coverage run {envbindir}/trial more\n"
            },
            ["trial shop", "trial more"],
        ),
        (
            {
                "tox.ini": "[testenv]\ncommands =\n  !mp: coverage run nose9 -v\n  mp: coverage run nose9 -N 0\n"
                "  python latest.py\n  python -c 'import test'\n  pip install -e .[test]\n  python -m tests.run\n"
            },
            ["python -m tests.run"],
        ),
        (
            {
                "Makefile": "check:\n\t$(PYTHON) -m testtools.run $(ALL)\n",
                "tox.ini": "[testenv]\ncommands = python -m testtools.run tests\n",
            },
            ["python -m testtools.run tests"],
        ),
        (
            {
                "Makefile": "check:\n\tstubtest shop\n\tpython -m mypy.stubtest shop\n",
                "tox.ini": "[testenv]\ncommands = {envpython} -m unittest -v {posargs}\n",
                "tests/__init__.py": "",
            },
            ["python -m unittest -v"],
        ),
        (
            {
                "tox.ini": "[testenv]\ncommands = coverage run -m django test --settings=tests.settings {posargs}\n"
            },
            ["python -m django test --settings=tests.settings"],
        ),
        (
            {"Makefile": "test:\n\tdjango-admin test --settings=tests.settings\n"},
            ["django-admin test --settings=tests.settings"],
        ),
        (
            {
                "tox.ini": "[testenv]\ncommands =\n  sqlite: coverage run -a runtests.py {posargs}\n"
                "  pg: coverage run -a runtests.py --pg\n[testenv:lint]\ncommands = python test_lint.py\n"
            },
            ["python runtests.py"],
        ),
        (
            {"justfile": "test +FLAGS='':\n    django-admin test --settings=a.settings {{FLAGS}}\n"},
            ["django-admin test --settings=a.settings"],
        ),
        (
            {".justfile": "set shell := ['sh']\nexport A\ntest *args:\n  ./runtests.py {{ args }}\n"},
            ["python ./runtests.py"],
        ),
        (
            {"Makefile": "test:\n\tcd tests && coverage run --source=shop alltests.py -v\n"},
            ["env --chdir=tests python alltests.py -v"],
        ),
        (
            {
                "tox.ini": "[testenv]\nchangedir = {toxinidir}/tests\nsetenv = A=b\n"
                "commands = python -m unittest discover\n"
            },
            ["env --chdir=tests A=b python -m unittest discover"],
        ),
        (
            {"Makefile": "test:\n\tpytest\nlint:\n\t./test_lint.sh\n"},
            ["python -m unittest discover -s tests"],
        ),
    ],
)
def test_each_call_of_the_project_s_own_test_entry_is_a_check(
    tmp_path: Path, files: dict[str, str], commands: list[str]
) -> None:
    written(tmp_path, {"shop.py": "", "tests/test_shop.py": CASE, **files})
    here = installed(
        tmp_path, modules=("django", "testtools", "tests"), programs=("trial", "django-admin", "make")
    )

    configuration = loaded(tmp_path, here)

    assert list(commands_of(configuration)["test-runner"].values()) == commands
    assert configuration.unverified == ()


PART = "[testenv]\ncommands =\n    pytest tests/plugin\n    python -m testtools.run {posargs:discover}\n"


@pytest.mark.parametrize(
    ("files", "others", "unverified"),
    [
        ({"tests/test_shop.py": CASE, "tox.ini": PART}, ["python -m testtools.run discover"], {}),
        (
            {"tests/test_shop.py": CASE, "tox.ini": f"{PART[:-1]} $X"},
            [],
            {"python -m testtools.run discover $X": True},
        ),
        ({"tox.ini": PART}, [], {}),
        ({"tests/test_shop.py": CASE, "tox.ini": PART.replace("/plugin", "")}, [], {}),
    ],
)
def test_where_the_project_s_pytest_runs_a_part_of_the_tests_its_other_runner_is_a_check_too(
    tmp_path: Path, files: dict[str, str], others: list[str], unverified: dict[str, bool]
) -> None:
    written(tmp_path, {"shop.py": "", "tests/plugin/test_plugin.py": "def test_x(shop): pass\n", **files})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest", "testtools")))

    assert list(commands_of(configuration)["test-runner"].values())[1:] == others
    assert unverified_of(configuration) == unverified


OWN = {"Makefile": "test:\n\tpoetry run ward\n"}


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (OWN, "ward"),
        ({"tox.ini": "[testenv]\ncommands = coverage run -m nose2 -v\n"}, "python -m nose2 -v"),
        ({"tox.ini": "[testenv]\ncommands = trial shop\n"}, "trial shop"),
        ({"Makefile": "test:\n\tpython run_tests.py\n", "run_tests.py": ""}, "python run_tests.py"),
        ({"Makefile": "test:\n\tpython run_tests.py\n", "run_tests.py": "import pytest\n"}, ""),
        ({"Makefile": "test:\n\tpython -m tests\n", "tests/__main__.py": "pytest.main()\n"}, ""),
        ({"Makefile": "test:\n\t./test.sh\n", "test.sh": ""}, ""),
        ({"Makefile": "test:\n\tpython -m unittest\n"}, ""),
        (
            {
                "Makefile": "test:\n\tpython shop_test.py\n",
                "shop_test.py": "def test_x(): pass\nunittest.main()\n",
            },
            "",
        ),
        ({"Makefile": "test:\n\tpython -m missing_test\n"}, ""),
        ({"Makefile": "test:\n\tpython -m ward $(ALL)\n"}, ""),
        ({**OWN, "tox.ini": "[testenv]\ncommands = pytest\n"}, ""),
        ({**OWN, "tox.ini": "[testenv]\ncommands = {env:RUN:py.test} tests\n"}, ""),
        ({**OWN, "requirements-dev.txt": "pytest\n"}, ""),
        ({**OWN, "pytest.ini": "[pytest]\n"}, ""),
    ],
)
def test_what_the_project_calls_decides_over_a_pytest_that_is_merely_installed(
    tmp_path: Path, files: dict[str, str], command: str
) -> None:
    written(tmp_path, {"shop.py": "", "tests/test_shop.py": "def test_x(): pass\n", **files})
    here = installed(tmp_path, modules=("pytest", "ward", "nose2"), programs=("trial", "ward"))

    (found,) = commands_of(loaded(tmp_path, here))["test-runner"].values()

    assert found == (command or "python -m pytest --junitxml={junit}")


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"tox.ini": "[testenv]\ncommands = python -m tests {posargs}\n"}, "python -m tests"),
        ({"Makefile": "test:\n\tpython -m unittest\n"}, "python -m unittest"),
        ({}, ""),
        ({"Makefile": "test:\n\tpytest\n\tpython -m unittest\n"}, ""),
        ({"Makefile": "test:\n\tpython -m unittest\n", "requirements.txt": "pytest\n"}, ""),
        ({"Makefile": "test:\n\tpython -m unittest\n", "tests/test_b.py": "def test_x(): pass\n"}, ""),
    ],
)
def test_what_the_project_calls_is_run_where_pytest_is_only_configured(
    tmp_path: Path, files: dict[str, str], command: str
) -> None:
    package = {"tests/__init__.py": "", "tests/__main__.py": MAIN, "tests/test_shop.py": CASE}
    written(tmp_path, {"shop.py": "", "pytest.ini": "[pytest]\n", "ruff.toml": "", **package, **files})

    found = loaded(tmp_path, installed(tmp_path, programs=("ruff",)))

    assert [*commands_of(found).get("test-runner", {}).values()] == [command] * bool(command)


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"tests/test_a.py": CASE, "tests/unit/test_b.py": CASE}, ["-s tests", "-s tests/unit"]),
        ({"regex/__init__.py": "", "regex/tests/test_regex.py": CASE}, ["-s regex/tests"]),
        ({"tests.py": CASE}, ["-s ."]),
        ({"bits/__init__.py": "", "bits/test_bits.py": CASE, "test.py": CASE}, ["-s ."]),
        ({"tests/testcart.py": CASE}, ["-s tests"]),
        ({"tests/__init__.py": "", "tests/test_a.py": CASE}, ["-s tests -t ."]),
        ({"src/shop/__init__.py": "", "src/shop/test/test_a.py": CASE}, ["-s src/shop/test"]),
        ({"tests/test_a.py": CASE, "tests/b_test.py": CASE}, ["-s tests -p *_test.py", "-s tests"]),
        (
            {
                "tests/test_a.py": CASE,
                "pkg/__init__.py": "",
                "pkg/test/__init__.py": "",
                "pkg/test/test_f.py": CASE,
            },
            ["-s .", "-s tests"],
        ),
    ],
)
def test_without_a_test_entry_discovery_reaches_every_test_file(
    tmp_path: Path, files: dict[str, str], commands: list[str]
) -> None:
    configuration = loaded(written(tmp_path, files), installed(tmp_path))

    told = commands_of(configuration)["test-runner"].values()
    assert [command.removeprefix("python -m unittest discover ") for command in told] == commands
    assert configuration.unverified == ()


@pytest.mark.parametrize(
    ("files", "name", "blocks"),
    [
        (
            {"Makefile": "test:\n\tpython -m unittest discover -s tests\n", "pkg/test_f.py": CASE},
            "pkg/test_f.py",
            False,
        ),
        ({"tests/test_b-c.py": CASE}, "tests/test_b-c.py", True),
        ({"tests/test_b.py": "def test_b(): pass\n"}, "tests/test_b.py", True),
        ({"tests/data/test_b.py": CASE}, "tests/data/test_b.py", False),
    ],
)
def test_a_test_file_that_no_check_reaches_is_named(
    tmp_path: Path, files: dict[str, str], name: str, blocks: bool
) -> None:
    written(tmp_path, {"tests/test_shop.py": CASE, **files})

    configuration = loaded(tmp_path, installed(tmp_path))

    assert commands_of(configuration) == {"test-runner": {"unittest": "python -m unittest discover -s tests"}}
    assert unverified_of(configuration) == {name: blocks}


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {"Makefile": "check:\n\t$(PYTHON) -m testtools.run $(ALL)\n"},
            r"\$\(PYTHON\) -m testtools.run \$\(ALL\) ",
        ),
        (
            {"Makefile": "test:\n\tcd tests && python alltests.py $(X)\n"},
            r"cd tests && python alltests.py \$",
        ),
        ({"Makefile": "test:\n\tcd ../tests && python alltests.py\n"}, "cd ../tests && python alltests.py "),
        (
            {
                "tox.ini": "[testenv]\nchangedir = tests\nsetenv = A=b\ncommands = python alltests.py {env:X}\n"
            },
            "cd tests && A=b python all",
        ),
        ({"tox.ini": "[testenv]\ncommands = trial shop\n"}, r"trial \(neither in .venv nor on the PATH\)"),
    ],
)
def test_a_runner_that_cannot_be_started_is_named_and_not_replaced(
    tmp_path: Path, files: dict[str, str], told: str
) -> None:
    written(tmp_path, {"tests/test_shop.py": CASE, **files})

    with pytest.raises(NotVerifiedError, match=told):
        loaded(tmp_path, installed(tmp_path))


def test_test_files_among_the_code_are_named_if_nothing_says_how_they_run(tmp_path: Path) -> None:
    written(tmp_path, {"bits/__init__.py": "", "bits/test_bits.py": CASE})

    with pytest.raises(
        NotVerifiedError, match=r"bits/test_bits.py .nothing says how such test files are run"
    ):
        loaded(tmp_path, installed(tmp_path))


SMOKE = "from unittest import TestCase\n\nclass T(TestCase):\n    async def test_a(self): pass\n"
MAIN = "import unittest\n\nunittest.main(module='bits.tests')\n"


@pytest.mark.parametrize("modules", [(), ("ruff",)])
def test_files_with_cases_in_a_test_folder_are_named_whatever_their_names(
    tmp_path: Path, modules: tuple[str, ...]
) -> None:
    written(tmp_path, {"bits/__init__.py": "", "bits/tests/smoke.py": SMOKE, "bits/tests/data/a.py": SMOKE})

    with pytest.raises(
        NotVerifiedError, match=r"bits/tests/smoke.py .nothing says how such test files are run"
    ):
        loaded(tmp_path, installed(tmp_path, modules=modules))


@pytest.mark.parametrize("root", ["", "src/"])
def test_a_package_of_tests_that_can_be_run_is_run(tmp_path: Path, root: str) -> None:
    files = {"__init__.py": "from .smoke import T\n", "__main__.py": MAIN, "smoke.py": SMOKE}
    written(
        tmp_path,
        {f"{root}bits/__init__.py": "", **{f"{root}bits/tests/{name}": text for name, text in files.items()}},
    )

    configuration = loaded(tmp_path, installed(tmp_path))

    assert commands_of(configuration) == {"test-runner": {"bits.tests": "python -m bits.tests"}}
    assert configuration.unverified == ()


def test_a_package_of_tests_is_not_taken_for_all_tests(tmp_path: Path) -> None:
    written(tmp_path, {"tests/a/__main__.py": MAIN, "tests/a/smoke.py": SMOKE, "tests/b/smoke.py": SMOKE})

    with pytest.raises(NotVerifiedError, match=r"tests/a/smoke.py, tests/b/smoke.py .nothing says how"):
        loaded(tmp_path, installed(tmp_path))


MANAGE = "from django.core.management import execute_from_command_line\n"
MODELS = "from django.test import TestCase\n\nclass T(TestCase):\n    def test_a(self): pass\n"


@pytest.mark.parametrize("modules", [("django",), ("django", "pytest")])
@pytest.mark.parametrize("file", ["orders/tests.py", "tests/test_orders.py"])
def test_a_django_project_without_pytest_s_settings_is_tested_by_its_manage_py(
    tmp_path: Path, file: str, modules: tuple[str, ...]
) -> None:
    written(tmp_path, {"manage.py": MANAGE, "orders/__init__.py": "", file: MODELS})

    configuration = loaded(tmp_path, installed(tmp_path, modules=modules))

    assert commands_of(configuration) == {"test-runner": {"manage.py": "python manage.py test"}}
    assert configuration.unverified == ()


@pytest.mark.parametrize(
    "files", [{"pytest.ini": "[pytest]\n"}, {"tests/test_orders.py": "def test_a(): pass\n"}]
)
def test_a_django_project_with_tests_for_pytest_is_tested_by_pytest(
    tmp_path: Path, files: dict[str, str]
) -> None:
    written(tmp_path, {"manage.py": MANAGE, "tests/test_models.py": MODELS, **files})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("django", "pytest")))

    assert list(commands_of(configuration)["test-runner"]) == ["pytest"]


def test_a_runner_of_another_language_is_no_check_of_python(tmp_path: Path) -> None:
    files = {"go.mod": "module example.org/shop\n", "Makefile": "test:\n\tgotestsum\n", "tool.py": ""}

    configuration = loaded(written(tmp_path, files), installed(tmp_path, programs=("go", "gotestsum")))

    assert list(commands_of(configuration)) == ["code-quality"]


@pytest.mark.parametrize("called", ["-m bits.tests", "-m unittest bits.tests.smoke"])
def test_tests_with_unusual_names_run_by_the_project_s_command(tmp_path: Path, called: str) -> None:
    files = {"bits/tests/__main__.py": "import unittest\nunittest.main()\n", "bits/tests/smoke.py": CASE}
    package = {"bits/__init__.py": "", "bits/tests/__init__.py": "", **files}
    written(tmp_path, {**package, "makefile": f"PKG:=bits\ntest:\n\tpython -m coverage run {called}\n"})

    configuration = loaded(tmp_path, installed(tmp_path))

    assert list(commands_of(configuration)["test-runner"].values()) == [f"python {called}"]


def test_in_strict_mode_every_missing_tool_blocks(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, "ruff.toml": "", "fixloop.toml": "strict = true\n"})

    assert unverified_of(loaded(tmp_path, installed(tmp_path, modules=("pytest",)))) == {"ruff": True}


@pytest.mark.parametrize(("optional", "blocks"), [("", True), ("optional = true\n", False)])
def test_a_missing_tool_of_the_file_blocks_unless_it_is_optional(
    tmp_path: Path, optional: str, blocks: bool
) -> None:
    text = (
        f'[specialist.code-quality]\ncommand = "env A=1 ruff check"\n{optional}'
        '[specialist.test-runner]\ncommand = "python -m pytest"\n'
    )
    written(tmp_path, {**CODE, "fixloop.toml": text})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    assert list(commands_of(configuration)) == ["test-runner"]
    assert unverified_of(configuration) == {"ruff": blocks}
    assert configuration.unverified[0].reason == "neither in .venv nor on the PATH"


def test_tools_that_setup_will_install_are_not_reported_as_missing(tmp_path: Path) -> None:
    text = '[workspace]\nsetup = "uv sync"\n[specialist.test-runner]\ncommand = "python -m pytest"\n'
    written(tmp_path, {**CODE, "fixloop.toml": text})

    configuration = loaded(tmp_path, installed(tmp_path))

    assert list(commands_of(configuration)) == ["test-runner"]
    assert configuration.unverified == ()


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"tox.ini": "[testenv:lint]\ncommands = ruff check {toxinidir}/src --fix\n"}, "src"),
        ({"pyproject.toml": "[tool.tox.env.lint]\ncommands = [['ruff', 'check', 'src']]\n"}, "src"),
        (
            {"noxfile.py": "def lint(session):\n    session.run('ruff', 'check', 'src', *session.posargs)\n"},
            "src",
        ),
        ({"Makefile": "CODE = src tests\nlint:\n\t@uv run ruff check $(CODE)\n"}, "src tests"),
        (
            {".github/workflows/ci.yml": "jobs:\n  a:\n    steps:\n    - run: |\n        ruff check src\n"},
            "src",
        ),
        ({"Makefile": "lint:\n\truff check nowhere\n", "ruff.toml": ""}, "."),
        ({"Makefile": "lint:\n\tcd src && ruff check $(X)\n", "ruff.toml": ""}, "."),
        ({".pre-commit-config.yaml": HOOKS, "docs/conf.py": ""}, "--select F --extend-exclude docs ."),
        ({".pre-commit-config.yaml": "repos: [", "ruff.toml": ""}, "."),
    ],
)
def test_the_scope_that_the_project_gives_its_linter_wins(
    tmp_path: Path, files: dict[str, str], command: str
) -> None:
    written(tmp_path, {**CODE, **files})

    ruff = check_of(loaded(tmp_path, None), "code-quality", "ruff")

    assert " ".join(ruff.command) == (
        f"ruff check --no-fix --output-format sarif --output-file {{sarif}} {command}"
    )
    assert ruff.why.startswith(tuple(files))


def test_a_formatter_is_detected_in_the_hooks(tmp_path: Path) -> None:
    files = {".pre-commit-config.yaml": HOOKS, "pyproject.toml": "[tool.ruff]\n"}

    configuration = loaded(written(tmp_path, {**CODE, **files}), None)

    black = check_of(configuration, "code-quality", "black")
    assert (black.command, black.why) == (("black", "--check", "."), ".pre-commit-config.yaml: black")
    assert "format" not in commands_of(configuration)["code-quality"]


def test_a_tool_comes_from_an_environment_that_tox_has_made(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, "ruff.toml": ""})
    lent = executable(tmp_path / ".tox" / "lint" / "bin" / "ruff")

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    assert check_of(configuration, "code-quality", "ruff").command[:2] == (str(lent), "check")
    assert configuration.unverified == ()


def test_a_tool_comes_from_the_environment_of_its_hook_where_that_is_installed(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, ".pre-commit-config.yaml": HOOKS})
    here = installed(tmp_path, modules=("pytest",))
    cache = tmp_path / "home" / ".cache" / "pre-commit"
    lent = executable(cache / "repo1" / "py_env-python3" / "bin" / "ruff")
    (cache / "repo1" / "py_env-python3" / ".install_state_v2").touch()
    with closing(sqlite3.connect(cache / "db.db")) as database, database:
        database.execute("CREATE TABLE repos (repo TEXT, ref TEXT, path TEXT)")
        row = ("https://example.org/ruff-pre-commit", "v0.9.0", str(cache / "repo1"))
        database.execute("INSERT INTO repos VALUES (?, ?, ?)", row)

    configuration = loaded(tmp_path, here)

    assert check_of(configuration, "code-quality", "ruff").command[0] == str(lent)
    assert unverified_of(configuration) == {"black": False}


@pytest.mark.parametrize(
    ("files", "remedy"),
    [
        ({"uv.lock": ""}, "uv add --dev ruff"),
        (
            {"uv.lock": "", "pyproject.toml": "[dependency-groups]\ndev = ['ruff']\n"},
            "uv sync --all-groups --all-extras",
        ),
        ({"poetry.lock": ""}, "poetry add --group dev ruff"),
        ({".venv/bin/pip": ""}, ".venv/bin/pip install ruff"),
    ],
)
def test_the_remedy_is_the_command_of_this_project(
    tmp_path: Path, files: dict[str, str], remedy: str
) -> None:
    written(tmp_path, {**CODE, "ruff.toml": "", **files})

    (entry,) = loaded(tmp_path, installed(tmp_path, modules=("pytest",))).unverified

    assert entry.remedy == remedy


def test_the_interpreter_is_queried_once_for_all_tools(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, "pyproject.toml": "[tool.mypy]\n[tool.coverage.report]\nfail_under = 3\n"})
    asked: list[object] = []
    here = installed(tmp_path, modules=("pytest", "mypy", "pytest_cov"))

    def ask(*question: object) -> frozenset[str]:
        asked.append(question)
        return frozenset({"pytest", "mypy", "pytest_cov"})

    loaded(tmp_path, Installed(here.interpreter, tmp_path, tmp_path, here.variables, ask=ask))

    assert len(asked) == 1


def test_the_table_has_command_reason_need_and_omitted_checks(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, "ruff.toml": ""})
    here = installed(tmp_path, modules=("pytest",))

    assert lines(preflight_of(loaded(tmp_path, here), tmp_path, here)) == [
        f"checks in {tmp_path} with {tmp_path}/.venv/bin/python:",
        "  test-runner: pytest",
        "    python -m pytest '--junitxml={junit}'",
        "    because of tests/test_shop.py; needs pytest from .venv",
        "not run here:",
        "  code-quality: ruff (neither in .venv nor on the PATH): .venv/bin/python -m pip install ruff",
    ]


def test_in_a_folder_of_several_projects_each_is_suggested(tmp_path: Path) -> None:
    written(
        tmp_path, {"one/pyproject.toml": "", "packages/two/setup.py": "", "node_modules/x/package.json": ""}
    )

    with pytest.raises(UsageError, match=r"`fixloop run one`: one, packages/two"):
        loaded(tmp_path, installed(tmp_path))


TESTED = '{"scripts": {"test": "node --test"}}'
FULL_STACK = {
    "backend/app/main.py": "def one() -> int:\n    return 1\n",
    "backend/tests/test_main.py": "from app.main import one\n\n\ndef test_one() -> None:\n    assert one() == 1\n",
}


ROOT = {"test_root.py": "def test_a(): pass\n", "pyproject.toml": "[tool.ruff]\n", "package.json": "{}"}


@pytest.mark.parametrize("manifest", ["pyproject.toml", "requirements.txt", "README.md"])
def test_tests_of_a_project_inside_find_its_modules_as_from_its_folder(tmp_path: Path, manifest: str) -> None:
    written(tmp_path, {**FULL_STACK, f"backend/{manifest}": "", **ROOT})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    tests = commands_of(configuration)["test-runner"]
    inside = "python -m pytest --junitxml={junit} --rootdir=. -o pythonpath=backend backend"
    assert [tests["pytest backend"], tests["pytest"].rpartition(" ")[2]] == [inside, "--ignore=backend"]
    assert list(tests) == ["pytest backend", "pytest"]


@pytest.mark.parametrize(
    "job",
    [
        "defaults: {run: {working-directory: backend}}\njobs: {t: {steps: [{run: pytest}]}}",
        "jobs: {t: {defaults: {run: {working-directory: backend}}, steps: [{run: pytest}]}}",
        "jobs: {t: {steps: [{run: pytest, working-directory: backend}]}}",
    ],
)
def test_what_ci_runs_in_another_folder_is_no_command_for_all_tests(tmp_path: Path, job: str) -> None:
    written(tmp_path, {**FULL_STACK, ".github/workflows/ci.yml": job})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    assert list(commands_of(configuration)["test-runner"]) == ["pytest backend"]


@pytest.mark.parametrize(("called", "given"), [("tests docs", " tests docs"), ("docs", ""), ("-x", "")])
def test_a_call_that_names_more_folders_than_the_settings_is_used(
    tmp_path: Path, called: str, given: str
) -> None:
    tests = {"tests/test_shop.py": "def test_a(): pass\n", "docs/test_docs.py": "def test_b(): pass\n"}
    tox = f"[testenv]\ncommands =\n    pytest --cov=shop \\\n        {{posargs: {called}}}\n"
    settings = '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
    written(tmp_path, {**tests, "tox.ini": tox, "pyproject.toml": settings})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    command = f"python -m pytest --junitxml={{junit}}{given}"
    assert commands_of(configuration) == {"test-runner": {"pytest": command}}


SCRIPT = "import sys\n\nprint('calls the service')\nsys.exit(1)\n"


def test_a_script_that_is_called_like_a_test_is_not_run_while_pytest_collects(tmp_path: Path) -> None:
    tests = {"tests/test_shop.py": "def test_a(): pass\n", "tests/test_empty.py": ""}
    written(tmp_path, {**tests, "test_service.py": SCRIPT, "tools/load_test.py": SCRIPT})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    command = "python -m pytest --junitxml={junit} --ignore=test_service.py --ignore=tools/load_test.py"
    assert commands_of(configuration) == {"test-runner": {"pytest": command}}


@pytest.mark.parametrize(
    ("called", "declared"), [("", "pytest"), ("pytest --cov", ""), ("pytest x", "pytest")]
)
def test_where_pytest_finds_nothing_by_its_own_names_it_is_given_the_files_of_tests(
    tmp_path: Path, called: str, declared: str
) -> None:
    files = {"shop/tests.py": "def test_a():\n    pass\n", "shop/cart/tests.py": "", "shop/test.py": SCRIPT}
    others = {"requirements-tests.txt": f"{declared}\n", "Makefile": f"test:\n\t{called}\n"}
    written(tmp_path, {**files, **others, "setup.py": "setup()\n"})
    here = installed(tmp_path, modules=("pytest",))
    executable(Path(here.interpreter.path), "#!/bin/sh\nexit 5\n")

    configuration = loaded(tmp_path, here)

    command = "python -m pytest --junitxml={junit} shop/tests.py"
    assert commands_of(configuration) == {"test-runner": {"pytest": command}}
    assert configuration.unverified == ()


@pytest.mark.parametrize(
    "told", ["testpaths = ['tests']", "python_files = ['test_*.py']", "addopts = '--ignore=tools'"]
)
def test_scripts_alone_are_no_tests_and_settings_say_what_is_run(tmp_path: Path, told: str) -> None:
    here = installed(tmp_path, modules=("pytest",))
    written(tmp_path, {"test_service.py": SCRIPT, "ruff.toml": ""})
    with pytest.raises(NotVerifiedError, match="ruff"):
        loaded(tmp_path, here)

    settings = f"[tool.pytest.ini_options]\n{told}\n"
    written(tmp_path, {"pyproject.toml": settings, "tests/test_shop.py": "def test_a(): pass\n"})

    command = "python -m pytest --junitxml={junit}"
    assert commands_of(loaded(tmp_path, here)) == {"test-runner": {"pytest": command}}


@pytest.mark.parametrize(
    "text",
    [
        "from hypothesis.stateful import run\nfrom shop import Machine\n\nTestShop = Machine.TestCase\n",
        "from shop.checks import TestShop\n",
        "from shop.checks import (\n    Other,\n    test_pay\n)\n",
        "from shop.checks import *\n",
        "import shop\n\nglobals().update(shop.checks())\n",
        "if True:\n    async def test_a(): pass\n",
    ],
)
def test_a_file_whose_tests_come_from_elsewhere_is_no_script(tmp_path: Path, text: str) -> None:
    written(tmp_path, {"tests/test_a.py": "def test_a(): pass\n", "test_shop.py": text})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    assert "--ignore" not in str(commands_of(configuration))


def test_a_folder_with_a_space_is_one_folder_for_pytest(tmp_path: Path) -> None:
    written(tmp_path, {path.replace("backend", "back end"): text for path, text in FULL_STACK.items()})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    (check,) = configuration.specialist("test-runner").checks
    assert check.command[-3:] == ("-o", "pythonpath='back end'", "back end")


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": "[project]\nname = 'shop'\n"},
        {"setup.cfg": "[metadata]\nname = shop\n"},
        {"app/main.py": ""},
        {"backend/pytest.ini": "[pytest]\npythonpath = .\n"},
        {"pytest.ini": "[pytest]\n"},
        {"backend/tests/test_main.py": "from backend.app.main import one\n\n\ndef test_one(): one()\n"},
    ],
)
def test_a_module_is_not_looked_for_where_the_project_says_how_or_it_is_found(
    tmp_path: Path, files: dict[str, str]
) -> None:
    written(tmp_path, FULL_STACK | files)

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    assert "pythonpath" not in str(commands_of(configuration))


@pytest.mark.parametrize("files", [{}, {"pyproject.toml": "[project]\nname = 'shop'\n"}])
@pytest.mark.parametrize(
    "project", [{"package.json": TESTED}, {"pom.xml": ""}, {"gradlew": "", "build.gradle": ""}]
)
def test_a_project_of_another_language_inside_is_not_verified_from_above(
    tmp_path: Path, files: dict[str, str], project: dict[str, str]
) -> None:
    inside = {
        "tools/package.json": "{}",
        "docs/package.json": TESTED,
        "lib/CMakeLists.txt": "enable_testing()",
    }
    inside |= {f"frontend/{name}": text for name, text in project.items()}
    written(tmp_path, FULL_STACK | files | inside)

    (entry,) = loaded(tmp_path, installed(tmp_path, modules=("pytest",))).unverified

    assert (entry.name, entry.blocks) == ("frontend", False)
    assert entry.reason == "a project of its own: `fixloop run frontend`"


def test_linters_that_only_a_package_inside_uses_are_named(tmp_path: Path) -> None:
    package = "[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\n"
    files = {f"packages/{name}/src/{name}.py": "" for name in ("one", "two")}
    files |= {f"packages/{name}/test_{name}.py": TEST for name in ("one", "two")}
    files |= {"packages/one/pyproject.toml": package, "packages/one/.flake8": "", "tools.py": ""}
    files |= {"packages/six/pyproject.toml": "[tool.ruff]\n[tool.black]\n", "packages/six/six.py": ""}
    files |= {"packages/two/pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n[tool.black]\n"}
    here = installed(tmp_path, modules=("pytest", "mypy"), programs=("ruff",))
    written(tmp_path, files)

    apart = loaded(tmp_path, here).unverified
    written(tmp_path, {"pyproject.toml": "[tool.ruff]\n[tool.mypy]\nfiles = ['packages']\n"})
    together = loaded(tmp_path, here).unverified

    assert [each.name for each in apart] == [
        "ruff, mypy, flake8 of packages/one",
        "ruff, black of packages/six and 1 more",
    ]
    assert [each.name for each in together] == ["flake8 of packages/one", "black of packages/six and 1 more"]
    assert (apart[0].reason, apart[0].blocks) == ("a project of its own: `fixloop run packages/one`", False)


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"package.json": '{"workspaces": ["packages/*"]}'}, "npm test --workspaces --if-present"),
        (
            {"package.json": "{}", "pnpm-lock.yaml": "", "pnpm-workspace.yaml": "packages: ['packages/*']\n"},
            "pnpm --recursive --if-present test",
        ),
    ],
)
def test_the_packages_of_a_workspace_are_tested_without_a_script_at_its_root(
    tmp_path: Path, files: dict[str, str], command: str
) -> None:
    written(tmp_path, {**files, "packages/one/package.json": TESTED, "node_modules/.keep": ""})

    configuration = loaded(tmp_path, installed(tmp_path, programs=("npm", "pnpm", "node")))

    assert commands_of(configuration) == {"test-runner": {command: command}}
    assert configuration.unverified == ()


@pytest.mark.parametrize("package", ["{}", '{"workspaces": ["packages/*"], "scripts": {"test": "exit 1"}}'])
def test_a_workspace_s_packages_are_left_to_its_own_script(tmp_path: Path, package: str) -> None:
    written(tmp_path, {"package.json": package, "packages/one/package.json": TESTED, "index.js": ""})
    here = installed(tmp_path, programs=("npm", "node"))

    if package == "{}":
        with pytest.raises(UsageError, match=r"`fixloop run packages/one`"):
            loaded(tmp_path, here)
    else:
        assert commands_of(loaded(tmp_path, here)) == {"test-runner": {"npm test": "npm run test"}}


@pytest.mark.parametrize(
    ("makefile", "target"),
    [
        ("all: a\n\ncheck: all\n\t./a\n", "check"),
        ("check:\n\t./a --slow\n\ntest : a\n\t./a\n", "test"),
        ("test := no\nall:\n\tcc a.c\n", ""),
    ],
)
def test_tests_in_an_unknown_language_are_run_by_the_makefile(
    tmp_path: Path, makefile: str, target: str
) -> None:
    written(tmp_path, {"Makefile": makefile, "a.c": "", ".editorconfig": "", "ruff.toml": "", "tool.py": ""})

    configuration = loaded(tmp_path, installed(tmp_path, programs=("make", "ruff")))

    tests = commands_of(configuration).get("test-runner", {})
    assert tests == ({f"make {target}": f"make {target}"} if target else {})


def test_where_make_is_missing_its_tests_block_a_pass(tmp_path: Path) -> None:
    written(tmp_path, {"Makefile": "test:\n\t./a\n", "ruff.toml": "", "tool.py": ""})

    (entry,) = loaded(tmp_path, installed(tmp_path, programs=("ruff",))).unverified

    assert (entry.name, entry.blocks) == ("make test", True)


DJANGO = "DJANGO_SETTINGS_MODULE"


@pytest.mark.parametrize(
    "files",
    [
        {
            "Makefile": f"test:\n\tPYTHONPATH=. COVERAGE_FILE=c {DJANGO}=tests.settings \\\n"
            "\t\tpytest $${ARGS:-tests}\n"
        },
        {
            "tox.ini": f"[testenv]\nsetenv =\n  {DJANGO} = {{env:S:tests.settings}}\n  PYTHONPATH = .\n"
            "commands = pytest\n"
        },
        {
            "tox.ini": f"[testenv]\nsetenv =\n  {DJANGO}=tests.settings\n  py39: OLD = 1\n  A = {{envname}}\n"
            "[testenv:x]\nsetenv =\n  {[testenv]setenv}\n  SLOW = 1\ncommands = pytest {posargs}\n"
            "[testenv:y]\ncommands = pytest\n"
        },
        {
            "tox.toml": f'[env_run_base]\nset_env = {{ {DJANGO} = "tests.settings" }}\ncommands = [["pytest"]]\n'
        },
        {
            "noxfile.py": "def tests(session):\n"
            f"    session.run('pytest', env={{'{DJANGO}': 'tests.settings', **more}})\n"
        },
        {
            "pyproject.toml": f'[tool.hatch.envs.test.env-vars]\n{DJANGO} = "tests.settings"\n'
            '[tool.hatch.envs.test.scripts]\nall = "pytest"\n'
        },
        {
            "pyproject.toml": "[tool.pdm.scripts]\n"
            f'test = {{ cmd = "pytest", env = {{ {DJANGO} = "tests.settings" }} }}\n'
        },
    ],
)
def test_pytest_gets_the_variables_with_which_the_project_always_calls_it(
    tmp_path: Path, files: dict[str, str]
) -> None:
    written(tmp_path, {"shop.py": "", "tests/test_shop.py": "import pytest\n", **files})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    (command,) = commands_of(configuration)["test-runner"].values()
    assert command.startswith(f"env {DJANGO}=tests.settings python -m pytest --junitxml")


def test_pytest_gets_no_variable_without_which_the_project_calls_it_too(tmp_path: Path) -> None:
    calls = {"tox.ini": "[testenv]\nsetenv = A = 1\ncommands = pytest\n", "Makefile": "test:\n\tpytest\n"}
    written(tmp_path, {"shop.py": "", "tests/test_shop.py": "import pytest\n", **calls})

    configuration = loaded(tmp_path, installed(tmp_path, modules=("pytest",)))

    assert commands_of(configuration)["test-runner"] == {"pytest": "python -m pytest --junitxml={junit}"}


def test_where_nothing_can_be_checked_the_projects_inside_are_suggested(tmp_path: Path) -> None:
    written(
        tmp_path, {"shop/manage.py": MANAGE, "shop/orders/__init__.py": "", "shop/orders/tests.py": MODELS}
    )

    with pytest.raises(NotVerifiedError, match=r"`fixloop run shop`: shop"):
        loaded(tmp_path, installed(tmp_path, modules=("django",)))


def test_a_module_in_another_language_belongs_to_the_tests_of_its_root(tmp_path: Path) -> None:
    written(tmp_path, {"pom.xml": "", "core/pom.xml": "", "core/src/main/java/App.java": ""})

    configuration = loaded(tmp_path, installed(tmp_path, programs=("mvn",)))

    assert commands_of(configuration) == {"test-runner": {"mvn --batch-mode test": "mvn --batch-mode test"}}
    assert configuration.unverified == ()


GO = {"go.mod": "module m\n", "m_test.go": ""}


def test_each_go_module_inside_another_is_named_wherever_it_is(tmp_path: Path) -> None:
    folders = ("", "a/b/c/", "examples/d/", "benchmarks/", "a/testdata/e/", "a/_f/g/", "a/vendor/h/")
    written(tmp_path, {f"{folder}{name}": text for folder in folders for name, text in GO.items()})

    configuration = loaded(tmp_path, installed(tmp_path, programs=("go",)))

    assert [*commands_of(configuration)["test-runner"]] == ["go test"]
    assert unverified_of(configuration) == dict.fromkeys(("a/b/c", "benchmarks", "examples/d"), False)


def test_a_repository_of_go_modules_is_tested_module_by_module(tmp_path: Path) -> None:
    modules = {f"{folder}/{name}": text for folder in ("a", "b/c") for name, text in GO.items()}
    written(tmp_path, modules | {"d/go.mod": "", "examples/e/go.mod": "", "web/package.json": TESTED})

    configuration = loaded(tmp_path, installed(tmp_path, programs=("go",)))

    assert commands_of(configuration) == {
        "test-runner": {
            "go test a": "env --chdir=a go test -json -count=1 ./...",
            "go test b/c": "env --chdir=b/c go test -json -count=1 ./...",
        }
    }
    assert check_of(configuration, "test-runner", "go test a").why == "a/go.mod"
    assert unverified_of(configuration) == {"web": False}


@pytest.mark.parametrize(
    ("workspace", "named"), [({}, {"exp": False}), ({"go.work": "use (\n\t.\n\t./exp\n)\n"}, {})]
)
def test_a_go_module_inside_another_one_is_not_verified_from_above(
    tmp_path: Path, workspace: dict[str, str], named: dict[str, bool]
) -> None:
    written(tmp_path, GO | {f"exp/{name}": text for name, text in GO.items()} | workspace)

    assert unverified_of(loaded(tmp_path, installed(tmp_path, programs=("go",)))) == named


def test_without_a_virtual_environment_a_hint_names_the_interpreter(tmp_path: Path) -> None:
    written(tmp_path, CODE)
    venv = installed(tmp_path, modules=("pytest",))
    system = replace(venv, interpreter=Interpreter(venv.interpreter.path, "", "PATH"))

    with_venv, without = (preflight_of(loaded(tmp_path, here), tmp_path, here) for here in (venv, system))

    assert with_venv.hints == ()
    assert without.hints == (
        f"no virtual environment was found, so checks run with {venv.interpreter.path}; "
        "make a .venv in the project, activate one, or name `[workspace] setup`",
    )


def test_a_tool_of_another_language_is_not_said_to_be_missing_from_the_system_s_python(
    tmp_path: Path,
) -> None:
    written(tmp_path, {"go.mod": "module m\n", "m_test.go": "", ".golangci.yml": ""})
    venv = installed(tmp_path, programs=("go",))
    system = replace(venv, interpreter=Interpreter(venv.interpreter.path, "", "PATH"))

    [missing] = loaded(tmp_path, system).unverified

    assert (missing.name, missing.reason) == ("golangci-lint", "not on the PATH")


def test_without_a_virtual_environment_the_remedy_makes_one(tmp_path: Path) -> None:
    written(tmp_path, {**CODE, "pyproject.toml": "[tool.pytest]\n"})
    system = replace(installed(tmp_path), interpreter=Interpreter("", "", "none"))

    with pytest.raises(NotVerifiedError) as raised:
        loaded(tmp_path, system)

    assert str(raised.value).endswith(": python3 -m venv .venv && .venv/bin/pip install -e . pytest")
