"""What a commit and a sweep do to what is kept in memory: the twins of commit.lua and sweep.lua."""

from collections.abc import Collection, Iterator, Sequence

from fixloop.protocol.ticket import Ticket
from fixloop.store.entries import digest_of
from fixloop.store.limits import MOST_PER_SWEEP, OVERTAKEN_BY, SEND_AGAIN, UNHEARD_AFTER
from fixloop.store.records import Commit, Committed, Due, Lane
from fixloop.testing.memory_records import KeptShard, KeptTicket, KeptWorkflow

Workflows = dict[str, KeptWorkflow]


def refusal(commit: Commit, kept: KeptWorkflow, living: str | None) -> Committed | None:
    """
    The answer to a commit that may not be written, as commit.lua has it, in its order.

    Args:
        living: the live workflow of its feature.
    """
    refused = _ticket_refusal(commit, kept)
    if refused is not None:
        return refused
    if commit.operation and commit.operation in kept.operations:
        return _first_answer(kept, kept.operations[commit.operation])
    if kept.version == 0 and commit.expected_version > 0:
        return Committed("gone", 0)
    if commit.live and living and (living != commit.workflow or commit.expected_version == 0):
        return Committed("exists", kept.version, kept.head, other=living)
    if kept.version != commit.expected_version or commit.head not in ("", kept.head):
        data, context = kept.state(commit.workflow)
        return Committed("conflict", kept.version, kept.head, data, context=context)
    return None


def _ticket_refusal(commit: Commit, kept: KeptWorkflow) -> Committed | None:
    if not commit.ticket:
        return None
    held, finished = kept.tickets.get(commit.ticket), kept.finished(commit.ticket)
    if held is not None and (held.fence, held.owner) == (commit.fence, commit.owner):
        return None
    if held is not None or (finished is not None and finished.fence is None):
        kept.stale += 1
        return Committed("stale", kept.version, kept.head)
    if finished is not None and finished.fence == commit.fence:
        return _first_answer(kept, finished.version)
    return Committed("gone", kept.version, kept.head)


def _first_answer(kept: KeptWorkflow, version: int) -> Committed:
    return Committed("dup", version, digest_of(kept.entries[version - 1]))


def take_tickets_away(commit: Commit, kept: KeptWorkflow) -> None:
    """The one that is committed, and those that a commit withdraws."""
    if commit.ticket:
        kept.take_away(commit.ticket, fence=commit.fence, version=kept.version)
    dropped = list(commit.drop_tickets) + (list(kept.tickets) if commit.drop_all_tickets else [])
    for ticket_id in dropped:
        if ticket_id in kept.tickets:
            kept.take_away(ticket_id, fence=None, version=0)


def clear_deadlines(commit: Commit, kept: KeptWorkflow) -> None:
    """Those that no longer matter."""
    for name in list(kept.deadlines) if commit.clear_all_deadlines else commit.clear_deadlines:
        kept.clear_deadline(name)


def due_deadlines(workflows: Workflows, clock: float, horizon: float, most: int) -> Iterator[Due]:
    """Deadlines due within the horizon, each to be looked at again after it was due."""
    found = sorted(
        (at, workflow, name)
        for workflow, kept in workflows.items()
        for name, at in kept.looked_at.items()
        if at <= clock + horizon
    )
    for _, workflow, name in found[:most]:
        due = workflows[workflow].deadlines[name]
        workflows[workflow].looked_at[name] = max(due, clock) + SEND_AGAIN + horizon
        yield Due(workflow, name, due)


def lapsed_leases(shard: KeptShard, workflows: Workflows, clock: float) -> Iterator[Ticket]:
    """Claimed tickets whose lease ran out are pending again; fence and limit wait for a late renewal."""
    found = sorted(_of_kind(workflows, "claimed"), key=lambda kept: kept.lease_until)
    for kept in [kept for kept in found if kept.lease_until <= clock][:MOST_PER_SWEEP]:
        flow = workflows[kept.ticket.workflow]
        flow.looked_at.pop(kept.limit, None)
        if flow.parked:
            kept.hold_back()
            continue
        shard.offer(kept, clock, again=True)
        yield kept.ticket


def ended_delays(shard: KeptShard, workflows: Workflows, clock: float) -> Iterator[Ticket]:
    """Delayed tickets that may be claimed now."""
    found = sorted(_of_kind(workflows, "delayed"), key=lambda kept: kept.ready)
    for kept in [kept for kept in found if kept.ready <= clock][:MOST_PER_SWEEP]:
        shard.offer(kept, clock, again=True)
        yield kept.ticket


def unheard(
    shard: KeptShard, workflows: Workflows, clock: float, empty_lanes: Collection[Lane]
) -> Iterator[Ticket]:
    """Pending tickets that ten younger ones overtook, or that wait although their lane is empty."""
    pending = sorted(_of_kind(workflows, "pending"), key=lambda kept: (kept.lane, kept.number))
    lost: list[KeptTicket] = []
    for lane, made in sorted(shard.made.items(), key=lambda item: str(item[0])):
        waiting = [kept for kept in pending if kept.lane == lane]
        lost.extend(_overtaken(waiting, made))
        if not waiting:
            del shard.made[lane]
    alone = (kept for kept in pending if kept.lane in empty_lanes and kept not in lost)
    lost.extend(kept for kept in alone if kept.offered < clock - UNHEARD_AFTER)
    for kept in lost[:MOST_PER_SWEEP]:
        shard.offer(kept, clock, again=True)
        yield kept.ticket


def _overtaken(waiting: Sequence[KeptTicket], made: int) -> list[KeptTicket]:
    """Of the tickets made after one, those that are no longer pending were claimed."""
    behind = range(len(waiting) - 1, -1, -1)
    return [
        kept
        for kept, younger in zip(waiting, behind, strict=True)
        if made - kept.number - younger >= OVERTAKEN_BY
    ]


def _of_kind(workflows: Workflows, kind: str) -> Iterator[KeptTicket]:
    return (kept for flow in workflows.values() for kept in flow.tickets.values() if kept.kind == kind)
