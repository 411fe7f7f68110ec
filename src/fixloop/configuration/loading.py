"""Flags, the file and the presets, to one frozen configuration (DESIGN: gates are frozen).

Flags win over the file, the file over presets; environment variables are never looked at. Refuses a
configuration with no applicable specialist: nothing to check is not a PASS (K38).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from fixloop.configuration.commands import program_name, split_command
from fixloop.configuration.detection import Found, detect
from fixloop.configuration.document import FILE_NAME, Document, read_document
from fixloop.configuration.model import (
    Check,
    Configuration,
    FailOn,
    Fixer,
    LimitSettings,
    OutsideAgent,
    SpecialistChecks,
    WorkspaceSettings,
)
from fixloop.configuration.place import Place, nearest, shown, shown_path
from fixloop.configuration.presets import TARGET_COVERAGE_PERCENT, all_tools, not_configured, preset_checks
from fixloop.configuration.roles import (
    HANDOFFS,
    CycleSettings,
    HandoffSettings,
    cycle_settings,
    handoff_settings,
)
from fixloop.configuration.schema import Written, WrittenCheck, WrittenSpecialist, written_in
from fixloop.errors import UsageError
from fixloop.protocol.specialists import NAMES

__all__ = ["configuration_from", "load_configuration"]

FRONTEND_ONLY = "e2e-accessibility"


def load_configuration(
    directory: Path,
    *,
    fixer: str | None = None,
    only: str | None = None,
    project: str = "",
    importable: Callable[[str], bool] | None = None,
    profile: str = "validation",
) -> Configuration:
    """
    The configuration of a workflow that starts now, from a checkout of its snapshot.

    Args:
        directory: The folder the checks will run in; it is only looked at.
        fixer: The main agent's command, instead of the file's; its other settings stay.
        only: The one specialist to run.
        project: The project's identity where the file names none.
        importable: Whether the project's interpreter can import a module; None when nobody can say.
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
        importable=importable,
        profile=profile,
    )


def configuration_from(
    document: Document,
    directory: Path,
    *,
    fixer: str | None = None,
    only: str | None = None,
    project: str = "",
    importable: Callable[[str], bool] | None = None,
    profile: str = "validation",
) -> Configuration:
    """As `load_configuration`, for a document that is read already."""
    written = written_in(document)
    found = detect(directory, document.pyproject, all_tools(), importable)
    specialists = _specialists(written, found, document.place)
    cycle = cycle_settings(written.get("cycle"), document.place)
    handoff = handoff_settings(written.get("handoff"), document.place)
    if not specialists and _validates(profile, {"cycle": cycle, "handoff": handoff}):
        raise _nothing_to_check(written.get("project") or project or shown_path(directory), written, document)
    checks = tuple(check for entry in specialists for check in entry.checks)
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
        specialists=specialists if only is None else (_only(only, specialists),),
        detected_not_configured=not_configured(found, checks),
    )


def _validates(profile: str, settings: Mapping[str, CycleSettings | HandoffSettings | None]) -> bool:
    """Whether a workflow of this profile comes to specialists: the loop itself, or an agent that is one."""
    if profile not in settings:
        return True
    own = settings[profile]
    return own is not None and any(role.is_validation_loop for role in own.agent.values())


def _specialists(written: Written, found: Found, place: Place) -> tuple[SpecialistChecks, ...]:
    """In the order of the phases (U1, U2); the sixth only for a front end (K28)."""
    named = written.get("specialist", {})
    if not named:
        chosen = {name: preset_checks(name, found) for name in NAMES}
        specialists = tuple(
            SpecialistChecks(name=name, checks=checks) for name, checks in chosen.items() if checks
        )
    else:
        inside = place.inside("specialist")
        specialists = tuple(
            _specialist(name, named[name], found, inside.inside(name)) for name in NAMES if name in named
        )
    return _for_the_front_end(written.get("frontend"), specialists, place)


def _for_the_front_end(
    frontend: bool | None, specialists: tuple[SpecialistChecks, ...], place: Place
) -> tuple[SpecialistChecks, ...]:
    if frontend is False:
        return tuple(entry for entry in specialists if entry.name != FRONTEND_ONLY)
    if frontend and all(entry.name != FRONTEND_ONLY for entry in specialists):
        raise place.at("frontend").error(
            f"is true, but {FRONTEND_ONLY} has no preset; give [specialist.{FRONTEND_ONLY}] a command"
        )
    return specialists


