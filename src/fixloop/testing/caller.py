"""The caller of a chaos run: starts workflows, and answers their escalations."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import redis

from fixloop.engine.engine import Engine, ProfileEngine
from fixloop.engine.hints import producer, send_hint
from fixloop.engine.profile import AnyEvent, AnyStart, Profile
from fixloop.protocol.events import DecisionMade
from fixloop.protocol.messages import Decision
from fixloop.protocol.refusals import Unexpected
from fixloop.store.keys import workflow_key
from fixloop.store.redis_store import RedisStore

# The caller is not injured, and waits for a Redis that is.
PATIENCE_SECONDS: Final = 30.0
GIVEN_UP: Final = DecisionMade(decision=Decision.ABORT, by="chaos")
EXTENDED: Final = DecisionMade(decision=Decision.EXTEND, by="chaos")


@dataclass
class Workflows:
    _engine: ProfileEngine[Any]
    _client: Any
    _started: Sequence[AnyStart]
    _decisions: Mapping[str, Sequence[AnyEvent]]
    """By workflow, what a person says to its escalations, in order."""
    _given_up: AnyEvent
    """What is said to escalations that should not be there."""
    _decided: Counter[str] = field(default_factory=Counter)

    def begin(self) -> list[str]:
        for one in self._started:
            # `exists`: the first answer was lost with Redis. Whether it really is there shows at the end.
            self._engine.start(one)
        return [one.workflow for one in self._started]

    def unended(self, names: Sequence[str]) -> list[str]:
        pipe = self._client.pipeline(transaction=False)
        for workflow in names:
            pipe.hmget(workflow_key(workflow), "outcome", "paused")
        found = dict(zip(names, pipe.execute(), strict=True))
        for workflow, (outcome, paused) in found.items():
            if paused and not outcome:
                # One that escalates more often than it should is given up.
                number, decisions = self._decided[workflow], self._decisions.get(workflow, ())
                decision = decisions[number] if number < len(decisions) else self._given_up
                with suppress(Unexpected):
                    self._engine.apply(workflow, decision, operation=f"decision-{number}")
                    self._decided[workflow] += 1
        return [workflow for workflow, (outcome, _) in found.items() if not outcome]


class Caller(NamedTuple):
    """Somebody who hands work in, and looks at it."""

    store: RedisStore
    client: Any
    engine: Engine

    def workflows(
        self,
        started: Sequence[AnyStart],
        decisions: Mapping[str, Sequence[AnyEvent]],
        given_up: AnyEvent = GIVEN_UP,
        profile: Profile[Any] | None = None,
    ) -> Workflows:
        """Work of a profile, or of the loop, to be handed in."""
        engine = self.engine if profile is None else self.engine.of(profile)
        return Workflows(engine, self.client, started, decisions, given_up)


@contextmanager
def calling(url: str) -> Iterator[Caller]:
    app = producer(url)
    client: Any = redis.Redis.from_url(url, socket_timeout=2.0)
    with closing(RedisStore(url, patience_seconds=PATIENCE_SECONDS)) as store, closing(client), closing(app):
        yield Caller(
            store, client, Engine(store, lambda ticket, state: send_hint(app, ticket, state.profile))
        )
