"""Finds the checks that a project's files suggest, language by language, and those that can run here.

A missing tool is taken from an environment that tox, nox or pre-commit has made for the project. Otherwise the check is
not started, and is reported with the command that installs the tool.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.configuration import go, javascript, layout, other_languages, python, rust
from fixloop.configuration.commands import module_of, program_of
from fixloop.configuration.declarations import toml_of
from fixloop.configuration.installed import Installed
from fixloop.configuration.model import Check, Need, Proposal, proposal
from fixloop.configuration.python_project import PythonProject, python_project
from fixloop.protocol.checks import Unverified
from fixloop.protocol.launchers import PYTHON
from fixloop.protocol.specialists import NAMES

OTHER_LANGUAGES: Final[tuple[Callable[[Path], Iterable[Proposal]], ...]] = (
    javascript.proposals,
    go.proposals,
    rust.proposals,
)
"""The languages other than Python; each proposes checks for a folder."""


class Found(NamedTuple):
    project: PythonProject
    proposals: tuple[Proposal, ...]
    """In the order of the phases, and within a phase of the languages."""

    def of(self, specialist: str, *, gated: bool = False) -> tuple[Proposal, ...]:
        """The proposals for one specialist; `gated`: fixloop's configuration asks it for coverage."""
        proposals = _proposals(self.project, gated=True) if gated else self.proposals
        return tuple(proposal for proposal in proposals if proposal.specialist == specialist)


def found_in(directory: Path, pyproject: Mapping[str, Any], installed: Installed | None) -> Found:
    project = python_project(directory, pyproject, installed)
    return Found(project, _proposals(project))


def _proposals(project: PythonProject, *, gated: bool = False) -> tuple[Proposal, ...]:
    directory, found = project.directory, [*python.proposals(project, gated=gated)]
    others = {each: [*each(directory)] for each in OTHER_LANGUAGES}
    untested = [each for each, own in others.items() if not any(one.runs_tests for one in own)]
    inside = layout.projects_inside(directory, other_languages.PROJECT_FILES)
    if go.proposals not in untested and not (directory / "go.work").is_file():
        untested.append(go.proposals)  # `./...` ends where a module inside begins
        inside = tuple(sorted({*inside, *go.modules_inside(directory)}))
    found += [one for own in others.values() for one in own]
    known = [name for name in layout.PROJECT_FILES if (directory / name).is_file()]
    has_tests = any(each.runs_tests for each in found)
    if known == ["package.json"] or not (known or has_tests):
        for each in other_languages.proposals(directory, is_alone=not known):
            found.append(each._replace(runs_tests=not has_tests))
    of_others = partial(other_languages.proposals, is_alone=False)
    untested += [] if any(of_others(directory)) else [of_others]
    if not found and (found := [each for folder in inside for each in go.tests_inside(directory, folder)]):
        untested.remove(go.proposals)
    apart = dict[str, list[str]]()  # the folders of each set of linters, and each folder with tests
    for folder in inside if found else ():
        tests = (each for of_language in untested for each in of_language(directory / folder))
        if names := folder if any(each.runs_tests for each in tests) else _lacking(project, folder, found):
            apart.setdefault(names, []).append(folder)
    for names, (folder, *more) in apart.items():
        linters = f"{names} of {folder}" + (f" and {len(more)} more" if more else "")
        specialist, name = ("test-runner", folder) if names == folder else ("code-quality", linters)
        reason = f"a project of its own: `fixloop run {folder}`"
        found.append(proposal(specialist, name, (), folder)._replace(reason=reason))
    return tuple(sorted(found, key=lambda proposal: NAMES.index(proposal.specialist)))


def _lacking(project: PythonProject, folder: str, found: Iterable[Proposal]) -> str:
    """The linters of the Python project in `folder` that do not reach it from above, with commas."""
    place, is_below = project.directory / folder, Path(folder).is_relative_to
    inside = python_project(place, toml_of(place / "pyproject.toml"), project.installed)
    reaching = {one.tool for one in found if not one.check.paths or any(map(is_below, one.check.paths))}
    tools = dict.fromkeys(each.tool for each in python.of_code(inside))
    return ", ".join(tool for tool in tools if tool not in reaching)


