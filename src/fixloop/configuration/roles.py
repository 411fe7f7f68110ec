"""The agents of a cycle or of a workflow of handoffs: what runs each of them, as `[cycle]` and `[handoff]` say.

An agent is a command, somebody outside, or the validation loop itself. One that is not written down is outside.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from fixloop.configuration.place import Place, nearest, shown
from fixloop.errors import UsageError
from fixloop.protocol.cycle.graph import DEFAULT_GRAPH, check_graph

VALIDATION_LOOP: Final = "fixloop:validation"
"""As a command: the agent's work is a validation workflow of its own."""
HANDOFFS: Final = "fixloop:handoff"
"""As a validation loop's fixer: each fix is a workflow of handoffs of its own."""
CYCLE_AGENTS: Final = ("ra", "ep", "cd", "vas")
HANDOFF_AGENTS: Final = ("planner", "builder", "reviewer", "fixer")
_WRITERS: Final = ("ra", "ep", "cd")
"""Whose work is to write; the validation loop judges what others wrote."""
_TAKEN: Final = ("orchestrator", "user", "coordination", "finish", "letter", "notify")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Role(_Frozen):
    """One agent."""

    command: tuple[str, ...] = ()
    """argv: prompt on stdin, answer on stdout; empty: somebody outside, who reads a mailbox."""
    timeout_minutes: float | None = None
    """For each of its runs; None: as its profile says; 0: no limit."""
    env: tuple[str, ...] = ()
    """Names of further environment variables the command may see."""
    depends_on: tuple[str, ...] | None = None
    """In a cycle; None: the default order (C38)."""

    @property
    def is_validation_loop(self) -> bool:
        return self.command == (VALIDATION_LOOP,)


class _Settings(_Frozen):
    max_iterations: int = Field(default=5, ge=1)
    timeout_minutes: float = 30.0
    """For each run of an agent."""
    attempts: int = 3
    """Starts of one run, the first included (K5)."""
    agent: dict[str, Role] = {}
    """By key; those that are missing are outside."""


class CycleSettings(_Settings):
    """`[cycle]`; 0 minutes: no limit."""

    converge_minutes: float = 15.0
    """How much longer a run may take after it was asked to come to an end (U13)."""
    answer_attempts: int = 2
    """Answers without a valid PHASE_RESULT, until a person is asked (G2)."""
    pass_rate_percent: float = 90.0
    coverage_percent: float = 80.0
    utc_offset_minutes: int = 480
    """Of all times in the named files (K14)."""


class HandoffSettings(_Settings):
    """`[handoff]`; the time limit is that of a lock, too (D25)."""


def cycle_settings(written: Mapping[str, Any] | None, place: Place) -> CycleSettings | None:
    """
    What `[cycle]` says; None where there is no such section.

    Raises:
        UsageError: an agent that is none, or that two sections speak of, or whose keys contradict each other.
    """
    if written is None:
        return None
    inside = place.inside("cycle").inside("agent")
    agents: dict[str, Role] = {}
    places: dict[str, Place] = {}
    for name, entry in written.get("agent", {}).items():
        key = _cycle_key(name, entry, inside)
        _refuse_twice(key, agents, inside)
        agents[key] = _role(entry, inside.inside(name))
        places[key] = inside.inside(name)
        _refuse_loop(agents[key], key not in _WRITERS, "vas", places[key])
    _check_graph(agents, places)
    return CycleSettings(**{**written, "agent": agents})


def handoff_settings(written: Mapping[str, Any] | None, place: Place) -> HandoffSettings | None:
    """
    What `[handoff]` says; None where there is no such section.

    Raises:
        UsageError: an agent that is none, or that two sections speak of, or whose keys contradict each other.
    """
    if written is None:
        return None
    inside = place.inside("handoff").inside("agent")
    agents: dict[str, Role] = {}
    for name, entry in written.get("agent", {}).items():
        key = name.lower()
        if key not in HANDOFF_AGENTS:
            raise _unknown(name, HANDOFF_AGENTS, inside)
        if "depends_on" in entry:
            raise (
                inside.inside(name)
                .at("depends_on")
                .error("has no effect, because handoffs have their routes")
            )
        _refuse_twice(key, agents, inside)
        agents[key] = _role(entry, inside.inside(name))
        _refuse_loop(agents[key], key == "reviewer", "the reviewer", inside.inside(name))
    return HandoffSettings(**{**written, "agent": agents})


def graph_of(agents: Mapping[str, Role]) -> dict[str, tuple[str, ...]]:
    """Who waits for whom; empty where nobody says otherwise: the default order (C38)."""
    said = {key: role.depends_on for key, role in agents.items() if role.depends_on is not None}
    return {**{key: tuple(needed) for key, needed in DEFAULT_GRAPH.items()}, **said} if said else {}


def _check_graph(agents: Mapping[str, Role], places: Mapping[str, Place]) -> None:
    """An order that no cycle can follow is refused where it is written, with what is written there (C44)."""
    try:
        check_graph(graph_of(agents) or DEFAULT_GRAPH)
    except UsageError as error:
        for key, role in agents.items():
            if role.depends_on is not None and key in str(error):
                told = ", ".join(role.depends_on)
                raise places[key].at("depends_on").error(f"is {told!r}: {error}") from None
        raise


def _cycle_key(name: str, entry: Mapping[str, Any], inside: Place) -> str:
    """One of the four, or a further one that says whom it waits for (K17)."""
    key = name.lower()
    if key in CYCLE_AGENTS:
        return key
    if "depends_on" not in entry:
        raise _unknown(name, CYCLE_AGENTS, inside)
    if key in _TAKEN:
        raise inside.inside(name).error(f"cannot be, because {key} is no agent's name; choose another")
    return key


def _role(entry: Mapping[str, Any], place: Place) -> Role:
    command, outside = entry.get("command", ()), entry.get("outside")
    if command and outside:
        raise place.error("has a command and is outside; keep one of them")
    if not command and not outside:
        raise place.error("has no command; give it one, or write outside = true")
    if "env" in entry and (outside or command == (VALIDATION_LOOP,)):
        raise place.at("env").error("has no effect, because no command of this agent is run")
    if command and command[0] == VALIDATION_LOOP and len(command) > 1:
        raise place.at("command").error(f"is {VALIDATION_LOOP} with arguments; it takes none")
    if command and command[0].startswith("fixloop:") and command[0] != VALIDATION_LOOP:
        raise place.at("command").error(f"is {shown(command[0])}; only {VALIDATION_LOOP!r} is built in")
    return Role(**{key: value for key, value in entry.items() if key != "outside"})


def _refuse_loop(role: Role, may: bool, who: str, place: Place) -> None:
    if role.is_validation_loop and not may:
        raise place.at("command").error(
            f"is {VALIDATION_LOOP!r}, which judges what others wrote; it can be the command of {who}"
        )


def _refuse_twice(key: str, agents: Mapping[str, Role], inside: Place) -> None:
    if key in agents:
        raise inside.error(f"has {key} twice, in capitals and in small letters; keep one")


def _unknown(name: str, known: Iterable[str], inside: Place) -> Exception:
    near = nearest(name, known)
    advice = f"did you mean {near!r}?" if near else f"the four are {', '.join(known)}"
    bare = inside._replace(prefix="", section="")
    return bare.error(f"unknown agent {shown(name)} in [{inside.heading.strip('[]')}]; {advice}")
