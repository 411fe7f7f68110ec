"""What a commit does to a workflow in memory: the twin of commit.lua."""

from fixloop.store.entries import digest_of
from fixloop.store.memory_records import KeptWorkflow
from fixloop.store.records import Commit, Committed


def refusal(commit: Commit, kept: KeptWorkflow, living: str | None) -> Committed | None:
    """
    The answer to a commit that may not be written, as commit.lua has it, in its order.

    Args:
        living: the live workflow of its feature.
    """
    refused = _ticket_refusal(commit, kept)
    if refused is not None:
        return refused
    if commit.operation and commit.operation in kept.operations:
        return _first_answer(kept, kept.operations[commit.operation])
    if kept.version == 0 and commit.expected_version > 0:
        return Committed("gone", 0)
    if commit.live and living and (living != commit.workflow or commit.expected_version == 0):
        return Committed("exists", kept.version, kept.head, other=living)
    if kept.version != commit.expected_version or commit.head not in ("", kept.head):
        data, context = kept.state(commit.workflow)
        return Committed("conflict", kept.version, kept.head, data, context=context)
    return None


def _ticket_refusal(commit: Commit, kept: KeptWorkflow) -> Committed | None:
    if not commit.ticket:
        return None
    held, finished = kept.tickets.get(commit.ticket), kept.finished(commit.ticket)
    if held is not None and (held.fence, held.owner) == (commit.fence, commit.owner):
        return None
    if held is not None or (finished is not None and finished.fence is None):
        kept.stale += 1
        return Committed("stale", kept.version, kept.head)
    if finished is not None and finished.fence == commit.fence:
        return _first_answer(kept, finished.version)
    return Committed("gone", kept.version, kept.head)


def _first_answer(kept: KeptWorkflow, version: int) -> Committed:
    return Committed("dup", version, digest_of(kept.entries[version - 1]))


def take_tickets_away(commit: Commit, kept: KeptWorkflow) -> None:
    """The one that is committed, and those that a commit withdraws."""
    if commit.ticket:
        kept.take_away(commit.ticket, fence=commit.fence, version=kept.version)
    dropped = list(commit.drop_tickets) + (list(kept.tickets) if commit.drop_all_tickets else [])
    for ticket_id in dropped:
        if ticket_id in kept.tickets:
            kept.take_away(ticket_id, fence=None, version=0)


def clear_deadlines(commit: Commit, kept: KeptWorkflow) -> None:
    """Those that no longer matter."""
    for name in list(kept.deadlines) if commit.clear_all_deadlines else commit.clear_deadlines:
        kept.clear_deadline(name)
