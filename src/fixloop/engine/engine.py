"""Applies events to workflows: reads the state, calls `decide` and commits its outcome. It makes no decision itself.

Workers, which hold a ticket, and commands, which apply an outside event, both use it. If a commit finds a newer
version, the decision is made again on that version; a repeated commit gets its first answer.
"""

import random
import secrets
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final, Generic, NamedTuple

from fixloop.engine.profile import AnyOutcome, Profile, S, iso, profile_named
from fixloop.errors import Damaged, ProtocolError
from fixloop.protocol.event import Event, Moment, Moved, NotDue, Repeated, Start, Unexpected
from fixloop.protocol.state import State
from fixloop.protocol.ticket import Ticket, attend_ticket
from fixloop.store.contract import Store, snapshot_of
from fixloop.store.keys import shard_of
from fixloop.store.packing import NOTHING, Context
from fixloop.store.records import Claim, Commit, Committed, GoesOn

MOST_OF_A_REASON: Final = 500
ROUNDS: Final = 60
"""How often a decision is retried on a newer version before giving up; each retry lost one race."""
AT_ONCE: Final = 3
"""Retries without a pause; later ones wait a random time, so that many writers to one workflow get through."""
LONGEST_PAUSE_SECONDS: Final = 0.05


class ProfileHolding(NamedTuple, Generic[S]):
    """A claimed ticket and what its holder knows about it."""

    ticket: Ticket
    owner: str
    fence: int
    version: int
    head: str
    state: S
    moment: Moment
    deaths: int = 0
    context: Context = NOTHING


class _Basis(NamedTuple, Generic[S]):
    """The version that a decision is based on."""

    version: int
    head: str
    context: Context
    moment: Moment
    state: S | None = None

    def moved(self, to: Committed, load: Callable[[bytes], S]) -> "_Basis[S]":
        """The basis after another process committed first."""
        return _Basis(to.version, to.head, to.context, self.moment, load(to.snapshot or b""))


class ProfileApplied(NamedTuple, Generic[S]):
    """The result of applying an event that was committed now or earlier."""

    outcome: AnyOutcome[S] | None
    """None when nothing was committed: a repetition, or a ticket that was taken over."""
    status: str
    """`ok`, `dup`, `stale`, `gone`, `exists`; `refused`: the sender may not send this event; `moved`: see `finish`."""
    version: int
    other: str = ""
    """The workflow that is already live, for `exists`."""
    claim: Claim | None = None
    """The claim on the first follow-up step, if the commit made one."""

    @property
    def steps(self) -> Sequence[Ticket]:
        return self.outcome.steps if self.outcome is not None else ()


