"""A claimed step as its crew sees it, of whichever profile: the lease, commands under guard, and the commit."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from fixloop.engine.engine import ProfileApplied, ProfileEngine, ProfileHolding
from fixloop.engine.profile import AnyEvent
from fixloop.machine.guard import GuardedResult, run_guarded
from fixloop.outside.mailbox import Letter, Mailboxes
from fixloop.protocol.refusals import Repeated, Unexpected
from fixloop.protocol.ticket import Ticket
from fixloop.store.contract import Store
from workers.steps.lease import Heart, Lease


class Injured(Exception):
    """The work was killed from outside; nothing is known of its result (K40)."""


class Step:
    """One claimed ticket."""

    def __init__(
        self, engine: ProfileEngine[Any], heart: Heart, holding: ProfileHolding[Any], mailboxes: Mailboxes
    ) -> None:
        self.holding = holding
        self.lease = Lease(holding)
        self._engine = engine
        self._heart = heart
        self._mailboxes = mailboxes
        self._since = time.monotonic()

    @property
    def store(self) -> Store:
        return self._engine.store

    def cancelled(self) -> bool:
        """True as soon as the ticket was withdrawn or lost: stop, the result would be refused."""
        return self.lease.cancelled()

    def post(self, agent: str, letter: Letter) -> None:
        """Put a letter into an agent's mailbox, as urgent as the ticket. Raises InfrastructureError: it is away."""
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
    ) -> GuardedResult | None:
        """
        Run a command under guard, see `run_guarded`; None when the ticket was withdrawn meanwhile.

        Its limit is the state's to enforce, by the engine's clock. Only where the state could not be heard for
        `unheard_seconds` is it ended by that. Raises Injured: somebody else killed it.
        """
        result = run_guarded(
            argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout_seconds=unheard_seconds,
            since=lambda: self.lease.heard_at,
            cancelled=self.cancelled,
            apart=apart,
        )
        if result.cancelled or self.cancelled():
            return None
        if result.injured:
            raise Injured(f"{argv[0]} was killed by signal {result.signal}")
        return result

    def beating(self) -> AbstractContextManager[Lease]:
        """Renew the lease as long as the block runs."""
        return self._heart.beating(self.lease)

    def tell(self, event: AnyEvent, what: str) -> None:
        """
        Commit what happens on the way, once for each word `what` of this step: a process that takes the step over
        from a dead one says nothing new.
        """
        ticket = self.holding.ticket
        try:
            self._engine.apply(ticket.workflow, event, operation=f"{ticket.id}/{what}")
        except Repeated:
            # Said by an attempt that died.
            return
        except Unexpected:
            self.lease.withdraw()

    def say(self, event: AnyEvent, what: str) -> None:
        """As `tell`; but if it is refused, the history tells of it and the work goes on."""
        ticket = self.holding.ticket
        with suppress(Unexpected):
            self._engine.apply(ticket.workflow, event, operation=f"{ticket.id}/{what}")

    def finish(self, event: AnyEvent) -> ProfileApplied[Any]:
        """Commit the step's event at the time it happened."""
        moment = self.holding.moment.plus(time.monotonic() - self._since)
        return self._engine.finish(self.holding, event, moment)

    def is_held(self) -> bool:
        """Whether the ticket is still this step's: neither committed nor withdrawn, and nobody else's."""
        ticket = self.holding.ticket
        return self.store.renew(ticket.id, self.holding.owner, self.holding.fence) == "ok"

    def release(self, *, poison: bool, delay_seconds: float = 0.0) -> Ticket | None:
        """Give the ticket back: same attempt, next fence, no message (K40)."""
        return self.store.release(
            self.holding.ticket.id,
            self.holding.owner,
            self.holding.fence,
            poison=poison,
            delay_seconds=delay_seconds,
        )
