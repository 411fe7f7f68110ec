"""What an outside agent or a person is offered: the request as a file and a directory to work in.

The engine never resets that directory while it waits; `fixloop fixed` takes it as it stands.
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
"""Next to the directory of a run: the state that its named files were drawn from."""


class Offer(NamedTuple):
    """Where the work is, and what it is."""

    top: Path
    directory: Path
    """Where commands run: below `top` if the feature lives in a subdirectory."""
    request: Path


def offered_at(state: State, cache: Path) -> Offer:
    """Where the offer of the open request is, made or not."""
    active = state.active
    return run_offered_at(state, f"{state.workflow}.{active.name}.{active.iteration}.{state.epoch}", cache)


def offer(engine: Engine, state: State, cache: Path) -> Offer:
    """Make the directory and the request, unless they are there; RefusedError where nobody was asked for anything."""
    made = offered_at(state, cache)
    if made.top.is_dir():
        return made
    found = engine.store.read(state.workflow)
    request = what_is_asked(engine.store, state.workflow, found.version if found is not None else 0)
    with _made(made, request, engine.store, state, cache):
        pass
    return made


def run_offered_at(state: AnyState, run: str, cache: Path) -> Offer:
    """Where the offer of an agent's run is, by the run's id, made or not."""
    place = cache / "offers" / run
    top = place / "work"
    return Offer(top, top / snapshot_in(state).subdirectory, place / "request.md")


def offer_run(store: Store, found: Snapshot, state: AnyState, run: str, request: str, cache: Path) -> Offer:
    """Make the directory for a run of an outside agent, unless it is there: the work so far, and the named files."""
    made = run_offered_at(state, run, cache)
    if not made.top.is_dir():
        with _made(made, request, store, state, cache) as draft:
            lay(store, found.snapshot, draft / made.directory.relative_to(made.top.parent))
            (draft / SNAPSHOT).write_bytes(found.snapshot)
    return made


@contextmanager
def _made(made: Offer, request: str, store: Store, state: AnyState, cache: Path) -> Iterator[Path]:
    """The offer's place while it is made, next to the final one, which it takes when all is there."""
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
    """What an agent of a cycle or of handoffs is asked; UsageError where the agent takes no part."""
    name = profile_of(snapshot)
    requests = registered(name).requests if name in names() else ""
    if not requests:
        raise UsageError(f"a {name} workflow asks no {agent}; `fixloop inbox` shows what is open")
    return str(loaded(requests)(store, snapshot, agent))