PYTHON_TOOLS: Final = frozenset(
    {"pytest", "ruff", "black", "mypy", "bandit", "flake8", "isort", "pylint", "pyright", "basedpyright"}
    | {"tox", "nox", "pre-commit", "coverage", "pip-audit", "yapf"}
)


class Settled(NamedTuple):
    """One specialist's checks that can run, and those that cannot."""

    checks: tuple[Check, ...] = ()
    unverified: tuple[Unverified, ...] = ()


def settle(proposals: Iterable[Proposal], installed: Installed | None, *, portable: bool = False) -> Settled:
    """
    From each run of proposals with one name, take the first that can start here, else report the first.

    `portable`: commands contain no paths of this machine.
    """
    checks: list[Check] = []
    unverified: list[Unverified] = []
    for _, group in groupby(proposals, lambda proposal: (proposal.specialist, proposal.check.name)):
        alternatives = tuple(group)
        first, needs = alternatives[0], alternatives[-1].needs
        for candidate in (each for each in alternatives if each.check.command):
            if (check := _startable(candidate.check, candidate.needs, installed)) is not None:
                checks.append(candidate.check if portable else check)
                if candidate is not first and first.check.coverage_percent:
                    unverified.append(_unverified("coverage gate", first.specialist, first.needs, installed))
                break
        else:
            entry = _unverified(first.tool, first.specialist, needs, installed, blocks=first.runs_tests)
            told = {"reason": first.reason, "remedy": needs[0].remedy if needs else entry.remedy}
            unverified.append(entry.model_copy(update=told) if first.reason else entry)
    return Settled(tuple(checks), tuple(dict.fromkeys(unverified)))


def settle_written(checks: Iterable[Check], specialist: str, project: PythonProject) -> Settled:
    """The user's checks: each runs if its tool is there; otherwise, unless optional, it prevents `passed`."""
    proposals = (
        Proposal(specialist, check, check.name, needs_of(check.command, project), not check.optional)
        for check in checks
    )
    return settle(proposals, project.installed)


def needs_of(command: tuple[str, ...], project: PythonProject) -> tuple[Need, ...]:
    """What a command needs before it can start, judged by its words."""
    program, rest = program_of(command)
    if module := module_of(command):
        covers = module == "pytest" and any(word.startswith("--cov") for word in rest)
        plugin = (project.module("pytest_cov", "pytest-cov"),) if covers else ()
        return (project.module(module), *plugin)
    if not program or "/" in program:
        return ()
    need = project.program(program)
    return (need if program in PYTHON_TOOLS else need._replace(remedy="install it, or correct the command"),)


def _startable(check: Check, needs: tuple[Need, ...], installed: Installed | None) -> Check | None:
    missing = _missing(needs, installed)
    if not missing or installed is None:
        return check
    if len(missing) > 1:
        return None
    # Use the program from an environment that tox, nox or pre-commit has made.
    program, rest = check.command[0], check.command[1:]
    module = module_of(check.command) if PYTHON.fullmatch(program) else ""
    if not (script := installed.from_environments(module or program, hooks=not module)):
        return None
    program = str(Path(script).with_name("python")) if module else script
    return check.model_copy(update={"command": (program, *rest)})


def _missing(needs: tuple[Need, ...], installed: Installed | None) -> list[Need]:
    return [need for need in needs if installed is not None and not installed.has(need)]


def _unverified(
    name: str, specialist: str, needs: tuple[Need, ...], installed: Installed | None, *, blocks: bool = False
) -> Unverified:
    missing, reason = _missing(needs, installed), "only the project knows its command"
    remedy = f"name it in fixloop.toml, in [[specialist.{specialist}.check]]"
    if missing and installed is not None:
        need, remedy = missing[0], missing[0].remedy
        is_named = need.name in name.split()
        # A tool of another language is not sought next to a Python that belongs to no project.
        nowhere = f"neither in {installed.where} nor" if installed.interpreter.prefix else "not"
        reason = {
            "file": f"{need.name} is missing",
            "program": f"{'' if is_named else f'{need.name} '}{nowhere} on the PATH",
            "module": f"{'' if is_named else f'{need.name} is '}not installed in {installed.where}",
        }[need.kind]
    return Unverified(name=name, specialist=specialist, reason=reason, remedy=remedy, blocks=blocks)
