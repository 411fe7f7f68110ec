"""A reader of a workflow's named files while real workers write them, and the expected versions."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from fixloop.engine.profile import Profile
from fixloop.protocol.event import Moment
from fixloop.statefiles.named_files import read_record
from fixloop.statefiles.rendering import drawn
from fixloop.store.contract import Store
from tests.scenarios.file_steps import on_disk

Tree = Mapping[str, bytes]


@contextmanager
def seen_below(root: Path, place: str) -> Iterator[dict[int, Tree]]:
    """All consistent sets of files that were read, by the version that their record names."""
    seen: dict[int, Tree] = {}
    stop = Event()
    thread = Thread(target=_poll, args=(root, place, seen, stop))
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def _poll(root: Path, place: str, seen: dict[int, Tree], stop: Event) -> None:
    last = False
    while not last:
        last = stop.is_set()
        version = _version(root, place)
        if version and version not in seen:
            try:
                found = on_disk(root)
            except FileNotFoundError:  # a generation of handoffs went while it was read
                continue
            if _version(root, place) == version:
                seen[version] = found
        time.sleep(0.001)


def _version(root: Path, place: str) -> int:
    """Of files that no process is writing; 0 while one is."""
    folder = root / ".fixloop" / "files"
    return 0 if (folder / f"{place}.intent").exists() else read_record(folder / f"{place}.json").version


def outcomes(store: Store, profile: Profile[Any], workflow: str) -> Iterator[tuple[int, Any]]:
    """The outcome of each event of the history, by the version that it made."""
    state: Any = None
    for entry in store.history(workflow):
        event = profile.read_event(json.dumps(entry.body["event"]))
        now = Moment(datetime.fromisoformat(entry.body["at"]), entry.body["clock"])
        outcome = profile.decide(state, event, now)
        state = outcome.state
        yield entry.seq, outcome


def drawn_at_each_version(store: Store, profile: Profile[Any], workflow: str) -> dict[int, Tree]:
    """The expected files, from the events in the history."""
    made: dict[int, Tree] = {}
    for version, outcome in outcomes(store, profile, workflow):
        snapshot = outcome.state.model_dump_json(exclude_defaults=True).encode()
        files = drawn(snapshot, partial(store.get_artifact, workflow))
        made[version] = {file.path: file.content for file in (*files.inside(), *files.files)}
    return made
