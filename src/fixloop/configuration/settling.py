"""Which checks run and what stays unverified: of the proposals of each language, and of what the user wrote.

A check whose tool is not there is not started. It is taken from an environment that tox, nox or pre-commit has
made for the project, or named with the command that installs it.
"""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.configuration.commands import program_of
from fixloop.configuration.installed import PYTHON, Installed
from fixloop.configuration.model import Check
from fixloop.configuration.proposal import Need, Proposal
from fixloop.configuration.python_project import PythonProject
from fixloop.protocol.checks import Unverified

PYTHON_TOOLS: Final = frozenset(
    {"pytest", "ruff", "black", "mypy", "bandit", "flake8", "isort", "pylint", "pyright", "basedpyright"}
    | {"tox", "nox", "pre-commit", "coverage", "pip-audit", "yapf"}
)


class Settled(NamedTuple):
    """What becomes of one specialist's checks."""

    checks: tuple[Check, ...] = ()
    unverified: tuple[Unverified, ...] = ()


def settle(proposals: Iterable[Proposal], installed: Installed | None, *, portable: bool = False) -> Settled:
    """
    Of the proposals of one name the first that can be started here; with nothing known, the first.

    Args:
        proposals: those of one name follow each other.
        installed: what is there; None when nobody can say.
        portable: commands stay as everybody would write them, without this machine's paths.
    """
    groups = groupby(proposals, lambda proposal: (proposal.specialist, proposal.check.name))
    found = [_first_startable(tuple(group), installed, portable) for _, group in groups]
    return Settled(
        tuple(check for one in found for check in one.checks),
        tuple(entry for one in found for entry in one.unverified),
    )


def settle_written(
    checks: Iterable[Check], specialist: str, project: PythonProject, installed: Installed | None
) -> Settled:
    """What the user wrote: it runs where its tool is there, and else stands between the whole and `passed`."""
    runs: list[Check] = []
    unverified: list[Unverified] = []
    for check in checks:
        needs = needs_of(check.command, project)
        found = _startable(check, needs, installed)
        if found is not None:
            runs.append(found)
        else:
            unverified.append(
                _unverified(check.name, specialist, needs, installed, blocks=not check.optional)
            )
    return Settled(tuple(runs), tuple(unverified))


def needs_of(command: tuple[str, ...], project: PythonProject) -> tuple[Need, ...]:
    """What a command needs before it can start, as far as its words tell."""
    program, rest = program_of(command)
    if PYTHON.fullmatch(program) and rest[:1] == ("-m",) and len(rest) > 1:
        covers = rest[1] == "pytest" and any(word.startswith("--cov") for word in rest)
        plugin = (project.module("pytest_cov", "pytest-cov"),) if covers else ()
        return (project.module(rest[1]), *plugin)
    if not program or "/" in program:
        return ()
    need = project.program(program)
    return (need if program in PYTHON_TOOLS else need._replace(remedy="install it, or correct the command"),)


def _first_startable(
    alternatives: tuple[Proposal, ...], installed: Installed | None, portable: bool
) -> Settled:
    first = alternatives[0]
    for proposal in (each for each in alternatives if each.check.command):
        own = proposal.check.model_copy(update={"why": proposal.why})
        check = _startable(own, proposal.needs, installed)
        if check is not None:
            gate = first.check.coverage_percent if proposal is not first else None
            return Settled(
                (own if portable else check,),
                (_unverified("coverage gate", first.specialist, first.needs, installed),) if gate else (),
            )
    needs = alternatives[-1].needs
    entry = _unverified(first.tool, first.specialist, needs, installed, blocks=first.runs_tests)
    return Settled((), (entry,))


def _startable(check: Check, needs: tuple[Need, ...], installed: Installed | None) -> Check | None:
    """The check as it can be started here; None where it cannot."""
    missing = _missing(needs, installed)
    if not missing or installed is None:
        return check
    command = _lent(check.command, installed) if len(missing) == 1 else ()
    return check.model_copy(update={"command": command}) if command else None


def _missing(needs: tuple[Need, ...], installed: Installed | None) -> list[Need]:
    return [need for need in needs if installed is not None and not installed.has(need)]


def _lent(command: tuple[str, ...], installed: Installed) -> tuple[str, ...]:
    """The command with the program of an environment that a tool of the project has made; empty where none has it."""
    program, rest = command[0], command[1:]
    if PYTHON.fullmatch(program) and rest[:1] == ("-m",) and len(rest) > 1:
        script = installed.lent(rest[1], hooks=False)
        return (str(Path(script).with_name("python")), *rest) if script else ()
    script = installed.lent(program)
    return (script, *rest) if script else ()


def _unverified(
    name: str, specialist: str, needs: tuple[Need, ...], installed: Installed | None, *, blocks: bool = False
) -> Unverified:
    missing = _missing(needs, installed)
    if missing and installed is not None:
        reason, remedy = _reason(missing[0], name, installed), missing[0].remedy
    else:
        reason = "only the project knows its command"
        remedy = f"name it in fixloop.toml, in [[specialist.{specialist}.check]]"
    return Unverified(name=name, specialist=specialist, reason=reason, remedy=remedy, blocks=blocks)


def _reason(need: Need, name: str, installed: Installed) -> str:
    """One clause."""
    if need.kind == "file":
        return f"{need.name} is missing"
    where = f"in {installed.where}" + (" nor on the PATH" if need.kind == "program" else "")
    own = need.name in name.split()
    if need.kind == "program":
        return f"{'' if own else f'{need.name} '}neither {where}"
    return f"{'' if own else f'{need.name} is '}not installed {where}"
