"""The store in memory and the one in Redis give the same answers to the same calls."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fixloop.store.contract import Store
from fixloop.store.records import Claim, Committed, Lane, Retirement, Snapshot
from tests.fixtures.store_samples import QUEUE, change, release_all_of, sweep, ticket
from tests.fixtures.store_world import MemoryWorld, RedisWorld, World

pytestmark = pytest.mark.slow

# One feature, so that its workflows share a shard, one clock and one live entry.
FLOWS = tuple(f"0a1b2c3d-42-{number}" for number in (1, 2))
QUEUES = (QUEUE, "fixloop.fix")
LANES = [Lane(queue, priority) for queue in QUEUES for priority in (0, 3)]

# While Redis answers, its clock runs. So clocks go in steps of 4 s here, and what is waited for is 1 to 3 s away
# from any of them: a call that takes a second changes no answer.
STEPS = st.sampled_from([0.0, 4.0, 4.0])
HORIZON = 9
LEASE = 10.0
# 5 s of an absence count, and 3 more make two steps; in between another horizon keeps the distance.
ABSENCE, AFTER_ABSENCE, HORIZON_BETWEEN = 41.0, 3.0, 8
flows = st.sampled_from(FLOWS)
names = st.sampled_from([f"t{number}" for number in range(6)])
owners = st.sampled_from(["one", "two"])
fences = st.integers(1, 8)
tickets = st.builds(
    lambda name, queue, priority, delay, limit: {
        "name": name,
        "queue": queue,
        "priority": priority,
        "delay_seconds": delay,
        "limit_name": "operation" if limit else "",
        "limit_seconds": limit,
    },
    names,
    st.sampled_from(QUEUES),
    st.sampled_from([0, 3]),
    st.sampled_from([0.0, 0.0, 7.0]),
    st.sampled_from([None, 10.0, 46.0]),
)


several = st.lists(tickets, max_size=4, unique_by=lambda kind: str(kind["name"]))


def made(flow: str, kinds: list[dict[str, Any]]) -> tuple[Any, ...]:
    return tuple(
        ticket(kind["name"], flow, **{key: kind[key] for key in kind if key != "name"}) for kind in kinds
    )


def rounded(clock: float, now: float) -> int:
    """Steps from now."""
    return round((clock - now - 2) / 4)


def absences(seconds: float) -> int:
    """The number of absences."""
    return round(seconds / (ABSENCE - 5))


def of_commit(answer: Committed) -> tuple[Any, ...]:
    claim = answer.claim and of_claim(answer.claim)
    return answer.status, answer.version, answer.head, answer.snapshot, answer.other, claim


def of_claim(answer: Claim) -> tuple[Any, ...]:
    return (
        answer.status,
        answer.fence,
        answer.version,
        answer.head,
        answer.snapshot,
        answer.ticket,
        answer.deaths,
        absences(answer.away_seconds),
    )


def of_snapshot(found: Snapshot | None) -> tuple[Any, ...] | None:
    if found is None:
        return None
    due = {name: rounded(clock, found.moment.clock) for name, clock in found.deadlines.items()}
    return (
        found.version,
        found.head,
        found.snapshot,
        found.fields,
        found.tickets,
        found.stale,
        due,
        absences(found.away_seconds),
    )


def swept(store: Store, **more: Any) -> tuple[Any, ...]:
    found = sweep(store, FLOWS[0], **{"owner": "one", **more})
    return (
        found.mine,
        absences(found.away_seconds),
        absences(found.gap_seconds),
        sorted((due.workflow, due.name, rounded(due.clock, found.moment.clock)) for due in found.deadlines),
        *(sorted(one.id for one in some) for some in (found.lapsed, found.ready, found.unheard)),
    )


class Twins(RuleBasedStateMachine):
    """Each rule is applied to both."""

    url = ""

    @initialize()
    def begin(self) -> None:
        self.memory, self.real = MemoryWorld(), RedisWorld(self.url)
        self.worlds: tuple[World, World] = (self.memory, self.real)
        self.acted = self.real.clock()
        self.versions = dict.fromkeys(FLOWS, 0)
        self.heads = dict.fromkeys(FLOWS, "")
        self.held: dict[str, tuple[str, int]] = {}

    def teardown(self) -> None:
        if hasattr(self, "real"):
            self.real.close()

    def both(self, act: Callable[[Store], Any], *, writes: bool = True) -> Any:
        """Between two acts no time passes, however busy the machine is; what a change takes passes for both."""
        began = self.real.elapse_since(self.acted)
        memory, redis = (act(world.store) for world in self.worlds)
        self.acted = self.real.clock() if writes else began
        self.memory.elapse(self.acted - began)
        assert memory == redis
        return memory

    def committed(self, flow: str, **more: Any) -> tuple[Any, ...]:
        """A commit that both answer alike; each sets its deadlines by its own clock."""
        due = more.pop("due", {})

        def commit(store: Store) -> tuple[Any, ...]:
            now = store.now(flow).clock
            deadlines = {name: now + seconds for name, seconds in due.items()}
            return of_commit(store.commit(change(workflow=flow, set_deadlines=deadlines, **more)))

        answer: tuple[Any, ...] = self.both(commit)
        if answer[0] == "ok":
            self.versions[flow], self.heads[flow] = answer[1], answer[2]
        return answer

    @rule(flow=flows, kinds=several, live=st.booleans())
    def create(self, flow: str, kinds: list[dict[str, Any]], live: bool) -> None:
        self.committed(
            flow, version=0, new_tickets=made(flow, kinds), live=live or None, fields={"status": "PENDING"}
        )

    @rule(
        flow=flows,
        kinds=several,
        more=st.fixed_dictionaries(
            {},
            optional={
                "drop_all_tickets": st.just(True),
                "hold": st.sampled_from([True, True, False]),
                "stood_seconds": st.sampled_from([0.0, 4.0]),
                "drop_tickets": st.tuples(names),
                "clear_all_deadlines": st.just(True),
                "clear_deadlines": st.just(("late", "operation")),
                "live": st.booleans(),
                "operation": st.sampled_from(["cancel", "decide"]),
                "fields": st.just({"status": "FAIL", "deadline": ""}),
            },
        ),
        old=st.sampled_from([0, 0, 0, 1]),
        due=st.sampled_from([{}, {"late": 22.0}, {"late": 2.0, "operation": 62.0}]),
    )
    def change_without_ticket(
        self, flow: str, kinds: list[dict[str, Any]], more: dict[str, Any], old: int, due: dict[str, float]
    ) -> None:
        if "drop_tickets" in more:
            more["drop_tickets"] = tuple(f"{flow}.{name}" for name in more["drop_tickets"])
        version = max(1, self.versions[flow] - old)
        self.committed(flow, version=version, new_tickets=made(flow, kinds), due=due, **more)

    @rule(flow=flows, name=names, owner=owners, token=st.sampled_from(["a", "b"]))
    def claim(self, flow: str, name: str, owner: str, token: str) -> None:
        ticket_id = f"{flow}.{name}"
        answer = self.both(lambda store: of_claim(store.claim(ticket_id, owner, token, lease_seconds=LEASE)))
        if answer[0] == "ok":
            self.held[ticket_id] = (owner, answer[1])

    @precondition(lambda self: self.held)
    @rule(data=st.data(), kinds=several, goes_on=st.booleans())
    def commit_held(self, data: st.DataObject, kinds: list[dict[str, Any]], goes_on: bool) -> None:
        ticket_id = data.draw(st.sampled_from(sorted(self.held)))
        owner, fence = self.held[ticket_id]
        flow = ticket_id.partition(".")[0]
        following = f"{flow}.{kinds[0]['name']}" if goes_on and kinds else ""
        answer = self.committed(
            flow,
            version=max(1, self.versions[flow]),
            head=self.heads[flow],
            ticket=ticket_id,
            owner=owner,
            fence=fence,
            new_tickets=made(flow, kinds),
            claim=following,
            token="a" if following else "",
            # Waiting times are in milliseconds, which differ between the two.
            past_waiting=goes_on,
        )
        if answer[5] is not None:
            self.held[following] = (owner, answer[5][1])

    @rule(flow=flows, name=names, owner=owners, fence=fences)
    def commit_any(self, flow: str, name: str, owner: str, fence: int) -> None:
        version = max(1, self.versions[flow])
        self.committed(flow, version=version, ticket=f"{flow}.{name}", owner=owner, fence=fence)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        ticket_id = data.draw(st.sampled_from(sorted(self.held)))
        self.both(lambda store: store.renew(ticket_id, *self.held[ticket_id], lease_seconds=LEASE))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), poison=st.booleans(), delay=st.sampled_from([0.0, 0.0, 7.0]))
    def release(self, data: st.DataObject, poison: bool, delay: float) -> None:
        ticket_id = data.draw(st.sampled_from(sorted(self.held)))
        held = self.held[ticket_id]
        self.both(lambda store: store.release(ticket_id, *held, poison=poison, delay_seconds=delay))

    @rule(owner=owners)
    def release_dead(self, owner: str) -> None:
        def ids(store: Store) -> list[str]:
            return sorted(found.id for found in release_all_of(store, {owner}))

        self.both(ids)

    @rule(seconds=STEPS, owner=owners, empty=st.lists(st.sampled_from(LANES), unique=True))
    def pass_and_sweep(self, seconds: float, owner: str, empty: list[Lane]) -> None:
        for world in self.worlds:
            world.elapse(seconds)
        self.both(partial(swept, owner=owner, empty_lanes=empty, horizon_seconds=HORIZON))

    @rule()
    def be_away(self) -> None:
        for seconds, horizon in ((ABSENCE, HORIZON_BETWEEN), (AFTER_ABSENCE, HORIZON)):
            for world in self.worlds:
                world.elapse(seconds)
            self.both(partial(swept, horizon_seconds=horizon))

    @rule(flow=flows, how=st.sampled_from(["archived", "purged"]))
    def remove(self, flow: str, how: Retirement) -> None:
        if self.both(lambda store: store.remove(flow, self.heads[flow], how)) in ("ok", "gone"):
            self.versions[flow], self.heads[flow] = 0, ""

    @rule(flow=flows, data=st.sampled_from([b"a", b"b"]), shared=st.booleans())
    def put_artifact(self, flow: str, data: bytes, shared: bool) -> None:
        self.both(lambda store: store.put_artifact(flow, data, shared=shared))

    @rule(agent=owners, token=fences, lease_seconds=st.sampled_from([3.0, 9.0]))
    def use_locks(self, agent: str, token: int, lease_seconds: float) -> None:
        def lock(store: Store) -> tuple[Any, ...]:
            grant = store.locks.acquire(FLOWS[0], "file", agent, lease_seconds=lease_seconds)
            extended = store.locks.extend(FLOWS[0], "file", token, lease_seconds=lease_seconds)
            released = store.locks.release(FLOWS[0], "file", token + 1)
            return grant.status, grant.token, grant.agent, grant.previous, extended, released

        self.both(lock)

    @invariant()
    def look_alike(self) -> None:
        if not hasattr(self, "worlds"):
            return
        self.both(everything, writes=False)


def everything(store: Store) -> tuple[Any, ...]:
    """All that can be read."""
    each = [(of_snapshot(store.read(flow)), store.history(flow), store.verify(flow)) for flow in FLOWS]
    index = store.live("0a1b2c3d", 42), store.latest("0a1b2c3d", 42), sorted(store.workflows())
    retired = store.retired("0a1b2c3d", 42)
    gone = retired and (retired.workflow, retired.how), store.next_number("0a1b2c3d", 42)
    over = sorted(workflow for workflow, _ in store.ended(datetime(2100, 1, 1, tzinfo=UTC)))
    return each, store.owners(), index, gone, over, [store.stored(flow) for flow in FLOWS]


@pytest.mark.proves("R4", "R5", "R8", "K10")
def test_memory_and_redis_answer_alike(redis_url: str) -> None:
    Twins.url = redis_url

    run_state_machine_as_test(
        Twins,
        settings=settings(
            max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
