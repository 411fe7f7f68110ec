"""Hints: Celery messages that announce a ticket. Losing one loses nothing."""

from typing import Any

from celery import Celery
from celery.canvas import Signature
from kombu.exceptions import BatchPublishError, OperationalError

from fixloop.protocol.ticket import Ticket
from fixloop.servers.broker import app_for

START_TASK = "fixloop.validation.start"


def producer(broker_url: str) -> Celery:
    """A Celery app that only sends, as JSON, and waits a bounded time for a broker that is away."""
    app = app_for(broker_url)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_publish_retry_policy={"max_retries": 1, "interval_start": 0.1, "interval_max": 0.1},
    )
    return app


def task_name(profile: str, step: str) -> str:
    """`fixloop.{profile}.{step}` (R2)."""
    return f"fixloop.{profile}.{step}"


def arguments(ticket: Ticket) -> dict[str, Any]:
    """The arguments of a step's task; the issue is included for Flower (R12)."""
    return {
        "ticket": ticket.id,
        "issue": int(ticket.workflow.split("-")[1]),
        "specialist": ticket.specialist,
        "iteration": ticket.iteration,
    }


def signature(app: Celery, profile: str, ticket: Ticket) -> Signature:
    """A ticket as a signature for a canvas."""
    return app.signature(
        task_name(profile, ticket.step),
        kwargs=arguments(ticket),
        task_id=ticket.id,
        queue=ticket.queue,
        priority=ticket.priority,
        immutable=True,
    )


def send_hint(app: Celery, ticket: Ticket, profile: str, producer: Any = None) -> bool:
    """Send the hint for one ticket. False when the broker is away: the sweeper will send it again."""
    given = arguments(ticket)
    try:
        app.send_task(
            task_name(profile, ticket.step),
            kwargs=given,
            argsrepr="()",
            kwargsrepr=repr(given),
            task_id=ticket.id,
            queue=ticket.queue,
            priority=ticket.priority,
            countdown=ticket.delay_seconds or None,
            producer=producer,
        )
    except (OperationalError, BatchPublishError):
        return False
    return True
