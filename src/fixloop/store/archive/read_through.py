"""A store whose reads fall back to the archive, so that readers need not know where an ended workflow is."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from fixloop.errors import ProtocolError
from fixloop.store.archive.files import Archive
from fixloop.store.chain import problems
from fixloop.store.contract import Store
from fixloop.store.damage import reading
from fixloop.store.entries import Texts, opened
from fixloop.store.keys import issue_of, latest_of, number_of
from fixloop.store.records import Entry, Snapshot, Stored
from fixloop.store.replies import state_of


def with_archive(store: Store, archive: Archive | None) -> Store:
    """`store` with reads that fall back to the archive; all other calls go to the store."""
    return store if archive is None else cast(Store, _WithArchive(store, archive))


class _WithArchive:
    def __init__(self, store: Store, archive: Archive) -> None:
        self._store = store
        self._archive = archive
        self._last: Stored | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, workflow: str) -> Snapshot | None:
        found = self._store.read(workflow)
        stored = self._archived(workflow) if found is None else None
        if stored is None:
            return found
        return Snapshot(
            workflow=workflow,
            version=stored.version,
            snapshot=state_of(stored.snapshot, stored.entries, workflow)[0],
            head=stored.head,
            fields=stored.fields,
            moment=self._store.now(workflow),
            away_seconds=0.0,
            tickets=(),
            deadlines={},
            stale=stored.stale,
        )

    def history(self, workflow: str, start: int = 0) -> list[Entry]:
        found = self._store.history(workflow, start)
        stored = self._archived(workflow) if not found else None
        if stored is None:
            return found
        texts = Texts(stored.entries)
        with reading(workflow):
            return [opened(entry, texts, stored.artifacts.get) for entry in stored.entries[start:]]

    def verify(self, workflow: str) -> list[str]:
        try:
            stored = self._archived(workflow) if self._store.read(workflow) is None else None
        except ProtocolError:
            stored = None
        if stored is None:
            return self._store.verify(workflow)
        return problems(stored, stored.artifacts.get, self._store.objection(workflow))

    def get_artifact(self, workflow: str, digest: str) -> bytes | None:
        found = self._store.get_artifact(workflow, digest)
        stored = self._archived(workflow) if found is None else None
        return found if stored is None else stored.artifacts.get(digest)

    def latest(self, project: str, issue: int) -> str | None:
        both = (self._store.latest(project, issue), self._archive.newest(project, issue))
        return max(filter(None, both), key=number_of, default=None)

    def search(self, issue: int) -> list[str]:
        return sorted(latest_of(chain(self._store.search(issue), self._archive.of_issue(issue))).values())

    def next_number(self, project: str, issue: int) -> int:
        number, archived = self._store.next_number(project, issue), self._archive.newest(project, issue)
        return max(number, number_of(archived) + 1) if archived is not None else number

    def next_numbers(self, project: str, issues: Sequence[int]) -> list[int]:
        used: dict[int, int] = {}
        for each in self._archive.workflows(project):
            issue = issue_of(each.workflow)
            used[issue] = max(used.get(issue, 0), number_of(each.workflow))
        numbers = zip(issues, self._store.next_numbers(project, issues), strict=True)
        return [max(number, used.get(issue, 0) + 1) for issue, number in numbers]

    def workflows(self, *, live_only: bool = False) -> Iterator[tuple[str, Mapping[str, str]]]:
        seen = set()
        for workflow, fields in self._store.workflows(live_only=live_only):
            seen.add(workflow)
            yield workflow, fields
        for each in () if live_only else self._archive.workflows():
            if each.workflow not in seen:
                seen.add(each.workflow)
                yield each.workflow, each.fields

    def _archived(self, workflow: str) -> Stored | None:
        """Cached, because a command reads the same workflow several times."""
        if self._last is None or self._last.workflow != workflow:
            self._last = self._archive.find(workflow)
        return self._last
