"""The open requests of a declared agent, from the state alone and from letters (G1): the store is in memory."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from fixloop.engine.engine import Engine
from fixloop.engine.history import said
from fixloop.outside.mail import Mail, arrived, changed, known_agents, waiting
from fixloop.outside.mailbox import Letter
from fixloop.profiles.validation.engine import VALIDATION
from fixloop.protocol.documents import change_letter, change_line
from fixloop.protocol.events import (
    AnswerRejected,
    BlockerSignalled,
    Continued,
    FixCompleted,
    Paused,
    WorkflowStarted,
)
from fixloop.protocol.messages import MAIN_AGENT
from fixloop.protocol.roles import WrongParty
from fixloop.protocol.specialists import Transition
from fixloop.protocol.state import Completion
from tests.fixtures.command_stage import PROJECT, Agents
from tests.fixtures.memory_store import MemoryStore


@dataclass
class Taken:
    """A letter from the test's own mailbox."""

    letter: Letter | None
    acknowledged: bool = False

    def acknowledge(self) -> None:
        self.acknowledged = True


@dataclass
class Box:
    """A mailbox with the test's entries, as `Mailboxes` would hold them."""

    letters: list[Taken] = field(default_factory=list)

    def take(self, project: str, agent: str) -> Any:
        return self.letters.pop(0) if self.letters else None


@pytest.fixture
def agents() -> Agents:
    return Agents(MemoryStore(lambda: datetime(2026, 3, 2, tzinfo=UTC)))


def asked(agents: Agents, issue: int = 47, *, script: str = "2 1 0", agent: str = "coder") -> str:
    """A workflow whose agent has an open request."""
    workflow = agents.start(issue, script=script, fixer="outside", agent=agent)
    agents.run(workflow)
    return workflow


def answered(agents: Agents, workflow: str, iteration: int = 1) -> None:
    completion = Completion(iteration=iteration, by="coder", tip=f"c{iteration}", tree=f"t{iteration}")
    agents.apply(workflow, FixCompleted(specialist="test-runner", completion=completion))
    agents.run(workflow)


def kinds(mails: list[Mail]) -> list[str]:
    return [mail.message.body.kind for mail in mails]


def letters(agents: Agents, workflow: str) -> list[Taken]:
    """One letter for each message to the main agent, in order."""
    messages = [line.message for line in said(agents.store.history(workflow))]
    return [
        Taken(Letter(workflow=workflow, message_id=m.message_id, uid=m.uid, issue=m.issue, type=m.body.kind))
        for m in messages
        if m.recipient == MAIN_AGENT
    ]


def opened(agents: Agents, box: Box | None = None) -> list[Mail]:
    """What `fixloop mailbox coder` finds."""
    mailboxes: Any = box or Box()
    return arrived(agents.store, mailboxes, PROJECT, "coder", waiting(agents.store, PROJECT, "coder"))


@pytest.mark.proves("G1", "K39")
def test_the_open_request_is_found_without_any_letter(agents: Agents) -> None:
    asked(agents)

    (mail,) = opened(agents)

    assert mail.message.message_id == "VFR-47-test-runner-1"
    assert "FIXREQ-47-1" in mail.text
    assert mail.received is None


@pytest.mark.proves("G1", "R8")
def test_a_letter_is_attached_to_its_known_message_and_a_second_one_dropped(agents: Agents) -> None:
    workflow = asked(agents)
    first, second = letters(agents, workflow) + letters(agents, workflow)

    (mail,) = opened(agents, Box([first, second]))

    assert id(mail.received) == id(first)
    assert (first.acknowledged, second.acknowledged) == (False, True)
    mail.acknowledge(agents.engine, "coder")
    assert first.acknowledged
    assert agents.engine.state(workflow).active.status == "FIXING"


def informed(agents: Agents, workflow: str) -> list[Taken]:
    """One letter for every status change, as the commits write them."""
    changes = [
        change for entry in agents.store.history(workflow) for change in entry.body.get("transitions", ())
    ]
    told = [change_letter(workflow, 47, Transition.model_validate(change)) for change in changes]
    return [Taken(Letter(workflow=workflow, issue=47, **about._asdict())) for about in told]


