"""Proposes a Python project's checks from its own files: its tests first, then linters and scanners.

Proposes only; what is installed decides later which proposals become checks. No coverage gate unless asked for: a
project that merely can measure its coverage has not asked.
"""

import math
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatch
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.configuration import layout, own_tests
from fixloop.configuration.declarations import OTHERS, SIGNS, Declarations, declarations_of, toml_of
from fixloop.configuration.linters import linters, scanners
from fixloop.configuration.model import Need, Proposal, proposal
from fixloop.configuration.project_commands import NOT_OF_TESTS, arguments_of
from fixloop.configuration.python_project import (
    PythonProject,
    Tests,
    pytest_settings,
    scripts_of,
    started_below,
    tests_of,
)
from fixloop.configuration.scopes import PYTEST, Scope, common_scope

_MEASURED: Final = re.compile(r"(?<!\S)--cov(?![\w-])")
_SOURCES: Final = re.compile(r"(?<!\S)--(?:cov|source)[= ]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_GATE: Final = re.compile(r"--cov-fail-under[= ](\S+)")


class Coverage(NamedTuple):
    is_measured: bool
    """Its own pytest options always measure coverage."""
    fail_under: float
    """The gate in percent; 0 if it sets none that one test run could reach."""


def coverage_of(project: PythonProject) -> Coverage:
    """The coverage the project asks for; a gate for several combined runs does not apply to one of them."""
    addopts = project.pytest.addopts
    is_measured = bool(_MEASURED.search(addopts))
    if written := _GATE.search(addopts):
        return Coverage(is_measured, _percent(written[1]))
    combines = any((arguments_of("coverage", each) or ())[:1] == ("combine",) for each in project.commands)
    percent = _percent(_settings(project.declared, "report").get("fail_under", 0))
    return Coverage(is_measured, percent if is_measured or not combines else 0.0)


def measuring(project: PythonProject) -> tuple[str, ...]:
    """The options that make pytest measure coverage; a project's own choice of what to measure is kept."""
    report = ("--cov-report=json:{coverage}", "--cov-fail-under=0")
    if _MEASURED.search(project.pytest.addopts):
        return report  # one `--cov` without a value, here or there, overrides all the others
    is_set = any(map(_settings(project.declared, "run").get, ("source", "source_pkgs", "source_dirs")))
    is_named = any(_SOURCES.search(each.text or " ".join(each.words)) for each in project.commands)
    # A project with a gate that names no sources measures the files that run, as coverage does by default.
    if is_set or (coverage_of(project).fail_under and not is_named):
        return ("--cov", *report)
    # Folders by path, modules by name.
    sources = (source.removesuffix(".py") for source in layout.sources_of(project.directory))
    return (*(tuple(f"--cov={name}" for name in sources) or ("--cov",)), *report)


def _settings(declared: Declarations, part: str) -> dict[str, Any]:
    settings: dict[str, Any] = dict(declared.table("coverage", part))
    sections = {"setup.cfg": f"coverage:{part}", "tox.ini": f"coverage:{part}", ".coveragerc": part}
    for file, section in sections.items():
        settings |= declared.section(file, section) or {}
    return settings


def _percent(value: object) -> float:
    try:
        percent = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(percent, 100.0) if math.isfinite(percent) and percent > 0 else 0.0


_SETTINGS: Final = SIGNS["pytest"]._replace(dependencies=())
COMMAND: Final = ("python", "-m", "pytest", "--junitxml={junit}")
REPORTING: Final = frozenset({"flake8", "pylint", "pyright", "basedpyright"})
CHECKING: Final = frozenset({"--check", "--check-only", "-c", "--diff", "-d"})


def proposals(project: PythonProject, *, gated: bool = False) -> Iterator[Proposal]:
    """In the order of the phases; of proposals with one name, the first whose needs are met is used."""
    tests = tests_of(project)
    own = tuple(own_tests.proposals(project, tests))
    yield from own
    if tests is not None and not own:
        yield from _of_kind(project, "unit")
        yield from _of_kind(project, "integration")
        members = _of_members(project)
        yield from chain.from_iterable(members.values())
        if not members or _holds_tests(project, ["."], members):
            yield from _pytest(project, tests, gated, members)
    yield from of_code(project)


def of_code(project: PythonProject) -> Iterator[Proposal]:
    """The checks apart from tests."""
    yield from linters(project)
    yield from scanners(project)
    for tool, specialist in OTHERS.items():
        hook = next((hook.why for hook in project.hooks if hook.id == tool), "")
        for command in project.commands:
            words = arguments_of(tool, command)
            # For isort and yapf, a command that changes nothing; the others only report.
            if words is not None and (tool in REPORTING or not CHECKING.isdisjoint(words)):
                yield proposal(specialist, tool, (tool, *words), command.why, project.program(tool))
                break
        else:
            if why := project.declared.place(SIGNS[tool]) or hook:
                yield proposal(specialist, tool, (), why)


def _of_kind(project: PythonProject, kind: str) -> Iterator[Proposal]:
    """`tests/unit` and `tests/integration` are separate phases."""
    folder = next((each for each in (f"tests/{kind}", f"test/{kind}") if _holds_tests(project, [each])), "")
    if not folder:
        return
    # A project's own addopts may ask for coverage; half of the tests cannot reach a gate set for all of them.
    covering = ("--no-cov",) if coverage_of(project).is_measured else ()
    command, needs = (*_command(project), *covering, folder), _needs(project)
    yield proposal(f"{kind}-test", "pytest", command, folder, *needs, runs_tests=True, paths=(folder,))


def _of_members(project: PythonProject) -> dict[str, list[Proposal]]:
    """The tests of each project inside that pytest has to be given the folder of: its own settings count only then, or
    its tests import modules as if pytest started there. None if the project itself has settings or a command for all
    tests."""
    found = dict[str, list[Proposal]]()
    own = (arguments_of("pytest", command) for command in project.commands)
    if project.declared.place(_SETTINGS) or any(each is not None for each in own):
        return found
    started = started_below(project.directory)
    for folder in dict.fromkeys((*layout.projects_inside(project.directory), *started)):
        place = project.directory / folder
        declared = declarations_of(place, toml_of(place / "pyproject.toml"))
        member = project._replace(declared=declared, pytest=pytest_settings(declared), commands=())
        settings, coverage = declared.place(_SETTINGS), coverage_of(member)
        is_due = bool(settings or folder in started) and layout.NOT_SOURCES.isdisjoint(Path(folder).parts)
        if is_due and _holds_tests(member, ["."]):
            # Tests are named by their paths in the whole project, and coverage would be measured with its settings.
            options = [*(["--no-cov"] if coverage.is_measured else []), "--rootdir=."]
            if folder in started and not member.pytest.pythonpath:
                options += ["-o", f"pythonpath={shlex.quote(folder)}"]
            command = (*COMMAND, *options, folder)
            kind, needs = "test-runner", _needs(member)
            why = f"{folder}: {settings}" if settings else started[folder]
            gate = proposal(kind, f"coverage gate of {folder}", (), why)
            tests = proposal(kind, f"pytest {folder}", command, why, *needs, tool="pytest", runs_tests=True)
            found[folder] = [tests, gate] if coverage.fail_under else [tests]
    return found


def _pytest(project: PythonProject, tests: Tests, gated: bool, inside: Collection[str]) -> Iterator[Proposal]:
    coverage = coverage_of(project)
    own = common_scope(PYTEST, project.commands, project.directory)
    # A command for README examples, or for fewer folders than the settings name, does not cover tests elsewhere.
    is_lost = own and own.paths and not _holds_tests(project, own.paths) and _holds_tests(project, ["."])
    is_part = is_lost or (own and not set(project.pytest.testpaths).issubset(own.paths))
    scope = own if own and (own.paths or own.options) and not is_part else Scope((), (), tests.why)
    ignored = (*inside, *(() if scope.paths or project.pytest.is_set else scripts_of(project.directory)))
    words = (*scope.options, *(scope.paths or tests.files), *(f"--ignore={path}" for path in ignored))
    if gated or coverage.fail_under or coverage.is_measured:
        command = (*_command(project), *measuring(project), *words)
        needs = (project.module("pytest"), project.module("pytest_cov", "pytest-cov"))
        gate = coverage.fail_under or None
        yield proposal(
            "test-runner", "pytest", command, scope.why, *needs, runs_tests=True, coverage_percent=gate
        )
    if not gated:
        plain, covering = (*_command(project), *words), ("--no-cov",) if coverage.is_measured else ()
        for variables, why in {(): scope.why, **_more_calls(project)}.items():
            command = ("env", *variables, *COMMAND, *covering, *words) if variables else plain
            name, own_needs = " ".join(("pytest", *variables)), _needs(project)
            yield proposal("test-runner", name, command, why, *own_needs, tool="pytest", runs_tests=True)
    yield from own_tests.next_to_pytest(project, scope)


def _command(project: PythonProject) -> tuple[str, ...]:
    """pytest with the variables of tests with which the project always calls it."""
    sets = [{each for each in words if not NOT_OF_TESTS.match(each)} for _, words in _calls(project)]
    always = sorted(set.intersection(*sets)) if sets else []
    return (*(("env", *always) if always else ()), *COMMAND)


def _calls(project: PythonProject) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Where the project calls pytest, but for CI, and with which variables."""
    for command in project.commands:
        if arguments_of("pytest", command) is not None and not command.why.startswith(".github"):
            yield command.why, tuple(takewhile(_ASSIGNMENT.match, command.words))


def _more_calls(project: PythonProject) -> dict[tuple[str, ...], str]:
    """The variables with which the project calls pytest once more, next to a call without, each with its place."""
    calls = [*_calls(project)]
    return {variables: why for why, variables in calls if variables and (why, ()) in calls}


def _holds_tests(project: PythonProject, paths: Sequence[str], without: Collection[str] = ()) -> bool:
    patterns = project.pytest.patterns or layout.TEST_FILES
    places = [project.directory / path for path in paths]
    files = (file for place in places if place.is_dir() for file in layout.files_below(place))
    others = [project.directory / path for path in without]
    own = (file for file in files if not any(map(file.is_relative_to, others)))
    named = any(fnmatch(file.name, pattern) for file in own for pattern in patterns)
    return named or any(place.suffix == ".py" for place in places)


def _needs(project: PythonProject) -> list[Need]:
    """pytest's needs, with its coverage plugin if the project's own options name it."""
    needs = [project.module("pytest")]
    return [*needs, project.module("pytest_cov", "pytest-cov")] if coverage_of(project).is_measured else needs
