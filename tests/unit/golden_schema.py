"""What this version writes, one of each kind: kept as a golden file that every later version has to load.

    UPDATE_GOLDEN=1 pytest tests/unit/test_older_versions.py

writes that of the present schema. Files of released schemas are never changed.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Union

from pydantic import BaseModel, Field, TypeAdapter

from fixloop.engine.history import recorded
from fixloop.protocol import events as ev
from fixloop.protocol.event import Event
from fixloop.protocol.messages import Decision, Message
from fixloop.protocol.state import SCHEMA_VERSION, Completion, Limits, State
from fixloop.protocol.ticket import Ticket
from fixloop.store.archive.record import line_of
from tests.fixtures.command_stage import Agents
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.message_samples import SAMPLES
from tests.fixtures.script import errs, fails
from tests.fixtures.validation_stage import Stage

FOLDER: Final = Path(__file__).parent / "older"
PRESENT: Final = f"version-{SCHEMA_VERSION}"
_EVENTS: Final[tuple[ev.Event, ...]] = (
    ev.BaselineBegun(specialist="test-runner", check="pytest", base="c0"),
    ev.MessageStored(message_id="FAIL-101-test-runner-1"),
    ev.DeliveryFailed(message_id="FAIL-101-test-runner-1", error="the broker is away"),
    ev.ReceiptGiven(uid="u", message_id="FAIL-101-test-runner-1", by="coder"),
    ev.FixFailed(specialist="test-runner", iteration=1, attempt=2, error="exit code 1", output_tail="…"),
    ev.AnswerRejected(
        specialist="test-runner", iteration=1, violations=("missing section",), offending="text"
    ),
    ev.BlockerSignalled(by="coder", text="the database is away"),
    ev.DeadlineReached(name="main-agent-fix", due=1800.5),
    ev.DecisionMade(decision=Decision.EXTEND, by="ann", iterations=2, limits=Limits(fix_seconds=60.0)),
    ev.ManualFixDone(by="ann", files=("a.py",), tip="c2", tree="t2"),
    ev.PersonNotified(detail="told"),
    ev.BranchPushed(branch="fixloop/101"),
    ev.ResultNoted(by="ci (webhook)", name="build", commit="c1", conclusion="success", url="https://ci/1"),
    ev.Cancelled(by="ann", reason="no longer wanted"),
    ev.Paused(by="ann", reason="lunch"),
    ev.Continued(by="ann"),
    ev.EventRefused(refused="decision-made", reason="it was decided already"),
)


def written() -> dict[str, Any]:
    """Everything that is stored or sent, as this version writes it, with digests of the schemas."""
    stage = _waiting()
    applied = [*(event for event, _ in _escalated().applied), *_EVENTS]
    applied.append(ev.FixCompleted(specialist="test-runner", completion=_completion(), bundle="d" * 64))
    by_kind = {event.kind: event for event in applied}
    return {
        "schemas": schemas(),
        "messages": {name: recorded(message) for name, message in SAMPLES.items()},
        "states": {name: _json(state) for name, state in _states().items()},
        "events": {kind: _json(event) | {"kind": kind} for kind, event in sorted(by_kind.items())},
        "tickets": [ticket.model_dump(mode="json", exclude_none=True) for ticket in stage.executed],
        "record": base64.b64encode(_record()).decode(),
    }


def schemas() -> dict[str, str]:
    """By name of what is stored: the digest of its JSON schema, without the words that explain it."""
    event = union_of(ev.KINDS)
    kinds: dict[str, Any] = {"state": State, "message": Message, "event": event, "ticket": Ticket}
    return {name: digest_of(TypeAdapter(kind).json_schema()) for name, kind in kinds.items()}


def union_of(kinds: Mapping[str, type[Event]]) -> Any:
    """The type of an event of any of these kinds."""
    return Annotated[Union[tuple(kinds.values())], Field(discriminator="kind")]  # noqa: UP007


def text() -> str:
    """The golden file of this version."""
    return json.dumps(written(), ensure_ascii=False, indent=1) + "\n"


def _waiting() -> Stage:
    return Stage([fails("a", "b")], answers=None).run()


def _escalated() -> Stage:
    return Stage([fails("a"), fails("a"), fails("a"), fails("a")]).run()


def _states() -> dict[str, State]:
    held = _waiting()
    held.pause(reason="lunch")
    held.complete()
    return {
        "awaiting-fix": _waiting().state,
        "escalated": _escalated().state,
        "error": Stage([errs(), errs()]).run().state,
        "completed": Stage([fails("a", "b"), fails("a")]).run().state,
        "held": held.state,
    }


def _completion() -> Completion:
    return Completion(
        iteration=1,
        by="agent",
        fixes=("it",),
        files=("a.py",),
        tip="c1",
        tree="tree-1",
        diff="-a\n+b\n",
        said="done",
    )


def _record() -> bytes:
    """A whole workflow in its stored form, as an archive keeps it."""
    start = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
    store = MemoryStore(lambda: start)
    agents = Agents(store)
    workflow = agents.start(script="2 1 0")
    agents.run(workflow)
    stored = store.stored(workflow)
    assert stored is not None
    return line_of(stored, start + timedelta(seconds=1))


def _json(value: BaseModel) -> dict[str, Any]:
    found: dict[str, Any] = value.model_dump(mode="json", exclude_defaults=True)
    return found


def digest_of(schema: Any) -> str:
    """Of a JSON schema, without the words that explain it."""
    return hashlib.sha256(json.dumps(_bare(schema), sort_keys=True).encode()).hexdigest()[:16]


def _bare(schema: Any) -> Any:
    if isinstance(schema, dict):
        explained = isinstance(schema.get("description"), str)
        return {
            name: _bare(value)
            for name, value in schema.items()
            if name != "title" and not (explained and name == "description")
        }
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema
