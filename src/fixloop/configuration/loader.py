"""Merges flags, the file and detected checks into one frozen configuration. Gates are frozen with it.

Flags win over the file, the file over detection; environment variables are ignored. Refuses a configuration with no
applicable specialist: nothing to check is not a PASS (K38).
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fixloop.configuration import settings
from fixloop.configuration.commands import split_command
from fixloop.configuration.detection import found_in
from fixloop.configuration.document import FILE_NAME, Document, read_document
from fixloop.configuration.installed import Installed
from fixloop.configuration.layout import projects_inside
from fixloop.configuration.model import Configuration, Fixer, OutsideAgent
from fixloop.configuration.other_languages import PROJECT_FILES
from fixloop.configuration.place import Place, advice, shown, shown_path
from fixloop.configuration.roles import sections_of_profiles
from fixloop.configuration.selection import FRONTEND_ONLY, Selection, select_checks
from fixloop.configuration.settings import HANDOFFS, FileSettings, SharedSettings
from fixloop.configuration.values import agent_name
from fixloop.errors import FixloopError, InfrastructureError, NotVerifiedError, UsageError
from fixloop.machine.interpreter_answers import importable_modules
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
    project's identity if the file names none. `installed`: None if unknown. A profile that validates is refused if
    there is nothing to check (A2, K28, K38).
    """
    document = document or read_document(directory)
    written = _section(FileSettings, document.table, document.place)
    if written.sandbox.mode == "require":
        # Slow to load, and seldom needed.
        from fixloop.machine.sandbox import required

        try:
            required("require")
        except InfrastructureError:
            # The project's interpreter is not asked here. A worker may have a sandbox.
            installed = None
    if installed is not None and written.workspace.home:
        installed = replace(installed, ask=partial(importable_modules, user_site=True))
    # Setup has not installed anything yet.
    found = found_in(directory, document.pyproject, None if written.workspace.setup else installed)
    chosen = select_checks(written, found, document.place)
    sections = sections_of_profiles(written, document.place)
    if only is not None:
        chosen = _only(only, chosen)
    # A workflow runs specialists as the validation loop, or through an agent that is one.
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
    """The outside agent that fixes; refuses a declared agent that [fixer] does not name."""
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
    place, inner = shown_path(directory.absolute()), projects_inside(directory, PROJECT_FILES)
    inside = f"try one of the projects in it (`fixloop run {inner[0]}`: {', '.join(inner)})" if inner else ""
    if chosen.unverified:
        lacking = [each for each in chosen.unverified if each.name not in inner]
        missing = [f"{entry.name} ({entry.reason}): {entry.remedy}" for entry in lacking]
        told = "; ".join([*missing, inside]).rstrip("; ")
        return NotVerifiedError(f"nothing can be checked in {place}: {told}")
    if written.specialist:
        return document.place.at("frontend").error(
            f"is false, and {FRONTEND_ONLY} is the only specialist named; nothing is left to check"
        )
    remedy, reason = f"write a {FILE_NAME} (`fixloop init`)", "nothing was detected"
    if document.is_written:
        remedy = f"name a specialist in {document.place.file}"
        reason = f"it names no specialist and {reason}"
    remedy = f"{inside}, or {remedy}" if inside else remedy
    return UsageError(f"nothing to check in {place}: {reason}; {remedy}")


S = TypeVar("S", bound=settings.Section)


def _section(section: type[S], value: Any, place: Place) -> S:
    """The typed settings of a section; refuses an unknown key (with the nearest known one), a wrong type or value."""
    keys = settings.keys_of(section)
    for name in _table(value, place):
        if name in keys:
            continue
        others = [heading for heading, other in settings.sections_in() if name in settings.keys_of(other)]
        if name in NAMES:
            told = f"did you mean [specialist.{name}]?"
        elif others:
            elsewhere = (f"in {heading}" if heading else "at the top" for heading in others)
            told = f"it belongs {' or '.join(elsewhere)}"
        else:
            told = advice(name, keys, f"known are {', '.join(keys)}")
        where = f"in {place.heading}" if place.heading else "at the top"
        raise UsageError(f"{place.file}: unknown key {shown(name)} {where}; {told}")
    # In the order of the keys, so that the first error does not depend on the order in the file.
    found = {name: _value(key, value[name], place.at(name)) for name, key in keys.items() if name in value}
    return section.model_validate(found)


def _value(key: settings.Key, value: Any, place: Place) -> Any:
    inside = place.inside(place.key)
    if key.kind is not None:
        return key.kind.read(value, place)
    assert key.section is not None
    if not key.is_many:
        return _section(key.section, value, inside)
    if key.name == "check":
        if not isinstance(value, list) or not value:
            raise place.error(f"must be written as [[{inside.heading.strip('[]')}]]")
        return tuple(
            _section(key.section, entry, place.inside("check", item)) for item, entry in enumerate(value, 1)
        )
    names: Iterable[str] = _table(value, place)
    if key.section is settings.SpecialistSettings:
        for name in value:
            if name not in NAMES:
                told = advice(name.removesuffix("-specialist"), NAMES, f"the six are {', '.join(NAMES)}")
                where = f"[{inside.heading.strip('[]')}]"
                raise UsageError(f"{place.file}: unknown specialist {shown(name)} in {where}; {told}")
        names = [name for name in NAMES if name in value]
    else:
        for name, entry in value.items():
            if not isinstance(entry, dict) and name in settings.keys_of(key.section):
                heading = inside.inside("NAME")._replace(prefix="").heading
                raise inside.at(name).error(f"belongs to an agent; write it in {heading}")
            agent_name(name, place)
    return {name: _section(key.section, value[name], inside.inside(name)) for name in names}


def _table(value: Any, place: Place) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.wrong("a table", value)
    return value
