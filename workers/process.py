"""What one process has once: store, engine, heart and its name as an owner. Made anew after a fork."""

import os
from functools import lru_cache, partial
from typing import Any, Final

from fixloop.engine.engine import Engine, ProfileEngine
from fixloop.errors import UsageError
from fixloop.machine.owner import owner
from fixloop.outside.mailbox import Mailboxes
from fixloop.profiles.profile import AnyOutcome, Profile
from fixloop.profiles.validation import VALIDATION
from fixloop.protocol.ticket import Ticket
from fixloop.servers.settings import RedisUrls, load_settings
from fixloop.store.contract import Store
from fixloop.store.redis_store import RedisStore
from workers.steps.lease import Heart

# A Redis that restarts with an append-only file is back within seconds; a step's work is worth the wait.
PATIENCE_SECONDS: Final = 30.0


class Process:
    """Connections and identity of this process."""

    def __init__(self) -> None:
        urls = named_urls()
        self.store: Store = RedisStore(urls.state, patience_seconds=PATIENCE_SECONDS)
        self.engine = Engine(self.store, _hint, partial(_announce, VALIDATION))
        self._engines: dict[str, ProfileEngine[Any]] = {self.engine.profile.name: self.engine}
        self.mailboxes = Mailboxes(urls.broker)
        self.heart = Heart(self.store)
        self.owner = owner()

    def engine_of(self, profile: Profile[Any]) -> ProfileEngine[Any]:
        """The engine of a profile's workflows."""
        if profile.name not in self._engines:
            self._engines[profile.name] = ProfileEngine(
                self.store, profile, _hint, partial(_announce, profile)
            )
        return self._engines[profile.name]


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


def _hint(ticket: Ticket, state: Any) -> None:
    from workers.steps.hints import hint

    hint(ticket, state)


def _announce(profile: Profile[Any], outcome: AnyOutcome[Any]) -> None:
    from workers.steps.delivery import announce

    announce(profile, outcome)
