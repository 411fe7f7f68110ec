"""What this version writes of cycles and handoffs, one of each kind; every later version has to load it.

    UPDATE_GOLDEN=1 pytest tests/unit/test_older_profiles.py

writes the files of the present schemas. Files of released schemas are never changed.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, TypeAdapter

from fixloop.profiles.cycle import events as cyc, messages as cycle_messages
from fixloop.profiles.cycle.records import InputKind
from fixloop.profiles.cycle.state import SCHEMA_VERSION as CYCLE_VERSION, Cycle
from fixloop.profiles.handoff import events as hnd
from fixloop.profiles.handoff.outcome import Said
from fixloop.profiles.handoff.state import SCHEMA_VERSION as HANDOFF_VERSION, Handoffs
from fixloop.protocol.agent_events import (
    AgentFailed,
    BranchPushed,
    Cancelled,
    Continued,
    DeadlineReached,
    DeliveryFailed,
    EventRefused,
    MessageStored,
    Paused,
    PersonNotified,
)
from fixloop.protocol.event import Event
from fixloop.store.archive.record import line_of
from tests.fixtures.cycle_stage import CycleStage
from tests.fixtures.handoff_stage import HandoffStage
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.profile_runs import FLOW, SCRIPTS, run
from tests.scenarios.test_s17_cycle import the_seeds_cycle
from tests.scenarios.test_s23_s27_handoff import the_seeds_example
from tests.unit.golden_schema import FOLDER, digest_of, union_of


class Kind(NamedTuple):
    """The stored types of a profile."""

    version: int
    states: Callable[[], dict[str, Any]]
    events: Callable[[], Iterable[Event]]
    """One of each kind that a whole workflow lacks."""
    kinds: Mapping[str, type[Event]]
    stored: dict[str, Any]
    """The other types that are stored, by name."""


def folder_of(name: str) -> Path:
    return FOLDER / name


def text(name: str) -> str:
    """The golden file of a profile's present schema."""
    return json.dumps(_written(name), ensure_ascii=False, indent=1) + "\n"


def schemas(name: str) -> dict[str, str]:
    """By name of what is stored: the digest of its JSON schema, without the words that explain it."""
    types = {**KINDS[name].stored, "event": union_of(KINDS[name].kinds)}
    return {stored: digest_of(TypeAdapter(kind).json_schema()) for stored, kind in types.items()}


def record_of(name: str) -> bytes:
    """A whole workflow in its stored form, as an archive keeps it."""
    start = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
    store = MemoryStore(lambda: start)
    run(store, SCRIPTS[name])
    stored = store.stored(FLOW)
    assert stored is not None
    return line_of(stored, start + timedelta(seconds=1))


def _written(name: str) -> dict[str, Any]:
    kind, script = KINDS[name], SCRIPTS[name]
    told = [script.begin, script.started("ra" if name == "cycle" else "planner")]
    told += [event for events in script.results().values() for event in events]
    by_kind = {event.kind: event for event in (*told, *kind.events())}
    return {
        "schemas": schemas(name),
        "states": {state: _json(value) for state, value in kind.states().items()},
        "events": {
            event: value.model_dump(mode="json", exclude_defaults=True) | {"kind": event}
            for event, value in sorted(by_kind.items())
        },
        "record": base64.b64encode(record_of(name)).decode(),
    }


def _json(value: BaseModel) -> dict[str, Any]:
    found: dict[str, Any] = value.model_dump(mode="json", exclude_defaults=True)
    return found


def _cycles() -> dict[str, Cycle]:
    rows = {time: stage.state for time, stage in the_seeds_cycle()}
    escalated = CycleStage(max_iterations=1)
    for key, document in (("ra", "requirements.md"), ("ep", "plan.json"), ("cd", "implementation.md")):
        escalated.work(key, "success", document)
    escalated.work("vas", "failed", "validation.md", issues="[login fails]")
    paused = CycleStage()
    paused.apply(Paused(reason="lunch"))
    return {
        "begun": rows["10:00"],
        "blocked": rows["10:30"],
        "feedback": rows["10:45"],
        "completed": rows["11:00"],
        "escalated": escalated.state,
        "paused": paused.state,
    }


