"""`read`, `doctor` and `init`: what they say of a file, a machine and a project."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from fixloop.commands.doctor import Finding
from fixloop.errors import ExitCode
from tests.fixtures.command_stage import said
from tests.fixtures.configuration_project import executable

Capsys = pytest.CaptureFixture[str]

FAILED = """<testsuite name="t" tests="2" failures="1" errors="0" skipped="0">
<testcase classname="test_app" name="test_good"/>
<testcase classname="test_app" name="test_bad"><failure message="assert 1 == 2">line</failure></testcase>
</testsuite>"""
PASSED = """<testsuite name="t" tests="1" failures="0" errors="0" skipped="0">
<testcase classname="a" name="b"/></testsuite>"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, without any configuration."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_failed_report_is_shown_with_its_failures_and_ends_with_1(project: Path, capsys: Capsys) -> None:
    (project / "junit.xml").write_text(FAILED)

    told = said(capsys, "read", "junit.xml", "--as", "junit")

    assert told.code == ExitCode.WRONG
    assert told.out.startswith("failed: ")
    assert "2 in all: 1 passed, 1 failed" in told.out
    assert "test_bad" in told.out


def test_a_report_as_json_has_the_promised_fields(project: Path, capsys: Capsys) -> None:
    (project / "junit.xml").write_text(FAILED)

    document = said(capsys, "read", "junit.xml", "--as", "junit", "--json").document

    assert list(document) == ["outcome", "reason", "counts", "failures"]
    assert document["counts"] == {"total": 2, "passed": 1, "failed": 1, "errors": 0, "skipped": 0}
    assert set(document["failures"][0]) == {"name", "file", "line", "error_type", "message"}


def test_a_passed_report_ends_with_0(project: Path, capsys: Capsys) -> None:
    (project / "junit.xml").write_text(PASSED)

    assert said(capsys, "read", "junit.xml", "--as", "junit").code == ExitCode.DONE


@pytest.mark.parametrize("content", [None, "", "<testsuite", PASSED[:40], "\0" * 100])
def test_a_file_that_proves_nothing_is_an_error_with_a_reason(
    content: str | None, project: Path, capsys: Capsys
) -> None:
    if content is not None:
        (project / "junit.xml").write_text(content)

    told = said(capsys, "read", "junit.xml", "--as", "junit")

    assert told.code == ExitCode.WRONG
    assert told.out.startswith("error: the junit report ")


@pytest.mark.parametrize(("gate", "code"), [("80", ExitCode.WRONG), ("70", ExitCode.DONE)])
def test_a_coverage_report_is_judged_by_the_gate(
    gate: str, code: ExitCode, project: Path, capsys: Capsys
) -> None:
    write_coverage(project, 73.2)

    assert said(capsys, "read", "coverage.json", "--as", "coverage", "--gate", gate).code == code


def write_coverage(project: Path, percent: float) -> None:
    totals = {"percent_covered": percent, "num_statements": 100}
    (project / "coverage.json").write_text(json.dumps({"totals": totals, "files": {}}))


def make_project(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        '[project]\nname = "x"\ndependencies = ["pytest", "pytest-cov"]\n'
    )
    (project / "tests").mkdir()
    (project / "tests" / "test_x.py").write_text("def test_x() -> None:\n    assert True\n")


def test_init_writes_a_configuration_that_loads(
    project: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(project)
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)

    told = said(capsys, "init", "--no-try")

    assert told.code == ExitCode.DONE
    assert told.out == "fixloop.toml\n"
    written = tomllib.loads((project / "fixloop.toml").read_text())
    assert written["specialist"]["test-runner"] == {"command": "python -m pytest --junitxml={junit}"}


def test_init_takes_todays_coverage_as_the_gate_where_it_is_below(
    project: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(project)
    write_coverage(project, 61.9)
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)

    said(capsys, "init", "--no-try")

    written = tomllib.loads((project / "fixloop.toml").read_text())
    assert written["specialist"]["test-runner"]["coverage_percent"] == 61


def test_init_never_overwrites_a_configuration(project: Path, capsys: Capsys) -> None:
    (project / "fixloop.toml").write_text("max_iterations = 3\n")

    told = said(capsys, "init", "--coverage", "50")

    assert told.code == ExitCode.USAGE
    assert told.err.count("\n") == 1
    assert (project / "fixloop.toml").read_text() == "max_iterations = 3\n"


def test_init_lists_what_will_run_on_separate_lines(
    project: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(project)
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)

    told = said(capsys, "init", "--no-try").err.splitlines()

    assert told[:2] == [
        f"fixloop: checks in {project} with {sys.prefix}/bin/python:",
        "fixloop:   test-runner: pytest",
    ]


def test_init_says_that_nothing_was_found(project: Path, capsys: Capsys) -> None:
    told = said(capsys, "init")

    assert told.err.splitlines() == [
        f"fixloop: nothing was found in {project}",
        "fixloop: add the checks to run",
    ]


def test_init_names_no_python_where_there_is_none(
    project: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "go.mod").write_text("module example.org/shop\n")
    executable(project / "bin" / "go")
    monkeypatch.setenv("PATH", str(project / "bin"), prepend=":")

    assert said(capsys, "init", "--no-try").err.splitlines()[0] == f"fixloop: checks in {project}:"


def test_doctor_prints_a_line_for_each_check_and_ends_with_1_where_one_is_wrong(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Finding("git", True, "2.45"), Finding("redis", False, "away", "start it")]
    monkeypatch.setattr("fixloop.commands.doctor.examine", lambda *_: found)

    told = said(capsys, "doctor")
    document = said(capsys, "doctor", "--json").document

    assert told.code == ExitCode.WRONG
    assert told.out.splitlines()[:2] == ["ok     git: 2.45", "wrong  redis: away; start it"]
    assert document["findings"][1] == {"name": "redis", "ok": False, "detail": "away", "remedy": "start it"}


def test_doctor_names_what_the_checks_of_this_folder_need_and_no_other_tool(
    project: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    executable(project / "env" / "bin" / "python", f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    (project / "env" / "pyvenv.cfg").touch()
    monkeypatch.setenv("VIRTUAL_ENV", str(project / "env"))
    monkeypatch.setattr("fixloop.commands.doctor.examine", lambda *_: [])
    make_project(project)

    told = said(capsys, "doctor")

    assert told.code == ExitCode.WRONG
    (line,) = told.out.splitlines()
    assert line.startswith(
        f"wrong  checks: nothing can be checked in {project}: pytest (not installed in env)"
    )


@pytest.mark.parametrize("scripts", [{}, {"test": "vitest"}])
def test_doctor_does_not_mention_python_in_a_project_without_it(
    scripts: dict[str, str], project: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fixloop.commands.doctor.examine", lambda *_: [])
    (project / "package.json").write_text(json.dumps({"scripts": scripts}))

    told = said(capsys, "doctor").out.replace(str(project), "")

    assert not {"pytest", "mypy", "bandit"} & set(re.findall(r"\w+", told))


def test_doctor_accepts_what_cannot_be_determined(capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "fixloop.commands.doctor.examine", lambda *_: [Finding("tools", None, "no ruff", "install it")]
    )

    assert said(capsys, "doctor").code == ExitCode.DONE
