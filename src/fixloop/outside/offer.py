"""The offer to an outside agent or a person: the request as a file, and a directory to work in.

The engine never resets that directory while it waits; `fixloop fixed` takes its content as it is.
"""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.engine.engine import Engine
from fixloop.engine.history import what_is_asked
from fixloop.engine.profile import AnyState
from fixloop.errors import UsageError
from fixloop.outside.transfer import bring_work, snapshot_in
from fixloop.profile_table import loaded, names, profile_of, registered
from fixloop.protocol.state import State
from fixloop.repository.copied import lay_copied
from fixloop.repository.git import Git
from fixloop.statefiles.sync import lay
from fixloop.store.contract import Store
from fixloop.store.records import Snapshot

SNAPSHOT: Final = "state.json"
"""In the directory's parent: the state from which a run's named files were rendered."""


class Offer(NamedTuple):
    """The place of the work, and the request."""

    top: Path
    directory: Path
    """Where commands run: below `top` if the feature is in a subdirectory."""
    request: Path


def offered_at(state: State, cache: Path) -> Offer:
    """The offer of the open request, whether it was created or not."""
    active = state.active
    return run_offered_at(state, f"{state.workflow}.{active.name}.{active.iteration}.{state.epoch}", cache)


def offer(engine: Engine, state: State, cache: Path) -> Offer:
    """Create the directory and the request if they are missing; RefusedError if nothing was requested."""
    made = offered_at(state, cache)
    if made.top.is_dir():
        return made
    found = engine.store.read(state.workflow)
    request = what_is_asked(engine.store, state.workflow, found.version if found is not None else 0)
    with _creating(made, request, engine.store, state, cache):
        pass
    return made


def run_offered_at(state: AnyState, run: str, cache: Path) -> Offer:
    """The offer of an agent's run, by the run's id, whether it was created or not."""
    place = cache / "offers" / run
    top = place / "work"
    return Offer(top, top / snapshot_in(state).subdirectory, place / "request.md")


def offer_run(store: Store, found: Snapshot, state: AnyState, run: str, request: str, cache: Path) -> Offer:
    """Create the directory for a run of an outside agent if it is missing: the work so far, and the named files."""
    made = run_offered_at(state, run, cache)
    if not made.top.is_dir():
        with _creating(made, request, store, state, cache) as draft:
            lay(store, found.snapshot, draft / made.directory.relative_to(made.top.parent))
            (draft / SNAPSHOT).write_bytes(found.snapshot)
    return made


@contextmanager
def _creating(made: Offer, request: str, store: Store, state: AnyState, cache: Path) -> Iterator[Path]:
    """The temporary place of an offer, next to the final one, to which it is moved when it is complete."""
    place = made.top.parent
    draft = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    mirror = bring_work(store, state, cache)
    mirror.git.run("clone", "--quiet", "--shared", "--no-checkout", mirror.path, draft / "work")
    Git(draft / "work").run("checkout", "--quiet", "--detach", state.tip)
    lay_copied(draft / "work", mirror, snapshot_in(state).copied)
    (draft / "request.md").write_text(request, encoding="utf-8")
    yield draft
    try:
        draft.rename(place)
    except OSError:  # somebody else was faster; theirs is as good
        shutil.rmtree(draft, ignore_errors=True)


def request_for(store: Store, snapshot: bytes, agent: str) -> str:
    """The request to an agent of a cycle or of handoffs; UsageError if the agent takes no part."""
    name = profile_of(snapshot)
    requests = registered(name).requests if name in names() else ""
    if not requests:
        raise UsageError(f"a {name} workflow asks no {agent}; `fixloop inbox` shows what is open")
    return str(loaded(requests)(store, snapshot, agent))
