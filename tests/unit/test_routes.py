"""Who may send what to whom (A3, K26): the table, and the two places that enforce it."""

from itertools import product

import pytest

from fixloop.protocol.answers import InvalidAnswer, parse_answer
from fixloop.protocol.messages import MAIN_AGENT, ORCHESTRATOR, USER, FixItem, FixRequest, Success
from fixloop.protocol.outcome import Draft
from fixloop.protocol.roles import HANDLES, ROUTES, SPECIALIST, ForbiddenRoute, check_route
from fixloop.protocol.specialists import SPECIALISTS
from tests.fixtures.script import fails
from tests.fixtures.validation_stage import Stage

KINDS = sorted({route.kind for route in ROUTES["validation"]})
ANSWER = """## Fix Completion

**Message ID**: FIXDONE-101-1
**From**: {sender}
**To**: {recipient}

---

### Completion Summary
Mended.

### Fixes Applied
1. it

### Files Modified
- none

### Ready for Re-validation
Yes
"""


@pytest.mark.proves("A3", "K26")
@pytest.mark.parametrize("kind", KINDS)
def test_a_specialist_and_the_main_agent_never_talk_to_each_other(kind: str) -> None:
    for handle in (entry.handle for entry in SPECIALISTS):
        for ends in ((handle, MAIN_AGENT), (MAIN_AGENT, handle)):
            with pytest.raises(ForbiddenRoute, match="is on no route"):
                check_route("validation", kind, *ends)


@pytest.mark.proves("A3", "R1")
def test_every_route_has_the_orchestrator_at_one_end() -> None:
    for route in ROUTES["validation"]:
        assert ORCHESTRATOR in (route.sender, route.recipient)


@pytest.mark.proves("K26")
def test_a_route_that_the_table_does_not_name_is_refused() -> None:
    rows = {(r.kind, r.sender, r.recipient) for r in ROUTES["validation"]}

    for kind, sender, recipient in product(KINDS, HANDLES, HANDLES):
        ends = [SPECIALIST if end.endswith("-specialist") else end for end in (sender, recipient)]
        if (kind, *ends) in rows:
            check_route("validation", kind, sender, recipient)
        else:
            with pytest.raises(ForbiddenRoute):
                check_route("validation", kind, sender, recipient)


@pytest.mark.proves("R1")
def test_a_profile_without_a_table_allows_no_message() -> None:
    with pytest.raises(ForbiddenRoute, match="the nosuch profile knows no such message"):
        check_route("nosuch", "success", ORCHESTRATOR, MAIN_AGENT)


@pytest.mark.proves("A3", "K26")
@pytest.mark.parametrize(
    ("sender", "recipient"),
    [("@test-runner-specialist", MAIN_AGENT), (MAIN_AGENT, "@test-runner-specialist"), (ORCHESTRATOR, USER)],
)
def test_a_message_on_a_forbidden_route_is_not_sent(sender: str, recipient: str) -> None:
    stage = Stage([fails("a")], answers=None).run()
    draft = Draft(stage.state, stage.now)
    body = Success(phase="Test Execution", iterations=1, total_seconds=0.0, next_phase="Code Quality")

    with pytest.raises(ForbiddenRoute):
        draft.say(body, "SUCCESS-101-test-runner-1", summary="x", sender=sender, recipient=recipient)

    assert draft.outcome().messages == ()
    assert draft.state.sequence == stage.state.sequence


@pytest.mark.proves("A3")
def test_an_attachment_needs_a_route_too() -> None:
    stage = Stage([fails("a")], answers=None).run()
    request = FixRequest(items=(FixItem(name="it"),), expected="green", remaining_iterations=4)

    with pytest.raises(ForbiddenRoute, match="fix-request"):
        Draft(stage.state, stage.now).attachment(request, "FIXREQ-101-1", summary="x", recipient=USER)


@pytest.mark.proves("A3", "A71")
@pytest.mark.parametrize("recipient", ["@test-runner-specialist", MAIN_AGENT, USER])
def test_an_answer_to_another_than_the_orchestrator_is_invalid(recipient: str) -> None:
    text = ANSWER.format(sender=MAIN_AGENT, recipient=recipient)

    with pytest.raises(InvalidAnswer) as refused:
        parse_answer(text, issue=101, iteration=1, specialist="test-runner")

    (violation,) = refused.value.violations
    assert f"fix-completion from {MAIN_AGENT} to {recipient} is on no route" in violation


@pytest.mark.proves("A3")
@pytest.mark.parametrize("sender", [MAIN_AGENT, "coder", "@coder", "the coder of this project"])
def test_an_agent_may_sign_with_its_own_name(sender: str) -> None:
    text = ANSWER.format(sender=sender, recipient=ORCHESTRATOR)

    answer = parse_answer(text, issue=101, iteration=1, specialist="test-runner")

    assert answer.ready
