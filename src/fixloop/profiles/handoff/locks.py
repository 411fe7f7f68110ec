"""Locks on shared resources: one wins, an expired one is taken over visibly, a late release is none (D24-D31, K10)."""

from datetime import timedelta

from fixloop.profiles.handoff import events as ev
from fixloop.profiles.handoff.outcome import Draft
from fixloop.profiles.handoff.records import Lock, Takeover
from fixloop.profiles.handoff.routes import check_agent
from fixloop.protocol.refusals import Unexpected


def acquire(draft: Draft, event: ev.LockAcquired) -> None:
    """
    Answers `granted`, `forced` (the old one had expired), or `pending`: somebody else has it (D26, D28).

    A lock that is kept changes nothing, however often it is asked for.
    """
    check_agent(event.sender)
    present = draft.state.locks.get(event.resource)
    if present is not None and present.expires >= draft.at:
        draft.answer = "granted" if present.agent == event.sender else "pending"
        draft.commits = False
        return
    forced_from = present.agent if present is not None else ""
    token = draft.state.tokens + 1
    lock = Lock(
        agent=event.sender,
        acquired=draft.at,
        expires=draft.at + timedelta(seconds=draft.state.limits.lease_seconds),
        token=token,
        forced_from=forced_from,
    )
    draft.update(tokens=token, locks={**draft.state.locks, event.resource: lock})
    draft.answer = "forced" if forced_from else "granted"
    if forced_from:
        taken = Takeover(resource=event.resource, before=forced_from, after=event.sender, at=draft.at)
        draft.update(takeovers=(*draft.state.takeovers, taken))
        draft.note(
            f"{event.sender} took the lock of {event.resource} over from {forced_from}: it had expired"
        )


def release(draft: Draft, event: ev.LockReleased) -> None:
    """Answers `released`, or `lost`, which changes nothing: it was taken over (D27). Never this agent's: Unexpected."""
    lock = _owned(draft, event.sender, event.resource, event.token)
    if lock is None:
        draft.answer = "lost"
        return
    draft.update(locks={name: kept for name, kept in draft.state.locks.items() if name != event.resource})
    draft.answer = "released"


def extend(draft: Draft, event: ev.LockExtended) -> None:
    """Answers `extended`, or `lost` (G18)."""
    lock = _owned(draft, event.sender, event.resource, event.token)
    if lock is None or lock.expires < draft.at:
        draft.answer = "lost"
        return
    later = draft.at + timedelta(seconds=draft.state.limits.lease_seconds)
    new = lock.model_copy(update={"expires": later})
    draft.update(locks={**draft.state.locks, event.resource: new})
    draft.answer = "extended"


def _owned(draft: Draft, agent: str, resource: str, token: int | None) -> Lock | None:
    """The agent's own lock; None where it had one that somebody took over."""
    check_agent(agent)
    lock = draft.state.locks.get(resource)
    if lock is not None and lock.agent == agent and token in (None, lock.token):
        return lock
    had_one = lock is not None and lock.agent == agent
    had_one = had_one or any((t.resource, t.before) == (resource, agent) for t in draft.state.takeovers)
    if not had_one:
        holder = f"it is {lock.agent}'s" if lock is not None else "nobody has it"
        raise Unexpected(f"{agent} does not hold the lock of {resource}; {holder}")
    return None


def wait_seconds(attempt: int) -> float:
    """How long who waits for a lock sleeps before asking again: 1, 2, 4 … 30 s (G17)."""
    return float(min(30, 2 ** (attempt - 1)))
