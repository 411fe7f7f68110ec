"""The last step of a workflow with `push`: its verified branch goes to the repository's URL.

A push decides nothing about the work: the verdict stands whether it succeeds or not. An unreachable URL is retried as a
delivery is; a refusal is final and kept in the state, for `status` and the last lines of output.
"""

from fixloop.protocol.event import Unexpected
from fixloop.protocol.events import BranchPushed
from fixloop.protocol.outcome import Draft
from fixloop.protocol.specialists import Status
from fixloop.protocol.state import State, WorkflowOutcome


def ask_or_end(draft: Draft) -> None:
    """Everything has passed on the final tree: push if that was requested and nothing is unverified, then end."""
    if draft.state.push and not _is_unverified(draft.state):
        draft.ask("push")
        return
    if draft.state.push:
        draft.update(push_error="it is not verified")
    _end(draft)


def branch_pushed(draft: Draft, event: BranchPushed) -> None:
    """Record that the branch was pushed or refused, even long after the end, when a person has retried."""
    state = draft.state
    through = state.status is Status.COMPLETED and state.operation is None
    is_pushing = state.push and through and not state.paused
    if not (state.ended or is_pushing) or state.verdict == "not_passed":
        raise Unexpected(f"workflow {state.workflow} has no verified branch to push")
    if state.ended and not event.branch:
        raise Unexpected(f"workflow {state.workflow} has ended, and what is told of it was not pushed")
    draft.note(
        f"pushed as {event.branch}" if event.branch else f"not pushed: {event.error or 'no fix was needed'}"
    )
    if state.ended:
        draft.update(pushed=event.branch, push_error="")
    elif event.error and not event.fatal and event.attempt < state.limits.delivery_attempts:
        again = event.attempt + 1
        draft.ask("push", attempt=again, delay_seconds=state.limits.backoff(again))
    else:
        draft.update(pushed=event.branch, push_error=event.error)
        _end(draft)


def _end(draft: Draft) -> None:
    skipped = any(entry.skipped for entry in draft.state.specialists if entry.applicable)
    passed = WorkflowOutcome.SKIPPED if skipped else WorkflowOutcome.SUCCESS
    draft.end(WorkflowOutcome.UNVERIFIED if _is_unverified(draft.state) else passed)


def _is_unverified(state: State) -> bool:
    return any(each.blocks for each in state.unverified)