class ProfileEngine(Generic[S]):
    """Applies events to workflows. It calls `hint` for new tickets and `announce` for outcomes; a call may be lost."""

    def __init__(
        self,
        store: Store,
        profile: Profile[S],
        hint: Callable[[Ticket, S], object] | None = None,
        announce: Callable[[Any], object] | None = None,
    ) -> None:
        """Applies nothing yet; `announce` tells declared agents what a committed outcome says to them."""
        self.store = store
        self.profile = profile
        self._hint = hint
        self._announce = announce

    def of(self, profile: Profile[Any]) -> "ProfileEngine[Any]":
        """An engine for another profile, with the same store and callbacks."""
        return ProfileEngine(self.store, profile, self._hint, self._announce)

    def start(self, event: Start) -> ProfileApplied[S]:
        """Create the workflow unless one of the same feature is live. UsageError if there is nothing to do."""
        moment = self.store.now(event.workflow)
        outcome = self.profile.decide(None, event, moment)
        basis: _Basis[S] = _Basis(0, "", NOTHING, moment)
        committed = self.store.create(_commit(self.profile, event, outcome, basis, live=True))
        return self._applied(outcome, committed)

    def start_all(self, events: Sequence[Start]) -> list[ProfileApplied[S]]:
        """Start several workflows, in their order."""
        moments = {shard: self.store.now(shard) for shard in {shard_of(event.workflow) for event in events}}
        outcomes, commits = [], []
        for event in events:
            moment = moments[shard_of(event.workflow)]
            outcomes.append(self.profile.decide(None, event, moment))
            basis: _Basis[S] = _Basis(0, "", NOTHING, moment)
            commits.append(_commit(self.profile, event, outcomes[-1], basis, live=True))
        created = self.store.create_all(commits)
        return [self._applied(*each) for each in zip(outcomes, created, strict=True)]

    def state(self, workflow: str) -> S:
        """The workflow's current state; UsageError if there is no such workflow."""
        return self.profile.load(snapshot_of(self.store, workflow).snapshot)

    def apply(self, workflow: str, event: Event, *, operation: str) -> ProfileApplied[S]:
        """Apply an outside event, once per `operation`. Raises Unexpected if the state does not allow it: the state
        stays unchanged, and the history records the refusal."""
        try:
            return self._apply(workflow, event, operation)
        except (NotDue, Repeated):
            raise
        except Unexpected as refused:
            kept = getattr(event, "artifacts", ())
            self.refuse(workflow, event.kind, str(refused), sender=event.sender, artifacts=kept)
            raise

    def refuse(
        self, workflow: str, kind: str, reason: str, *, sender: str = "", artifacts: tuple[str, ...] = ()
    ) -> None:
        """Record in the history that an event of this kind was refused, once for each reason; nothing else changes.
        `artifacts` are the digests of the event's artifacts."""
        shown = reason[:MOST_OF_A_REASON]
        event = self.profile.event(
            "event-refused", refused=kind, reason=shown, sender=sender, artifacts=artifacts
        )
        digest = sha256(event.model_dump_json().encode()).hexdigest()[:32]
        self._apply(workflow, event, f"refused/{digest}")

    def _apply(self, workflow: str, event: Event, operation: str) -> ProfileApplied[S]:
        found = snapshot_of(self.store, workflow)
        state = self.profile.load(found.snapshot)
        basis = _Basis(found.version, found.head, found.context, found.moment, state)
        for round_ in range(ROUNDS):
            _back_off(round_)
            outcome = self.profile.decide(basis.state, event, basis.moment)
            if not outcome.commits:
                return ProfileApplied(outcome, "ok", basis.version)
            self._verify_before_end(outcome)
            committed = self.store.commit(_commit(self.profile, event, outcome, basis, operation=operation))
            if committed.status != "conflict":
                return self._applied(outcome, committed)
            basis = basis.moved(committed, self.profile.load)
        raise ProtocolError(f"workflow {workflow} changed {ROUNDS} times in a row; try again")

    def reach(self, workflow: str, name: str, due: float) -> ProfileApplied[S]:
        """Act on a deadline if the state still has it with this time (R6); NotDue if it lies ahead."""
        found = self.store.read(workflow)
        current = found.deadlines.get(name) if found is not None else None
        operation = f"{name}@{due}"
        is_past = found is not None and self.profile.is_deadline(name) and found.moment.clock > due
        if found is not None and current is None and is_past:
            # The awaited event came first (K8). A deadline that was acted on has used its operation: no second record.
            reason = f"{name} no longer matters"
            late = self.profile.event(
                "event-refused", refused="deadline-reached", reason=reason, sender=self.profile.orchestrator
            )
            self._apply(workflow, late, operation)
        if current is None or abs(current - due) > 0.001:
            return ProfileApplied(None, "gone", found.version if found is not None else 0)
        return self.apply(
            workflow, self.profile.event("deadline-reached", name=name, due=due), operation=operation
        )

    @staticmethod
    def held(
        profile: Profile[S], ticket: Ticket, claim: Claim, owner: str, state: S | None = None
    ) -> ProfileHolding[S]:
        """The holding that a granted claim gives; `state` is that of the claim's snapshot, if already loaded."""
        return ProfileHolding(
            ticket=ticket,
            owner=owner,
            fence=claim.fence,
            version=claim.version,
            head=claim.head,
            context=claim.context,
            deaths=claim.deaths,
            state=profile.load(claim.snapshot) if state is None else state,
            moment=claim.moment,
        )

    def finish(
        self,
        held: ProfileHolding[S],
        event: Event,
        moment: Moment,
        goes_on: Callable[[Ticket], GoesOn] = lambda ticket: False,
    ) -> ProfileApplied[S]:
        """Commit a ticket's result. The holder follows up the new tickets itself; `goes_on` says whether the commit
        also claims the first one for it. `stale` or `gone`: the ticket was withdrawn or taken over, or the state does
        not allow the result, which is dropped. `refused`: the ticket's worker may not send this event (A51). `moved`:
        the work that the result is based on has changed. After `refused` and `moved` the ticket is still held. The
        history records what was dropped or refused."""
        worker, workflow, kind = self.profile.worker_of(held.ticket), held.ticket.workflow, event.kind
        try:
            self.profile.check_party(event, worker)
        except Unexpected as refused:
            self.refuse(workflow, kind, str(refused), sender=worker)
            return ProfileApplied(None, "refused", held.version)
        basis = _Basis(held.version, held.head, held.context, moment, held.state)
        for round_ in range(ROUNDS):
            _back_off(round_)
            try:
                outcome = self.profile.decide(basis.state, event, moment)
            except Unexpected as refused:
                # Only the current state may refuse the event.
                found = self.store.read(workflow)
                if found is not None and found.version > basis.version:
                    state = self.profile.load(found.snapshot)
                    basis = _Basis(found.version, found.head, found.context, moment, state)
                    continue
                instead = self.profile.instead(event, refused)
                if instead is not None:
                    event = instead
                    continue
                if isinstance(refused, Moved):
                    return ProfileApplied(None, "moved", basis.version)
                self.refuse(workflow, kind, str(refused), sender=worker)
                return ProfileApplied(None, "stale", basis.version)
            self._verify_before_end(outcome)
            how = goes_on(outcome.steps[0]) if outcome.steps else False
            commit = _commit(self.profile, event, outcome, basis, held=held, goes_on=how)
            committed = self.store.commit(commit)
            if committed.status == "conflict":
                basis = basis.moved(committed, self.profile.load)
                continue
            if committed.status == "stale":
                late = f"ticket {held.ticket.id} was withdrawn or taken over from fence {held.fence}"
                self.refuse(workflow, kind, late, sender=worker)
            done = outcome if committed.status == "ok" else None
            return ProfileApplied(done, committed.status, committed.version, claim=committed.claim)
        raise ProtocolError(f"workflow {workflow} changed {ROUNDS} times in a row")

    def _verify_before_end(self, outcome: AnyOutcome[S]) -> None:
        """Verify the history before an end is committed; Damaged if an entry was written without the key."""
        if outcome.state.ended and self.store.sealing is not None:
            workflow = outcome.state.workflow
            if wrong := self.store.verify(workflow):
                raise Damaged(workflow, wrong[0])

    def _applied(self, outcome: AnyOutcome[S], committed: Committed) -> ProfileApplied[S]:
        done = committed.status == "ok"
        if done and self._hint is not None:
            released: list[Ticket] = []
            if outcome.holds is False and (found := self.store.read(outcome.state.workflow)) is not None:
                # Tickets that the pause held back and nobody has claimed.
                made = {ticket.id for ticket in outcome.steps}
                pending = (kept.ticket for kept in found.tickets if kept.status == "pending")
                released = [ticket for ticket in pending if ticket.id not in made]
            for ticket in (*outcome.steps, *released):
                self._hint(ticket, outcome.state)
        if done and self._announce is not None:
            self._announce(outcome)
        return ProfileApplied(outcome if done else None, committed.status, committed.version, committed.other)


