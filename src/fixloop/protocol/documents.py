"""Records rendered on reading from messages or the state (A53-A55, B26-B29, B33-B35).

They are neither stored nor lines of the log (K39): the same facts always give the same record. A letter about a status
change carries only ids (A50); the history has the rest.
"""

from typing import Final, NamedTuple

from fixloop.errors import ProtocolError
from fixloop.protocol import ids
from fixloop.protocol.durations import id_stamp, stamp
from fixloop.protocol.ids import uid_of
from fixloop.protocol.markdown import Verbatim
from fixloop.protocol.messages import FixCompletion, Message
from fixloop.protocol.monitoring import TICK_SECONDS
from fixloop.protocol.rendering import fill
from fixloop.protocol.specialists import WITH_MAIN_AGENT, Role, Transition
from fixloop.protocol.state import State


def status_change(change: Transition) -> str:
    """The notification of a status change (A53)."""
    facts = {"before": change.before, "after": change.after, "at": change.at, "reason": change.reason}
    return fill("status-change", entity=entity_of(change), specialist=change.specialist, **facts)


def entity_of(change: Transition) -> str:
    """The entity that set the status (K19)."""
    specialist = f"{change.specialist}-specialist"
    return {Role.ORCHESTRATOR: "Orchestrator", Role.MAIN_AGENT: "Main Agent"}.get(change.role, specialist)


def sending(report: Message, text: str) -> str:
    """The record of a failure report's sending (B26), with the sent `text` (B27)."""
    if report.body.kind != "failure-report":
        raise ProtocolError(f"{report.message_id} is not a failure report")
    sent = fill("sent", m=report, body=report.body, report=Verbatim(text))
    return fill("sending", m=report, message=Verbatim(sent))


def confirmation(completion: Message) -> str:
    """The orchestrator's confirmation of a completion, before it triggers the re-validation (B33-B35)."""
    if not isinstance(completion.body, FixCompletion):
        raise ProtocolError(f"{completion.message_id} is not a fix completion")
    return fill("fix-confirmation", m=completion, body=completion.body)


def waiting(state: State, clock: float) -> str | None:
    """What is being waited for (B28-B30) at engine time `clock`; None if it is not the main agent's fix."""
    active = next((entry for entry in state.specialists if entry.name == state.current), None)
    if active is None or active.status not in WITH_MAIN_AGENT or state.paused or state.ended:
        return None
    since = state.reported_clock if state.reported_clock is not None else clock
    operation = state.operation
    return fill(
        "waiting",
        specialist=active.name,
        iteration=active.iteration,
        max_iterations=active.max_iterations,
        report_id=ids.report_id(state.issue, active.name, active.iteration),
        elapsed_seconds=clock - since,
        limit_seconds=operation.limit_seconds if operation is not None else state.limits.fix_seconds,
        tick_seconds=TICK_SECONDS,
    )


STATUS_CHANGE: Final = "status-change"
"""The kind of these letters."""


class About(NamedTuple):
    """What a letter says about a change."""

    message_id: str
    uid: str
    type: str = STATUS_CHANGE


def change_letter(workflow: str, issue: int, change: Transition) -> About:
    return About(f"STATUS-{issue}-{change.specialist}-{id_stamp(change.at)}", change_uid(workflow, change))


def change_uid(workflow: str, change: Transition) -> str:
    """The id that links the letter to the change in the history."""
    moment = f"{change.at.timestamp():.6f}"
    return uid_of("/".join((workflow, change.specialist, change.before, change.after, moment)))


def change_line(issue: int, change: Transition) -> str:
    """The whole change on one line (A53)."""
    what = f"{change.before} → {change.after} by the {change.role}"
    return f"#{issue} {change.specialist}: {what} at {stamp(change.at)} UTC: {change.reason}"
