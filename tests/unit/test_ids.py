"""The visible ids: their patterns, and that two in one second differ."""

import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from fixloop.protocol import ids
from fixloop.protocol.messages import Reason
from tests.fixtures.script import SILENT, BadAnswer, fails
from tests.fixtures.validation_stage import Stage

AT = datetime(2026, 3, 2, 9, 0, 7, 999_999, tzinfo=UTC)


@pytest.mark.proves("A23", "A27", "A35", "A42")
def test_each_type_has_its_own_pattern() -> None:
    assert ids.detection_id(47, "test-runner") == "DETECT-47-test-runner-1"
    assert ids.report_id(47, "test-runner", 2) == "VFR-47-test-runner-2"
    assert ids.request_id(47, 2) == "FIXREQ-47-2"
    assert ids.completion_id(47, 2) == "FIXDONE-47-2"
    assert ids.trigger_id(47, "test-runner", 3) == "REVAL-47-test-runner-3"
    assert ids.result_id(47, "test-runner", 3) == "REVALRES-47-test-runner-3"
    assert ids.success_id(47, "test-runner", 3) == "SUCCESS-47-test-runner-3"


@pytest.mark.proves("G4", "K14")
def test_a_stamp_is_compact_and_in_utc() -> None:
    east = AT.astimezone(timezone(timedelta(hours=8)))

    assert ids.stamped_id("ESC", 47, "security", AT, ()) == "ESC-47-security-20260302T090007Z"
    assert ids.stamped_id("ESC", 47, "security", east, ()) == "ESC-47-security-20260302T090007Z"


@pytest.mark.proves("G4")
@given(st.integers(min_value=1, max_value=30))
def test_ids_of_one_second_are_numbered_from_two(count: int) -> None:
    taken: tuple[str, ...] = ()
    for _ in range(count):
        taken = (*taken, ids.stamped_id("ERR", 47, "communication", AT, taken))

    assert taken[0] == "ERR-47-communication-20260302T090007Z"
    assert taken[1:] == tuple(f"{taken[0]}-{number}" for number in range(2, count + 1))


@pytest.mark.proves("G4", "A87")
def test_two_escalations_in_one_second_have_two_ids() -> None:
    stage = Stage([fails("a")], answers=[BadAnswer(), BadAnswer(), SILENT]).run()
    stage.decide("extend")
    stage.script.answers = [BadAnswer(), BadAnswer(), SILENT]
    stage.run()

    first, second = (m.message_id for m in stage.said("escalation"))
    assert second == f"{first}-2"
    notices = [m.message_id for m in stage.said("protocol-violation")]
    assert notices[1] == f"{notices[0]}-2"
    assert stage.escalation.reason is Reason.INVALID_RESPONSE


@pytest.mark.proves("K3")
def test_uids_are_derived_and_look_like_version_4() -> None:
    uid = ids.message_uid("0f0f0f0f-47-1", 3)

    assert uid == ids.message_uid("0f0f0f0f-47-1", 3)
    assert uid != ids.message_uid("0f0f0f0f-47-1", 4)
    assert uid != ids.message_uid("0f0f0f0f-47-2", 3)
    assert uuid.UUID(uid).version == 4


@pytest.mark.proves("R2", "K5")
def test_a_ticket_id_begins_with_its_workflow_and_names_the_attempt() -> None:
    assert ids.ticket_id("w", "security", "recheck", 2, 1, 0) == "w.security.recheck.2.1"
    assert ids.ticket_id("w", "security", "recheck", 2, 1, 3) == "w.security.recheck.2.1.e3"
