"""The tables of docs/protocol.md that are made from the code: statuses, messages, limits, decisions."""

import re
from collections.abc import Iterable

from fixloop.protocol.messages import Decision, ErrorType, Message, Reason
from fixloop.protocol.outcome import Outcome
from fixloop.protocol.rendering import render
from fixloop.protocol.roles import MAY_BRING, ROUTES
from fixloop.protocol.specialists import EDGES, MAY_SET, SPECIALISTS, Edge, Role, Status
from fixloop.protocol.state import Limits, OperationName
from fixloop.protocol.ticket import Ticket
from tests.fixtures.message_samples import SAMPLES
from tests.fixtures.validation_stage import Stage
from tests.unit.test_decisions import ALL, Maker


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def diagram() -> str:
    """The transitions as a Mermaid state diagram."""
    edges = [f"    {edge.before} --> {edge.after}: {edge.cause.replace(':', ',')}" for edge in EDGES]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {Status.PENDING}", *edges, "```", ""])


def who_may(edge: Edge) -> frozenset[Role]:
    """Who may make a transition: the roles that may set the status it leads to (A51)."""
    return frozenset(role for role, may in MAY_SET.items() if edge.after in may)


def transitions() -> str:
    """The same as a table, with who may make each and what requires it."""
    rows = [
        [f"`{edge.before}`", f"`{edge.after}`", edge.cause, ", ".join(sorted(who_may(edge))), edge.source]
        for edge in EDGES
    ]
    return table(["from", "to", "when", "by", "required by"], rows)


def roles() -> str:
    """Who may set which status."""
    return table(
        ["status", *(str(role) for role in MAY_SET)],
        [[f"`{status}`", *("yes" if status in may else "" for may in MAY_SET.values())] for status in Status],
    )


def specialists() -> str:
    """The six specialists, in the order of their phases."""
    rows = [[f"`{entry.name}`", f"`{entry.handle}`", entry.phase, entry.expected] for entry in SPECIALISTS]
    return table(["specialist", "address", "phase", "its gate"], rows)


def messages() -> str:
    """Every message type with the pattern of its id, sender, recipient and priority."""
    seen: dict[str, list[str]] = {}
    for message in SAMPLES.values():
        heading = render(message).splitlines()[0].removeprefix("## ")
        row = [heading, f"`{_pattern(message)}`", message.sender, message.recipient, str(message.priority)]
        seen.setdefault(heading, row)
    return table(["message", "id", "from", "to", "priority"], seen.values())


def routes() -> str:
    """Which message goes from whom to whom; any other is not sent."""
    rows = [[f"`{route.kind}`", route.sender, route.recipient] for route in sorted(ROUTES["validation"])]
    return table(["message", "from", "to"], rows)


def senders() -> str:
    """Which event may come from whom."""
    return table(
        ["event", "from"], [[f"`{kind}`", ", ".join(sorted(may))] for kind, may in MAY_BRING.items()]
    )


def _pattern(message: Message) -> str:
    pattern = re.sub(rf"-{message.issue}-", "-{issue}-", message.message_id)
    pattern = re.sub(r"\d{8}T\d{6}Z", "{time}", pattern.replace(message.specialist, "{specialist}"))
    return re.sub(r"-\d+$", "-{iteration}", pattern)


def operations() -> str:
    """What can be late, and what follows."""
    told = Limits()
    window = _minutes(told.reminder_window_seconds)
    rows = []
    for name in OperationName:
        alone = name is OperationName.ITERATION
        follows = "escalation" if alone else f"reminder; escalation {window} after it"
        rows.append([f"`{name}`", _minutes(told.of(name, "")), follows])
    return table(["operation", "limit", "when it is over"], rows)


def limits() -> str:
    """Every limit with its default."""
    told = Limits().model_dump()
    return table(["limit", "default"], [[f"`{name}`", f"`{value}`"] for name, value in told.items()])


def _minutes(seconds: float | None) -> str:
    return "none" if seconds is None else f"{seconds / 60:g} minutes"


def escalations() -> str:
    """Why a workflow is escalated, and to whom."""
    rows = [[f"`{reason}`", reason.label, reason.text, reason.target] for reason in Reason]
    return table(["reason", "in the report", "condition", "goes to"], rows)


def errors() -> str:
    """The four error types: what is tried, how often, and what follows."""
    told = Limits()
    tried: dict[ErrorType, tuple[str, Reason]] = {
        ErrorType.COMMUNICATION: (f"delivered {told.fix_attempts} times", Reason.COMMUNICATION_ERROR),
        ErrorType.INVALID_RESPONSE: (
            f"{told.answer_attempts} answers, a notice between",
            Reason.INVALID_RESPONSE,
        ),
        ErrorType.SPECIALIST_FAILURE: (f"run {told.specialist_attempts} times", Reason.SPECIALIST_ERROR),
        ErrorType.UNRESPONSIVE: ("one reminder, or a command started again", Reason.UNRESPONSIVE),
    }
    rows = [
        [error.label, f"`ERR-{{issue}}-{error}-{{time}}`", tried[error][0], tried[error][1].target]
        for error in ErrorType
    ]
    return table(["error", "id", "recovery", "then escalated to"], rows)


def decisions() -> str:
    """The effect of each decision after each kind of escalation, found by deciding."""
    rows = [[_of(make), *(_effect(make(), decision) for decision in Decision)] for make in ALL]
    return table(["after", *(f"`{decision}`" for decision in Decision)], rows)


def _of(make: Maker) -> str:
    return str(make.__name__).replace("_", " ")


def _effect(stage: Stage, decision: Decision) -> str:
    if decision not in stage.escalation.reason.decisions:
        return ""
    before = stage.active
    outcomes = [stage.decide(decision)]
    waits = stage.state.paused
    if waits:
        outcomes.append(stage.done_by_hand())
    grown = stage.state.specialist(before.name).max_iterations - before.max_iterations
    told = [
        *_path(outcomes, before.name),
        *([f"max +{grown}"] if grown else []),
        *(_step(ticket, before.name) for out in outcomes for ticket in out.steps),
        *([f"ends {stage.state.outcome}"] if stage.state.ended else []),
    ]
    return f"{'waits for `fixed`; ' if waits else ''}{', '.join(told) or 'a fix is awaited'}"


def _step(ticket: Ticket, name: str) -> str:
    return f"`{ticket.step}` {ticket.iteration if ticket.specialist == name else 'of the next phase'}"


def _path(outcomes: Iterable[Outcome], name: str) -> list[str]:
    moves = [change.after for out in outcomes for change in out.transitions if change.specialist == name]
    return [" → ".join(f"`{status}`" for status in (Status.ESCALATED, *moves))] if moves else []
