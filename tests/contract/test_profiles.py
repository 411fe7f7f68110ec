"""Cycles and handoffs on the same store, tickets, history and commits as the validation loop (R1, K30)."""

from typing import Any

import pytest

from fixloop.errors import NewerVersion
from fixloop.profile_table import profile_of
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.store.contract import Store
from tests.fixtures.profile_runs import FLOW, SCRIPTS, run
from tests.fixtures.store_world import World

CYCLE_TICKETS = ["ra.1.1", "ep.1.1", "cd.1.1", "ra.2.1", "cd.2.1", "vas.1.1", "cd.3.1", "vas.2.1", "finish.2"]
HANDOFF_TICKETS = ["planner.1.1", "builder.1.1", "reviewer.1.1", "fixer.1.1", "reviewer.2.1"]


@pytest.mark.proves("S17", "S23", "R1", "K30")
@pytest.mark.parametrize(("name", "tickets"), [("cycle", CYCLE_TICKETS), ("handoff", HANDOFF_TICKETS)])
def test_a_whole_workflow_passes_through_the_store_step_by_step(
    store: Store, name: str, tickets: list[str]
) -> None:
    done = run(store, SCRIPTS[name])

    assert [ticket.removeprefix(f"{FLOW}.") for ticket in done] == tickets
    found = store.read(FLOW)
    assert found is not None
    assert (found.fields["status"], found.fields["outcome"]) == ("completed", "success")
    assert profile_of(found.snapshot) == found.fields["profile"] == name
    assert (found.tickets, found.deadlines) == ((), {})
    assert store.verify(FLOW) == []
    assert store.live("0a1b2c3d", 7) is None


@pytest.mark.proves("S30", "D49", "R8")
@pytest.mark.parametrize("name", ["cycle", "handoff"])
def test_every_hint_delivered_twice_leaves_the_same_history(world: World, name: str) -> None:
    other = "1b2c3d4e-7-1"
    script = SCRIPTS[name]
    run(world.store, script)
    again = script._replace(begin=script.begin.model_copy(update={"workflow": other}))

    run(world.store, again, times=2)

    assert _told(world.store, other) == _told(world.store, FLOW)


def _told(store: Store, workflow: str) -> list[Any]:
    """The content of a history, without ids and times."""
    kept = []
    for entry in store.history(workflow):
        messages = [
            {
                key: value
                for key, value in message.items()
                if key not in ("uid", "at", "message_id", "timestamp")
            }
            for message in entry.body.get("messages", ())
        ]
        kept.append((entry.body["event"]["kind"], len(messages), entry.body.get("notes")))
    return kept


@pytest.mark.parametrize("profile", [CYCLE, HANDOFF])
def test_a_snapshot_of_a_newer_version_is_refused(profile: Any) -> None:
    newer = b'{"profile":"%s","schema_version":99}' % profile.name.encode()

    with pytest.raises(NewerVersion, match="written by a newer fixloop"):
        profile.load(newer)
