"""What an agent of a cycle is asked for its present run, from what the store has."""

from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.messages import Input, Message, Violation
from fixloop.profiles.cycle.prompt import prompt
from fixloop.store.contract import Store


def request(store: Store, snapshot: bytes, agent: str) -> str:
    """The request, with what was said to the agent since its last report."""
    state = CYCLE.load(snapshot)
    return prompt(state, agent, _said_to(store, state.workflow, agent))


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
