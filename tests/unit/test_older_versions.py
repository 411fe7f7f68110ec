"""Messages and states that older versions of `decide` wrote: they load, they are shown, and the loop goes on."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from fixloop.protocol.events import DecisionMade, FixCompleted
from fixloop.protocol.log import full_log
from fixloop.protocol.messages import Decision, Message, RevalidationTrigger
from fixloop.protocol.moment import Moment
from fixloop.protocol.rendering import render_whole
from fixloop.protocol.state import Completion, State
from fixloop.protocol.validation import decide
from fixloop.snapshots import load_state

OLDER: Final[list[tuple[str, dict[str, Any]]]] = [
    (path.stem, json.loads(path.read_text(encoding="utf-8")))
    for path in sorted((Path(__file__).parent / "older").glob("*.json"))
]
MESSAGES: Final = [(version, name) for version, kept in OLDER for name in kept["messages"]]


def kept(version: str) -> dict[str, Any]:
    return dict(OLDER)[version]


def state(version: str, name: str) -> State:
    return load_state(json.dumps(kept(version)["states"][name]).encode())


def later(since: State) -> Moment:
    """Well after everything that the state remembers."""
    return Moment(since.last_at + timedelta(minutes=10), 10_000.0)


@pytest.mark.parametrize(("version", "name"), MESSAGES)
def test_an_older_message_loads_and_is_shown(version: str, name: str) -> None:
    message = Message.model_validate(kept(version)["messages"][name])

    assert render_whole(message).startswith("## ")
    assert message.message_id in full_log([message], issue=101, feature="x", outcome=None)


@pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version, data in OLDER for name in data["states"]]
)
def test_an_older_state_loads_and_is_written_as_it_was(version: str, name: str) -> None:
    found = state(version, name)

    written = json.loads(found.model_dump_json(exclude_defaults=True))
    assert written == kept(version)["states"][name]


@pytest.mark.parametrize("version", [version for version, _ in OLDER])
def test_a_loop_that_an_older_version_began_takes_its_fix(version: str) -> None:
    waiting = state(version, "awaiting-fix")
    completion = Completion(iteration=1, by="agent", fixes=("it",), files=("a.py",), tip="c1", tree="tree-1")

    outcome = decide(waiting, FixCompleted(specialist="test-runner", completion=completion), later(waiting))

    trigger = outcome.messages[-1].body
    assert isinstance(trigger, RevalidationTrigger)
    assert len(trigger.previous_failures) == 2
    assert outcome.state.active.runs[0].fixes == ("it",)


@pytest.mark.parametrize("version", [version for version, _ in OLDER])
@pytest.mark.parametrize("name", ["escalated", "error"])
def test_a_decision_on_an_older_escalation_is_carried_out(version: str, name: str) -> None:
    paused = state(version, name)

    outcome = decide(paused, DecisionMade(decision=Decision.EXTEND, by="ann"), later(paused))

    assert not outcome.state.paused
    assert outcome.steps
