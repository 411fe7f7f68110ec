"""Following one workflow: a live view on a terminal, one line for each event on a pipe.

Looks four times a second, at the cost of one read; nothing is decided here and nothing is written. A Redis that
is restarted meanwhile is waited for.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeVar

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from fixloop.commands.outcome import is_settled
from fixloop.commands.screen import console, short
from fixloop.commands.session import Session
from fixloop.commands.status import deadline_of, is_away, phases_table
from fixloop.commands.timeline import Happening, happenings
from fixloop.errors import InfrastructureError, UsageError
from fixloop.protocol.durations import hours_minutes_seconds, minutes_seconds
from fixloop.protocol.log import title
from fixloop.protocol.state import State
from fixloop.snapshots import load_state
from fixloop.store.contract import Store
from fixloop.store.records import Entry, Snapshot

__all__ = ["follow", "lines_of", "view"]

T = TypeVar("T")

POLL_SECONDS: Final = 0.25
# A Redis with an append-only file is back within seconds; a person who watches would only start again.
PATIENCE_SECONDS: Final = 30.0
_TOLD: Final = ("status", "receipt", "decision", "timer", "refusal", "pause", "note")
"""What a commit without a message has to tell."""


class _Seen(NamedTuple):
    """One look at the workflow."""

    found: Snapshot
    state: State
    away: bool = False
    """No worker has been there for 5 s."""


def follow(
    session: Session,
    workflow: str,
    *,
    until: Callable[[State], bool] = is_settled,
    since: int | None = None,
    tick: Callable[[], object] | None = None,
    out: Console | None = None,
) -> State:
    """
    Show what happens until `until` holds.

    Args:
        until: Asked at every version of the state.
        since: The history entry after which lines are printed; None for what happens from now on.
        tick: Called at each look, to notice when what does the work has gone.
        out: Where to; stdout if not given.

    Returns:
        The state at which it stopped.

    Raises:
        UsageError: there is no such workflow.
        InfrastructureError: Redis was away for too long.
    """
    target = out if out is not None else console(sys.stdout)
    looks = _looks(session.store, workflow, tick)
    seen = next(looks)
    printer = _Printer(session.store, workflow, target, seen.found.version if since is None else since)
    if not target.is_terminal:
        return _printed(looks, seen, until, printer)
    if until(seen.state):
        return seen.state
    return _animated(looks, seen, until, target)


def _animated(looks: Iterator[_Seen], seen: _Seen, until: Callable[[State], bool], out: Console) -> State:
    with Live(console=out, auto_refresh=False) as live:
        while True:
            live.update(view(seen.found, seen.state, away=seen.away), refresh=True)
            if until(seen.state):
                return seen.state
            seen = next(looks)


def _printed(
    looks: Iterator[_Seen], seen: _Seen, until: Callable[[State], bool], printer: "_Printer"
) -> State:
    while True:
        printer.catch_up(seen.found.version)
        if until(seen.state):
            return seen.state
        seen = next(looks)


class _Printer:
    """Prints the history as it grows."""

    def __init__(self, store: Store, workflow: str, out: Console, shown: int) -> None:
        self._store = store
        self._workflow = workflow
        self._out = out
        self._shown = shown

    def catch_up(self, version: int) -> None:
        """Print what was not shown yet."""
        if version <= self._shown:
            return
        entries = _patiently(lambda: self._store.history(self._workflow, self._shown))
        for line in lines_of(entries):
            self._out.print(line, soft_wrap=True)
        self._out.file.flush()
        self._shown = max([version, *(entry.seq for entry in entries)])


def _looks(store: Store, workflow: str, tick: Callable[[], object] | None) -> Iterator[_Seen]:
    """The workflow four times a second; its state is read anew only at a new version."""
    seen: _Seen | None = None
    while True:
        found = _patiently(lambda: store.read(workflow))
        if found is None:
            raise UsageError(
                f"workflow {workflow} is gone: it was archived or purged, or Redis lost its data; see `fixloop status`"
            )
        changed = seen is None or seen.found.version != found.version
        away = seen is not None and is_away(seen.found.moment, found.moment)
        seen = _Seen(found, load_state(found.snapshot) if changed or seen is None else seen.state, away)
        yield seen
        if tick is not None:
            tick()
        time.sleep(POLL_SECONDS)


def _patiently(ask: Callable[[], T]) -> T:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask()
        except InfrastructureError:
            if time.monotonic() >= give_up:
                raise
            time.sleep(POLL_SECONDS)


def lines_of(entries: list[Entry]) -> Iterator[Text]:
    """What a pipe gets: a line for each message, and for a commit without one what it changed."""
    found = list(happenings(entries))
    spoken = {each.entry for each in found if each.message is not None}
    for each in found:
        if each.message is not None or (each.entry not in spoken and each.kind in _TOLD):
            yield Text(f"{each.at:%H:%M:%S}  {_said(each)}")


def _said(each: Happening) -> str:
    if each.message is None:
        return short(each.text)
    message = each.message
    run = f"{message.specialist} {message.iteration}/{message.max_iterations}"
    return f"{run}  {title(message)}: {short(message.summary)}"


def view(found: Snapshot, state: State, *, away: bool = False) -> Group:
    """The live view: phases, and one line of clocks."""
    heading = f"#{state.issue} {short(state.name, 60)}  {state.outcome or state.status}"
    clocks = f"{_clocks(found, state)}{' · no worker is running' if away and not state.ended else ''}"
    return Group(Text(heading, style="bold"), phases_table(state), Text(clocks, style="dim"))


def _clocks(found: Snapshot, state: State) -> str:
    now = state.until if state.ended else found.moment.at
    parts = [f"elapsed {hours_minutes_seconds((now - state.started_at).total_seconds())}"]
    if state.operation is not None:
        parts.append(f"{state.operation.name} of {state.operation.specialist}")
    due = deadline_of(found)
    if due is not None:
        parts.append(f"deadline in {minutes_seconds((due - found.moment.at).total_seconds())}")
    if not state.ended:
        parts.append(f"paused by {state.held.by}" if state.held is not None else f"{state.owner}'s turn")
    return " · ".join(parts)
