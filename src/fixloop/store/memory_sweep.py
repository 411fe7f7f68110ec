"""What a sweep of a shard in memory finds: the twin of sweep.lua."""

from collections.abc import Collection, Iterator, Sequence

from fixloop.protocol.ticket import Ticket
from fixloop.store.limits import MOST_PER_SWEEP, OVERTAKEN_BY, SEND_AGAIN, UNHEARD_AFTER
from fixloop.store.memory_records import KeptShard, KeptTicket, KeptWorkflow
from fixloop.store.records import Due, Lane

Workflows = dict[str, KeptWorkflow]


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
