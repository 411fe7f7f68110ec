"""Flags, the file and what is detected, to one frozen configuration (DESIGN: gates are frozen).

Flags win over the file, the file over what is detected; environment variables are never looked at. Refuses a
configuration with no applicable specialist: nothing to check is not a PASS (K38).
"""

from collections.abc import Mapping
from pathlib import Path

from fixloop.configuration.choosing import FRONTEND_ONLY, Chosen, chosen_of
from fixloop.configuration.commands import split_command
from fixloop.configuration.detecting import found_in
from fixloop.configuration.document import FILE_NAME, Document, read_document
from fixloop.configuration.installed import Installed
from fixloop.configuration.layout import projects_below
from fixloop.configuration.model import (
    Configuration,
    Fixer,
    LimitSettings,
    OutsideAgent,
    WorkspaceSettings,
)
from fixloop.configuration.place import Place, nearest, shown, shown_path
from fixloop.configuration.roles import (
    HANDOFFS,
    CycleSettings,
    HandoffSettings,
    cycle_settings,
    handoff_settings,
)
from fixloop.configuration.schema import Written, written_in
from fixloop.errors import FixloopError, NotVerifiedError, UsageError
from fixloop.protocol.specialists import NAMES


def load_configuration(
    directory: Path,
    *,
    fixer: str | None = None,
    only: str | None = None,
    project: str = "",
    installed: Installed | None = None,
    profile: str = "validation",
) -> Configuration:
    """
    The configuration of a workflow that starts now, from a checkout of its snapshot.

    Args:
        directory: The folder the checks will run in; it is only looked at.
        fixer: The main agent's command, instead of the file's; its other settings stay.
        only: The one specialist to run.
        project: The project's identity where the file names none.
        installed: What can be started where the checks run; None when nobody can say.
        profile: Of the workflow; only one that validates needs something to check.

    Raises:
        UsageError: the file is wrong, or nothing that applies here is left to check (A2, K28, K38).
    """
    document = read_document(directory)
    return configuration_from(
        document,
        directory,
        fixer=fixer,
        only=only,
        project=project,
        installed=installed,
        profile=profile,
    )


def configuration_from(
    document: Document,
    directory: Path,
    *,
    fixer: str | None = None,
    only: str | None = None,
    project: str = "",
    installed: Installed | None = None,
    profile: str = "validation",
) -> Configuration:
    """As `load_configuration`, for a document that is read already."""
    written = written_in(document)
    # What setup will make is not there yet.
    makes = bool(written.get("workspace", {}).get("setup"))
    found = found_in(directory, document.pyproject, None if makes else installed)
    chosen = chosen_of(written, found, document.place)
    cycle = cycle_settings(written.get("cycle"), document.place)
    handoff = handoff_settings(written.get("handoff"), document.place)
    if only is not None:
        chosen = _only(only, chosen)
    if not chosen.specialists and _validates(profile, {"cycle": cycle, "handoff": handoff}):
        raise _nothing_to_check(chosen, directory, written, document)
    workspace = written.get("workspace", {})
    return Configuration(
        project=written.get("project", project),
        max_iterations=written.get("max_iterations", Configuration().max_iterations),
        base=written.get("base", ""),
        notify=written.get("notify", ()),
        bundle_fix_request=written.get("bundle_fix_request", True),
        limits=LimitSettings(**written.get("limits", {})),
        workspace=WorkspaceSettings(setup=workspace.get("setup", ()), copy=workspace.get("copy", ())),
        fixer=_fixer(written, fixer, document.place),
        agent=_agent(written, fixer, document.place),
        cycle=cycle,
        handoff=handoff,
        specialists=chosen.specialists,
        unverified=chosen.unverified,
    )


def _validates(profile: str, settings: Mapping[str, CycleSettings | HandoffSettings | None]) -> bool:
    """Whether a workflow of this profile comes to specialists: the loop itself, or an agent that is one."""
    if profile not in settings:
        return True
    own = settings[profile]
    return own is not None and any(role.is_validation_loop for role in own.agent.values())


