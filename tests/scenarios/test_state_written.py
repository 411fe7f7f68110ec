"""What agents of handoffs write into their state.json: their own fields, and others."""

import json

import pytest

from fixloop.profiles.handoff.agent_output import fields_written
from fixloop.profiles.handoff.events import Answered, StateWritten
from fixloop.profiles.handoff.files import state_document
from fixloop.protocol.event import Unexpected
from tests.fixtures.handoff_stage import SPEC, HandoffStage


def written(field: str, value: object, sender: str = "builder") -> StateWritten:
    return StateWritten(sender=sender, field=field, value=value, at_once=True)


@pytest.mark.proves("D19", "D45", "K10")
def test_an_agent_s_own_field_is_written_under_a_free_lock_then_released() -> None:
    stage = HandoffStage().plan()

    stage.apply(written("coverage", 80))
    stage.apply(written("coverage", 81, sender="fixer"))

    assert state_document(stage.state)["coverage"] == 81
    assert stage.state.locks == {}
    stage.lock("builder", "state.json")
    stage.apply(written("coverage", 82))
    assert stage.state.locks["state.json"].agent == "builder"


@pytest.mark.proves("D24", "D26", "K10")
def test_a_lock_holder_s_field_is_not_overwritten_until_the_lock_expires() -> None:
    stage = HandoffStage().plan()
    stage.lock("fixer", "state.json")
    with pytest.raises(Unexpected, match="builder writes coverage while fixer has the lock"):
        stage.apply(written("coverage", 80))

    stage.at(31).apply(written("coverage", 80))

    assert stage.state.metadata == {"coverage": 80}


@pytest.mark.proves("D46", "G10")
def test_critical_fields_wait_for_a_person_and_the_engine_s_are_refused() -> None:
    stage = HandoffStage().plan()

    stage.apply(written("iteration", 4))
    with pytest.raises(Unexpected, match="agents is written by the orchestrator only"):
        stage.apply(written("agents", {}))
    with pytest.raises(Unexpected, match="status is written by the orchestrator only"):
        stage.apply(written("status", "completed"))

    assert [question.reason for question in stage.state.questions] == ["state_conflict"]
    assert stage.state.iteration == 1


@pytest.mark.proves("D46", "G10")
@pytest.mark.parametrize(
    ("field", "value", "name", "after"),
    [
        ("iteration", 4, "iteration", 4),
        ("iteration", "four", "iteration", 1),
        ("current_workflow", {"spec": "specs/b.md", "type": "bugfix"}, "spec", "specs/b.md"),
        ("current_workflow.type", "bugfix", "kind", "bugfix"),
        ("current_workflow.spec", "/etc/passwd", "spec", SPEC),
        ("locks.src/auth.ts", None, "locks", {}),
        ("locks", {}, "locks", {}),
        ("last_handoff", "handoff-1", "iteration", 1),
    ],
)
def test_an_approved_write_takes_effect_where_possible(
    field: str, value: object, name: str, after: object
) -> None:
    stage = HandoffStage().plan()
    if field.startswith("locks"):
        stage.lock("fixer", "src/auth.ts")
    stage.apply(written(field, value))

    stage.apply(Answered(answer="apply"))

    assert getattr(stage.state, name) == after
    assert stage.state.questions == ()


@pytest.mark.proves("D46")
def test_a_dropped_write_changes_nothing() -> None:
    stage = HandoffStage().plan()
    stage.apply(written("iteration", 4))

    stage.apply(Answered(answer="drop"))

    assert (stage.state.iteration, stage.state.held_writes) == (1, ())


@pytest.mark.proves("D19")
def test_every_field_that_differs_from_the_given_state_counts_as_written() -> None:
    stage = HandoffStage().plan()
    snapshot = stage.state.model_dump_json(exclude_defaults=True).encode()
    laid = state_document(stage.state)

    assert fields_written(snapshot, json.dumps(laid).encode()) == {}
    changed = laid | {"coverage": {"lines": 80}, "iteration": 2}
    assert fields_written(snapshot, json.dumps(changed).encode()) == {
        "coverage": {"lines": 80},
        "iteration": 2,
    }


@pytest.mark.parametrize(
    "content", [b"", b"no JSON", b"[1]", b"[" * 100_000, b'{"a": "%s"}' % (b"x" * 20_000)]
)
def test_an_invalid_or_oversized_state_file_writes_nothing(content: bytes) -> None:
    snapshot = HandoffStage().state.model_dump_json(exclude_defaults=True).encode()

    assert fields_written(snapshot, content) == {}
