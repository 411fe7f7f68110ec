"""What a command starts behind its launchers, as detection, the project's own tests and the integrity rules see it."""

from pathlib import Path

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.configuration.project_commands import ProjectCommand, arguments_of
from fixloop.integrity.tool_call import call_of
from tests.fixtures.configuration_project import commands_of, installed, written

CASE = "import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\n"


@pytest.mark.parametrize(
    ("command", "check"),
    [
        ("python -m unittest -v", "python -m unittest -v"),
        ("python -munittest -v", "python -m unittest -v"),
        ("A=b python -m unittest -v", "env A=b python -m unittest -v"),
        ("env A=b C=d python3.12 -W error -m unittest -v", "env A=b C=d python -W error -m unittest -v"),
        ("python -Werror -X dev -m unittest -v", "python -Werror -X dev -m unittest -v"),
        ("coverage run -m unittest -v", "python -m unittest -v"),
        ("coverage run --source pkg -m unittest -v", "python -m unittest -v"),
        ("python -m coverage run -m unittest -v", "python -m unittest -v"),
        ("python -W error -m coverage run --branch -m unittest -v", "python -m unittest -v"),
        ("poetry run python -m unittest -v", "python -m unittest -v"),
        ("uv run --with pytest==8 -- python -m unittest -v", "python -m unittest -v"),
        ("uv run --group dev python -W error -m unittest -v", "python -W error -m unittest -v"),
        ("./.venv/bin/python -m unittest -v", "python -m unittest -v"),
    ],
)
def test_three_readers_of_a_command_see_the_same_start(tmp_path: Path, command: str, check: str) -> None:
    written(tmp_path, {"shop.py": "", "tests/test_shop.py": CASE, "Makefile": f"test:\n\t{command}\n"})
    words = tuple(command.split())

    own = commands_of(load_configuration(tmp_path, installed=installed(tmp_path)))["test-runner"]
    arguments = arguments_of("unittest", ProjectCommand(words, ""))
    call = call_of(words, {"unittest": None})

    assert list(own.values()) == [check]
    assert arguments == ("-v",)
    assert call is not None
    assert (call.head, call.tool, call.rest) == (words[:-1], "unittest", ("-v",))


@pytest.mark.parametrize(
    "command",
    ["npx jest", "npm exec -- jest", "pnpm exec jest", "bun x jest", "c8 jest", "nyc npx jest", "sh -c jest"],
)
def test_only_the_integrity_rules_see_through_launchers_of_node(command: str) -> None:
    call = call_of(tuple(command.split()), {"jest": None})

    assert call is not None
    assert call.tool == "jest"
    assert arguments_of("jest", ProjectCommand(tuple(command.split()), "")) is None


@pytest.mark.parametrize(
    "command",
    [
        "npm run test",
        "yarn run test",
        "make test",
        "sh -c 'test;'",
        "python run.py test",
        "python -c test",
        "uv run",
    ],
)
def test_a_script_or_another_program_is_no_launcher(command: str) -> None:
    words = tuple(command.split())

    assert call_of(words, {"test": None}) is None
    assert arguments_of("test", ProjectCommand(words, "")) is None


def test_what_python_is_told_about_warnings_is_told_to_pytest() -> None:
    words = ("python", "-Werror", "-X", "dev", "-W", "ignore", "-m", "pytest", "-q")

    assert arguments_of("pytest", ProjectCommand(words, "")) == ("-W", "error", "-W", "ignore", "-q")


def test_a_release_or_an_extra_belongs_to_no_name() -> None:
    words = ("uvx", "--with", "tox", "pytest@8", "-q")

    assert arguments_of("pytest", ProjectCommand(words, "")) == ("-q",)
