"""What an outside agent or a person is offered: the request as a file and a directory of their own to work in.

The engine never resets that directory while it waits; `fixloop fixed` takes it as it stands.
"""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

from fixloop.carrying import bring_work, snapshot_in
from fixloop.engine import Engine
from fixloop.history import what_is_asked
from fixloop.protocol.state import State
from fixloop.repository.git import Git

__all__ = ["Offer", "offer", "offered_at"]


class Offer(NamedTuple):
    """Where the work is, and what it is."""

    top: Path
    directory: Path
    """Where commands run: below `top` if the feature lives in a subdirectory."""
    request: Path


def offered_at(state: State, cache: Path) -> Offer:
    """Where the offer of the open request is, made or not."""
    active = state.active
    place = cache / "offers" / f"{state.workflow}.{active.name}.{active.iteration}.{state.epoch}"
    top = place / "work"
    return Offer(top, top / snapshot_in(state).subdirectory, place / "request.md")


def offer(engine: Engine, state: State, cache: Path) -> Offer:
    """
    Make the directory and the request, unless they are there.

    Raises:
        RefusedError: nobody was asked for anything yet.
    """
    made = offered_at(state, cache)
    if made.top.is_dir():
        return made
    place = made.top.parent
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    found = engine.store.read(state.workflow)
    request = what_is_asked(engine.store, state.workflow, found.version if found is not None else 0)
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    mirror = bring_work(engine.store, state, cache)
    mirror.git.run("clone", "--quiet", "--shared", "--no-checkout", mirror.path, beside / "work")
    Git(beside / "work").run("checkout", "--quiet", "--detach", state.tip)
    (beside / "request.md").write_text(request, encoding="utf-8")
    try:
        beside.rename(place)
    except OSError:  # somebody else was faster; theirs is as good
        shutil.rmtree(beside, ignore_errors=True)
    return made
