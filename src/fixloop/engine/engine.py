"""The shell around `decide`: read, decide, commit; nothing is decided here.

Used alike by workers, which hold a ticket, and by commands, which bring an event from outside. A commit that
meets a newer version decides again on that version; a repetition gets its first answer.
"""

import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, Generic, NamedTuple

from fixloop.engine.profile import AnyOutcome, Profile, S, iso, profile_named
from fixloop.errors import Damaged, ProtocolError, UsageError
from fixloop.protocol.event import Event, Start
from fixloop.protocol.moment import Moment
from fixloop.protocol.refusals import Moved, NotDue, Repeated, Unexpected
from fixloop.protocol.state import State
from fixloop.protocol.ticket import Ticket, attend_ticket
from fixloop.store.contract import Store
from fixloop.store.keys import shard_of
from fixloop.store.packing import NOTHING, Context
from fixloop.store.records import Claim, Commit, Committed, GoesOn, Snapshot

MOST_OF_A_REASON: Final = 500
ROUNDS: Final = 60
"""How often a decision is made again on a newer version before giving up; each round lost one race."""
AT_ONCE: Final = 3
"""Rounds without a pause; many that go for one workflow make room for each other then."""
LONGEST_PAUSE_SECONDS: Final = 0.05


class ProfileHolding(NamedTuple, Generic[S]):
    """A claimed ticket as its holder knows it."""

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
    """The version that a decision is made on."""

    version: int
    head: str
    context: Context
    moment: Moment
    state: S | None = None

    def moved(self, to: Committed, load: Callable[[bytes], S]) -> "_Basis[S]":
        """What another commit, which was faster, made of it."""
        return _Basis(to.version, to.head, to.context, self.moment, load(to.snapshot or b""))


class ProfileApplied(NamedTuple, Generic[S]):
    """An event that was committed, or that was known already."""

    outcome: AnyOutcome[S] | None
    """None when there was nothing to commit: a repetition, or a ticket that others took over."""
    status: str
    """`ok`, `dup`, `stale`, `gone`, `exists`; `refused`: it was not its bringer's to bring; `moved`: see `finish`."""
    version: int
    other: str = ""
    """The workflow that is live already, for `exists`."""
    claim: Claim | None = None
    """Of the first step that follows, where it is to be gone on with."""

    @property
    def steps(self) -> Sequence[Ticket]:
        return self.outcome.steps if self.outcome is not None else ()


