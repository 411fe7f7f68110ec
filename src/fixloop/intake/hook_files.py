"""Stores the sessions of agents' stop hooks, and writes the agents' settings.

Owns `{cache}/hooks/`: for each folder, the results of each agent's sessions and the last run of each agent's hook.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fixloop.files.atomic import write_whole
from fixloop.files.folders import keep_in, kept_in
from fixloop.intake.hook_session import Session
from fixloop.protocol.event import Value

KEPT_SECONDS: Final = 7 * 24 * 3600.0
"""After this time a session is over and its file is removed."""


class Heartbeat(Value):
    """The last call of a hook in a folder."""

    at: datetime
    said: str
    """Its result, on one line."""
    folder: str = ""
    """The folder of the call; empty in older files."""


def session_of(cache: Path, agent: str, folder: Path, identity: str) -> Session:
    """A stored session; a new one if there is none that can be read."""
    found = kept_in(_sessions(cache, folder) / _name(agent, identity), Session)
    return found or Session(agent=agent, folder=str(folder))


def keep_session(cache: Path, session: Session, identity: str) -> None:
    """Raises OSError: the cache cannot be written."""
    place = _sessions(cache, Path(session.folder))
    keep_in(cache, place / _name(session.agent, identity), session.model_dump_json())
    oldest = time.time() - KEPT_SECONDS
    for path in place.iterdir():
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < oldest:
                path.unlink()


def keep_heartbeat(cache: Path, agent: str, folder: Path, said: str) -> None:
    """Raises OSError: the cache cannot be written."""
    beat = Heartbeat(at=datetime.now(UTC), said=said, folder=str(folder))
    keep_in(cache, _place(cache, folder) / f"{agent}.json", beat.model_dump_json())


def last_call(cache: Path, agent: str, folder: Path) -> Heartbeat | None:
    """The last run of an agent's hook in a folder; None: never."""
    return kept_in(_place(cache, folder) / f"{agent}.json", Heartbeat)


def last_calls(cache: Path) -> list[tuple[str, Heartbeat]]:
    """The last run of each agent's hook in each folder, latest first."""
    found = ((path.stem, kept_in(path, Heartbeat)) for path in (cache / "hooks").glob("*/*.json"))
    known = ((agent, beat) for agent, beat in found if beat is not None)
    return sorted(known, key=lambda each: each[1].at, reverse=True)


def let_go(cache: Path, folder: Path) -> Iterator[Session]:
    """The sessions of a folder whose agents were let go although checks failed."""
    for path in sorted(_sessions(cache, folder).glob("*.json")):
        if (found := kept_in(path, Session)) and found.let_go:
            yield found


def forget_let_go(cache: Path, folder: Path) -> None:
    """Checks passed, so that earlier failures need no attention any more."""
    for path in _sessions(cache, folder).glob("*.json"):
        if (found := kept_in(path, Session)) and found.let_go:
            path.unlink(missing_ok=True)


def write_settings(path: Path, text: str) -> None:
    """
    Replace an agent's settings, following links and keeping permissions; an empty text removes them.

    Raises OSError: they are unchanged.
    """
    target = path.resolve()
    if not text:
        target.unlink(missing_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666
    write_whole(target, text.encode(), mode=mode, synced=True)


def _place(cache: Path, folder: Path) -> Path:
    return cache / "hooks" / hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:24]


def _sessions(cache: Path, folder: Path) -> Path:
    return _place(cache, folder) / "sessions"


def _name(agent: str, identity: str) -> str:
    return f"{agent}-{hashlib.sha256(identity.encode(errors='replace')).hexdigest()[:24]}.json"
