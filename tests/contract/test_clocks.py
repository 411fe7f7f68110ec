"""Deadlines and the engine's clock, which stops while the engine is away."""

import pytest

from fixloop.errors import UsageError
from fixloop.store.contract import Store
from fixloop.store.keys import shard_of
from fixloop.store.records import Due
from tests.fixtures.store_samples import FLOW, ME, change, claimed, created, sweep, ticket
from tests.fixtures.store_world import World


def names(found: tuple[Due, ...]) -> list[str]:
    return [due.name for due in found]


@pytest.mark.proves("R6")
def test_deadlines_within_the_horizon_are_returned_with_their_time(store: Store, world: World) -> None:
    clock = store.now(FLOW).clock
    created(store, set_deadlines={"soon": clock + 20.5, "later": clock + 40.5})

    (due,) = sweep(store, horizon_seconds=30).deadlines
    assert (due.workflow, due.name) == (FLOW, "soon")
    assert due.clock == pytest.approx(clock + 20.5)
    for _ in range(3):
        world.elapse(4)
        later = sweep(store, horizon_seconds=30).deadlines
    assert names(later) == ["later"]


@pytest.mark.proves("R6")
def test_a_due_deadline_is_returned_again_until_a_commit_removes_it(store: Store, world: World) -> None:
    clock = store.now(FLOW).clock
    created(store, set_deadlines={"soon": clock + 1})
    sweep(store, horizon_seconds=30)

    handed_out = []
    for _ in range(12):
        world.elapse(1)
        handed_out += names(sweep(store, horizon_seconds=30).deadlines)
    assert handed_out == ["soon", "soon"]

    store.commit(change(1, clear_deadlines=("soon",)))
    for _ in range(12):
        world.elapse(1)
        assert sweep(store).deadlines == ()


def test_a_deadline_that_is_set_again_counts_from_there(store: Store, world: World) -> None:
    clock = store.now(FLOW).clock
    created(store, set_deadlines={"soon": clock + 1})
    assert names(sweep(store).deadlines) == ["soon"]

    store.commit(change(1, set_deadlines={"soon": clock + 33}))
    assert sweep(store).deadlines == ()
    world.elapse(4)
    assert names(sweep(store).deadlines) == ["soon"]


@pytest.mark.proves("K34")
def test_the_clock_stops_while_no_sweeper_runs(store: Store, world: World) -> None:
    created(store)
    sweep(store)
    before = store.now(FLOW)

    world.elapse(4 * 3600)
    asleep = store.now(FLOW)
    swept = sweep(store)
    after = store.now(FLOW)

    assert asleep.clock == pytest.approx(before.clock + 5, abs=1)
    assert after.clock == pytest.approx(before.clock + 5, abs=1)
    assert swept.gap_seconds == pytest.approx(4 * 3600, abs=1)
    assert swept.away_seconds == pytest.approx(4 * 3600 - 5, abs=1)
    assert after.clock >= asleep.clock >= before.clock


@pytest.mark.proves("K34")
def test_leases_and_deadlines_do_not_run_while_the_engine_is_away(store: Store, world: World) -> None:
    clock = store.now(FLOW).clock
    created(store, ticket("a"), ticket("b", delay_seconds=30.5), set_deadlines={"limit": clock + 60.5})
    sweep(store)
    claim = claimed(store, "a", lease_seconds=9.0)

    world.elapse(14 * 3600)
    swept = sweep(store)

    assert (swept.lapsed, swept.ready, swept.deadlines) == ((), (), ())
    assert store.claim(ticket("a").id, "another", "t").status == "busy"
    assert store.renew(ticket("a").id, ME, claim.fence) == "ok"
    found = store.read(FLOW)
    assert found is not None
    assert found.away_seconds == pytest.approx(14 * 3600 - 5, abs=1)
    assert found.deadlines["limit"] - found.moment.clock == pytest.approx(55.5, abs=1)


