"""A claimed step of any profile: its lease, its guarded commands, its commit, and the crew that does the work.

The crew is `Commands`, or an object with the same methods that `FIXLOOP_CREW=module:factory` makes. If Redis is away,
the work goes on: the fence can be renewed later, as long as no other process has claimed the ticket.
"""

import importlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fixloop.engine.engine import ProfileApplied, ProfileEngine, ProfileHolding
from fixloop.errors import InfrastructureError
from fixloop.machine.guard import UNCONFINED, Confined, GuardedResult, run_guarded
from fixloop.outside.mailbox import Letter, Mailboxes
from fixloop.protocol.event import Event, Repeated, Unexpected
from fixloop.protocol.ticket import Ticket
from fixloop.store.contract import Store
from fixloop.store.records import GoesOn

if TYPE_CHECKING:
    from workers.commands.crew import Commands

log = logging.getLogger("fixloop.lease")

# Three beats per lease of 9 s: one lost beat is normal, two are a pause, three mean a lost machine.
BEAT_SECONDS: Final = 3.0
_GRACE_SECONDS: Final = 60.0
_NO_LIMIT_SECONDS: Final = 24 * 3600.0


class Injured(Exception):
    """The work was killed from outside, so its result is unknown (K40)."""


class PutOff(Exception):
    """A child workflow does the work; the ticket is delayed until the child has a result (see bridging)."""


class Step:
    """One claimed ticket."""

    def __init__(
        self, engine: ProfileEngine[Any], heart: "Heart", holding: ProfileHolding[Any], mailboxes: Mailboxes
    ) -> None:
        self.holding = holding
        self.heard_at = time.monotonic()
        """When the state last confirmed that the work may go on."""
        self._withdrawn = threading.Event()
        self._engine = engine
        self._heart = heart
        self._mailboxes = mailboxes
        self._since = time.monotonic()

    @property
    def store(self) -> Store:
        return self._engine.store

    def withdraw(self) -> None:
        self._withdrawn.set()

    def cancelled(self) -> bool:
        """Whether the ticket was withdrawn or lost: stop, because the result would be refused."""
        return self._withdrawn.is_set()

    def post(self, agent: str, letter: Letter) -> None:
        """Put a letter into an agent's mailbox, with the ticket's priority. Raises InfrastructureError: no broker."""
        self._mailboxes.put(agent, letter, self.holding.ticket.priority)

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        unheard_seconds: float,
        stdin: bytes = b"",
        apart: bool = False,
        confined: Confined = UNCONFINED,
    ) -> GuardedResult | None:
        """Run a command under guard, see `run_guarded`; None if the ticket was withdrawn in the meantime. The state
        enforces the command's limit, by the engine's clock; `unheard_seconds` ends it only if the state cannot be
        reached for so long. Raises Injured: another process killed it."""
        result = run_guarded(
            argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout_seconds=unheard_seconds,
            since=lambda: self.heard_at,
            cancelled=self.cancelled,
            apart=apart,
            confined=confined,
        )
        if result.cancelled or self.cancelled():
            return None
        if result.injured:
            raise Injured(f"{argv[0]} was killed by signal {result.signal}")
        return result

    def keep(self, *texts: str) -> tuple[str, ...]:
        """Store non-empty output as artifacts; returns their digests."""
        put = partial(self.store.put_artifact, self.holding.ticket.workflow)
        return tuple(put(text.encode(errors="replace")) for text in texts if text)

    def beating(self) -> AbstractContextManager[None]:
        """Renew the lease while the block runs."""
        return self._heart.beating(self)

    def tell(self, event: Event, what: str) -> None:
        """Commit an event during the step, once per word `what`, so that a process that takes over from a dead one does
        not repeat it. Raises Injured: the ticket is not claimed yet, so the step cannot go on."""
        ticket = self.holding.ticket
        if not self.holding.fence:
            raise Injured(f"{what} can be told in its phase alone")
        try:
            self._engine.apply(ticket.workflow, event, operation=f"{ticket.id}/{what}")
        except Repeated:
            # Committed by an attempt that died.
            return
        except Unexpected:
            self.withdraw()

    def say(self, event: Event, what: str) -> None:
        """Like `tell`, but a refusal is only recorded in the history, and the work goes on."""
        ticket = self.holding.ticket
        with suppress(Unexpected):
            self._engine.apply(ticket.workflow, event, operation=f"{ticket.id}/{what}")

    def finish(
        self, event: Event, goes_on: Callable[[Ticket], GoesOn] = lambda ticket: False
    ) -> ProfileApplied[Any]:
        """Commit the step's event with the time it happened; see `ProfileEngine.finish`."""
        moment = self.holding.moment.plus(time.monotonic() - self._since)
        return self._engine.finish(self.holding, event, moment, goes_on)

    def is_held(self) -> bool:
        """Whether the ticket is still held, neither committed nor withdrawn; this renews its lease."""
        ticket = self.holding.ticket
        return self.store.renew(ticket.id, self.holding.owner, self.holding.fence) == "ok"

    def ahead(self, state: Any, ticket: Ticket) -> "Step":
        """A step that may follow, tried before its ticket is claimed: it has no fence."""
        holding = self.holding._replace(state=state, ticket=ticket, fence=0)
        return Step(self._engine, self._heart, holding, self._mailboxes)

    def release(self, *, poison: bool, delay_seconds: float = 0.0) -> Ticket | None:
        """Return the ticket: same attempt, next fence, no message (K40)."""
        held = (self.holding.ticket.id, self.holding.owner, self.holding.fence)
        return self.store.release(*held, poison=poison, delay_seconds=delay_seconds)


class Heart:
    """Renews the leases of this process's steps."""

    def __init__(self) -> None:
        self._held: dict[str, Step] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def beating(self, step: Step) -> Iterator[None]:
        with self._lock:
            self._held[step.holding.ticket.id] = step
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name="fixloop-heart", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._held.pop(step.holding.ticket.id, None)

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            with self._lock:
                steps = list(self._held.values())
            for step in steps:
                try:
                    if step.is_held():
                        step.heard_at = time.monotonic()
                    else:
                        step.withdraw()
                except InfrastructureError:
                    continue
                except Exception:
                    # Without this thread no step of this process could commit any more.
                    log.exception("the lease of %s could not be renewed", step.holding.ticket.id)


def with_grace(limit_seconds: float | None) -> float:
    """How long a command may run while the state, which ends late work by withdrawing its ticket, cannot be reached."""
    return (_NO_LIMIT_SECONDS if limit_seconds is None else limit_seconds) + _GRACE_SECONDS


def crew_factory() -> "Callable[[], Commands]":
    """The function that makes a crew; raises the import error if `FIXLOOP_CREW` cannot be loaded."""
    name = os.environ.get("FIXLOOP_CREW", "workers.commands.crew:commands")
    module, _, factory = name.partition(":")
    made: Callable[[], Commands] = getattr(importlib.import_module(module), factory)
    return made


@lru_cache(maxsize=1)
def crew() -> "Commands":
    """The crew of this process."""
    return crew_factory()()
