"""A declared outside agent behind real workers: its mailbox, its receipts, a mailbox that takes nothing (S10, G1)."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from fixloop.outside.mailbox import Letter, Mailboxes, queue_name
from fixloop.protocol.documents import change_uid
from fixloop.protocol.events import (
    BlockerSignalled,
    DecisionMade,
    FixAcknowledged,
    FixCompleted,
    ReceiptGiven,
    WorkflowStarted,
)
from fixloop.protocol.messages import Decision, ErrorNotification, Escalation, Reason
from fixloop.protocol.specialists import Transition
from fixloop.protocol.state import Completion, Limits
from tests.fixtures.deployment import PROJECT, Deployment, deployed

pytestmark = pytest.mark.slow

WRONG = "somebody's string"


@pytest.fixture(scope="module")
def deployment(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(redis_url, tmp_path_factory.mktemp("mailboxes")) as running:
        yield running


@pytest.fixture
def mailboxes(deployment: Deployment) -> Iterator[Mailboxes]:
    made = Mailboxes(deployment.url)
    yield made
    made.close()


@pytest.fixture
def broker(deployment: Deployment) -> Iterator[Any]:
    found: Any = redis.Redis.from_url(deployment.url)
    yield found
    found.close()


def begun(deployment: Deployment, agent: str, script: str = "a -", **further: Any) -> WorkflowStarted:
    """A workflow whose fixer is this agent; each test has an agent, and so its own mailbox."""
    limits = Limits(backoff_seconds=0.2, **further.pop("limits", {}))
    return deployment.begin(script, fixer="outside", agent=agent, limits=limits, **further)


def read(deployment: Deployment, mailboxes: Mailboxes, agent: str) -> Letter:
    """The next letter, as soon as there is one."""
    found: list[Letter] = []

    def came() -> bool:
        received = mailboxes.take(PROJECT, agent)
        if received is not None and received.letter is not None:
            received.acknowledge()
            if received.letter.type != "status-change":
                found.append(received.letter)
        return bool(found)

    deployment.until(came)
    return found[0]


def says(deployment: Deployment, started: WorkflowStarted) -> list[str]:
    """The messages, by the beginnings of their ids."""
    return [message.message_id.split("-")[0] for message in deployment.messages(started.workflow)]


def completed(iteration: int = 1) -> FixCompleted:
    done = Completion(iteration=iteration, by="coder", fixes=("it",), files=("a.py",), tip="c", tree="t")
    return FixCompleted(specialist="test-runner", completion=done)


@pytest.mark.proves("A4", "A5", "A6", "G1")
def test_an_agent_reads_its_mailbox_acknowledges_and_answers(
    deployment: Deployment, mailboxes: Mailboxes
) -> None:
    started = begun(deployment, "reads")

    letter = read(deployment, mailboxes, "reads")
    assert (letter.workflow, letter.message_id) == (started.workflow, f"VFR-{started.issue}-test-runner-1")
    receipt = FixAcknowledged(specialist="test-runner", iteration=1, by="reads", uid=letter.uid)
    deployment.tell(started.workflow, receipt)
    assert deployment.state(started.workflow).active.status == "FIXING"
    deployment.tell(started.workflow, completed())
    deployment.finished(started.workflow)

    assert read(deployment, mailboxes, "reads").message_id.startswith("SUCCESS-")
    state = deployment.state(started.workflow)
    assert state.verdict == "passed"
    report = state.active.runs[0].receipt
    assert report is not None
    assert (report.uid, report.by) == (letter.uid, "reads")
    deployment.story(started.workflow)


@pytest.mark.proves("A54", "A55")
def test_every_status_change_is_a_letter_in_the_agent_s_mailbox_as_it_happens(
    deployment: Deployment, mailboxes: Mailboxes
) -> None:
    started = begun(deployment, "informed")
    deployment.until(lambda: says(deployment, started)[-1:] == ["VFR"])
    deployment.tell(started.workflow, completed())
    deployment.finished(started.workflow)

    told: list[Letter] = []

    def all_came() -> bool:
        received = mailboxes.take(PROJECT, "informed")
        if received is not None and received.letter is not None:
            received.acknowledge()
            told.append(received.letter)
        return len([letter for letter in told if letter.type == "status-change"]) == len(changes)

    changes = [
        Transition.model_validate(change)
        for entry in deployment.store.history(started.workflow)
        if "by" in entry.body  # what the test says from outside, it says without letters
        for change in entry.body.get("transitions", ())
    ]
    deployment.until(all_came, about=started.workflow)
    assert [change.after for change in changes][:2] == ["FAIL", "AWAITING_FIX"]
    uids = {letter.uid for letter in told if letter.type == "status-change"}
    assert uids == {change_uid(started.workflow, change) for change in changes}


@pytest.mark.proves("A70", "A76", "K5", "R9")
def test_s10_three_refused_deliveries_escalate_to_the_main_orchestrator(
    deployment: Deployment, broker: Any
) -> None:
    broker.set(queue_name(PROJECT, "refused"), WRONG)

    started = begun(deployment, "refused")
    deployment.finished(started.workflow)

    assert says(deployment, started) == ["DETECT", "VFR", "ERR", "ESC"]
    *_, error, escalation = deployment.messages(started.workflow)
    assert isinstance(error.body, ErrorNotification)
    assert isinstance(escalation.body, Escalation)
    assert "WRONGTYPE" in error.body.error
    assert len(error.body.recovery) == 2
    assert escalation.body.reason is Reason.COMMUNICATION_ERROR
    kinds = [event["kind"] for event in deployment.events(started.workflow)]
    assert kinds.count("delivery-failed") == 6
    deployment.story(started.workflow)


@pytest.mark.proves("A70", "A75", "G19", "S10")
def test_s10_a_mailbox_that_is_repaired_in_time_recovers(
    deployment: Deployment, mailboxes: Mailboxes, broker: Any
) -> None:
    broker.set(queue_name(PROJECT, "mended"), WRONG)
    started = begun(deployment, "mended", limits={"delivery_attempts": 5})
    deployment.until(
        lambda: "delivery-failed" in [event["kind"] for event in deployment.events(started.workflow)]
    )

    broker.delete(queue_name(PROJECT, "mended"))

    assert read(deployment, mailboxes, "mended").message_id.startswith("VFR-")
    deployment.until(lambda: says(deployment, started) == ["DETECT", "VFR", "ERR"])
    error = deployment.messages(started.workflow)[-1].body
    assert isinstance(error, ErrorNotification)
    assert error.recovered


@pytest.mark.proves("A70", "G1")
def test_an_agent_that_never_acknowledges_is_unreachable(deployment: Deployment) -> None:
    started = begun(deployment, "silent", acks=True, limits={"receipt_seconds": 0.5})

    deployment.finished(started.workflow)

    assert says(deployment, started) == ["DETECT", "VFR", "ERR", "ESC"]
    body = deployment.messages(started.workflow)[-1].body
    assert isinstance(body, Escalation)
    assert "silent gave no receipt within 0.5 s" in body.detail
    deployment.story(started.workflow)


@pytest.mark.proves("G1", "K27")
def test_the_escalation_to_the_main_orchestrator_is_in_its_mailbox(
    deployment: Deployment, mailboxes: Mailboxes
) -> None:
    started = begun(deployment, "orchestrator", "!!a")
    deployment.finished(started.workflow)

    letter = read(deployment, mailboxes, "orchestrator")

    assert letter.type == "escalation"
    receipt = ReceiptGiven(uid=letter.uid, message_id=letter.message_id, by="orchestrator")
    deployment.tell(started.workflow, receipt)
    opened = deployment.state(started.workflow).escalation
    assert opened is not None
    assert opened.receipt is not None
    assert read(deployment, mailboxes, "orchestrator").type == "error-notification"


@pytest.mark.proves("B31", "A59")
def test_a_reminder_is_delivered_to_the_mailbox(deployment: Deployment, mailboxes: Mailboxes) -> None:
    begun(deployment, "late", limits={"fix_seconds": 0.5, "reminder_window_seconds": 60.0})
    assert read(deployment, mailboxes, "late").type == "failure-report"

    assert read(deployment, mailboxes, "late").type == "timeout-reminder"


@pytest.mark.proves("K20", "A70")
def test_an_extension_delivers_the_open_report_again(
    deployment: Deployment, mailboxes: Mailboxes, broker: Any
) -> None:
    broker.set(queue_name(PROJECT, "again"), WRONG)
    started = begun(deployment, "again")
    deployment.finished(started.workflow)
    broker.delete(queue_name(PROJECT, "again"))

    decision = DecisionMade(decision=Decision.EXTEND, by="ann")
    deployment.tell(started.workflow, decision)

    assert read(deployment, mailboxes, "again").message_id == f"VFR-{started.issue}-test-runner-1"
    deployment.tell(started.workflow, BlockerSignalled(by="again", text="no access"))
    deployment.finished(started.workflow)


@pytest.mark.proves("R8", "R14")
def test_a_worker_that_dies_during_a_delivery_causes_no_second_message(deployment: Deployment) -> None:
    started = [begun(deployment, "killed") for _ in range(20)]
    deployment.until(lambda: any("VFR" in says(deployment, one) for one in started))

    deployment.kill("control")

    for one in started:
        deployment.until(lambda one=one: deployment.state(one.workflow).owner == "agent")  # type: ignore[misc]
        assert says(deployment, one) == ["DETECT", "VFR"]
