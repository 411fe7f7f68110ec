"""The text that `fixloop init` writes."""

from pathlib import Path

import pytest

from fixloop.configuration.init import init
from fixloop.configuration.loading import load_configuration
from fixloop.configuration.model import Configuration
from fixloop.errors import UsageError
from tests.unit.configuration_project import check_of, installed, written

PROJECT = {
    "src/shop/__init__.py": "",
    "tests/unit/test_shop.py": "",
    "tests/integration/test_shop.py": "",
    "requirements.txt": "pytest-cov\nruff\nbandit\nmypy\nblack\npylint\n",
}


def as_if_written(configuration: Configuration) -> list[object]:
    """Every check, as if the user had written it."""
    return [
        (entry.name, entry.timeout_minutes, check.model_copy(update={"why": "", "paths": ()}))
        for entry in configuration.specialists
        for check in entry.checks
    ]


def test_what_init_writes_loads_to_the_checks_of_the_presets(tmp_path: Path) -> None:
    written(tmp_path, PROJECT)
    before = load_configuration(tmp_path)

    written(tmp_path, {"fixloop.toml": init(tmp_path, measured_coverage=None)})

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

    written(tmp_path, {"fixloop.toml": init(tmp_path, measured_coverage=measured)})

    assert check_of(load_configuration(tmp_path), "test-runner", "pytest").coverage_percent == gate


def test_the_examples_in_the_comments_are_valid_too(tmp_path: Path) -> None:
    text = init(written(tmp_path, PROJECT), measured_coverage=None)
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
def test_where_nothing_is_detected_the_text_says_what_to_write(tmp_path: Path) -> None:
    text = init(tmp_path, measured_coverage=None)
    written(tmp_path, {"fixloop.toml": text})

    with pytest.raises(UsageError, match=r"name a specialist in fixloop\.toml"):
        load_configuration(tmp_path)
    assert "# [specialist.test-runner]" in text


def test_what_is_not_checked_is_said(tmp_path: Path) -> None:
    written(tmp_path, {"test_x.py": "", "ruff.toml": "", ".flake8": ""})

    text = init(tmp_path, measured_coverage=None, installed=installed(tmp_path, modules=("pytest",)))

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
        init(written(tmp_path, files), measured_coverage=None)


@pytest.mark.parametrize("measured", [-1.0, 100.5, float("nan")])
def test_an_impossible_coverage_is_refused(tmp_path: Path, measured: float) -> None:
    with pytest.raises(UsageError, match="measured coverage must be from 0 to 100 percent"):
        init(tmp_path, measured_coverage=measured)
