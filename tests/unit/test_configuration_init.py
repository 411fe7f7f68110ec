"""The text that `fixloop init` writes."""

from pathlib import Path

import pytest

from fixloop.configuration.coding_agents import CODING_AGENTS
from fixloop.configuration.init import Outcome, first_configuration, init
from fixloop.configuration.loader import load_configuration
from fixloop.configuration.model import Configuration
from fixloop.errors import UsageError
from tests.fixtures.configuration_project import check_of, commands_of, installed, written

PROJECT = {
    "src/shop/__init__.py": "",
    "tests/unit/test_shop.py": "",
    "tests/integration/test_shop.py": "",
    "requirements.txt": "pytest-cov\nruff\nbandit\nmypy\nblack\npylint\n",
}


def text_of(directory: Path, measured: float | None = None) -> str:
    """With everything installed that the project names."""
    here = installed(
        directory,
        modules=("pytest", "pytest_cov", "mypy"),
        programs=("ruff", "bandit", "black"),
        prefix="env",
    )
    return init(first_configuration(directory, here), measured_coverage=measured)


def as_if_written(configuration: Configuration) -> list[object]:
    """Every check, as if the user had written it."""
    return [
        (entry.name, entry.timeout_minutes, check.model_copy(update={"why": "", "paths": ()}))
        for entry in configuration.specialists
        for check in entry.checks
    ]


def test_the_file_that_init_writes_loads_to_the_presets_checks(tmp_path: Path) -> None:
    written(tmp_path, PROJECT)
    before = load_configuration(tmp_path)

    written(tmp_path, {"fixloop.toml": text_of(tmp_path)})

    after = load_configuration(tmp_path)
    assert as_if_written(after) == as_if_written(before)
    assert [entry.name for entry in before.unverified] == ["pylint"]
    assert (after.max_iterations, after.fixer) == (before.max_iterations, None)


@pytest.mark.parametrize(
    ("measured", "gate"), [(None, None), (73.9, 73), (0.0, 0), (79.99, 79), (80.0, 80), (100.0, 80)]
)
@pytest.mark.proves("A29", "B68")
def test_todays_coverage_is_the_gate_where_it_is_below_80(
    tmp_path: Path, measured: float | None, gate: float | None
) -> None:
    written(tmp_path, PROJECT)

    written(tmp_path, {"fixloop.toml": text_of(tmp_path, measured)})

    assert check_of(load_configuration(tmp_path), "test-runner", "pytest").coverage_percent == gate


def test_the_examples_in_the_comments_are_valid_too(tmp_path: Path) -> None:
    text = text_of(written(tmp_path, PROJECT))
    examples = [
        line for line in text.splitlines() if line.startswith(("# [", "# c", "# t", "# s", "# env", "# fix"))
    ]
    for line in examples:
        text = text.replace(line, line.removeprefix("# "))

    configuration = load_configuration(written(tmp_path, {"fixloop.toml": text}))

    assert len(examples) == 9
    assert configuration.fixer is not None
    assert configuration.workspace.setup == ("uv", "sync")
    assert configuration.limits.fix_minutes == 30


@pytest.mark.proves("K38")
def test_init_says_what_to_write_if_nothing_is_detected(tmp_path: Path) -> None:
    text = text_of(tmp_path)
    written(tmp_path, {"fixloop.toml": text})

    with pytest.raises(UsageError, match=r"name a specialist in fixloop\.toml"):
        load_configuration(tmp_path)
    assert "# [specialist.test-runner]" in text


def test_init_names_what_is_not_checked(tmp_path: Path) -> None:
    written(tmp_path, {"test_x.py": "", "ruff.toml": "", ".flake8": ""})

    text = init(first_configuration(tmp_path, installed(tmp_path, modules=("pytest",))))

    assert (
        "#   ruff (code-quality): neither in .venv nor on the PATH; .venv/bin/python -m pip install ruff"
        in text
    )
    assert "#   flake8 (code-quality): only the project knows its command" in text


@pytest.mark.parametrize(
    "files", [{"fixloop.toml": ""}, {"pyproject.toml": "[tool.fixloop]\nmax_iterations = 2\n"}]
)
def test_a_configured_project_is_not_configured_again(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(files))} configures fixloop already"):
        text_of(written(tmp_path, files))


@pytest.mark.parametrize("measured", [-1.0, 100.5, float("nan")])
def test_an_impossible_coverage_is_refused(tmp_path: Path, measured: float) -> None:
    with pytest.raises(UsageError, match="measured coverage must be from 0 to 100 percent"):
        text_of(tmp_path, measured)


@pytest.mark.parametrize(("modules", "is_measured"), [(("pytest",), False), (("pytest", "pytest_cov"), True)])
def test_coverage_is_measured_if_the_project_s_interpreter_can(
    tmp_path: Path, modules: tuple[str, ...], is_measured: bool
) -> None:
    written(tmp_path, {**PROJECT, "tox.ini": "[testenv]\ndeps = pytest-cov\n"})

    first = first_configuration(tmp_path, installed(tmp_path, modules=modules))

    assert ("--cov=src" in check_of(first, "test-runner", "pytest").command) is is_measured


def test_a_check_that_could_not_run_is_written_as_a_comment_and_one_that_fails_is_marked(
    tmp_path: Path,
) -> None:
    written(tmp_path, {"test_x.py": "", "ruff.toml": "", "mypy.ini": "[mypy]\nfiles = test_x.py\n"})
    here = installed(tmp_path, modules=("pytest", "mypy"), programs=("ruff",))
    outcomes = {
        ("test-runner", "pytest"): Outcome(True, True, ""),
        ("code-quality", "ruff"): Outcome(False, True, "3 failures"),
        ("code-quality", "mypy"): Outcome(False, False, "mypy was given nothing\nto check"),
    }

    text = init(first_configuration(tmp_path, here), outcomes=outcomes)

    assert "# does not pass today: 3 failures\n[[specialist.code-quality.check]]" in text
    assert "# could not run when it was tried: mypy was given nothing to check\n# [[" in text
    written(tmp_path, {"fixloop.toml": text})
    assert commands_of(load_configuration(tmp_path, installed=here)) == {
        "test-runner": {"pytest": "python -m pytest --junitxml={junit}"},
        "code-quality": {"ruff": "ruff check --no-fix --output-format sarif --output-file {sarif} ."},
    }


def test_each_check_names_the_file_it_comes_from(tmp_path: Path) -> None:
    text = text_of(written(tmp_path, {"test_x.py": "", "ruff.toml": ""}))

    assert "# because of ruff.toml\n[specialist.code-quality]" in text or "# because of ruff.toml\n[[" in text


@pytest.mark.parametrize("agent", CODING_AGENTS)
def test_an_agent_is_written_as_the_fixer(tmp_path: Path, agent: str) -> None:
    written(tmp_path, PROJECT)
    first = first_configuration(tmp_path, None)

    written(tmp_path, {"fixloop.toml": init(first, agent=agent)})

    fixer = load_configuration(tmp_path).fixer
    assert fixer is not None
    assert agent in " ".join(fixer.command)
    assert fixer.env == (CODING_AGENTS[agent].key,)
    assert fixer.timeout_minutes == 30
