"""The request for an agent's present run, from what the store has: what a command gets, and an outside agent reads."""

from collections.abc import Callable
from typing import Final

from fixloop.errors import UsageError
from fixloop.profiles.cycle import CYCLE
from fixloop.profiles.handoff import HANDOFF
from fixloop.profiles.reading import profile_of
from fixloop.protocol.cycle.messages import Input, Message, Violation
from fixloop.protocol.cycle.prompt import prompt as cycle_prompt
from fixloop.protocol.handoff.prompt import prompt as handoff_prompt
from fixloop.store.contract import Store


def request_for(store: Store, snapshot: bytes, agent: str) -> str:
    """
    What an agent of a cycle or of handoffs is asked.

    Args:
        snapshot: the workflow's state as it is stored.

    Raises:
        UsageError: the profile has no such agents, or the agent takes no part.
    """
    name = profile_of(snapshot)
    if name not in _RENDERED:
        raise UsageError(f"a {name} workflow asks no {agent}; `fixloop inbox` shows what is open")
    return _RENDERED[name](store, snapshot, agent)


def _of_cycle(store: Store, snapshot: bytes, agent: str) -> str:
    state = CYCLE.load(snapshot)
    return cycle_prompt(state, agent, _said_to(store, state.workflow, agent))


def _said_to(store: Store, workflow: str, agent: str) -> list[Message]:
    """What was said to it since its last report, oldest first."""
    found: list[Message] = []
    for entry in reversed(store.history(workflow)):
        event = entry.body["event"]
        if event["kind"] == "phase-reported" and event.get("sender") == agent:
            break
        said = map(Message.model_validate, reversed(entry.body.get("messages", ())))
        found += [m for m in said if m.recipient == agent and isinstance(m.body, Input | Violation)]
    return found[::-1]


def _of_handoff(store: Store, snapshot: bytes, agent: str) -> str:
    return handoff_prompt(HANDOFF.load(snapshot), agent)


_RENDERED: Final[dict[str, Callable[[Store, bytes, str], str]]] = {
    "cycle": _of_cycle,
    "handoff": _of_handoff,
}