class ProfileEngine(Generic[S]):
    """Applies events to workflows; `hint` is called for each new ticket and may be lost, `announce` likewise."""

    def __init__(
        self,
        store: Store,
        profile: Profile[S],
        hint: Callable[[Ticket, S], object] | None = None,
        announce: Callable[[Any], object] | None = None,
    ) -> None:
        """Nothing is applied yet; `announce` tells a declared agent what a committed outcome says to it."""
        self.store = store
        self.profile = profile
        self._hint = hint
        self._announce = announce

    def of(self, profile: Profile[Any]) -> "ProfileEngine[Any]":
        """The same store and the same listeners, for workflows of another profile."""
        return ProfileEngine(self.store, profile, self._hint, self._announce)

    def start(self, event: Start) -> ProfileApplied[S]:
        """Create the workflow, unless one of its feature is live already; UsageError where nothing applies."""
        moment = self.store.now(event.workflow)
        outcome = self.profile.decide(None, event, moment)
        basis: _Basis[S] = _Basis(0, "", NOTHING, moment)
        committed = self.store.create(_commit(self.profile, event, outcome, basis, live=True))
        return self._applied(outcome, committed)

    def start_all(self, events: Sequence[Start]) -> list[ProfileApplied[S]]:
        """The same for several at once, in their order."""
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
        """The workflow's present state; UsageError where there is no such workflow."""
        return self.profile.load(self._read(workflow).snapshot)

    def _read(self, workflow: str) -> Snapshot:
        found = self.store.read(workflow)
        if found is None:
            raise UsageError(f"no workflow {workflow}; `fixloop status` lists what there is")
        return found

    def apply(self, workflow: str, event: Event, *, operation: str) -> ProfileApplied[S]:
        """Apply an event from outside, once for each `operation`. Unexpected where the state does not allow it: nothing
        was changed, and the history tells of it."""
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
        """Have the history tell that an event of this kind was refused, once for each reason; nothing else changes.
        `artifacts` are the digests of what it rested on."""
        shown = reason[:MOST_OF_A_REASON]
        event = self.profile.refused(refused=kind, reason=shown, sender=sender, artifacts=artifacts)
        digest = sha256(event.model_dump_json().encode()).hexdigest()[:32]
        self._apply(workflow, event, f"refused/{digest}")

    def _apply(self, workflow: str, event: Event, operation: str) -> ProfileApplied[S]:
        found = self._read(workflow)
        state = self.profile.load(found.snapshot)
        basis = _Basis(found.version, found.head, found.context, found.moment, state)
        for round_ in range(ROUNDS):
            _make_room(round_)
            outcome = self.profile.decide(basis.state, event, basis.moment)
            if not outcome.commits:
                return ProfileApplied(outcome, "ok", basis.version)
            self._vouch(outcome)
            committed = self.store.commit(_commit(self.profile, event, outcome, basis, operation=operation))
            if committed.status != "conflict":
                return self._applied(outcome, committed)
            basis = basis.moved(committed, self.profile.load)
        raise ProtocolError(f"workflow {workflow} changed {ROUNDS} times in a row; try again")

    def reach(self, workflow: str, name: str, due: float) -> ProfileApplied[S]:
        """Act on a deadline, if it is still the one the state set (R6); NotDue where it lies ahead."""
        found = self.store.read(workflow)
        current = found.deadlines.get(name) if found is not None else None
        operation = f"{name}@{due}"
        is_past = found is not None and self.profile.is_deadline(name) and found.moment.clock > due
        if found is not None and current is None and is_past:
            # What it was for was faster (K8). One that was acted on has its operation already, and is not told again.
            reason = f"{name} no longer matters"
            late = self.profile.refused(
                refused="deadline-reached", reason=reason, sender=self.profile.orchestrator
            )
            self._apply(workflow, late, operation)
        if current is None or abs(current - due) > 0.001:
            return ProfileApplied(None, "gone", found.version if found is not None else 0)
        return self.apply(workflow, self.profile.reached(name=name, due=due), operation=operation)

    @staticmethod
    def held(
        profile: Profile[S], ticket: Ticket, claim: Claim, owner: str, state: S | None = None
    ) -> ProfileHolding[S]:
        """What a granted claim gives its holder; `state` is that of its snapshot, where it is known."""
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
        """Commit a ticket's result; its holder follows up the new tickets itself, the first of them at once if it gets
        its claim: `goes_on` says where it asks. `stale` or `gone`: the ticket was withdrawn or taken over, and the
        result is dropped. `refused`: this ticket's worker may not bring it (A51).
        `moved`: the work so far is not what it was made on any more. With both the ticket is still held. The history
        tells of what was dropped and refused."""
        worker, workflow, kind = self.profile.worker_of(held.ticket), held.ticket.workflow, event.kind
        try:
            self.profile.check_party(event, worker)
        except Unexpected as refused:
            self.refuse(workflow, kind, str(refused), sender=worker)
            return ProfileApplied(None, "refused", held.version)
        basis = _Basis(held.version, held.head, held.context, moment, held.state)
        for round_ in range(ROUNDS):
            _make_room(round_)
            try:
                outcome = self.profile.decide(basis.state, event, moment)
            except Unexpected as refused:
                # Only the present state may refuse it.
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
            self._vouch(outcome)
            commit = _commit(self.profile, event, outcome, basis, held=held)
            if outcome.steps and (how := goes_on(outcome.steps[0])):
                claim, token = outcome.steps[0].id, uuid.uuid4().hex
                commit = replace(commit, claim=claim, token=token, past_waiting=how == "past waiting")
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

    def _vouch(self, outcome: AnyOutcome[S]) -> None:
        """Before an end is written where entries are sealed. Raises Damaged: somebody without the key wrote one."""
        if outcome.state.ended and self.store.sealing is not None:
            workflow = outcome.state.workflow
            if wrong := self.store.verify(workflow):
                raise Damaged(workflow, wrong[0])

    def _applied(self, outcome: AnyOutcome[S], committed: Committed) -> ProfileApplied[S]:
        done = committed.status == "ok"
        if done and self._hint is not None:
            released: list[Ticket] = []
            if outcome.holds is False and (found := self.store.read(outcome.state.workflow)) is not None:
                # The tickets that a pause had held back and nobody has yet.
                made = {ticket.id for ticket in outcome.steps}
                pending = (kept.ticket for kept in found.tickets if kept.status == "pending")
                released = [ticket for ticket in pending if ticket.id not in made]
            for ticket in (*outcome.steps, *released):
                self._hint(ticket, outcome.state)
        if done and self._announce is not None:
            self._announce(outcome)
        return ProfileApplied(outcome if done else None, committed.status, committed.version, committed.other)


def _make_room(round_: int) -> None:
    if round_ > AT_ONCE:
        time.sleep(random.uniform(0, min(LONGEST_PAUSE_SECONDS, 0.001 * 2 ** (round_ - AT_ONCE))))


class Engine(ProfileEngine[State]):
    """Applies events to validation workflows."""

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
    operation: str = "",
    live: bool | None = None,
) -> Commit:
    state, fields = outcome.state, profile.fields(outcome.state)
    if basis.state is not None:
        fields = dict(fields.items() - profile.fields(basis.state).items())
    # What comes from outside and asks for a step takes the place of the one in progress: a fix brought by hand,
    # that of the fixer which still runs. Left alone, that one would be refused and offered again for ever.
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
    # What the event rests on and the history has to vouch for.
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
