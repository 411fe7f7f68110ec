"""Pruning this machine's cache of what ended workflows left: directories that were offered, refs in mirrors.

Only what this worker's Redis, or its archive, knows to have ended goes: another one may use the same cache. And only
when its verified tree is out, so that nothing has to be found here any more.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from fixloop.errors import FixloopError
from fixloop.intake.trial import NOTE
from fixloop.outside.transfer import snapshot_in
from fixloop.profiles.table import profile_in
from fixloop.repository.git import Git
from fixloop.repository.mirror import Mirror
from fixloop.store.contract import Store
from fixloop.store.keys import issue_of, number_of
from workers.workspaces.workspace import remove_folder

GIVEN_UP: Final = ("aborted", "cancelled")
"""Outcomes, of any profile, with a tree that nobody needs."""


def prune_cache(store: Store, cache: Path, *, before: datetime) -> Iterator[str]:
    """
    Remove what workflows left here that ended before then; a sentence for each thing.

    Raises:
        InfrastructureError: Redis, the archive or a mirror cannot be used.
    """
    for folder in sorted((cache / "offers").glob("[!.]*/")):
        if is_over(store, folder.name.partition(".")[0], before):
            remove_folder(folder)
            yield f"the directory {folder.name}, which was offered, is removed"
    for note in sorted((cache / "mirrors").glob("*.git")):
        mirror = _mirror_at(cache, note)
        users = mirror.users() if mirror is not None else {}
        young = before.timestamp()
        over = [
            name
            for name, user in users.items()
            if user.noted_at < young and (name.startswith(NOTE) or is_over(store, name, before))
        ]
        if mirror is not None and over:
            count = len(mirror.forget(over))
            yield f"{count} commits that nobody needs any more are forgotten in {mirror.path.name}"


def is_over(store: Store, workflow: str, before: datetime) -> bool:
    """True when a workflow ended before then and nothing of it is needed here any more."""
    try:
        issue, project = issue_of(workflow), workflow.partition("-")[0]
        found = store.read(workflow)
        if found is None:
            retired = store.retired(project, issue)
            purged = retired is not None and retired.how == "purged"
            return purged and retired is not None and number_of(retired.workflow) >= number_of(workflow)
        state = profile_in(found.snapshot).load(found.snapshot)
        superseded = store.next_number(project, issue) > number_of(workflow) + 1
    except FixloopError:
        return False
    if not state.ended or (state.ended_at or state.last_at) >= before:
        return False
    return superseded or bool(state.outcome in GIVEN_UP) or _is_out(state)


def _is_out(state: Any) -> bool:
    """Whether the verified tree can be had elsewhere: as a branch, at the URL, or because nothing was changed."""
    if not state.snapshot:
        return True
    snapshot = snapshot_in(state)
    if state.tip == snapshot.commit or getattr(state, "pushed", ""):
        return True
    if snapshot.is_url or not snapshot.is_git:
        return False
    try:
        name, tip = f"refs/fixloop/{state.issue}/tip", str(state.tip)
        return Git(Path(snapshot.source)).found("rev-parse", "-q", "--verify", name) == tip
    except (FixloopError, OSError):
        return False


def _mirror_at(cache: Path, path: Path) -> Mirror | None:
    """The mirror in a directory, by the source that it says it is of."""
    try:
        mirror = Mirror(cache, (path / "description").read_text(errors="surrogateescape").removesuffix("\n"))
    except OSError:
        return None
    return mirror if mirror.path.name == path.name else None