def _check_built_in(written: Written, command: tuple[str, ...], place: Place) -> None:
    if not command[0].startswith("fixloop:"):
        return
    section = place.inside("fixer").at("command")
    if tuple(command) != (HANDOFFS,):
        raise section.error(
            f"is {shown(' '.join(command))}; only {HANDOFFS!r}, without arguments, is built in"
        )
    if "handoff" not in written:
        raise section.error(f"is {HANDOFFS!r}, and there is no [handoff] that says who its agents are")


def _fixer(written: Written, flag: str | None, place: Place) -> Fixer | None:
    settings = written.get("fixer", {})
    command = (
        split_command(flag, Place("command line", key="--fixer"))
        if flag is not None
        else settings.get("command")
    )
    if command is None:
        return None
    _check_built_in(written, command, place)
    return Fixer(
        command=command, timeout_minutes=settings.get("timeout_minutes"), env=settings.get("env", ())
    )


def _agent(written: Written, flag: str | None, place: Place) -> OutsideAgent | None:
    """The outside agent that fixes; one that is declared and asked for nothing would look as if it were."""
    fixer, declared = written.get("fixer", {}), written.get("agent", {})
    name, section = fixer.get("agent"), place.inside("fixer")
    if name is not None and name not in declared:
        near = nearest(name, declared)
        advice = f"did you mean {near!r}?" if near else f"declare it with [agent.{name}]"
        raise section.at("agent").error(f"is {name!r}, and no such agent is declared; {advice}")
    for other in declared:
        if other != name:
            raise (
                place.inside("agent")
                .inside(other)
                .error(f'has no effect, because [fixer] does not name it; write agent = "{other}" there')
            )
    if name is None:
        return None
    if "command" in fixer:
        raise section.error("has a command and an agent; keep one of them")
    if "env" in fixer:
        raise section.at("env").error("has no effect, because an outside agent has an environment of its own")
    if flag is not None:
        return None
    limits = {"timeout_minutes": fixer["timeout_minutes"]} if "timeout_minutes" in fixer else {}
    return OutsideAgent.model_validate({"name": name, **declared[name], **limits})


def _only(only: str, chosen: Chosen) -> Chosen:
    name = only.removeprefix("@").removesuffix("-specialist")
    if name not in NAMES:
        near = nearest(name, NAMES)
        advice = f"did you mean {near!r}?" if near else f"the six are {', '.join(NAMES)}"
        raise UsageError(f"--only: unknown specialist {only[:60]!r}; {advice}")
    left = Chosen(
        tuple(entry for entry in chosen.specialists if entry.name == name),
        tuple(entry for entry in chosen.unverified if entry.specialist == name),
    )
    if not left.specialists and not left.unverified:
        there = ", ".join(entry.name for entry in chosen.specialists)
        raise UsageError(f"--only: {name} does not apply here; those that do are {there}")
    return left


def _nothing_to_check(chosen: Chosen, directory: Path, written: Written, document: Document) -> FixloopError:
    place = shown_path(directory.absolute())
    if chosen.unverified:
        missing = "; ".join(f"{entry.name} ({entry.reason}): {entry.remedy}" for entry in chosen.unverified)
        return NotVerifiedError(f"nothing can be checked in {place}: {missing}")
    if written.get("specialist"):
        return document.place.at("frontend").error(
            f"is false, and {FRONTEND_ONLY} is the only specialist named; nothing is left to check"
        )
    advice = f"write a {FILE_NAME} (`fixloop init`)"
    if document.is_written:
        advice = f"name a specialist in {document.place.file}"
    reason = (
        "it names no specialist and nothing was detected" if document.is_written else "nothing was detected"
    )
    inner = projects_below(directory)
    if inner:
        advice = f"try one of the projects in it (`fixloop run {inner[0]}`: {', '.join(inner)}), or {advice}"
    return UsageError(f"nothing to check in {place}: {reason}; {advice}")
