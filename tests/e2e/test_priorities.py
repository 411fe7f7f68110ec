"""A backlog of ordinary steps on a real broker, and an escalation that comes after it and is served first (K13)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixloop.outside.mailbox import Mailboxes
from fixloop.protocol.events import ReportDelivered, RunFinished, WorkflowStarted
from fixloop.protocol.failures import Failure, Severity
from tests.fixtures.deployment import PROJECT, Deployment, fresh_database

pytestmark = pytest.mark.slow

BACKLOG = 40
AT_WORK = 4
"""The number of steps that processes may have prefetched before the latest one."""


@pytest.fixture
def deployment(redis_url: str, tmp_path: Path) -> Iterator[Deployment]:
    """Nothing of it runs yet: its hints wait."""
    made = Deployment(fresh_database(redis_url), tmp_path, concurrency=1)
    yield made
    made.end()


def failed(deployment: Deployment, started: WorkflowStarted, severity: Severity) -> None:
    """Run 1 failed with one finding of this severity: a report is asked for."""
    finding = Failure(name="a", check="test-runner", error_type="E501", message="a", severity=severity)
    deployment.tell(
        started.workflow,
        RunFinished(
            step="validate",
            specialist="test-runner",
            iteration=1,
            outcome="failed",
            tree="tree-0",
            failures=(finding,),
        ),
    )


def broken(deployment: Deployment, started: WorkflowStarted) -> None:
    """Run 1 could not be run, twice: an escalation to the main orchestrator."""
    for attempt in (1, 2):
        deployment.tell(
            started.workflow,
            RunFinished(
                step="validate",
                specialist="test-runner",
                iteration=1,
                attempt=attempt,
                outcome="error",
                tree="tree-0",
                error="no module named pytest",
            ),
        )


def order(deployment: Deployment, step: str) -> list[str]:
    """The workflows whose `step` was done, in that order; a hint that came again did nothing."""
    done = (ticket.split(".") for ticket, status in deployment.deliveries() if status == "done")
    return [words[0] for words in done if words[2] == step]


def steps(deployment: Deployment) -> list[str]:
    return [ticket.split(".")[2] for ticket, status in deployment.deliveries() if status == "done"]


@pytest.mark.proves("K13")
def test_an_escalation_is_delivered_before_the_reports_that_waited_for_longer(deployment: Deployment) -> None:
    agent: dict[str, Any] = {"fixer": "outside", "agent": "coder", "hinted": False}
    for number in range(BACKLOG):
        one = deployment.begin("a -", **agent)
        failed(deployment, one, (Severity.LOW, Severity.MEDIUM)[number % 2])
    last = deployment.begin("a -", **agent)
    broken(deployment, last)

    deployment.start()
    deployment.until(lambda: steps(deployment).count("deliver") == BACKLOG)

    assert steps(deployment)[0] == "escalate"
    assert order(deployment, "escalate") == [last.workflow]
    mailboxes = Mailboxes(deployment.url)
    first = mailboxes.take(PROJECT, "coder")
    assert first is not None
    assert first.letter is not None
    assert first.letter.workflow == last.workflow
    mailboxes.close()


@pytest.mark.proves("K13", "B26")
def test_reports_of_severe_findings_come_before_minor_ones(deployment: Deployment) -> None:
    severities = [Severity.LOW, Severity.MEDIUM, Severity.HIGH] * 5
    of = {}
    for severity in severities:
        one = deployment.begin("a -", fixer="outside", hinted=False)
        failed(deployment, one, severity)
        of[one.workflow] = severity

    deployment.start()
    deployment.until(lambda: len(order(deployment, "report")) >= len(severities))

    served = [of[workflow] for workflow in dict.fromkeys(order(deployment, "report"))]
    assert served == sorted(severities, key=list(Severity).index)


@pytest.mark.proves("K13", "A44")
def test_a_person_is_notified_before_fixes_that_waited_for_longer(deployment: Deployment) -> None:
    for _ in range(BACKLOG):
        one = deployment.begin("a -; fix: ok~0.05", hinted=False)
        failed(deployment, one, Severity.LOW)
        deployment.tell(one.workflow, ReportDelivered(specialist="test-runner", iteration=1))
    last = deployment.begin("a -", notify=True, hinted=False)
    broken(deployment, last)

    deployment.start()
    deployment.until(lambda: "notify" in steps(deployment))

    before = [step for step in steps(deployment)[: steps(deployment).index("notify")] if step == "fix"]
    assert len(before) <= AT_WORK
