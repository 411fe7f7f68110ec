"""The interface of a store: RedisStore is the real one, MemoryStore its equivalent for tests.

The same tests check both. Every method raises InfrastructureError when the store cannot be reached, UsageError for an
invalid id, and Damaged if the stored workflow is not what fixloop writes. Every call may be repeated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

from fixloop.errors import ProtocolError, UsageError
from fixloop.protocol.event import Moment
from fixloop.protocol.ticket import Ticket
from fixloop.store import records as rec
from fixloop.store.keys import number_of
from fixloop.store.limits import HORIZON_SECONDS, LEASE_SECONDS, MOST_PER_SWEEP
from fixloop.store.locks import Locks
from fixloop.store.seal import Objection, Sealing


class Store(Protocol):
    """State, history, tickets and deadlines of all workflows. `project` is always the hash used in ids."""

    locks: Locks
    """Locks on resources, for the handoff profile (K10)."""
    sealing: Sealing | None = None
    """The key that entries are sealed with, if any."""

    def create(self, commit: rec.Commit) -> rec.Committed:
        """Commit version 1 of a new workflow; for `exists`, `other` is the live workflow of the same feature."""
        if commit.expected_version != 0:
            told = f"creating {commit.workflow} expects version 0, not {commit.expected_version}"
            raise ProtocolError(told)
        return self.commit(commit)

    def create_all(self, commits: Sequence[rec.Commit]) -> list[rec.Committed]:
        """Create workflows as `create` does, each by itself; after an error some of them exist."""
        return [self.create(commit) for commit in commits]

    def commit(self, commit: rec.Commit) -> rec.Committed:
        """
        Apply one change, all or nothing (R4, R5, R8).

        Returns:
            ok: done; the new version and head, and the claim if the commit made one.
            dup: this ticket and fence, or this operation, was committed before; its version and head.
            stale: the ticket was withdrawn or has another fence; only the count is written.
            gone: the ticket or the workflow does not exist (any more).
            conflict: decided on an old version; the current version, snapshot and head, to decide again.
            exists: another workflow of the feature is live; `other` names it.

        Raises:
            ProtocolError: the commit contradicts itself.
        """

    def read(self, workflow: str) -> rec.Snapshot | None:
        """One workflow's current state; None if the id does not exist."""

    def claim(
        self, ticket_id: str, owner: str, token: str, *, lease_seconds: float = LEASE_SECONDS
    ) -> rec.Claim:
        """
        Claim a ticket (R7, R8). A repetition with the same owner and token gets the same fence.

        Returns:
            ok: with everything to work on. busy: under a live lease. early: its delay is not over.
            gone: committed, withdrawn or never created.
        """

    def renew(
        self, ticket_id: str, owner: str, fence: int, *, lease_seconds: float = LEASE_SECONDS
    ) -> rec.Renewal:
        """Extend a claim's lease, even one that ran out if nobody else has claimed; `cancelled`: stop working."""

    def release(
        self, ticket_id: str, owner: str, fence: int, *, poison: bool = False, delay_seconds: float = 0.0
    ) -> Ticket | None:
        """
        Return a claimed ticket: same attempt, next fence (K40).

        Args:
            poison: a process died while working on it, and the rest of its worker survived.
            delay_seconds: it cannot be claimed or hinted before, in engine time.

        Returns:
            The ticket, to be hinted; None if this fence does not hold it (any more).
        """

    def wake(self, ticket_id: str) -> Ticket | None:
        """
        End a ticket's delay: what it waited for has happened.

        Returns:
            The ticket, to be hinted; None if it was not delayed, or its workflow is paused.
        """

    def queues(self) -> list[rec.QueueLoad]:
        """Ready and claimed tickets of every queue that has any; the cost does not grow with waiting tickets."""

    def owners(self) -> dict[str, tuple[str, int]]:
        """All claims: ticket id → owner and fence."""

    def sweepers(self) -> Sequence[tuple[str, str]]:
        """Who swept each shard last and when, as text; empty if nobody has."""

    def sweep(
        self,
        shard: int,
        *,
        owner: str,
        horizon_seconds: float = HORIZON_SECONDS,
        most_due: int = MOST_PER_SWEEP,
        empty_lanes: Sequence[rec.Lane] = (),
    ) -> rec.Swept:
        """
        Advance one shard's clock and find what is due (R6, K34).

        Args:
            horizon_seconds: deadlines due within it are handed out, each again 5 s after it was due.
            most_due: deadlines of at most so many workflows, the earliest; the next sweep finds the others.
            empty_lanes: lanes for which the broker has no message.
        """

    def history(self, workflow: str, start: int = 0) -> list[rec.Entry]:
        """The entries of a workflow after number `start`; empty if there is no such workflow."""

    def verify(self, workflow: str) -> list[str]:
        """What has changed in a workflow's history, snapshot or artifacts since it was committed."""

    def objection(self, workflow: str) -> Objection | None:
        """The check of the seals of a workflow's entries; None if entries are not sealed."""
        return None if self.sealing is None else partial(self.sealing.objection, workflow)

    def put_artifact(self, workflow: str, data: bytes, *, shared: bool = False) -> str:
        """
        Store `data` (an excerpt if it is over 16 MB) before the commit that names it; returns its digest.

        Args:
            shared: many workflows store the same data, such as a configuration; it stays when they are removed.
        """

    def get_artifact(self, workflow: str, digest: str) -> bytes | None:
        """An artifact; None if it is missing or cannot be read."""

    def live(self, project: str, issue: int) -> str | None:
        """The live workflow of a feature, if any."""

    def latest(self, project: str, issue: int) -> str | None:
        """The newest workflow of a feature, live or ended."""

    def search(self, issue: int) -> list[str]:
        """The newest workflow of this issue number in each project."""

    def next_number(self, project: str, issue: int) -> int:
        """The number for a new workflow of the feature; the first to create it gets it."""
        retired = self.retired(project, issue)
        used = (self.latest(project, issue), None if retired is None else retired.workflow)
        return 1 + max((number_of(workflow) for workflow in used if workflow), default=0)

    def next_numbers(self, project: str, issues: Sequence[int]) -> list[int]:
        """The numbers for several issues, whose issue numbers are marked as used."""
        for issue in issues:
            self.use_issue(project, issue)
        return [self.next_number(project, issue) for issue in issues]

    def workflows(self, *, live_only: bool = False) -> Iterator[tuple[str, Mapping[str, str]]]:
        """
        All workflows with their plain fields, unordered; new ones may be missing.

        An unusable one has the field `damaged`, which says why, and perhaps no other.
        """

    def unlisted(self) -> list[str]:
        """Workflows that have stored keys but are not listed by `workflows`; scans every key."""

    def ended(self, before: datetime, *, most: int = MOST_PER_SWEEP) -> list[tuple[str, datetime]]:
        """Workflows that ended before this time, with their end; at most `most` per shard, the first to end first."""

    def stored(self, workflow: str) -> rec.Stored | None:
        """Everything of a workflow in its stored form; None if the id does not exist."""

    def remove(self, workflow: str, head: str, how: rec.Retirement) -> rec.Removal:
        """
        Remove an ended workflow, all or nothing. Its number and its issue number are not used again.

        Args:
            head: the head that was archived, or is to be purged.

        Returns:
            ok: removed. gone: it did not exist (any more). live: it has not ended. changed: it has another head.
        """

    def set_aside(self, workflow: str, keep: Callable[[Mapping[str, bytes]], None]) -> None:
        """
        Remove an unusable workflow, live or ended, in any condition. Its number is not used again.

        Args:
            keep: gets every key's name and content first, and again if something has changed in the meantime.
        """

    def retired(self, project: str, issue: int) -> rec.Retired | None:
        """The newest removed workflow of a feature."""

    def allocate_issue(self, project: str) -> int:
        """Allocate the lowest issue number that this project has never used."""

    def use_issue(self, project: str, issue: int) -> None:
        """Mark an issue number as used, so that it is never allocated."""

    def reject(self, messages: Sequence[rec.RejectedMessage], count: int) -> None:
        """Count broker messages that no worker could take; `messages` are the last of them, and are kept."""

    def rejections(self) -> rec.Rejections:
        """The broker messages that no worker could take."""

    def now(self, where: str | int) -> Moment:
        """The current time in a shard, or in the shard of a workflow."""

    def changes(self, after: str, *, wait_seconds: float) -> rec.Changes:
        """
        Commits and removals after a cursor, in order per workflow; a change may come twice.

        Args:
            after: the cursor of an earlier answer; empty: returns only the cursor to begin with.
            wait_seconds: how long to wait for the first change before an empty answer.

        Raises:
            UsageError: `after` is no cursor.
        """

    def data_id(self) -> str:
        """A name given once to the store's data: another name means that the data was lost or replaced."""

    def ping(self) -> None:
        """Return when the store answers."""

    def close(self) -> None:
        """Close all connections."""


def snapshot_of(store: Store, workflow: str) -> rec.Snapshot:
    """A workflow as stored. UsageError if there is none with that id."""
    found = store.read(workflow)
    if found is None:
        raise UsageError(f"no workflow {workflow}; `fixloop status` lists all workflows")
    return found
