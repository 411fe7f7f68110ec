"""The request for an agent's present run, from what the store has: what a command gets, and an outside agent reads."""

from fixloop.errors import UsageError
from fixloop.profile_table import loaded, names, profile_of, registered
from fixloop.store.contract import Store


def request_for(store: Store, snapshot: bytes, agent: str) -> str:
    """What an agent of a cycle or of handoffs is asked; UsageError where the agent takes no part."""
    name = profile_of(snapshot)
    requests = registered(name).requests if name in names() else ""
    if not requests:
        raise UsageError(f"a {name} workflow asks no {agent}; `fixloop inbox` shows what is open")
    return str(loaded(requests)(store, snapshot, agent))