def _back_off(round_: int) -> None:
    if round_ > AT_ONCE:
        time.sleep(random.uniform(0, min(LONGEST_PAUSE_SECONDS, 0.001 * 2 ** (round_ - AT_ONCE))))


class Engine(ProfileEngine[State]):
    """The engine for validation workflows."""

    def __init__(
        self,
        store: Store,
        hint: Callable[[Ticket, State], object] | None = None,
        announce: Callable[[Any], object] | None = None,
    ) -> None:
        super().__init__(store, profile_named("validation"), hint, announce)


def _commit(
    profile: Profile[S],
    event: Event,
    outcome: AnyOutcome[S],
    basis: _Basis[S],
    *,
    held: ProfileHolding[S] | None = None,
    goes_on: GoesOn = False,
    operation: str = "",
    live: bool | None = None,
) -> Commit:
    state, fields = outcome.state, profile.fields(outcome.state)
    if basis.state is not None:
        fields = dict(fields.items() - profile.fields(basis.state).items())
    # A step that an outside event asks for replaces the one in progress: a manual fix replaces the running fixer's.
    # Otherwise the fixer's result would be refused and its ticket offered again for ever.
    supersedes = profile.supersedes and held is None and basis.version > 0 and bool(outcome.steps)
    drops_all = outcome.withdraws_tickets or supersedes
    is_child = bool(getattr(state, "parent", "")) and not state.ended
    attends = (
        (attend_ticket(state, basis.version + 1),) if is_child and (drops_all or not basis.version) else ()
    )
    return Commit(
        workflow=state.workflow,
        expected_version=basis.version,
        head=basis.head,
        context=basis.context,
        snapshot=state.model_dump_json(exclude_defaults=True).encode(),
        fields=fields,
        entry=_entry(profile, event, outcome, basis.moment, held),
        ticket=held.ticket.id if held is not None else "",
        owner=held.owner if held is not None else "",
        fence=held.fence if held is not None else 0,
        operation=operation,
        new_tickets=(*outcome.steps, *attends),
        claim=outcome.steps[0].id if goes_on else "",
        past_waiting=goes_on == "past waiting",
        token=secrets.token_hex(16) if goes_on else "",
        drop_tickets=outcome.dropped,
        drop_all_tickets=drops_all,
        set_deadlines=dict(outcome.deadlines),
        clear_deadlines=outcome.cleared_deadlines,
        clear_all_deadlines=outcome.withdraws_tickets,
        hold=outcome.holds,
        stood_seconds=outcome.stood_seconds,
        live=False if state.ended else live,
    )


def _entry(
    profile: Profile[S], event: Event, outcome: AnyOutcome[S], moment: Moment, held: ProfileHolding[S] | None
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "at": iso(outcome.state.last_at),
        "clock": moment.clock,
        "decide": profile.decide_version,
        "event": event.model_dump(mode="json", exclude_defaults=True) | {"kind": event.kind},
    }
    # Artifacts that the event refers to; the history has to vouch for them.
    single = (getattr(event, name, "") for name in ("configuration", "bundle"))
    if named := [*getattr(event, "artifacts", ()), *filter(None, single)]:
        entry["artifacts"] = named
    if outcome.messages:
        entry["messages"] = [profile.recorded(message) for message in outcome.messages]
    if outcome.transitions:
        entry["transitions"] = [change.model_dump(mode="json") for change in outcome.transitions]
    if outcome.notes:
        entry["notes"] = list(outcome.notes)
    if held is not None:
        entry["by"] = {"ticket": held.ticket.id, "fence": held.fence, "owner": held.owner}
    return entry
