"""Workflows, tickets and commits for the contract tests, with what they do not care about filled in."""

from collections.abc import Sequence
from typing import Any

from fixloop.protocol.ticket import Ticket
from fixloop.store.contract import Store
from fixloop.store.entries import Texts, frame_of
from fixloop.store.keys import shard_of
from fixloop.store.packing import context_of, pack
from fixloop.store.records import Claim, Commit, Committed, Lane, Swept

FLOW = "0a1b2c3d-42-1"
ME = "host boot 4026531836 17 99"
QUEUE = "fixloop.test-runner"
LANES = (Lane(QUEUE, 0), Lane(QUEUE, 3))
"""Of tickets that were offered before, and of new ones."""


def ticket(name: str, workflow: str = FLOW, **more: Any) -> Ticket:
    """A ticket called `{workflow}.{name}`."""
    return Ticket(
        **{"id": f"{workflow}.{name}", "workflow": workflow, "step": "validate", "queue": QUEUE, **more}
    )


def change(version: int, **more: Any) -> Commit:
    """The commit that follows `version`."""
    values: dict[str, Any] = {
        "workflow": FLOW,
        "expected_version": version,
        "snapshot": b'{"after":%d}' % (version + 1),
        "entry": {"at": "2026-03-01T09:00:00Z", "event": "Something happened"},
    }
    return Commit(**{**values, **more})


def text_of(entries: Sequence[bytes], place: int) -> bytes:
    """What a stored entry says."""
    frame = frame_of(entries[place])
    assert frame is not None
    text = Texts(entries).of(frame)
    assert text is not None
    return text


def reworded(entries: Sequence[bytes], place: int, old: bytes, new: bytes) -> bytes:
    """A lie in the same form: the entry as it would have been stored, had it said something else."""
    frame = frame_of(entries[place])
    assert frame is not None
    known = Texts(entries)
    context = context_of(frame.packed, known)
    return frame._replace(packed=pack(text_of(entries, place).replace(old, new), context)).stored()


def created(store: Store, *tickets: Ticket, **more: Any) -> Committed:
    """A workflow with these tickets."""
    workflow = tickets[0].workflow if tickets else FLOW
    answer = store.create(change(0, **{"workflow": workflow, "new_tickets": tickets, **more}))
    assert answer.status == "ok"
    return answer


def claimed(store: Store, name: str, workflow: str = FLOW, **more: Any) -> Claim:
    """A claim that has to succeed."""
    claim = store.claim(
        f"{workflow}.{name}", more.pop("owner", ME), more.pop("token", f"token-{name}"), **more
    )
    assert claim.status == "ok"
    return claim


def sweep(store: Store, workflow: str = FLOW, **more: Any) -> Swept:
    """Sweep the shard of a workflow."""
    return store.sweep(shard_of(workflow), **{"owner": ME, **more})


def sweep_all(store: Store, **more: Any) -> list[Swept]:
    """Sweep every shard."""
    return [store.sweep(shard, **{"owner": ME, **more}) for shard in range(16)]
