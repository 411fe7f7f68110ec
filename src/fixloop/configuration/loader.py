"""Flags, the file and what is detected, to one frozen configuration. Gates are frozen with it.

Flags win over the file, the file over what is detected; environment variables are never looked at. Refuses a
configuration with no applicable specialist: nothing to check is not a PASS (K38).
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from fixloop.configuration.commands import split_command
from fixloop.configuration.detection import found_in
from fixloop.configuration.document import FILE_NAME, Document, read_document
from fixloop.configuration.installed import Installed
from fixloop.configuration.layout import projects_below
from fixloop.configuration.model import Configuration, Fixer, OutsideAgent
from fixloop.configuration.place import Place, advice, shown, shown_path
from fixloop.configuration.roles import sections_of_profiles
from fixloop.configuration.selection import FRONTEND_ONLY, Selection, select_checks
from fixloop.configuration.settings import HANDOFFS, FileSettings, SharedSettings
from fixloop.configuration.typed import settings_in
from fixloop.errors import FixloopError, NotVerifiedError, UsageError
from fixloop.machine.interpreters import importable_modules
from fixloop.protocol.specialists import NAMES


def load_configuration(
    directory: Path,
    *,
    document: Document | None = None,
    fixer: str | None = None,
    only: str | None = None,
    project: str = "",
    installed: Installed | None = None,
    profile: str = "validation",
) -> Configuration:
    """
    The configuration of a workflow that starts now, from a checkout of its snapshot.

    `fixer`, `only` and `project`: the main agent's command instead of the file's, the one specialist to run, and the
    project's identity where the file names none. `installed`: None when nobody can say. A profile that validates needs
    something to check: nothing that applies here is refused (A2, K28, K38).
    """
    document = document or read_document(directory)
    written = settings_in(document)
    if installed is not None and written.workspace.home:
        installed = replace(installed, ask=partial(importable_modules, user_site=True))
    # What setup will make is not there yet.
    found = found_in(directory, document.pyproject, None if written.workspace.setup else installed)
    chosen = select_checks(written, found, document.place)
    sections = sections_of_profiles(written, document.place)
    if only is not None:
        chosen = _only(only, chosen)
    # A workflow comes to specialists as the loop itself, or through an agent that is one.
    own = sections.get(profile)
    agents = own.agent.values() if own is not None else ()
    validates = profile not in sections or any(role.is_validation_loop for role in agents)
    if validates and not chosen.specialists:
        raise _nothing_to_check(chosen, directory, written, document)
    shared = {name: getattr(written, name) for name in SharedSettings.model_fields}
    sandbox = written.sandbox.model_copy(update={"mode": written.sandbox.mode or "auto"})
    return Configuration(
        **{**shared, "project": written.project or project, "sandbox": sandbox},
        fixer=_fixer(written, fixer, document.place),
        agent=_agent(written, fixer, document.place),
        **sections,
        specialists=chosen.specialists,
        unverified=chosen.unverified,
    )


def _fixer(written: FileSettings, flag: str | None, place: Place) -> Fixer | None:
    command = written.fixer.command
    if flag is not None:
        command = split_command(flag, Place("command line", key="--fixer"))
    if not command:
        return None
    if command[0].startswith("fixloop:"):
        section = place.inside("fixer").at("command")
        if command != (HANDOFFS,):
            raise section.error(
                f"is {shown(' '.join(command))}; only {HANDOFFS!r}, without arguments, is built in"
            )
        if written.handoff is None:
            raise section.error(f"is {HANDOFFS!r}, and there is no [handoff] that says who its agents are")
    keys = ("timeout_minutes", "env", "writable", "network")
    return Fixer(command=command, **{key: getattr(written.fixer, key) for key in keys})


def _agent(written: FileSettings, flag: str | None, place: Place) -> OutsideAgent | None:
    """The outside agent that fixes; one that is declared and asked for nothing would look as if it were."""
    fixer, declared, own = written.fixer, written.agent, place.inside("fixer")
    name = fixer.agent
    if name and name not in declared:
        told = advice(name, declared, f"declare it with [agent.{name}]")
        raise own.at("agent").error(f"is {name!r}, and no such agent is declared; {told}")
    for other in declared:
        if other != name:
            told = f'has no effect, because [fixer] does not name it; write agent = "{other}" there'
            raise place.inside("agent").inside(other).error(told)
    if not name:
        return None
    if fixer.command:
        raise own.error("has a command and an agent; keep one of them")
    for key in ("env", "writable", "network"):
        if key in fixer.model_fields_set:
            raise own.at(key).error("has no effect, because an outside agent has an environment of its own")
    if flag is not None:
        return None
    return OutsideAgent(name=name, acks=declared[name].acks, timeout_minutes=fixer.timeout_minutes)


def _only(only: str, chosen: Selection) -> Selection:
    name = only.removeprefix("@").removesuffix("-specialist")
    if name not in NAMES:
        told = advice(name, NAMES, f"the six are {', '.join(NAMES)}")
        raise UsageError(f"--only: unknown specialist {only[:60]!r}; {told}")
    left = Selection(
        tuple(entry for entry in chosen.specialists if entry.name == name),
        tuple(entry for entry in chosen.unverified if entry.specialist == name),
    )
    if not left.specialists and not left.unverified:
        there = ", ".join(entry.name for entry in chosen.specialists)
        raise UsageError(f"--only: {name} does not apply here; those that do are {there}")
    return left


def _nothing_to_check(
    chosen: Selection, directory: Path, written: FileSettings, document: Document
) -> FixloopError:
    place = shown_path(directory.absolute())
    if chosen.unverified:
        missing = "; ".join(f"{entry.name} ({entry.reason}): {entry.remedy}" for entry in chosen.unverified)
        return NotVerifiedError(f"nothing can be checked in {place}: {missing}")
    if written.specialist:
        return document.place.at("frontend").error(
            f"is false, and {FRONTEND_ONLY} is the only specialist named; nothing is left to check"
        )
    remedy, reason = f"write a {FILE_NAME} (`fixloop init`)", "nothing was detected"
    if document.is_written:
        remedy = f"name a specialist in {document.place.file}"
        reason = f"it names no specialist and {reason}"
    inner = projects_below(directory)
    if inner:
        remedy = f"try one of the projects in it (`fixloop run {inner[0]}`: {', '.join(inner)}), or {remedy}"
    return UsageError(f"nothing to check in {place}: {reason}; {remedy}")