@pytest.mark.proves("A53", "A55")
def test_status_changes_are_lines_between_the_messages_and_open_nothing(agents: Agents) -> None:
    workflow = asked(agents)
    box: Any = Box(informed(agents, workflow))
    held: list[Any] = []

    found = arrived(
        agents.store, box, PROJECT, "coder", waiting(agents.store, PROJECT, "coder"), changes=held
    )
    lines = [change_line(each.letter.issue, each.change) for each in changed(agents.store, held)]

    assert kinds(found) == ["failure-report"]
    assert [line.split(" by ")[0] for line in lines] == [
        "#47 test-runner: PENDING → IN_PROGRESS",
        "#47 test-runner: IN_PROGRESS → FAIL",
        "#47 test-runner: FAIL → AWAITING_FIX",
    ]
    assert not any(letter.acknowledged for letter in held)


@pytest.mark.proves("A54", "A55")
def test_the_commit_that_changes_a_status_notifies_the_declared_agent() -> None:
    committed: list[Any] = []
    engine = Engine(MemoryStore(lambda: datetime(2026, 3, 2, tzinfo=UTC)), announce=committed.append)
    for issue, agent in ((47, "coder"), (48, "")):
        begun = WorkflowStarted(
            workflow=f"{PROJECT}-{issue}-1",
            issue=issue,
            name="x",
            specialists=("test-runner",),
            fixer="outside",
            agent=agent,
            tree="t",
        )
        engine.start(begun)

    told, untold = map(VALIDATION.letters, committed)

    assert [(each.agent, each.kind) for each in told] == [("coder", "status-change")]
    assert list(untold) == []


def test_a_status_change_of_a_missing_workflow_is_not_shown(agents: Agents) -> None:
    letters = informed(agents, asked(agents))
    lost: Any = [Taken(letter.letter.model_copy(update={"uid": "x"})) for letter in letters if letter.letter]

    assert changed(agents.store, lost) == []
    assert changed(MemoryStore(lambda: datetime(2026, 3, 2, tzinfo=UTC)), [*letters]) == []  # type: ignore[list-item]


@pytest.mark.proves("R8", "A5")
def test_reading_twice_gives_one_receipt(agents: Agents) -> None:
    workflow = asked(agents)

    for _ in range(2):
        (mail,) = opened(agents)
        mail.acknowledge(agents.engine, "coder")

    notes = [note for entry in agents.store.history(workflow) for note in entry.body.get("notes", ())]
    assert notes.count("receipt by coder of VFR-47-test-runner-1") == 1


@pytest.mark.proves("A51", "A3")
def test_a_specialist_may_not_acknowledge_what_the_main_agent_is_sent(agents: Agents) -> None:
    workflow = asked(agents)
    (letter,) = letters(agents, workflow)
    (mail,) = opened(agents, Box([letter]))

    with pytest.raises(WrongParty):
        mail.acknowledge(agents.engine, "coder", sender="@test-runner-specialist")

    assert not letter.acknowledged
    assert agents.engine.state(workflow).active.status == "AWAITING_FIX"
    assert any(entry.body["event"]["kind"] == "event-refused" for entry in agents.store.history(workflow))


@pytest.mark.proves("R8")
def test_a_letter_of_a_request_that_was_answered_is_dropped(agents: Agents) -> None:
    workflow = asked(agents)
    old = letters(agents, workflow)
    answered(agents, workflow)

    (mail,) = opened(agents, Box(list(old)))

    assert mail.message.message_id == "VFR-47-test-runner-2"
    assert all(letter.acknowledged for letter in old)


@pytest.mark.proves("A42", "G1")
def test_a_success_is_read_once_and_only_from_the_mailbox(agents: Agents) -> None:
    workflow = asked(agents, script="1 0")
    answered(agents, workflow)

    assert opened(agents) == []
    found = opened(agents, Box(letters(agents, workflow)))
    assert kinds(found) == ["success"]
    found[0].acknowledge(agents.engine, "coder")
    assert agents.engine.state(workflow).outcome == "success"


