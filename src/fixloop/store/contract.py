"""What fixloop asks of a store: RedisStore is the real one, MemoryStore its twin for tests.

The same tests hold both to this. Every method raises InfrastructureError when the store cannot be reached, UsageError
for an id that is none, and Damaged where what is stored of the workflow is not what fixloop writes. Repeating any call
is harmless.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

from fixloop.errors import ProtocolError
from fixloop.protocol.moment import Moment
from fixloop.protocol.ticket import Ticket
from fixloop.store import records as rec
from fixloop.store.keys import number_of
from fixloop.store.limits import HORIZON_SECONDS, LEASE_SECONDS, MOST_PER_SWEEP
from fixloop.store.locks import Locks
from fixloop.store.seal import Objection, Sealing


class Store(Protocol):
    """State, history, tickets and deadlines of all workflows. `project` is always the hash in ids."""

    locks: Locks
    """Locks on resources, for the handoff profile (K10)."""
    sealing: Sealing | None = None
    """What entries are sealed with."""

    def create(self, commit: rec.Commit) -> rec.Committed:
        """Commit version 1 of a new workflow; `exists` names the live one of the same feature."""
        if commit.expected_version != 0:
            told = f"creating {commit.workflow} expects version 0, not {commit.expected_version}"
            raise ProtocolError(told)
        return self.commit(commit)

    def create_all(self, commits: Sequence[rec.Commit]) -> list[rec.Committed]:
        """Create these workflows, each as `create` would; after an error some of them are there."""
        return [self.create(commit) for commit in commits]

    def commit(self, commit: rec.Commit) -> rec.Committed:
        """
        Apply one change, all or nothing (R4, R5, R8).

        Returns:
            ok: done, the new version and head, and the claim of what is to be gone on with.
            dup: this ticket and fence, or this operation, was committed before; its version and head.
            stale: the ticket was withdrawn, or is another fence's; nothing is written but the count.
            gone: there is no such ticket (any more) or workflow.
            conflict: decided on an old version; the current one with snapshot and head, to decide again.
            exists: another workflow of the feature is live; `other` names it.

        Raises:
            ProtocolError: the commit contradicts itself.
        """

    def read(self, workflow: str) -> rec.Snapshot | None:
        """One workflow as it stands; None when there is none of this id."""

    def claim(
        self, ticket_id: str, owner: str, token: str, *, lease_seconds: float = LEASE_SECONDS
    ) -> rec.Claim:
        """
        Take a ticket (R7, R8). The same owner and token again get the same fence.

        Returns:
            ok: with everything to work on. busy: under a live lease. early: its delay is not over.
            gone: committed, withdrawn or never there.
        """

    def renew(
        self, ticket_id: str, owner: str, fence: int, *, lease_seconds: float = LEASE_SECONDS
    ) -> rec.Renewal:
        """Keep a claim, also a run-out one that nobody else has claimed; `cancelled`: stop working."""

    def release(
        self, ticket_id: str, owner: str, fence: int, *, poison: bool = False, delay_seconds: float = 0.0
    ) -> Ticket | None:
        """
        Give a claim back: same attempt, next fence (K40).

        Args:
            poison: a process died over it while the rest of its worker lived.
            delay_seconds: not claimed or hinted before, in engine time.

        Returns:
            The ticket, to be hinted; None when this fence does not hold it (any more).
        """

    def wake(self, ticket_id: str) -> Ticket | None:
        """
        Have a delayed ticket be claimed from now on: what it waited for has come.

        Returns:
            The ticket, to be hinted; None when it was not delayed, or its workflow is held.
        """

    def queues(self) -> list[rec.QueueLoad]:
        """What is ready and what is at work, by queue, of all that have any; as quick however many tickets wait."""

    def owners(self) -> dict[str, tuple[str, int]]:
        """All claims: ticket id → owner and fence."""

    def sweepers(self) -> Sequence[tuple[str, str]]:
        """Of each shard who has swept it last and when, as text; empty where nobody has."""

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
        Keep one shard's clock running, and find what has to be done now (R6, K34).

        Args:
            horizon_seconds: deadlines due within it are handed out, each again 5 s after it was due.
            most_due: those of so many workflows at most, the earliest; the next sweep finds the others.
            empty_lanes: those the broker has nothing in.
        """

    def history(self, workflow: str, start: int = 0) -> list[rec.Entry]:
        """The entries of a workflow after number `start`; empty when there is no such workflow."""

    def verify(self, workflow: str) -> list[str]:
        """What was changed in a workflow's history, snapshot or artifacts since it was committed."""

    def objection(self, workflow: str) -> Objection | None:
        """What finds fault with the seals of a workflow's entries; None where nothing is sealed."""
        return None if self.sealing is None else partial(self.sealing.objection, workflow)

    def put_artifact(self, workflow: str, data: bytes, *, shared: bool = False) -> str:
        """
        Keep `data` (an excerpt of what is over 16 MB) before the commit that names it; its digest.

        Args:
            shared: many workflows have the same, such as a configuration; it stays when they are taken out.
        """

    def get_artifact(self, workflow: str, digest: str) -> bytes | None:
        """An artifact; None when it is not there or cannot be read."""

    def live(self, project: str, issue: int) -> str | None:
        """The one live workflow of a feature."""

    def latest(self, project: str, issue: int) -> str | None:
        """The newest workflow of a feature, live or ended."""

    def search(self, issue: int) -> list[str]:
        """The newest workflow of this issue number in each project."""

    def next_number(self, project: str, issue: int) -> int:
        """What a new workflow of the feature would be called; the first to create it has it."""
        retired = self.retired(project, issue)
        used = (self.latest(project, issue), None if retired is None else retired.workflow)
        return 1 + max((number_of(workflow) for workflow in used if workflow), default=0)

    def next_numbers(self, project: str, issues: Sequence[int]) -> list[int]:
        """The same for several, whose issues are used from now on."""
        for issue in issues:
            self.use_issue(project, issue)
        return [self.next_number(project, issue) for issue in issues]

    def workflows(self, *, live_only: bool = False) -> Iterator[tuple[str, Mapping[str, str]]]:
        """
        All workflows with their plain fields, in no order; new ones may be missing.

        One that cannot be used has the field `damaged`, which says why, and perhaps no other.
        """

    def unlisted(self) -> list[str]:
        """Workflows of which something is stored, and which `workflows` does not know; looks at every key."""

    def ended(self, before: datetime, *, most: int = MOST_PER_SWEEP) -> list[tuple[str, datetime]]:
        """Workflows that ended before then, with the time; at most so many of each shard, the first to end first."""

    def stored(self, workflow: str) -> rec.Stored | None:
        """All of a workflow in its stored form; None when there is none of this id."""

    def remove(self, workflow: str, head: str, how: rec.Retirement) -> rec.Removal:
        """
        Take an ended workflow out, all of it or nothing. Its feature keeps its number, and the project its issue's.

        Args:
            head: what was archived, or is to be purged.

        Returns:
            ok: it is gone. gone: it was not there (any more). live: it has not ended. changed: its head is another.
        """

    def set_aside(self, workflow: str, keep: Callable[[Mapping[str, bytes]], None]) -> None:
        """
        Take out a workflow that cannot be used, live or ended, in any condition. Its feature keeps its number.

        Args:
            keep: gets every key's name and content before that, again where something was changed meanwhile.
        """

    def retired(self, project: str, issue: int) -> rec.Retired | None:
        """The newest workflow of a feature that was taken out."""

    def allocate_issue(self, project: str) -> int:
        """The lowest issue number this project has never used, now used."""

    def use_issue(self, project: str, issue: int) -> None:
        """Say that a number is used, so that it is never allocated."""

    def reject(self, messages: Sequence[rec.RejectedMessage], count: int) -> None:
        """Count broker messages that no worker could take, of which `messages` are the last, and keep the last ones."""

    def rejections(self) -> rec.Rejections:
        """The broker messages that no worker could take."""

    def now(self, where: str | int) -> Moment:
        """The time in the shard of a workflow, or in a shard."""

    def changes(self, after: str, *, wait_seconds: float) -> rec.Changes:
        """
        What was committed and taken out after a cursor, in the order of each workflow; a change may come twice.

        Args:
            after: what an earlier answer said; empty: nothing yet, only where to begin.
            wait_seconds: how long to wait for the first change; an answer without one comes after that.

        Raises:
            UsageError: `after` is no cursor.
        """

    def data_id(self) -> str:
        """A name that the store's data was given once: another one says that they were lost or replaced."""

    def ping(self) -> None:
        """Return when the store answers."""

    def close(self) -> None:
        """Give up connections."""
