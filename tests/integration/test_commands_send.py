"""`send`, `reject` and `ack --handoff` on cycles and handoffs: their effects and refusals."""

import json
from pathlib import Path

import pytest

from fixloop.errors import ExitCode
from fixloop.profiles.handoff import events as hnd
from fixloop.profiles.handoff.returns import Returned
from tests.fixtures.command_stage import Said, said
from tests.fixtures.handoff_stage import SPEC
from tests.fixtures.profile_stage import Profiles, on_redis

pytestmark = pytest.mark.slow

profiles = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]


def refused(told: Said, sentence: str) -> None:
    assert (told.code, sentence in told.err, told.err.count("\n")) == (ExitCode.USAGE, True, 1), told


def planned(profiles: Profiles) -> str:
    """Handoffs whose builder has its task."""
    workflow = profiles.handoff()
    spec = Returned(status="completed", spec=SPEC)
    profiles.apply(workflow, hnd.AgentReturned(sender="planner", result=spec))
    return workflow


@pytest.mark.proves("C20", "C21", "K15")
def test_a_person_instructs_an_agent_of_a_cycle(profiles: Profiles, capsys: Capsys) -> None:
    workflow = profiles.cycle()

    told = said(capsys, "send", "7", "RA", "the scope", "--action", "leave SSO out", "--criterion", "no SSO")

    assert (told.code, told.err) == (0, "ra has the message; issue 7 continues: waiting for ra\n")
    request = said(capsys, "ack", "7").out
    assert "leave SSO out" in request
    refused(said(capsys, "send", "7", "ra", "again"), "ra has had its clarification for the blocker 1")
    refused(said(capsys, "send", "7", "ra", "x", "--type", "ready"), "you cannot send 'ready'")
    assert profiles.cycles.state(workflow).agent("ra").message.endswith("the scope")


@pytest.mark.proves("C20", "C3")
def test_an_agent_that_sends_is_refused_and_the_history_records_it(
    profiles: Profiles, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = profiles.cycle()
    monkeypatch.setenv("FIXLOOP_ROLE", "vas")

    refused(said(capsys, "send", "7", "cd", "fix it"), "send_input is the orchestrator's; vas reports to it")

    assert profiles.store.history(workflow)[-1].body["event"]["kind"] == "event-refused"


@pytest.mark.proves("G9", "D15")
def test_a_handoff_is_rejected_and_sent_again_by_a_person(profiles: Profiles, capsys: Capsys) -> None:
    workflow = planned(profiles)

    told = said(capsys, "reject", "9", "--reason", "no budget")
    assert (told.code, told.err) == (0, "rejected; issue 9 waits for a decision: `fixloop inbox`\n")
    inbox = json.loads(said(capsys, "inbox", "--json").out)
    assert "no budget" in json.dumps(inbox)
    said(capsys, "decide", "9", "manual-fix", "--guidance", "half of it")

    state = profiles.handoffs.state(workflow)
    assert [message.status.value for message in state.messages] == ["rejected", "pending"]
    assert "half of it" in said(capsys, "ack", "9").out


@pytest.mark.proves("G9")
def test_an_answer_may_reject_the_handoff(profiles: Profiles, capsys: Capsys, tmp_path: Path) -> None:
    workflow = planned(profiles)
    answer = tmp_path / "answer"
    answer.write_text('{"status": "rejected", "reason": "it contradicts itself"}')

    assert said(capsys, "fixed", "9", "--file", str(answer)).code == 0

    [task] = profiles.handoffs.state(workflow).messages
    assert (task.status.value, task.reason) == ("rejected", "it contradicts itself")


@pytest.mark.proves("D17", "D18")
def test_the_second_agent_to_accept_a_handoff_is_refused(profiles: Profiles, capsys: Capsys) -> None:
    workflow = planned(profiles)
    [task] = profiles.handoffs.state(workflow).messages

    assert said(capsys, "ack", "9", "--handoff", task.message_id).code == 0
    refused(said(capsys, "ack", "9", "--handoff", f"handoff-{task.message_id}"), "is accepted already")


@pytest.mark.proves("D12", "D7")
def test_an_outside_agent_passes_on_along_the_routes(profiles: Profiles, capsys: Capsys) -> None:
    workflow = planned(profiles)
    said(capsys, "ack", "9")

    refused(
        said(capsys, "send", "9", "fixer", "{}", "--agent", "builder"), "it goes from builder to reviewer"
    )
    told = said(capsys, "send", "9", "reviewer", '{"commit": "abc"}', "--agent", "builder")

    assert told.err == "builder passed it on to reviewer: review_request\n"
    assert profiles.handoffs.state(workflow).messages[-1].payload == {"commit": "abc"}
    assert profiles.store.history(workflow)[-2].body["event"]["kind"] == "event-refused"


def test_a_command_for_another_profile_is_refused_in_one_sentence(profiles: Profiles, capsys: Capsys) -> None:
    profiles.cycle()
    profiles.handoff()

    refused(said(capsys, "reject", "7", "--reason", "no"), "only handoffs can be rejected")
    refused(said(capsys, "ack", "7", "--handoff", "x"), "has no handoffs to accept")
    refused(said(capsys, "send", "7", "ra", "x", "--agent", "cd"), "--agent goes with handoffs")
    refused(said(capsys, "send", "9", "builder", "x"), "add --agent to say who passes it on")
    refused(
        said(capsys, "send", "9", "builder", "x", "--action", "y", "--agent", "planner"), "go with cycles"
    )
    refused(said(capsys, "reject", "9", "--reason", "no"), "planner has no handoff that it could reject")
