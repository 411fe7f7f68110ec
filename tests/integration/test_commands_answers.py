"""`fixloop fixed ISSUE --file ANSWER`: every answer of an agent ends as in the protocol, and nothing is lost."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from fixloop.errors import ExitCode
from fixloop.protocol.answers import LIMIT_BYTES
from fixloop.protocol.events import BlockerSignalled, DecisionMade, FixCompleted
from fixloop.protocol.messages import Decision
from fixloop.protocol.rendering import render_answer_format
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import Completion, State
from tests.fixtures.command_stage import Agents, Said, on_redis, said

pytestmark = pytest.mark.slow

agents = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]
ISSUE = "47"


def awaiting(agents: Agents, script: str = "1 1 0") -> str:
    """A workflow whose first failure waits for an outside agent."""
    workflow = agents.start(script=script, fixer="outside")
    state = agents.run(workflow)
    assert state.active.status is Status.AWAITING_FIX
    return workflow


def valid(iteration: int = 1) -> str:
    return render_answer_format(47, iteration, "test-runner")


def submit(capsys: Capsys, content: bytes | str, tmp_path: Path) -> Said:
    """`fixed --file` with a file of this content."""
    file = tmp_path / "answer"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return said(capsys, "fixed", ISSUE, "--file", str(file))


def log(capsys: Capsys) -> list[str]:
    """The ids of the lines."""
    return [entry["message_id"] for entry in said(capsys, "log", ISSUE, "--json").document["entries"]]


def events(agents: Agents, workflow: str) -> list[dict[str, Any]]:
    """The events of the history."""
    return [entry.body["event"] for entry in agents.store.history(workflow)]


def unchanged_but_for_the_time(before: State, after: State) -> bool:
    return after.model_copy(update={"last_at": before.last_at}) == before


@pytest.mark.proves("A71", "G2", "S11")
def test_the_caller_and_the_agent_are_told_what_an_answer_lacks(
    agents: Agents, capsys: Capsys, tmp_path: Path
) -> None:
    workflow = awaiting(agents)

    told = submit(capsys, valid().replace("### Files Modified", "### Files"), tmp_path)

    assert told.code == ExitCode.USAGE
    assert told.err == (
        'fixloop: the answer is not a valid Fix Completion: missing section "Files Modified"\n'
    )
    entries = said(capsys, "log", ISSUE, "--json").document["entries"]
    (notice,) = [entry for entry in entries if entry["message_id"].startswith("PVN-47-")]
    assert 'missing section "Files Modified"' in notice["rendered"]
    assert "**Message ID**: FIXDONE-47-1" in notice["rendered"]
    assert agents.engine.state(workflow).active.status is Status.AWAITING_FIX


@pytest.mark.proves("A71", "K5", "A85")
@pytest.mark.parametrize(
    ("content", "violation"),
    [
        (b"", 'missing section "Completion Summary"'),
        (b"\x89PNG\r\n\x1a\n\0\0", "it is not UTF-8 text: 0x89 at byte 0"),
        (b"{" * 100_000, "it is not valid JSON"),
        (b"\0" * 1000, 'missing section "Completion Summary"'),
    ],
)
def test_two_unreadable_answers_cause_one_notice_and_one_escalation(
    agents: Agents, capsys: Capsys, tmp_path: Path, content: bytes, violation: str
) -> None:
    workflow = awaiting(agents)

    first, second = (submit(capsys, content, tmp_path) for _ in range(2))

    assert (first.code, second.code) == (ExitCode.USAGE, ExitCode.USAGE)
    assert violation in first.err
    assert first.err.count("\n") == 1
    kinds = [message_id.split("-")[0] for message_id in log(capsys)]
    assert kinds == ["DETECT", "VFR", "PVN", "ERR", "ESC"]
    rejected = [event for event in events(agents, workflow) if event["kind"] == "answer-rejected"]
    assert len(rejected) == 2
    if content:
        (digest,) = rejected[0]["artifacts"]
        assert agents.store.get_artifact(workflow, digest) == content


@pytest.mark.proves("A71")
def test_only_the_limit_of_an_answer_of_100_megabytes_is_read(
    agents: Agents, capsys: Capsys, tmp_path: Path
) -> None:
    workflow = awaiting(agents)
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(100_000_000)

    told = said(capsys, "fixed", ISSUE, "--file", str(huge))

    assert told.code == ExitCode.USAGE
    assert f"it has more than {LIMIT_BYTES} bytes, the limit; shorten it" in told.err
    kept = agents.store.get_artifact(workflow, events(agents, workflow)[-1]["artifacts"][0])
    assert kept is not None
    assert len(kept) == LIMIT_BYTES + 1


@pytest.mark.proves("A71")
def test_an_answer_is_read_from_standard_input(
    agents: Agents, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    awaiting(agents)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xffI am done")))

    told = said(capsys, "fixed", ISSUE, "--file", "-")

    assert told.code == ExitCode.USAGE
    assert "it is not UTF-8 text: 0xff at byte 0" in told.err


def test_a_missing_file_is_a_usage_error_and_no_answer(
    agents: Agents, capsys: Capsys, tmp_path: Path
) -> None:
    awaiting(agents)

    told = said(capsys, "fixed", ISSUE, "--file", str(tmp_path / "nowhere"))

    assert told.code == ExitCode.USAGE
    assert "cannot read the answer" in told.err
    assert "PVN" not in "".join(log(capsys))


@pytest.mark.proves("A8", "A33", "S11")
@pytest.mark.parametrize(
    ("written", "instead", "sentence"),
    [
        ("FIXDONE-47-1", "FIXDONE-47-3", "id FIXDONE-47-3 while FIXREQ-47-1 is open"),
        ("re-run test-runner", "re-run security", "names security, but test-runner is to run again"),
    ],
)
def test_an_answer_for_another_iteration_or_specialist_is_an_invalid_response(
    agents: Agents, capsys: Capsys, tmp_path: Path, written: str, instead: str, sentence: str
) -> None:
    workflow = awaiting(agents)

    told = submit(capsys, valid().replace(written, instead), tmp_path)

    assert told.code == ExitCode.USAGE
    assert sentence in told.err
    assert [message_id.split("-")[0] for message_id in log(capsys)] == ["DETECT", "VFR", "PVN"]
    assert agents.engine.state(workflow).active.iteration == 1


@pytest.mark.proves("R8")
def test_a_repeated_answer_changes_nothing(agents: Agents, capsys: Capsys, tmp_path: Path) -> None:
    workflow = awaiting(agents)
    done = Completion(iteration=1, by="agent", fixes=("it",), tip="c1", tree="tree-1")
    agents.apply(workflow, FixCompleted(specialist="test-runner", completion=done))
    while_checking = submit(capsys, valid(), tmp_path)
    agents.run(workflow)
    before = len(agents.store.history(workflow))

    in_the_next_round = submit(capsys, valid(), tmp_path)

    for told in (while_checking, in_the_next_round):
        assert told.code == ExitCode.USAGE
        assert "this was answered already: " in told.err
        assert "nothing was changed" in told.err
    assert len(agents.store.history(workflow)) == before
    assert agents.engine.state(workflow).answers == 0
    assert not [message_id for message_id in log(capsys) if message_id.startswith("PVN")]


@pytest.mark.proves("S13", "A8", "A85")
def test_an_answer_after_abort_changes_nothing_and_is_in_the_history_once(
    agents: Agents, capsys: Capsys, tmp_path: Path
) -> None:
    workflow = awaiting(agents)
    agents.apply(workflow, BlockerSignalled(by="agent", text="no key"))
    before = agents.apply(workflow, DecisionMade(decision=Decision.ABORT))
    lines = log(capsys)

    told = [submit(capsys, valid(), tmp_path) for _ in range(2)]

    assert {each.code for each in told} == {ExitCode.USAGE}
    assert "awaits no fix" in told[0].err
    assert unchanged_but_for_the_time(before, agents.engine.state(workflow))
    assert log(capsys) == lines
    refused = events(agents, workflow)[-1]
    assert refused["kind"] == "event-refused"
    assert agents.store.get_artifact(workflow, refused["artifacts"][0]) == valid().encode()
    assert said(capsys, "log", ISSUE, "--all").out.count("awaits no fix") == 1


@pytest.mark.proves("A33", "G8")
def test_an_answer_that_is_not_ready_asks_a_person_and_checks_nothing(
    agents: Agents, capsys: Capsys, tmp_path: Path
) -> None:
    workflow = awaiting(agents)

    told = submit(
        capsys, valid().replace("Yes - please re-run test-runner.", "No - the fixture is not mine"), tmp_path
    )

    state = agents.engine.state(workflow)
    assert (told.code, told.out) == (ExitCode.DONE, "")
    assert "waits for a decision" in told.err
    assert state.escalation is not None
    assert state.escalation.detail.endswith("not ready: the fixture is not mine")
    assert [message_id.split("-")[0] for message_id in log(capsys)] == ["DETECT", "VFR", "ESC"]
