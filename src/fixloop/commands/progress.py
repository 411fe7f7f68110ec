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

from fixloop.commands.screen import console, say, short, styled
from fixloop.commands.session import Seen, Session
from fixloop.commands.status import is_away
from fixloop.commands.views.view import Standing
from fixloop.errors import InfrastructureError, UsageError
from fixloop.store.contract import Store

T = TypeVar("T")

POLL_SECONDS: Final = 0.25
# A Redis with an append-only file is back within seconds; a person who watches would only start again.
PATIENCE_SECONDS: Final = 30.0


class _Look(NamedTuple):
    """One look at the workflow."""

    seen: Seen
    away: bool = False
    """No worker has been there for 5 s."""


class _Patience:
    """Goes on asking while Redis is away, and says what it waits for where that is known."""

    def __init__(self, obstacle: Callable[[], str]) -> None:
        self._obstacle = obstacle
        self._said = ""

    def ask(self, question: Callable[[], T]) -> T:
        """
        The answer to `question`, as soon as there is one.

        Raises:
            InfrastructureError: Redis was away for too long, and nobody knows why.
        """
        give_up = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = question()
            except InfrastructureError:
                obstacle = self._obstacle()
                if obstacle:
                    give_up = time.monotonic() + PATIENCE_SECONDS
                elif time.monotonic() >= give_up:
                    raise
                self._tell(obstacle or self._said)
                time.sleep(POLL_SECONDS)
            else:
                # A server that can only read comes and goes.
                if self._said:
                    self._tell(self._obstacle())
                return answer

    def _tell(self, obstacle: str) -> None:
        if obstacle and not self._said:
            say(f"{obstacle}; make room: the workflow waits for it, and then goes on by itself")
        elif self._said and not obstacle:
            say("the embedded Redis can write again; the workflow goes on")
        self._said = obstacle


def _is_settled(standing: Standing) -> bool:
    return standing.is_settled


def follow(
    session: Session,
    workflow: str,
    *,
    until: Callable[[Standing], bool] = _is_settled,
    since: int | None = None,
    tick: Callable[[], object] | None = None,
    out: Console | None = None,
) -> Seen:
    """
    Show what happens until `until` holds.

    Args:
        until: Asked at every version of the state where it stands.
        since: The history entry after which lines are printed; None for what happens from now on.
        tick: Called at each look, to notice when what does the work has gone.
        out: Where to; stdout if not given.

    Returns:
        The workflow as it was when it stopped.

    Raises:
        UsageError: there is no such workflow.
        InfrastructureError: Redis was away for too long.
    """
    target = out if out is not None else console(sys.stdout)
    patience = _Patience(session.obstacle)
    looks = _looks(session, workflow, tick, patience)
    first = next(looks)
    version = first.seen.found.version
    printer = _Printer(session.store, workflow, target, version if since is None else since, patience)

    def is_there(standing: Standing) -> bool:
        return patience.ask(lambda: until(standing))

    if not target.is_terminal:
        return _printed(looks, first, is_there, printer)
    if is_there(first.seen.standing):
        return first.seen
    return _animated(looks, first, is_there, target)


def _animated(looks: Iterator[_Look], now: _Look, until: Callable[[Standing], bool], out: Console) -> Seen:
    with Live(console=out, auto_refresh=False) as live:
        while True:
            live.update(view(now.seen, away=now.away), refresh=True)
            if until(now.seen.standing):
                return now.seen
            now = next(looks)


def _printed(
    looks: Iterator[_Look], now: _Look, until: Callable[[Standing], bool], printer: "_Printer"
) -> Seen:
    while True:
        printer.catch_up(now.seen)
        if until(now.seen.standing):
            return now.seen
        now = next(looks)


class _Printer:
    """Prints the history as it grows."""

    def __init__(self, store: Store, workflow: str, out: Console, shown: int, patience: _Patience) -> None:
        self._store = store
        self._patience = patience
        self._workflow = workflow
        self._out = out
        self._shown = shown

    def catch_up(self, seen: Seen) -> None:
        """Print what was not shown yet."""
        if seen.found.version <= self._shown:
            return
        entries = self._patience.ask(lambda: self._store.history(self._workflow, self._shown))
        for line in seen.view.happened(entries):
            self._out.print(styled(line), soft_wrap=True)
        self._out.file.flush()
        self._shown = max([seen.found.version, *(entry.seq for entry in entries)])


def _looks(
    session: Session, workflow: str, tick: Callable[[], object] | None, patience: _Patience
) -> Iterator[_Look]:
    """The workflow four times a second; its state is read anew only at a new version."""
    now: _Look | None = None
    while True:
        found = patience.ask(lambda: session.store.read(workflow))
        if found is None:
            raise UsageError(
                f"workflow {workflow} is gone: it was archived or purged, or Redis lost its data; see `fixloop status`"
            )
        if now is None:
            now = _Look(Seen.of(found))
        else:
            before = now.seen
            changed = before.found.version != found.version
            seen = Seen.of(found) if changed else before._replace(found=found)
            now = _Look(seen, is_away(before.found.moment, found.moment))
        yield now
        if tick is not None:
            tick()
        time.sleep(POLL_SECONDS)


def view(seen: Seen, *, away: bool = False) -> Group:
    """The live view: who takes part, and one line of clocks."""
    standing = seen.standing
    heading = f"#{standing.issue} {short(standing.name, 60)}  {standing.outcome or seen.state.status}"
    missing = " · no worker is running" if away and not standing.outcome else ""
    clocks = f"{seen.view.clocks(seen.found, seen.state)}{missing}"
    return Group(styled(heading, "bold"), seen.view.table(seen.state), styled(clocks, "dim"))
