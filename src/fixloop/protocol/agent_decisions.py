"""Decisions that all profiles whose steps are runs of named agents share; each profile adds its own rules.

Pure: no clock, no Redis, no files.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from fixloop.protocol import agent_events as ev
from fixloop.protocol.draft import AgentDraft, Outcome
from fixloop.protocol.event import Moment, NotDue, Repeated, Unexpected

_WHILE_CLOSING: Final = frozenset(("branch-pushed", "cancelled", "paused", "continued"))

S = TypeVar("S", bound=Any)
D = TypeVar("D", bound=AgentDraft[Any, Any])


class Rules(NamedTuple, Generic[S, D]):
    """What a profile contributes to its decisions."""

    noun: str
    """What its workflows are called."""
    called: Callable[[S], str]
    """The name of a workflow in refusals."""
    draft: Callable[[S, Moment], D]
    starts: Mapping[type, Callable[[Any, Moment], D]]
    """The events that start a workflow."""
    end: Callable[[D, str, str], None]
    """Ends a workflow with a status, `completed` or `failed`, and an outcome."""
    handlers: Mapping[type, Callable[[D, Any], None]]
    """All other events, except those that every profile handles alike."""


def decide(rules: Rules[S, D], state: S | None, event: Any, now: Moment) -> Outcome[S, Any]:
    """Decide `event`; Unexpected if it does not fit the state."""
    start = rules.starts.get(type(event))
    if start is not None:
        if state is not None:
            raise Unexpected(f"{rules.called(state)} has started already")
        return start(event, now).outcome()
    if state is None:
        raise Unexpected(f"{event.kind} came before the {rules.noun} started")
    draft = rules.draft(state, now)
    if isinstance(event, ev.EventRefused):
        draft.note(f"refused: {event.refused} from {event.sender}: {event.reason}")
    elif isinstance(event, ev.BranchPushed):
        _branch_pushed(draft, event, lambda outcome: rules.end(draft, "completed", outcome))
    elif state.ended:
        raise Unexpected(f"{event.kind} came after {rules.called(state)} ended ({state.outcome})")
    elif state.closing and event.kind not in _WHILE_CLOSING:
        raise Unexpected(
            f"{event.kind} came while workflow {state.workflow} ends ({state.closing}): its branch is pushed"
        )
    else:
        _apply(rules, draft, event)
    return draft.outcome()


def _apply(rules: Rules[S, D], draft: D, event: Any) -> None:
    match event:
        case ev.Cancelled():
            if draft.state.paused_clock is not None:
                draft.release(0.0)
            rules.end(draft, "failed", "cancelled")
        case ev.Paused():
            if draft.state.paused_clock is not None:
                raise Repeated(f"{rules.called(draft.state)} is paused already")
            draft.pause(event)
        case ev.Continued():
            if draft.state.paused_clock is None:
                raise Repeated(f"{rules.called(draft.state)} is not paused")
            draft.go_on(event)
        case ev.MessageStored(number=number):
            # A message counts as delivered once the mailbox has it (G1).
            if (letter := draft.letter(number)) is not None:
                told = f"the mailbox of {letter.agent} took {letter.message_id} (attempt {letter.attempt})"
                draft.note(told)
                draft.replace_letter(letter)
        case ev.PersonNotified(detail=detail):
            draft.note(f"notified: {detail}")
        case ev.DeadlineReached(name=name, due=due) if draft.clock <= due:
            raise NotDue(f"{name} falls due in {due - draft.clock:.1f} s")
        case _:
            rules.handlers[type(event)](draft, event)


def restored(rules: Rules[S, D], before: S, now: Moment) -> D:
    """Continue a workflow whose Redis was lost from its named files (K23). The state is kept; agents are asked again,
    and their time starts again."""
    if before.ended:
        raise Unexpected(f"{rules.called(before)} ended ({before.outcome}); there is nothing to go on with")
    draft = rules.draft(before.with_(rebuilt=before.rebuilt + 1), now)
    draft.ask_again()
    return draft


def close(draft: AgentDraft[Any, Any], outcome: str, end: Callable[[str], None]) -> None:
    """End successfully with `end`, after pushing the branch if that was requested."""
    if not draft.state.push:
        end(outcome)
        return
    draft.withdraw()
    draft.update(closing=outcome)
    draft.push()


def _branch_pushed(draft: AgentDraft[Any, Any], event: ev.BranchPushed, end: Callable[[str], None]) -> None:
    """Record that the branch was pushed or refused, even long after the end, when a person has retried. A push decides
    nothing about the work. An unreachable URL is retried as a letter is; a refusal is final."""
    state = draft.state
    if not (state.closing or (state.ended and state.outcome in ("success", "skipped"))):
        told = f"workflow {state.workflow} has no work to push: it is {state.outcome or state.status}"
        raise Unexpected(told)
    if state.ended and not event.branch:
        raise Unexpected(f"workflow {state.workflow} has ended, and what is told of it was not pushed")
    draft.note(
        f"pushed as {event.branch}" if event.branch else f"not pushed: {event.error or 'nothing was changed'}"
    )
    if event.error and not event.fatal and event.attempt < state.limits.delivery_attempts:
        draft.push(event.attempt + 1, state.limits.backoff_seconds(event.attempt))
        return
    draft.update(pushed=event.branch, push_error=event.error, closing="")
    if not state.ended:
        end(state.closing)


def unreached(draft: AgentDraft[Any, Any], event: ev.DeliveryFailed) -> Any:
    """Retry a letter that no mailbox took, with growing pauses, until its attempts are used up (A70, K5). Returns the
    agent that a used-up letter asks for something."""
    letter, limits = draft.letter(event.number), draft.state.limits
    if letter is None:
        return None
    draft.note(f"delivery of {letter.message_id} failed (attempt {letter.attempt}): {event.error}")
    if letter.attempt >= limits.delivery_attempts:
        draft.replace_letter(letter)
        agent = draft.state.agent(letter.agent)
        return agent if agent.asked else None
    again = letter.with_(attempt=letter.attempt + 1)
    draft.replace_letter(letter, again)
    draft.deliver(again, limits.backoff_seconds(letter.attempt))
    return None
