"""What each process has once: store, engines, mailboxes, heart and its name as an owner. A fork has its own."""

import logging
import os
from functools import lru_cache, partial
from typing import Any, Final

from fixloop.engine.bridging import bridge
from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import AnyOutcome, Profile
from fixloop.errors import InfrastructureError
from fixloop.machine.owner import owner
from fixloop.outside.mailbox import Mailboxes, announce
from fixloop.profile_table import registered
from fixloop.profiles.validation.engine import VALIDATION
from fixloop.servers.settings import named_urls
from fixloop.store.contract import Store
from fixloop.store.redis_store import RedisStore
from fixloop.store.seal import sealing_in
from workers.recovery.named_files import draw
from workers.steps.hints import hint, hint_again
from workers.steps.step import Heart

log = logging.getLogger("fixloop.delivering")

# A Redis with an append-only file restarts within seconds; that is cheaper than losing a step's work.
PATIENCE_SECONDS: Final = 30.0


class Process:
    """The connections and the identity of this process."""

    def __init__(self) -> None:
        urls = named_urls()
        self.store: Store = RedisStore(
            urls.state, patience_seconds=PATIENCE_SECONDS, sealing=sealing_in(urls.seal_key_file)
        )
        self._engines: dict[str, ProfileEngine[Any]] = {}
        self.engine = self.engine_of(VALIDATION)
        self.mailboxes = Mailboxes(urls.broker)
        self.heart = Heart()
        self.owner = owner()

    def engine_of(self, profile: Profile[Any]) -> ProfileEngine[Any]:
        if profile.name not in self._engines:
            self._engines[profile.name] = ProfileEngine(
                self.store, profile, hint, partial(self.announce, profile)
            )
        return self._engines[profile.name]

    def announce(self, profile: Profile[Any], outcome: AnyOutcome[Any]) -> None:
        """Publish a committed outcome: the named files, notices to other workflows, letters to outside agents. Files
        that cannot be written are written after the next commit; a letter that cannot be stored is only logged."""
        workflow, told = outcome.state.workflow, profile.letters(outcome)
        if registered(profile.name).files:
            draw(self.store, workflow, ended=outcome.state.ended)
        bridge(self.store, self.engine_of, outcome, partial(hint_again, self.store))
        if not told:
            return
        try:
            announce(self.mailboxes, told, workflow, outcome.state.issue)
        except InfrastructureError as error:
            names = ", ".join(each.agent for each in told)
            log.warning("what %s says to %s is not in all mailboxes: %s", workflow, names, error)


def process() -> Process:
    """The instance of this process; a forked child gets a new one."""
    return _process_of(os.getpid())


@lru_cache(maxsize=1)
def _process_of(pid: int) -> Process:
    return Process()
