"""How urgent a step is: as the message it is about, and in the broker's numbers (K13)."""

from typing import Any

import pytest
from celery import Celery

from fixloop.protocol.failures import Severity
from fixloop.protocol.ticket import Priority
from tests.fixtures.script import SILENT, Fix, errs, fails, failure
from tests.fixtures.validation_stage import Stage
from workers.steps.hints import follow
from workflows import canvas

app = Celery("test", set_as_current=False)


@pytest.mark.proves("K13", "B26")
@pytest.mark.parametrize(
    ("severities", "priority", "broker"),
    [
        ((Severity.CRITICAL,), Priority.HIGH, 3),
        ((Severity.LOW, Severity.HIGH), Priority.HIGH, 3),
        ((None, Severity.LOW), Priority.HIGH, 3),
        ((Severity.LOW, Severity.MEDIUM), Priority.MEDIUM, 6),
        ((Severity.LOW,), Priority.LOW, 9),
        ((None,), Priority.HIGH, 3),
    ],
)
def test_a_report_and_the_steps_that_deliver_it_are_as_urgent_as_what_failed(
    severities: tuple[Severity | None, ...], priority: Priority, broker: int
) -> None:
    found = [failure(f"t{number}", severity=severity) for number, severity in enumerate(severities)]
    stage = Stage([fails(*found), SILENT], fixer="command").run()

    assert stage.said("failure-report")[0].priority is priority
    asked = {ticket.step: ticket.priority for ticket in stage.executed}
    assert asked == {"validate": 3, "report": broker, "fix": broker, "recheck": 3}


@pytest.mark.proves("K13", "A44")
def test_announcing_an_escalation_is_the_most_urgent_step() -> None:
    low = failure("a", severity=Severity.LOW)
    stage = Stage([fails(low), errs(), errs()], answers=[Fix(tree="tree-0")], notify=True).run()

    assert stage.messages[-1].priority is Priority.CRITICAL
    (ticket,) = stage.pending
    assert (ticket.step, ticket.priority) == ("notify", 0)


class _Chained:
    """The part of a Celery task that `follow` looks at."""

    def __init__(self, chain: list[Any]) -> None:
        self.request = self
        self.chain = chain


@pytest.mark.proves("K13")
def test_a_chain_that_was_built_before_the_severity_was_known_is_replaced() -> None:
    low = fails(failure("a", severity=Severity.LOW))
    stage = Stage([low], fixer="command")
    validate = stage.pending[0]
    foreseen = [dict(entry) for entry in reversed(canvas(app, stage.state, validate)[1:])]
    assert [entry["options"]["priority"] for entry in foreseen] == [3, 3, 3]
    stage.step()

    task = _Chained(foreseen)
    follow(task, validate, stage.state, stage.pending)

    assert [entry["options"]["task_id"].split(".")[2] for entry in task.chain] == ["recheck", "fix", "report"]
    assert [entry["options"]["priority"] for entry in task.chain] == [3, 9, 9]
