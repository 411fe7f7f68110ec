"""What a Python project's own files speak for: its tests first, then what looks at its code.

Proposes only. What is installed decides which proposals become checks; that is `preflight`'s.
"""

from collections.abc import Iterator
from typing import Final

from fixloop.configuration import layout
from fixloop.configuration.coverage import coverage_of, measuring
from fixloop.configuration.declarations import Signs
from fixloop.configuration.linters import linters, scanners
from fixloop.configuration.model import Check
from fixloop.configuration.project_commands import arguments_of
from fixloop.configuration.proposal import Need, Proposal
from fixloop.configuration.python_project import PythonProject
from fixloop.configuration.python_tests import Tests, tests_of
from fixloop.configuration.scopes import PYTEST, Scope, scopes_of

COMMAND: Final = ("python", "-m", "pytest", "--junitxml={junit}")
OTHERS: Final = {
    "isort": ("code-quality", Signs(("isort",), ("isort",), (".isort.cfg",))),
    "flake8": ("code-quality", Signs(("flake8",), (), (".flake8",), ("setup.cfg:flake8", "tox.ini:flake8"))),
    "yapf": ("code-quality", Signs(("yapf",), ("yapf",), (".style.yapf",))),
    "pylint": ("code-quality", Signs(("pylint",), ("pylint",), (".pylintrc", "pylintrc"))),
    "pyright": ("code-quality", Signs(("pyright",), ("pyright",), ("pyrightconfig.json",))),
    "basedpyright": ("code-quality", Signs(("basedpyright",), ("basedpyright",))),
    "pip-audit": ("security", Signs(("pip-audit",))),
    "safety": ("security", Signs(("safety",))),
    "semgrep": ("security", Signs(("semgrep",), (), (".semgrep.yml", ".semgrep.yaml"))),
    "playwright": ("e2e-accessibility", Signs(("playwright", "pytest-playwright"))),
    "selenium": ("e2e-accessibility", Signs(("selenium",))),
}
"""Tools that only the project knows how to run; where they are found and not run, that is said."""

REPORTING: Final = frozenset({"flake8", "pylint", "pyright", "basedpyright"})
CHECKING: Final = frozenset({"--check", "--check-only", "-c", "--diff", "-d"})


def proposals(project: PythonProject, *, gated: bool = False) -> Iterator[Proposal]:
    """
    In the order of the phases; of those with one name, the first whose needs are met is meant.

    Args:
        project: as its files tell it.
        gated: fixloop's own configuration asks for coverage, whether the project does or not.
    """
    tests = tests_of(project.declared, project.pytest, project.installed)
    if tests is not None and tests.runner == "pytest":
        yield from _of_kind(project, tests, "unit")
        yield from _of_kind(project, tests, "integration")
        yield from _pytest(project, tests, gated)
    elif tests is not None:
        yield _unittest(project, tests)
    yield from linters(project)
    yield from scanners(project)
    yield from _others(project)


def _of_kind(project: PythonProject, tests: Tests, kind: str) -> Iterator[Proposal]:
    """`tests/unit` and `tests/integration` are phases of their own."""
    folder = layout.first_with_tests(project.directory, kind, project.pytest.patterns)
    if not folder:
        return
    specialist = f"{kind}-test"
    # A project's own addopts may ask for coverage; half of the tests cannot reach a gate meant for all of them.
    covering = ("--no-cov",) if coverage_of(project).is_measured else ()
    needs = _needs(project)
    check = Check(name="pytest", command=(*COMMAND, *covering, folder), paths=(folder,))
    yield Proposal(specialist, check, "pytest", folder, needs, runs_tests=True)


def _pytest(project: PythonProject, tests: Tests, gated: bool) -> Iterator[Proposal]:
    coverage = coverage_of(project)
    # What the project gives pytest, where all its commands say the same.
    scopes = scopes_of(PYTEST, project.commands, project.directory)
    is_scoped = not project.pytest.testpaths and len(scopes) == 1 and (scopes[0].paths or scopes[0].options)
    scope = scopes[0] if is_scoped else Scope((), (), tests.why)
    words = (*scope.options, *scope.paths)
    if gated or coverage.fail_under or coverage.is_measured:
        check = Check(
            name="pytest",
            command=(*COMMAND, *measuring(project), *words),
            coverage_percent=coverage.fail_under or None,
        )
        needs = (project.module("pytest"), project.module("pytest_cov", "pytest-cov"))
        yield Proposal("test-runner", check, "pytest", scope.why, needs, runs_tests=True)
    check = Check(name="pytest", command=(*COMMAND, *words))
    if not gated:
        yield Proposal("test-runner", check, "pytest", scope.why, _needs(project), runs_tests=True)


def _needs(project: PythonProject) -> tuple[Need, ...]:
    """What pytest itself needs, its plugin included where the project's own options name it."""
    needs = (project.module("pytest"),)
    return (*needs, project.module("pytest_cov", "pytest-cov")) if coverage_of(project).is_measured else needs


def _unittest(project: PythonProject, tests: Tests) -> Proposal:
    need = Need("program", "python", "install Python, or make a .venv in the project")
    given = ((arguments_of("unittest", command), command.why) for command in project.commands)
    words, why = next(((words, why) for words, why in given if words is not None), (None, tests.why))
    if words is None:
        start = next(
            (name for name in ("tests", "test") if any(layout.files_below(project.directory / name))), "."
        )
        is_package = (project.directory / start / "__init__.py").is_file()
        pattern = ("-p", tests.pattern) if tests.pattern else ()
        words = ("discover", "-s", start, *(("-t", ".") if is_package else ()), *pattern)
    check = Check(name="unittest", command=("python", "-m", "unittest", *words))
    return Proposal("test-runner", check, "unittest", why, (need,), runs_tests=True)


def _others(project: PythonProject) -> Iterator[Proposal]:
    for tool, (specialist, signs) in OTHERS.items():
        hook = next((hook.why for hook in project.hooks if hook.id == tool), "")
        given = ((arguments_of(tool, command), command.why) for command in project.commands)
        # Of isort and yapf a command that changes nothing; the others only report.
        own = next(
            (
                (words, why)
                for words, why in given
                if words is not None and (tool in REPORTING or not CHECKING.isdisjoint(words))
            ),
            None,
        )
        if own is not None:
            check = Check(name=tool, command=(tool, *own[0]))
            yield Proposal(specialist, check, tool, own[1], (project.program(tool),))
        elif why := project.declared.place(signs) or hook:
            yield Proposal(specialist, Check(name=tool, command=()), tool, why)


def _own_command(project: PythonProject, tool: str) -> tuple[tuple[str, ...], str] | None:
    """What the project gives a tool that only reports: of isort and yapf a command that changes nothing."""
    for command in project.commands:
        arguments = arguments_of(tool, command)
        if arguments is not None and (tool in REPORTING or not CHECKING.isdisjoint(arguments)):
            return arguments, command.why
    return None
