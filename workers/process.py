"""What one process has once: store, engine, heart and its name as an owner. Made anew after a fork."""

import os
from functools import lru_cache
from typing import Final

from fixloop.engine import Engine
from fixloop.errors import UsageError
from fixloop.mailbox import Mailboxes
from fixloop.owner import owner
from fixloop.profiles.profile import AnyOutcome
from fixloop.protocol.state import State
from fixloop.protocol.ticket import Ticket
from fixloop.settings import RedisUrls, load_settings
from fixloop.store.contract import Store
from fixloop.store.redis_store import RedisStore
from workers.lease import Heart

__all__ = ["Process", "named_urls", "process"]

# A Redis that restarts with an append-only file is back within seconds; a step's work is worth the wait.
PATIENCE_SECONDS: Final = 30.0


class Process:
    """Connections and identity of this process."""

    def __init__(self) -> None:
        urls = named_urls()
        self.store: Store = RedisStore(urls.state, patience_seconds=PATIENCE_SECONDS)
        self.engine = Engine(self.store, _hint, _announce)
        self.mailboxes = Mailboxes(urls.broker)
        self.heart = Heart(self.store)
        self.owner = owner()


def named_urls() -> RedisUrls:
    """
    Broker and state as this process' environment names them.

    Raises:
        UsageError: it names none.
    """
    urls = load_settings().urls()
    if urls is None:
        raise UsageError("no Redis is named; set FIXLOOP_STATE_URL")
    return urls


def process() -> Process:
    """This process' own; a forked child gets a new one."""
    return _process_of(os.getpid())


@lru_cache(maxsize=1)
def _process_of(pid: int) -> Process:
    return Process()


def _hint(ticket: Ticket, state: State) -> None:
    from workers.following import hint

    hint(ticket, state)


def _announce(outcome: AnyOutcome[State]) -> None:
    from workers.delivering import announce

    announce(outcome)
