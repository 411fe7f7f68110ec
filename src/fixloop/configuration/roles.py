"""Validates the agents of a cycle or a workflow of handoffs: the combinations allowed in `[cycle]` and `[handoff]`.

An agent is a command, an outside agent, or the validation loop itself. One that is not configured is outside.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fixloop.configuration.place import Place, advice, shown
from fixloop.configuration.settings import (
    VALIDATION_LOOP,
    CycleSettings,
    FileSettings,
    HandoffSettings,
    ProfileSettings,
    Role,
)
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
    agents = _agents(written, inside, own)
    try:
        order.check(graph_of(agents, order.default) or order.default)
    except UsageError as error:
        # The error for an impossible order names the key and its value (C44).
        for name, role in written.agent.items():
            if role.depends_on is not None and name.lower() in str(error):
                told = ", ".join(role.depends_on)
                raise inside.inside(name).at("depends_on").error(f"is {told!r}: {error}") from None
        raise
    return written.model_copy(update={"agent": agents})


def handoff_settings(written: HandoffSettings, place: Place, own: Registered) -> HandoffSettings:
    """The settings of `[handoff]`, with its agents by key; refuses invalid combinations."""
    return written.model_copy(update={"agent": _agents(written, place.inside("agent"), own)})


def _agents(written: ProfileSettings, inside: Place, own: Registered) -> dict[str, Role]:
    """The agents by key. A cycle may have more than its own, if they say whom they wait for (K17)."""
    is_cycle, agents = isinstance(written, CycleSettings), dict[str, Role]()
    for name, role in written.agent.items():
        key, at = name.lower(), inside.inside(name)
        if key not in own.agents and (role.depends_on is None or not is_cycle):
            told, where = advice(name, own.agents, f"the four are {', '.join(own.agents)}"), inside.heading
            raise UsageError(f"{inside.file}: unknown agent {shown(name)} in [{where.strip('[]')}]; {told}")
        if key not in own.agents and key in _TAKEN:
            raise at.error(f"cannot be, because {key} is no agent's name; choose another")
        if role.depends_on is not None and not is_cycle:
            raise at.at("depends_on").error("has no effect, because handoffs have their routes")
        if key in agents:
            raise inside.error(f"has {key} twice, in capitals and in small letters; keep one")
        may_loop = key not in _WRITERS if is_cycle else key == "reviewer"
        agents[key] = _checked(role, at, may_loop=may_loop, who="vas" if is_cycle else "the reviewer")
    return agents


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
