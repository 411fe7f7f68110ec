"""What fixes changed, to be looked at: each by itself, and all together."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fixloop.commands.session import Session
from fixloop.outside.transfer import snapshot_in
from fixloop.repository.change import diff_between
from fixloop.repository.snapshot import mirror_of
from fixloop.store.records import Entry


def diffs_of(entries: Iterable[Entry], artifact: Callable[[str], bytes | None]) -> list[str]:
    """The whole diff of each fix in a history, oldest first; without those that are gone."""
    found = []
    for entry in entries:
        event = entry.body["event"]
        fix = event["completion"] if event["kind"] == "fix-completed" else event
        digest = fix.get("diff_artifact", "")
        kept = artifact(digest) if digest else None
        if kept is not None:
            found.append(kept.decode("utf-8", "replace"))
    return found


def diff_of_all(session: Session, state: Any, diffs: Sequence[str]) -> str:
    """
    What differs between the snapshot and the work so far; one fix after the other where the commits are not here.

    A line that is in none of the fixes' own diffs was cut out of them as a secret, and is left out here, too.
    """
    if len(diffs) < 2:
        return "".join(diffs)
    snapshot = snapshot_in(state)
    mirror = mirror_of(snapshot, session.settings.cache_dir)
    if not (mirror.has(snapshot.commit) and mirror.has(state.tip)):
        return "".join(diffs)
    return _told(diff_between(mirror.git, snapshot.commit, state.tip), diffs)


def _told(whole: str, parts: Sequence[str]) -> str:
    known = {line[1:] for part in parts for line in part.splitlines()}
    headers = ("diff ", "index ", "---", "+++", "@@", "new ", "deleted ", "old ", "Binary ", "\\")
    return "".join(
        line if line.startswith(headers) or line.rstrip("\n")[1:] in known else f"{line[0]}…\n"
        for line in whole.splitlines(keepends=True)
    )
