"""Validates the agents of a cycle or a workflow of handoffs: the combinations allowed in `[cycle]` and `[handoff]`.

An agent is a command, an outside agent, or the validation loop itself. One that is not configured is outside.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fixloop.configuration.place import Place, advice, shown
from fixloop.configuration.settings import VALIDATION_LOOP, CycleSettings, FileSettings, HandoffSettings, Role
from fixloop.errors import UsageError
from fixloop.profile_table import Registered, loaded, names, registered

_WRITERS: Final = ("ra", "ep", "cd")
"""The agents that write; the validation loop judges others' work."""
_TAKEN: Final = ("orchestrator", "user", "coordination", "finish", "letter", "notify")


def sections_of_profiles(written: FileSettings, place: Place) -> dict[str, Any]:
    """The sections of profiles with agents, by profile; None for a missing section."""
    sections = {own: getattr(written, own.name) for own in map(registered, names()) if own.settings}
    return {
        own.name: loaded(own.settings)(said, place.inside(own.name), own) if said is not None else None
        for own, said in sections.items()
    }


def cycle_settings(written: CycleSettings, place: Place, own: Registered) -> CycleSettings:
    """The settings of `[cycle]`, with its agents by key; refuses invalid combinations."""
    inside, order = place.inside("agent"), loaded(own.order)
    agents: dict[str, Role] = {}
    places: dict[str, Place] = {}
    for name, role in written.agent.items():
        key, at = name.lower(), inside.inside(name)
        if key not in own.agents:
            # An additional agent must say whom it waits for (K17).
            if role.depends_on is None:
                raise _unknown(name, own.agents, inside)
            if key in _TAKEN:
                raise at.error(f"cannot be, because {key} is no agent's name; choose another")
        _refuse_twice(key, agents, inside)
        agents[key], places[key] = _checked(role, at, may_loop=key not in _WRITERS, who="vas"), at
    try:
        order.check(graph_of(agents, order.default) or order.default)
    except UsageError as error:
        # The error for an impossible order names the key and its value (C44).
        for key, role in agents.items():
            if role.depends_on is not None and key in str(error):
                told = ", ".join(role.depends_on)
                raise places[key].at("depends_on").error(f"is {told!r}: {error}") from None
        raise
    return written.model_copy(update={"agent": agents})


def handoff_settings(written: HandoffSettings, place: Place, own: Registered) -> HandoffSettings:
    """The settings of `[handoff]`, with its agents by key; refuses invalid combinations."""
    inside = place.inside("agent")
    agents: dict[str, Role] = {}
    for name, role in written.agent.items():
        key, at = name.lower(), inside.inside(name)
        if key not in own.agents:
            raise _unknown(name, own.agents, inside)
        if role.depends_on is not None:
            raise at.at("depends_on").error("has no effect, because handoffs have their routes")
        _refuse_twice(key, agents, inside)
        agents[key] = _checked(role, at, may_loop=key == "reviewer", who="the reviewer")
    return written.model_copy(update={"agent": agents})


def graph_of(agents: Mapping[str, Role], default: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Who waits for whom; empty if it is the default order (C38)."""
    said = {key: role.depends_on for key, role in agents.items() if role.depends_on is not None}
    return {**{key: tuple(needed) for key, needed in default.items()}, **said} if said else {}


def _checked(role: Role, place: Place, *, may_loop: bool, who: str) -> Role:
    """`role` as stored: without `outside`, which a missing command already implies."""
    command = role.command
    if command and role.outside:
        raise place.error("has a command and is outside; keep one of them")
    if not command and not role.outside:
        raise place.error("has no command; give it one, or write outside = true")
    if "env" in role.model_fields_set and (role.outside or role.is_validation_loop):
        raise place.at("env").error("has no effect, because no command of this agent is run")
    if command and command[0] == VALIDATION_LOOP and len(command) > 1:
        raise place.at("command").error(f"is {VALIDATION_LOOP} with arguments; it takes none")
    if command and command[0].startswith("fixloop:") and command[0] != VALIDATION_LOOP:
        raise place.at("command").error(f"is {shown(command[0])}; only {VALIDATION_LOOP!r} is built in")
    if role.is_validation_loop and not may_loop:
        raise place.at("command").error(
            f"is {VALIDATION_LOOP!r}, which judges what others wrote; it can be the command of {who}"
        )
    return role.model_copy(update={"outside": False})


def _refuse_twice(key: str, agents: Mapping[str, Role], inside: Place) -> None:
    if key in agents:
        raise inside.error(f"has {key} twice, in capitals and in small letters; keep one")


def _unknown(name: str, known: Iterable[str], inside: Place) -> Exception:
    told = advice(name, known, f"the four are {', '.join(known)}")
    where = f"[{inside.heading.strip('[]')}]"
    return UsageError(f"{inside.file}: unknown agent {shown(name)} in {where}; {told}")