def test_at_most_the_requested_deadlines_are_returned_and_none_is_lost(store: Store) -> None:
    clock, flows = store.now(FLOW).clock, [f"0a1b2c3d-42-{number}" for number in (1, 2, 3)]
    for workflow, name, seconds in zip(flows, ("third", "first", "second"), (3, 1, 2), strict=True):
        store.create(change(0, workflow=workflow, set_deadlines={name: clock + seconds}))

    found = [names(sweep(store, most_due=most).deadlines) for most in (1, 2, 5)]

    assert found == [["first"], ["second", "third"], []]


def test_the_limit_of_an_unclaimed_ticket_is_not_due(store: Store, world: World) -> None:
    created(store, ticket("s1", limit_name="fix", limit_seconds=8))
    claimed(store, "s1", lease_seconds=2)
    world.elapse(3)
    assert names(sweep(store).deadlines) == []

    world.elapse(4)
    assert names(sweep(store, horizon_seconds=30).deadlines) == []
    claimed(store, "s1", token="again")
    assert names(sweep(store, horizon_seconds=30).deadlines) == ["fix"]


@pytest.mark.proves("K34")
def test_short_gaps_between_sweeps_are_not_absence(store: Store, world: World) -> None:
    sweep(store)
    before = store.now(FLOW)

    for _ in range(10):
        world.elapse(4)
        assert sweep(store).gap_seconds == 0.0

    assert store.now(FLOW).clock == pytest.approx(before.clock + 40, abs=1)


def test_a_wall_clock_that_is_turned_back_does_not_turn_the_engine_back(store: Store, world: World) -> None:
    sweep(store)
    before = store.now(FLOW)

    world.elapse(-3600)
    turned = store.now(FLOW)
    swept = sweep(store)
    world.elapse(3)
    after = store.now(FLOW)

    assert turned.clock == pytest.approx(before.clock, abs=1)
    assert (swept.gap_seconds, swept.away_seconds) == (0.0, 0.0)
    assert after.clock == pytest.approx(before.clock + 3, abs=1)


def test_only_one_sweeper_at_a_time_holds_a_shard(store: Store, world: World) -> None:
    clock = store.now(FLOW).clock
    created(store, set_deadlines={"soon": clock})

    assert sweep(store, owner="first").mine
    other = sweep(store, owner="second")
    assert (other.mine, other.deadlines, other.hints) == (False, (), ())
    world.elapse(1.5)
    assert sweep(store, owner="first").mine
    world.elapse(1.5)
    assert not sweep(store, owner="second").mine
    world.elapse(1.5)
    assert sweep(store, owner="second").mine


def test_the_last_sweep_of_a_shard_is_recorded_with_its_owner_and_time(store: Store, world: World) -> None:
    number = shard_of(FLOW)
    assert store.sweepers()[number] == ("", "")
    sweep(store, owner="first")
    world.elapse(1)
    before = store.sweepers()

    sweep(store, owner="second")
    assert store.sweepers() == before
    sweep(store, owner="first")

    assert before[number][0] == "first"
    assert store.sweepers()[number][0] == "first"
    assert store.sweepers()[number] > before[number]


@pytest.mark.proves("R7")
def test_a_lost_sweeper_loses_its_shard_even_to_a_server_whose_clock_is_behind(
    store: Store, world: World
) -> None:
    assert sweep(store, owner="lost").mine

    world.elapse(-3600)

    assert sweep(store, owner="second").mine
    assert not sweep(store, owner="third").mine


def test_an_invalid_shard_is_refused(store: Store) -> None:
    for shard in (-1, 16):
        with pytest.raises(UsageError, match="there is no shard"):
            store.sweep(shard, owner=ME)
        with pytest.raises(UsageError, match="there is no shard"):
            store.now(shard)


def test_now_has_a_time_zone_and_never_goes_back(store: Store) -> None:
    first, second = store.now(3), store.now(3)

    assert first.at.utcoffset() is not None
    assert first <= second