def _handoffs() -> dict[str, Handoffs]:
    asked = HandoffStage().plan()
    asked.start("builder")
    asked.escalate("builder", "JWT", "OAuth")
    held = HandoffStage()
    held.lock("builder", "state.json")
    held.apply(hnd.StateWritten(sender="builder", field="iteration", value=4))
    held.apply(hnd.StateWritten(sender="builder", field="notes", value={"auth": ["JWT", None]}))
    taken = HandoffStage()
    taken.lock("builder", "src/auth.ts")
    taken.at(31).lock("fixer", "src/auth.ts")
    return {
        "begun": HandoffStage().state,
        "built": HandoffStage().plan().build().state,
        "asked": asked.state,
        "held": held.state,
        "taken over": taken.state,
        "completed": the_seeds_example().state,
    }


def _cycle_events() -> Iterable[Event]:
    return (
        cyc.CycleRestored(workflow=FLOW, state=_json(_cycles()["blocked"]), bundle="d" * 64),
        cyc.AnswerInvalid(agent="cd", problem="the answer has no PHASE_RESULT"),
        AgentFailed(agent="cd", reason="exit code 1", fatal=True, artifacts=("d" * 64,)),
        cyc.InputRequested(recipient="cd", input=InputKind.FEEDBACK, summary="two issues", actions=("fix",)),
        cyc.StateWritten(sender="cd", field="status"),
        BranchPushed(branch="fixloop/7", attempt=2),
        MessageStored(number=1),
        DeliveryFailed(number=1, error="cannot reach Redis"),
        PersonNotified(detail="sh ended with exit code 0"),
        DeadlineReached(name="run/ra", due=1800.5),
        cyc.DecisionMade(decision="extend", text="use OAuth optional", iterations=2),
        Cancelled(reason="no longer wanted"),
        Paused(reason="lunch"),
        Continued(),
        EventRefused(refused="phase-reported", reason="nothing was asked of it", sender="cd"),
    )


def _handoff_events() -> Iterable[Event]:
    message = _handoffs()["built"].messages[-1].message_id
    return (
        hnd.HandoffsRestored(workflow=FLOW, state=_json(_handoffs()["asked"]), bundle="d" * 64),
        hnd.HandoffAccepted(sender="reviewer", message_id=message),
        hnd.HandoffRejected(sender="reviewer", message_id=message, reason="no tests"),
        hnd.HandoffSent(sender="builder", to="reviewer", type="review_request", payload={"a": [1]}),
        AgentFailed(agent="builder", reason="exit code 1"),
        hnd.AgentEscalated(sender="builder", reason="spec_ambiguity", details="which", options=("a", "b")),
        hnd.Answered(answer="a"),
        hnd.DecisionMade(decision="extend", iterations=2),
        hnd.LockAcquired(sender="builder", resource="src/auth.ts"),
        hnd.LockReleased(sender="builder", resource="src/auth.ts", token=1),
        hnd.LockExtended(sender="builder", resource="src/auth.ts", token=1),
        hnd.Heartbeat(sender="builder"),
        hnd.StateWritten(sender="builder", field="notes", value={"auth": ["JWT", None]}, seen=1),
        BranchPushed(error="the server is away", fatal=True),
        MessageStored(number=1),
        DeliveryFailed(number=1, error="cannot reach Redis"),
        PersonNotified(detail="sh ended with exit code 0"),
        DeadlineReached(name="run/planner", due=1800.5),
        Cancelled(reason="no longer wanted"),
        Paused(reason="lunch"),
        Continued(),
        EventRefused(refused="lock-released", reason="nobody has it", sender="fixer"),
    )


KINDS: Final = {
    "cycle": Kind(
        CYCLE_VERSION, _cycles, _cycle_events, cyc.KINDS, {"state": Cycle, "message": cycle_messages.Message}
    ),
    "handoff": Kind(
        HANDOFF_VERSION, _handoffs, _handoff_events, hnd.KINDS, {"state": Handoffs, "message": Said}
    ),
}
