"""Moves ended workflows out of Redis into the archive, or purges them.

Redis forgets a workflow only after its archived copy was written to disk, read back and verified. After a crash both
may exist, and repeating the move is harmless. Only purging deletes a workflow.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from fixloop.errors import FixloopError, InfrastructureError, ProtocolError
from fixloop.store.archive.files import Archive
from fixloop.store.chain import problems
from fixloop.store.contract import Store
from fixloop.store.keys import SHARDS
from fixloop.store.records import Stored

LEASE_SECONDS: Final = 120.0
ALL: Final = 1_000_000_000


class Moved(NamedTuple):
    """The result for one workflow."""

    workflow: str
    ended_at: datetime
    status: Literal["archived", "purged", "kept"]
    detail: str
    """The file it is in, or why it stays in Redis."""


def archive_ended(
    store: Store,
    archive: Archive,
    *,
    before: datetime,
    owner: str,
    project: str = "",
    most: int = ALL,
    before_of: Mapping[str, datetime] = MappingProxyType({}),
) -> Iterator[Moved]:
    """Archive workflows that ended before this time, at most `most` per shard; those locked by another process are
    skipped. `before_of` overrides the time for projects, by their eight hex digits."""
    # Workflows that are kept longer must not use up `most`.
    looked = (
        store.ended(max(before, *before_of.values()), most=ALL)
        if before_of
        else store.ended(before, most=most)
    )
    due = ((workflow, at) for workflow, at in looked if at < before_of.get(workflow[:8], before))
    for workflow, at in islice(due, most * SHARDS):
        if not workflow.startswith(project):
            continue
        try:
            lease = store.locks.acquire(workflow, "archive", owner, lease_seconds=LEASE_SECONDS)
            if not lease.is_held:
                continue
            stored, found = store.stored(workflow), store.read(workflow)
            if stored is not None and found is not None and found.tickets:
                yield Moved(workflow, at, "kept", f"step {found.tickets[0].ticket.step} is still to be done")
            elif stored is not None and found is not None:
                _verify(store, stored, "is not archived")
                path = archive.append(stored, at)
                back = archive.find(workflow, at)
                if back != stored:
                    told = f"{path} does not hold what was written to it; {workflow} stays in Redis"
                    raise ProtocolError(told)
                _verify(store, back, f"cannot be verified in {path}")
                if store.remove(workflow, stored.head, "archived") in ("ok", "gone"):
                    yield Moved(workflow, at, "archived", str(path))
            store.locks.release(workflow, "archive", lease.token)
        except InfrastructureError:
            raise
        except FixloopError as error:
            yield Moved(workflow, at, "kept", str(error))


def _verify(store: Store, stored: Stored, what: str) -> None:
    wrong = problems(stored, stored.artifacts.get, store.objection(stored.workflow))
    if wrong:
        told = f"{stored.workflow} {what}: {wrong[0]}; see `fixloop audit verify {stored.workflow}`"
        raise ProtocolError(told)


def purge_ended(
    store: Store, archive: Archive | None, *, before: datetime, project: str = "", dry: bool = False
) -> Iterator[Moved]:
    """Delete workflows whose id begins with `project` and that ended before this time; `dry`: only report."""
    for workflow, at in store.ended(before, most=ALL):
        if not workflow.startswith(project):
            continue
        try:
            found = store.read(workflow)
            if found is not None and (dry or store.remove(workflow, found.head, "purged") == "ok"):
                yield Moved(workflow, at, "purged", "Redis")
        except ProtocolError as error:
            yield Moved(workflow, at, "kept", str(error))
    if archive is None:
        return
    for each in list(archive.workflows(project.partition("-")[0])):
        if each.ended_at < before and each.workflow.startswith(project):
            if not dry:
                archive.erase(each)
                store.remove(each.workflow, "", "purged")
            yield Moved(each.workflow, each.ended_at, "purged", str(each.path))
