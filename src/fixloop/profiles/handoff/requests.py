"""What an agent of handoffs is asked for its present run, from what the store has."""

from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.prompt import prompt
from fixloop.store.contract import Store


def request(store: Store, snapshot: bytes, agent: str) -> str:
    """The request: the state has all of it."""
    return prompt(HANDOFF.load(snapshot), agent)