@pytest.mark.proves("K9")
def test_a_fix_request_that_is_a_separate_message_is_read_with_its_report(agents: Agents) -> None:
    workflow = agents.start(47, script="1 0", fixer="outside", agent="coder", bundle_fix_request=False)
    agents.run(workflow)

    assert kinds(opened(agents)) == ["failure-report", "fix-request"]


@pytest.mark.proves("A71", "G2")
def test_a_notice_stays_with_its_request(agents: Agents) -> None:
    workflow = asked(agents)
    agents.apply(workflow, AnswerRejected(specialist="test-runner", iteration=1, violations=("no section",)))

    assert kinds(opened(agents)) == ["failure-report", "protocol-violation"]


@pytest.mark.proves("K27", "G1")
def test_an_escalation_to_the_main_orchestrator_is_open_until_it_is_acknowledged(agents: Agents) -> None:
    workflow = asked(agents)
    for _ in range(2):
        agents.apply(workflow, AnswerRejected(specialist="test-runner", iteration=1, violations=("bad",)))

    (mail,) = opened(agents)
    assert mail.message.body.kind == "escalation"
    mail.acknowledge(agents.engine, "coder")

    assert opened(agents) == []
    assert agents.engine.state(workflow).paused


@pytest.mark.proves("A14")
def test_while_a_person_decides_no_request_is_open(agents: Agents) -> None:
    workflow = asked(agents)
    old = letters(agents, workflow)

    agents.apply(workflow, BlockerSignalled(by="coder", text="no access"))

    assert opened(agents, Box(old)) == []


@pytest.mark.proves("A14")
def test_a_pause_by_a_person_hides_the_request_until_it_continues(agents: Agents) -> None:
    workflow = asked(agents)
    agents.apply(workflow, Paused(by="ann"))

    assert opened(agents, Box(letters(agents, workflow))) == []
    agents.apply(workflow, Continued(by="ann"))

    assert kinds(opened(agents)) == ["failure-report"]


@pytest.mark.proves("K13")
def test_the_most_urgent_message_of_any_issue_comes_first(agents: Agents) -> None:
    asked(agents, 47)
    second = asked(agents, 48)
    for _ in range(2):
        agents.apply(second, AnswerRejected(specialist="test-runner", iteration=1, violations=("bad",)))

    assert [mail.state.issue for mail in opened(agents)] == [48, 47]


@pytest.mark.proves("G1")
def test_an_agent_reads_only_its_own_mail(agents: Agents) -> None:
    asked(agents, 47, agent="other")
    foreign = agents.start(
        48, workflow="ffffffff-48-1", script="1", fixer="outside", agent="coder", specialists=("test-runner",)
    )
    agents.run(foreign)

    assert opened(agents) == []
    assert known_agents(agents.store, PROJECT) == {"other"}


def test_invalid_letters_and_those_about_unknown_messages_are_dropped(agents: Agents) -> None:
    unknown = Letter(
        workflow=f"{PROJECT}-9-1", message_id="VFR-9-x-1", uid="u", issue=9, type="failure-report"
    )
    garbled = unknown.model_copy(update={"workflow": "no workflow|\n"})
    dropped = [Taken(None), Taken(unknown), Taken(garbled)]

    assert opened(agents, Box(list(dropped))) == []
    assert all(letter.acknowledged for letter in dropped)


def test_an_entry_that_is_no_letter_is_removed_and_counted(agents: Agents) -> None:
    workflow = asked(agents)
    nothing, letter = Taken(None), letters(agents, workflow)[0]

    (mail,) = opened(agents, Box([nothing, letter]))

    assert mail.received is not None
    assert nothing.acknowledged
    (rejected,) = agents.store.rejections().kept
    assert (rejected.queue, rejected.why) == ("the mailbox of coder", "it is no letter")