def _specialist(name: str, written: WrittenSpecialist, found: Found, place: Place) -> SpecialistChecks:
    entries = _entries(written, place)
    checks = _written_checks(entries, written, place) if entries else _preset(name, written, found, place)
    _refuse_idle_keys(written, checks, place)
    return SpecialistChecks(name=name, checks=checks, timeout_minutes=written.get("timeout_minutes"))


def _entries(written: WrittenSpecialist, place: Place) -> list[WrittenCheck]:
    """The checks the user wrote; empty means the preset's."""
    if "command" not in written:
        return written.get("check", [])
    if "check" in written:
        checks = f"[[{place.heading.strip('[]')}.check]]"
        raise place.error(f"has a command and {checks} as well; write the command as one more check")
    return [WrittenCheck(command=written["command"])]


def _written_checks(
    entries: list[WrittenCheck], written: WrittenSpecialist, place: Place
) -> tuple[Check, ...]:
    in_list = "check" in written
    checks = []
    for item, entry in enumerate(entries, 1):
        at = place.inside("check", item) if in_list else place
        if "command" not in entry:
            raise at.error("has no command")
        check = Check(name=entry.get("name", program_name(entry["command"])), command=entry["command"])
        checks.append(_with_keys(_with_keys(check, written), entry))
        if in_list:
            _refuse_idle_keys(entry, (checks[-1],), at)
    for name, count in Counter(check.name for check in checks).items():
        if count > 1:
            raise place.error(f"has {count} checks named {name!r}; give each a name of its own")
    return tuple(checks)


def _preset(name: str, written: WrittenSpecialist, found: Found, place: Place) -> tuple[Check, ...]:
    if "coverage_percent" in written:
        # Asking for the gate is configuring it; without the plugin the run then says so instead of passing.
        found = found._replace(facts=found.facts | {"pytest-cov"})
    checks = preset_checks(name, found)
    if not checks:
        raise place.error("has no command, and no preset of this specialist applies here; give it a command")
    return tuple(_with_keys(check, written) for check in checks)


def _with_keys(check: Check, written: WrittenCheck) -> Check:
    """`check` with the keys of its own entry or of its specialist applied."""
    kinds = check.report_kinds()
    gate = check.coverage_percent
    if "coverage" in kinds:
        gate = written.get("coverage_percent", TARGET_COVERAGE_PERCENT if gate is None else gate)
    return check.model_copy(
        update={
            "output": written.get("output", check.output),
            "optional": written.get("optional", check.optional),
            "fail_on": written.get("fail_on", check.fail_on) if "sarif" in kinds else FailOn.ERROR,
            "coverage_percent": gate,
            "baseline": written.get("baseline", check.baseline),
            "env": tuple(dict.fromkeys((*check.env, *written.get("env", ())))),
        }
    )


def _refuse_idle_keys(written: Mapping[str, object], checks: tuple[Check, ...], place: Place) -> None:
    """A gate that no check measures would look like one that holds (B68)."""
    kinds = {kind for check in checks for kind in check.report_kinds()}
    for key, kind in (("coverage_percent", "coverage"), ("fail_on", "sarif")):
        if key in written and kind not in kinds:
            raise place.at(key).error(f"has no effect, because no command here writes {{{kind}}}")


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


def _only(only: str, specialists: tuple[SpecialistChecks, ...]) -> SpecialistChecks:
    name = only.removeprefix("@").removesuffix("-specialist")
    if name not in NAMES:
        near = nearest(name, NAMES)
        advice = f"did you mean {near!r}?" if near else f"the six are {', '.join(NAMES)}"
        raise UsageError(f"--only: unknown specialist {only[:60]!r}; {advice}")
    for entry in specialists:
        if entry.name == name:
            return entry
    there = ", ".join(entry.name for entry in specialists)
    raise UsageError(f"--only: {name} does not apply here; those that do are {there}")


def _nothing_to_check(project: str, written: Written, document: Document) -> UsageError:
    if written.get("specialist"):
        return document.place.at("frontend").error(
            f"is false, and {FRONTEND_ONLY} is the only specialist named; nothing is left to check"
        )
    advice = f"write a {FILE_NAME} (`fixloop init`)"
    if document.is_written:
        advice = f"name a specialist in {document.place.file}"
    reason = "it names no specialist and no preset applies" if document.is_written else "no preset applies"
    return UsageError(f"nothing to check in {project}: {reason}; {advice}")
