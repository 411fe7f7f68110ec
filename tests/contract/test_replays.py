"""`audit verify` of the profiles whose steps are runs of agents: every decision of a whole workflow is replayed."""

import pytest

from fixloop.engine.engine import ProfileEngine
from fixloop.engine.profile import profile_in, profile_named
from fixloop.engine.replay import audit
from fixloop.errors import NewerVersion
from fixloop.profiles.cycle import events as cyc
from fixloop.profiles.handoff import events as hnd
from fixloop.protocol.event import Event, Unexpected
from tests.fixtures.profile_runs import FLOW, SCRIPTS, run
from tests.fixtures.store_world import World


@pytest.mark.proves("K30", "C9", "D49")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_whole_workflow_of_every_profile_is_replayed_entry_by_entry(world: World, name: str) -> None:
    script = SCRIPTS[name]

    run(world.store, script)

    found = audit(world.store, FLOW)
    assert (found.problems, found.replayed) == ((), found.entries)
    assert found.entries > len(script.results())


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("cycle", cyc.DecisionMade(decision="skip")),
        ("handoff", hnd.StateWritten(sender="planner", field="note", value={"deep": [1, None]})),
    ],
)
def test_refusals_and_values_of_any_kind_are_replayed_too(
    world: World, name: str, refused: Event | Event
) -> None:
    script = SCRIPTS[name]
    engine = ProfileEngine(world.store, script.profile)
    engine.start(script.begin)
    if name == "handoff":
        engine.apply(FLOW, hnd.LockAcquired(sender="planner", resource="state.json"), operation="lock")
        engine.apply(FLOW, refused, operation="write")
    else:
        with pytest.raises(Unexpected):
            engine.apply(FLOW, refused, operation="write")

    found = audit(world.store, FLOW)

    assert (found.problems, found.replayed) == ((), found.entries)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_profile_is_found_by_its_snapshot(world: World, name: str) -> None:
    ProfileEngine(world.store, SCRIPTS[name].profile).start(SCRIPTS[name].begin)

    found = world.store.read(FLOW)

    assert found is not None
    assert profile_in(found.snapshot) is profile_named(name)


def test_a_snapshot_of_an_unknown_profile_is_left_to_a_newer_fixloop() -> None:
    with pytest.raises(NewerVersion, match="'relay', which this version does not have"):
        profile_in(b'{"profile":"relay","schema_version":1}')
