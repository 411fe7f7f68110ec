"""The messages of a workflow of handoffs as lines of a log, and what is counted of them."""

import json
from collections.abc import Sequence
from typing import Any

from fixloop.commands import agent_log as spoken
from fixloop.profiles.handoff.metrics import measured
from fixloop.profiles.handoff.records import Message
from fixloop.profiles.handoff.routes import HandoffType
from fixloop.profiles.handoff.state import Handoffs


def line(kept: dict[str, Any], state: Handoffs | None) -> spoken.Line:
    message = Message.model_validate(kept)
    return spoken.Line(
        number=kept["number"],
        at=message.timestamp,
        sender=message.sender,
        recipient=message.recipient,
        kind=message.type.value,
        message_id=message.message_id,
        summary=summary(message),
        iteration=message.context.iteration,
        max_iterations=state.max_iterations if state is not None else 0,
        text=message.text,
    )


def summary(message: Message) -> str:
    """The payload's facts on one line; of an escalation why and what."""
    payload = message.payload
    if message.type is HandoffType.ESCALATION:
        return f"{payload.get('reason', '')}: {payload.get('details', '')}"
    return ", ".join(
        f"{name} {value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)}"
        for name, value in payload.items()
        if value not in ("", [], {}, None)
    )


def statistics(state: Handoffs, said: Sequence[spoken.Line]) -> dict[str, Any]:
    figures = measured(state.events)
    return {
        "reviews": state.iteration,
        "handoffs": figures.handoffs,
        "fix_iterations": figures.fix_iterations,
        "seconds_by_agent": figures.seconds_by_agent,
        "escalations": sum(line.kind == "escalation" for line in said),
        "events": len(state.events),
    }
