"""`ack`, `fixed`, `decide`, `pause`, `continue` and `cancel` on cycles and handoffs: each event, and each refusal."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fixloop.commands.agent_work import told
from fixloop.errors import ExitCode
from fixloop.profiles.cycle.records import AgentStatus
from fixloop.profiles.handoff import events as hnd
from fixloop.protocol.agent_events import AgentFailed, Paused
from fixloop.protocol.answers import LIMIT_BYTES
from tests.fixtures.command_stage import PROJECT, Said, said
from tests.fixtures.cycle_stage import reported
from tests.fixtures.profile_stage import Profiles, on_redis

pytestmark = pytest.mark.slow

profiles = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]

RESULT = """I wrote it down.

PHASE_RESULT:
- phase: ra
- status: success
- files_written: []
- summary: three requirements
- issues: []
"""


def submit(capsys: Capsys, tmp_path: Path, issue: str, text: str | bytes, *words: str) -> Said:
    """`fixed --file` with a file of this content."""
    file = tmp_path / "answer"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return said(capsys, "fixed", issue, "--file", str(file), *words)


def refused(told: Said, sentence: str) -> None:
    assert told.code == ExitCode.USAGE
    assert sentence in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


def kinds(profiles: Profiles, workflow: str) -> list[str]:
    return [entry.body["event"]["kind"] for entry in profiles.store.history(workflow)]


def asking(profiles: Profiles, *options: str, **further: Any) -> str:
    """Handoffs whose planner asks a person."""
    workflow = profiles.handoff()
    facts = {"reason": "spec_ambiguity", "details": "which auth?", "options": options} | further
    profiles.apply(
        workflow, hnd.AgentActivated(agent="planner"), hnd.AgentEscalated(sender="planner", **facts)
    )
    return workflow


@pytest.mark.proves("C20", "C21", "C46")
def test_reading_its_request_starts_an_agent_of_a_cycle(profiles: Profiles, capsys: Capsys) -> None:
    workflow = profiles.cycle(description="People log in with OAuth.")

    first, again = (said(capsys, "ack", "7") for _ in range(2))

    assert first.code == again.code == ExitCode.DONE
    assert "# RA: requirements for OAuth login" in first.out
    assert "People log in with OAuth." in again.out
    assert "`fixloop fixed 7 --agent ra --file ANSWER`" in first.err
    assert profiles.cycles.state(workflow).agent("ra").status is AgentStatus.RUNNING
    assert kinds(profiles, workflow).count("agent-started") == 1


@pytest.mark.proves("C33", "C35")
def test_a_phase_result_from_a_file_is_reported(profiles: Profiles, capsys: Capsys, tmp_path: Path) -> None:
    workflow = profiles.cycle()

    told = submit(capsys, tmp_path, "7", RESULT)

    assert told.code == ExitCode.DONE
    assert "issue 7 continues: waiting for ep" in told.err
    state = profiles.cycles.state(workflow)
    assert state.completed("ra")
    assert state.value("requirements") is None
    (message,) = [e for e in said(capsys, "log", "7", "--json").document["entries"] if e["sender"] == "ra"]
    assert message["summary"] == "three requirements"


def test_an_answer_may_come_on_standard_input(
    profiles: Profiles, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = profiles.cycle()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(RESULT.encode())))

    assert said(capsys, "fixed", "7", "--agent", "RA", "--file", "-").code == ExitCode.DONE
    assert profiles.cycles.state(workflow).completed("ra")


@pytest.mark.proves("C35", "C36", "G2")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("all is well", "the answer has no PHASE_RESULT"),
        (RESULT + RESULT, "the answer has 2 PHASE_RESULT blocks"),
        (RESULT.replace("phase: ra", "phase: cd"), "ra reports for phase 'cd'"),
        (RESULT.replace("success", "fine"), "status 'fine' is none of a PHASE_RESULT's"),
        (RESULT.replace("[]\n- summary", "[requirements.md]\n- summary"), "there is no such file"),
        (RESULT + "- plan: mine\n", "ra reports plan 'mine', which only ep writes"),
    ],
)
def test_a_second_invalid_answer_escalates(
    profiles: Profiles, capsys: Capsys, tmp_path: Path, text: str, sentence: str
) -> None:
    workflow = profiles.cycle()

    first = submit(capsys, tmp_path, "7", text)

    refused(first, sentence)
    assert profiles.cycles.state(workflow).agent("ra").invalid == 1
    refused(submit(capsys, tmp_path, "7", text), sentence)
    (item,) = said(capsys, "inbox", "--json").document["items"]
    assert (item["reason"], item["specialist"]) == ("invalid_response", "ra")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\x89PNG\r\n", "the answer is not UTF-8: byte 0x89 at 0"),
        (b"PHASE_RESULT:" + b"x" * LIMIT_BYTES, f"the answer has more than {LIMIT_BYTES} bytes"),
    ],
)
def test_an_answer_that_cannot_be_read_changes_nothing(
    profiles: Profiles, capsys: Capsys, tmp_path: Path, content: bytes, sentence: str
) -> None:
    workflow = profiles.cycle()
    before = len(profiles.store.history(workflow))

    refused(submit(capsys, tmp_path, "7", content), sentence)

    assert len(profiles.store.history(workflow)) == before


def test_a_result_of_an_unclear_agent_is_refused(profiles: Profiles, capsys: Capsys, tmp_path: Path) -> None:
    graph = {"ra": (), "frontend": (), "ep": ("ra",), "cd": ("ep", "frontend"), "vas": ("cd",)}
    profiles.cycle(graph=graph)
    profiles.handoff(commands={"planner": "make plan"})

    refused(
        submit(capsys, tmp_path, "7", RESULT),
        "ra, frontend all have requests in issue 7; name one with --agent",
    )
    refused(
        submit(capsys, tmp_path, "7", RESULT, "--agent", "cd"), "cd has no request in issue 7; it is idle"
    )
    refused(
        said(capsys, "ack", "7", "--agent", "qa"),
        "'qa' is not an agent of issue 7; there are ra, frontend, ep",
    )
    refused(said(capsys, "ack", "9"), "no outside agent has a request in issue 9: planner at work")
    refused(
        said(capsys, "ack", "9", "--agent", "planner"), "planner of issue 9 is run by a command (make plan)"
    )
    refused(
        said(capsys, "fixed", "7", "--agent", "ra"),
        "ra must say how it went: give its answer with --file FILE",
    )


@pytest.mark.proves("C57", "C58")
def test_an_agent_that_is_blocked_says_why_and_a_person_decides(profiles: Profiles, capsys: Capsys) -> None:
    profiles.cycle()

    told = said(capsys, "fixed", "7", "--blocked", "user: nobody said for whom")

    assert told.code == ExitCode.DONE
    assert "issue 7 waits for a decision: `fixloop inbox`" in told.err
    (item,) = said(capsys, "inbox", "--json").document["items"]
    assert item["detail"] == "ra: user: nobody said for whom"


@pytest.mark.proves("C57", "C59")
def test_guidance_lets_the_agent_of_a_cycle_continue(profiles: Profiles, capsys: Capsys) -> None:
    workflow = profiles.cycle()
    said(capsys, "fixed", "7", "--blocked", "user: CSV or JSON?")

    told = said(capsys, "decide", "7", "manual-fix", "--guidance", "Use JSON.")

    assert told.code == ExitCode.DONE
    assert "issue 7 continues: waiting for ra" in told.err
    assert "Use JSON." in said(capsys, "ack", "7").out
    assert profiles.cycles.state(workflow).decisions[-1].rationale == "Use JSON."


@pytest.mark.proves("C57", "K20")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["yes"], "'yes' is not a decision on a cycle; choose from manual-fix, skip, abort, extend"),
        (["manual-fix"], "manual-fix needs your guidance; add --guidance TEXT"),
        (["skip", "--iterations", "2"], "--iterations goes with extend, not with skip"),
        (["extend", "--minutes", "2"], "--minutes has no effect on a cycle"),
        (["skip", "--escalation", "ESC-1"], "escalation ESC-1 cannot be answered now; ESC-cycle-v1"),
    ],
)
def test_an_invalid_decision_is_refused_with_the_possible_ones(
    profiles: Profiles, capsys: Capsys, words: list[str], sentence: str
) -> None:
    workflow = profiles.cycle()
    profiles.apply(workflow, reported("ra", "partial", issues='["user: which?"]'))
    before = len(profiles.store.history(workflow))

    refused(said(capsys, "decide", "7", *words), sentence)

    assert len(profiles.store.history(workflow)) == before


def test_a_decision_without_an_open_question_is_refused(profiles: Profiles, capsys: Capsys) -> None:
    profiles.cycle()
    profiles.handoff()

    assert "waits for a decision" in said(capsys, "decide", "7", "skip").err
    refused(said(capsys, "decide", "9", "JWT"), "nothing of issue 9 waits for an answer; `fixloop inbox`")


@pytest.mark.proves("C58")
def test_an_agent_cannot_decide(profiles: Profiles, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    workflow = profiles.cycle()
    profiles.apply(workflow, reported("ra", "partial", issues='["user: which?"]'))
    monkeypatch.setenv("FIXLOOP_ROLE", "ra")

    refused(said(capsys, "decide", "7", "skip"), "ra cannot decide; the escalation is the user's")

    assert profiles.cycles.state(workflow).escalations


@pytest.mark.proves("C58", "C36", "C5")
def test_an_agent_can_neither_stop_a_workflow_nor_answer_for_another(
    profiles: Profiles, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles.cycle()
    profiles.handoff()
    monkeypatch.setenv("FIXLOOP_ROLE", "vas")

    for word in ("cancel", "pause"):
        refused(said(capsys, word, "7"), f"vas cannot {word} a workflow; only the user can")
    refused(said(capsys, "fixed", "7", "--blocked", "x"), "vas can only answer for itself")
    monkeypatch.setenv("FIXLOOP_ROLE", "planner")
    assert said(capsys, "fixed", "9", "--agent", "planner", "--blocked", "why?").code == ExitCode.DONE


@pytest.mark.proves("D43", "D41")
def test_one_of_the_options_answers_a_question_of_handoffs(profiles: Profiles, capsys: Capsys) -> None:
    workflow = asking(profiles, "JWT", "OAuth 2")

    wrong = said(capsys, "decide", "9", "Basic")
    told = said(capsys, "decide", "9", "OAuth 2")

    refused(wrong, "'Basic' does not answer ESC-9-1; choose from JWT, OAuth 2")
    assert told.code == ExitCode.DONE
    assert profiles.handoffs.state(workflow).agent("planner").answer == "OAuth 2"
    assert "## The answer to your question\n\nOAuth 2" in said(capsys, "ack", "9").out


@pytest.mark.proves("D43")
def test_any_text_answers_a_question_without_options(profiles: Profiles, capsys: Capsys) -> None:
    workflow = asking(profiles)

    assert said(capsys, "decide", "9", "Use JWT, with refresh tokens").code == ExitCode.DONE
    assert profiles.handoffs.state(workflow).agent("planner").answer == "Use JWT, with refresh tokens"


@pytest.mark.proves("D42")
def test_an_answer_to_one_of_several_questions_has_to_name_it(profiles: Profiles, capsys: Capsys) -> None:
    workflow = asking(profiles, blocking=False)
    profiles.apply(
        workflow, hnd.AgentEscalated(sender="planner", reason="scope", details="mobile, too?", blocking=False)
    )

    refused(
        said(capsys, "decide", "9", "yes"),
        "2 questions are open (ESC-9-1, ESC-9-2); name one with --escalation",
    )
    assert said(capsys, "decide", "9", "yes", "--escalation", "ESC-9-2").code == ExitCode.DONE

    (left,) = profiles.handoffs.state(workflow).questions
    assert left.id == "ESC-9-1"
    refused(
        said(capsys, "decide", "9", "no", "--escalation", "ESC-9-2"),
        "ESC-9-2 is not open in issue 9; open is ESC-9-1",
    )


@pytest.mark.proves("D38", "K20")
def test_a_decision_resolves_what_retries_could_not(profiles: Profiles, capsys: Capsys) -> None:
    workflow = profiles.handoff()
    profiles.apply(workflow, AgentFailed(agent="planner", reason="no memory", fatal=True))

    refused(said(capsys, "decide", "9", "JWT"), "choose from manual-fix, skip, abort, extend")
    assert said(capsys, "decide", "9", "abort").err == "issue 9 ended: aborted\n"
    assert profiles.handoffs.state(workflow).outcome == "aborted"


@pytest.mark.proves("D32", "D35", "D54")
def test_an_agent_of_handoffs_accepts_by_reading_and_returns_its_result(
    profiles: Profiles, capsys: Capsys, tmp_path: Path
) -> None:
    workflow = profiles.handoff()
    planned = submit(capsys, tmp_path, "9", 'Done.\n{"status": "completed", "spec": "specs/auth.md"}')

    request = said(capsys, "ack", "9")

    assert planned.code == request.code == ExitCode.DONE
    assert "## The handoff from planner" in request.out
    state = profiles.handoffs.state(workflow)
    assert state.messages[0].status.value == "accepted"
    built = submit(capsys, tmp_path, "9", json.dumps({"status": "completed", "commit": "abc123"}))
    assert "issue 9 continues: waiting for reviewer" in built.err


@pytest.mark.proves("D54", "D56")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("done", "the answer has no result"),
        ('{"status": "approved"}', "planner returned status 'approved'; it returns completed"),
        ('{"status": "completed"}', "planner returned no spec"),
        ('{"status": "completed", "spec": ["a"]}', "the result's spec is wrong"),
        (
            '{"status": "completed", "spec": 1, "commit": 2}',
            "; commit is wrong: input should be a valid string",
        ),
        ('{"type": "escalation", "reason": "", "details": "x"}', "the escalation's reason is wrong"),
    ],
)
def test_an_invalid_result_changes_nothing_and_the_history_records_it(
    profiles: Profiles, capsys: Capsys, tmp_path: Path, text: str, sentence: str
) -> None:
    workflow = profiles.handoff()
    before = profiles.handoffs.state(workflow)

    refused(submit(capsys, tmp_path, "9", text), sentence)

    after = profiles.handoffs.state(workflow)
    assert after.model_copy(update={"last_at": before.last_at}) == before
    assert kinds(profiles, workflow) == ["handoffs-started", "event-refused"]


@pytest.mark.proves("D41", "D42")
def test_questions_in_an_answer_are_asked_and_a_blocking_one_ends_the_run(
    profiles: Profiles, capsys: Capsys, tmp_path: Path
) -> None:
    workflow = profiles.handoff()
    question = {"type": "escalation", "reason": "spec_ambiguity", "details": "which?", "options": ["A", "B"]}

    submit(capsys, tmp_path, "9", json.dumps(question | {"blocking": True}))

    state = profiles.handoffs.state(workflow)
    assert [(q.details, q.options, q.blocking) for q in state.questions] == [("which?", ("A", "B"), True)]
    assert not state.agent("planner").asked
    said(capsys, "decide", "9", "A")
    assert profiles.handoffs.state(workflow).agent("planner").asked


def test_a_question_that_does_not_block_goes_with_the_result(
    profiles: Profiles, capsys: Capsys, tmp_path: Path
) -> None:
    workflow = profiles.handoff()
    question = {"type": "escalation", "reason": "scope", "details": "which?", "blocking": False}

    submit(capsys, tmp_path, "9", f'{json.dumps(question)}\n{{"status": "completed", "spec": "specs/a.md"}}')

    state = profiles.handoffs.state(workflow)
    assert len(state.questions) == 1
    assert state.agent("builder").asked


@pytest.mark.proves("K21")
@pytest.mark.parametrize("issue", ["7", "9"])
def test_pause_and_continue_can_be_repeated_and_stop_the_clocks(
    profiles: Profiles, capsys: Capsys, issue: str
) -> None:
    profiles.cycle()
    profiles.handoff()

    codes = [said(capsys, word, issue).code for word in ("pause", "pause")]
    document = said(capsys, "status", issue, "--json").document
    (item,) = [i for i in said(capsys, "inbox", "--json").document["items"] if i["issue"] == int(issue)]
    codes += [said(capsys, word, issue).code for word in ("continue", "continue")]

    assert codes == [ExitCode.DONE] * 4
    assert (document["paused"], document["owner"], document["deadline"]) == (True, "person", None)
    assert (item["waits_for"], item["commands"]) == ("continue", [f"fixloop continue {issue}"])
    assert not said(capsys, "status", issue, "--json").document["paused"]


@pytest.mark.parametrize("issue", ["7", "9"])
def test_a_cancelled_workflow_has_ended_and_accepts_nothing_more(
    profiles: Profiles, capsys: Capsys, tmp_path: Path, issue: str
) -> None:
    profiles.cycle()
    profiles.handoff()

    told = said(capsys, "cancel", issue, "--reason", "no longer needed")

    assert told.code == ExitCode.DONE
    refused(said(capsys, "cancel", issue), f"issue {issue} ended already (cancelled)")
    refused(submit(capsys, tmp_path, issue, RESULT), f"no outside agent has a request in issue {issue}")
    assert "no longer needed" in said(capsys, "log", issue, "--all").out


@pytest.mark.proves("C40", "K21", "K26")
def test_a_mailbox_shows_what_is_asked_until_it_is_answered(
    profiles: Profiles, capsys: Capsys, tmp_path: Path
) -> None:
    workflow = profiles.cycle()

    first = said(capsys, "mailbox", "RA", "--project", PROJECT)
    again = said(capsys, "mailbox", "ra", "--project", PROJECT, "--json").document["messages"]
    submit(capsys, tmp_path, "7", RESULT)
    after = said(capsys, "mailbox", "ep", "--project", PROJECT)
    nothing = said(capsys, "mailbox", "ra", "--project", PROJECT)
    nobody = said(capsys, "mailbox", "qa", "--project", PROJECT)

    assert first.code == after.code == ExitCode.DONE
    assert "# RA: requirements for OAuth login" in first.out
    assert "`fixloop fixed 7 --agent ra --file ANSWER`" in first.err
    assert [(message["type"], message["recipient"]) for message in again] == [("cycle.work", "ra")]
    assert "RA is complete, v1.0.0: EP can start" in after.out
    assert kinds(profiles, workflow).count("agent-started") == 2
    assert (nothing.code, nothing.err) == (ExitCode.WRONG, "fixloop: no message for ra\n")
    refused(nobody, "no agent 'qa' here; known agents: cd, ep, ra, vas")


@pytest.mark.proves("D32")
def test_a_mailbox_shows_the_most_urgent_handoff_first(profiles: Profiles, capsys: Capsys) -> None:
    profiles.handoff(9, priority="low")
    profiles.handoff(10, priority="critical")
    profiles.apply(profiles.handoff(11, priority="critical"), Paused())

    messages = said(capsys, "mailbox", "planner", "--project", PROJECT, "--json").document["messages"]

    assert [message["issue"] for message in messages] == [10, 9]
    assert profiles.handoffs.state(f"{PROJECT}-9-1").agent("planner").started


def test_working_and_awaited_agents_are_shown() -> None:
    assert told("", "", {"cd": "make it", "ra": ""}) == "cd at work; waiting for ra"
    assert told("", "", {}) == "no agent is at work"
    assert told("cancelled", "", {"cd": ""}) == "it ended (cancelled)"
    assert told("", "success", {}) == "its branch is pushed"


@pytest.mark.proves("D21", "D23")
def test_no_agent_is_shown_as_active_between_two_agents(
    profiles: Profiles, capsys: Capsys, tmp_path: Path
) -> None:
    profiles.handoff()
    submit(capsys, tmp_path, "9", 'Done.\n{"status": "completed", "spec": "specs/auth.md"}')

    shown = said(capsys, "status", "9")
    listed = said(capsys, "inbox")

    assert "is active" not in shown.out
    assert listed.out.count("builder, run 1") == 1
