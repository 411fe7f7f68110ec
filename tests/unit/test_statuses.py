"""The nine statuses: which may follow which, and who may set them."""

from itertools import product

import pytest

from fixloop.errors import ProtocolError
from fixloop.protocol.specialists import EDGES, MAY_SET, TRANSITIONS, Role, Status, check_transition
from tests.unit.protocol_tables import who_may

# Written down from the requirements' text, not from the code.
LEGAL = {
    "PENDING": {"IN_PROGRESS"},
    "IN_PROGRESS": {"PASS", "FAIL", "ESCALATED"},
    "PASS": {"COMPLETED"},
    "FAIL": {"AWAITING_FIX", "ESCALATED"},
    "AWAITING_FIX": {"FIXING", "ESCALATED"},
    "FIXING": {"RE_CHECKING", "ESCALATED"},
    "RE_CHECKING": {"PASS", "FAIL", "ESCALATED"},
    "ESCALATED": {"AWAITING_FIX", "FIXING", "RE_CHECKING", "IN_PROGRESS", "COMPLETED"},
    "COMPLETED": {"RE_CHECKING"},
}
SETS = {
    Role.ORCHESTRATOR: {"PENDING", "IN_PROGRESS", "AWAITING_FIX", "ESCALATED", "COMPLETED"},
    Role.SPECIALIST: {"IN_PROGRESS", "RE_CHECKING", "PASS", "FAIL"},
    Role.MAIN_AGENT: {"FIXING"},
}


@pytest.mark.proves("A49", "A88")
def test_there_are_exactly_nine_statuses() -> None:
    assert {status.value for status in Status} == set(LEGAL)
    assert set(TRANSITIONS) == set(Status)


@pytest.mark.proves("A51", "A52", "K19", "K37")
@pytest.mark.parametrize("before", Status)
def test_a_status_follows_only_legal_ones_and_from_permitted_roles(before: Status) -> None:
    legal = {
        (after, role)
        for after, role in product(Status, Role)
        if after.value in LEGAL[before.value] and after.value in SETS[role]
    }

    assert {pair for pair in product(Status, Role) if _is_taken(before, *pair)} == legal


def _is_taken(before: Status, after: Status, role: Role) -> bool:
    try:
        check_transition(before, after, role)
    except ProtocolError:
        return False
    return True


@pytest.mark.proves("A51")
def test_every_status_has_a_role_that_may_set_it() -> None:
    assert frozenset().union(*MAY_SET.values()) == frozenset(Status)
    assert MAY_SET[Role.MAIN_AGENT] == {Status.FIXING}


@pytest.mark.proves("A51")
def test_a_refusal_names_the_role_the_status_and_the_legal_ones() -> None:
    with pytest.raises(ProtocolError, match="the main agent may not set PASS; it may set FIXING"):
        check_transition(Status.RE_CHECKING, Status.PASS, Role.MAIN_AGENT)


@pytest.mark.proves("A52")
def test_a_refusal_names_both_statuses_and_what_can_follow() -> None:
    with pytest.raises(ProtocolError, match="COMPLETED cannot follow FAIL; AWAITING_FIX, ESCALATED can"):
        check_transition(Status.FAIL, Status.COMPLETED, Role.ORCHESTRATOR)


@pytest.mark.proves("A51", "A52", "K19")
def test_the_table_has_each_transition_once_with_its_permitted_roles() -> None:
    pairs = [(edge.before, edge.after) for edge in EDGES]

    assert len(set(pairs)) == len(pairs)
    assert {(before.value, after.value) for before, after in pairs} == {
        (before, after) for before, afters in LEGAL.items() for after in afters
    }
    for edge in EDGES:
        assert who_may(edge) == {role for role, may in SETS.items() if edge.after.value in may}
        assert who_may(edge)
        assert edge.cause
        assert edge.source
