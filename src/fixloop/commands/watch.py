"""`watch`, and how `run` and `resume` follow a workflow: a live view on a terminal, one line for each event on a pipe.

Looks four times a second, at the cost of one read; `run` more often. A Redis that is restarted meanwhile is waited for.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import typer
from rich.console import Console, Group
from rich.live import Live

from fixloop.commands.presenter import Standing, is_away
from fixloop.commands.screen import console, print_lines, say, short, styled
from fixloop.commands.session import Issue, ProjectOption, Seen, Session, open_workflow
from fixloop.engine.bridging import child_of, has_word_of
from fixloop.errors import Damaged, ExitCode, InfrastructureError, UsageError

T = TypeVar("T")

POLL_SECONDS: Final = 0.25
OWN_POLL_SECONDS: Final = 0.05
"""When this process alone waits for its own worker."""
# A Redis with an append-only file is back within seconds; a person watching would only start again.
PATIENCE_SECONDS: Final = 30.0


def watch(issue: Issue, project: ProjectOption = None) -> None:
    """
    Follow a workflow until it ends or waits for a person.

    Exit codes are those of `run`. A terminal shows a live view with phases, runs and clocks; a pipe gets
    one line per event.
    """
    with open_workflow(issue, project) as (session, workflow):
        on_terminal = sys.stdout.isatty()

        def until(now: Standing) -> bool:
            # Only a terminal waits for an outside agent's work: there somebody may be about to do it.
            waits = now.is_settled or (now.waits_for == "agent" and not on_terminal)
            return waits or waiting_child(session, workflow) is not None

        seen = follow(session, workflow, until=until)
        child = waiting_child(session, workflow) if not seen.standing.is_settled else None
        raise typer.Exit(print_result(session, child if child is not None else seen))


def print_result(session: Session, seen: Seen) -> ExitCode:
    """Print the reason, the failures and the commands if a person has to act; returns the exit code. Raises Damaged if
    the history does not verify: then it has neither passed nor anything to ask."""
    if wrong := session.store.verify(seen.state.workflow):
        raise Damaged(seen.state.workflow, wrong[0])
    print_lines(*seen.presenter.result(seen.state))
    return seen.standing.exit_code


def waiting_child(session: Session, workflow: str) -> Seen | None:
    """A workflow that works for this one, at any depth, and waits for a person or somebody outside; None if there is
    none, or its result only has to be fetched."""
    found = session.store.read(workflow)
    for held in found.tickets if found is not None else ():
        # A damaged one ends its parent with its own error.
        with suppress(Damaged):
            child = session.store.read(child_of(held.ticket.id))
            if child is None or has_word_of(session.store, held.ticket.id):
                continue
            seen = Seen.of(child)
            waiting = seen if seen.standing.waits_for else waiting_child(session, child.workflow)
            if waiting is not None:
                return waiting
    return None


def follow(
    session: Session,
    workflow: str,
    *,
    until: Callable[[Standing], bool] = lambda standing: standing.is_settled,
    since: int | None = None,
    tick: Callable[[], object] | None = None,
    out: Console | None = None,
) -> Seen:
    """Show what happens until `until` holds, checked at every version; returns the workflow as it was then. Prints
    lines for what follows history entry `since`; None: from now on. `tick` is called at each look, to notice when
    whatever does the work is gone."""
    target = out if out is not None else console(sys.stdout)
    patience = _Patience(session.obstacle)
    looks = _looks(session, workflow, tick, patience)
    seen, away = next(looks)

    def is_there() -> bool:
        return patience.ask(lambda: until(seen.standing))

    if not target.is_terminal:
        shown = seen.found.version if since is None else since
        while True:
            if seen.found.version > shown:
                entries = patience.ask(partial(session.store.history, workflow, shown))
                for line in seen.presenter.happened(entries):
                    target.print(styled(line), soft_wrap=True)
                target.file.flush()
                shown = max([seen.found.version, *(entry.seq for entry in entries)])
            if is_there():
                return seen
            seen, away = next(looks)
    if is_there():
        return seen
    with Live(console=target, auto_refresh=False) as live:
        while True:
            live.update(view(seen, away=away), refresh=True)
            if is_there():
                return seen
            seen, away = next(looks)


class _Patience:
    """Keeps asking while Redis is away, and says what it waits for if that is known."""

    def __init__(self, obstacle: Callable[[], str]) -> None:
        self._obstacle = obstacle
        self._said = ""

    def ask(self, question: Callable[[], T]) -> T:
        """The answer to `question`, once there is one; raises when Redis is away too long for no known reason."""
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
                # A read-only server comes and goes.
                if self._said:
                    self._tell(self._obstacle())
                return answer

    def _tell(self, obstacle: str) -> None:
        if obstacle and not self._said:
            say(f"{obstacle}; free some space: the workflow waits, and then continues by itself")
        elif self._said and not obstacle:
            say("the embedded Redis can write again; the workflow continues")
        self._said = obstacle


def _looks(
    session: Session, workflow: str, tick: Callable[[], object] | None, patience: _Patience
) -> Iterator[tuple[Seen, bool]]:
    """The workflow, four times a second, and whether no worker was seen for 5 s; parsed only at a new version."""
    seen: Seen | None = None
    while True:
        found = patience.ask(lambda: session.store.read(workflow))
        if found is None:
            raise UsageError(
                f"workflow {workflow} is gone: archived, purged, or lost by Redis; see `fixloop status`"
            )
        away = seen is not None and is_away(seen.found.moment, found.moment)
        is_same = seen is not None and seen.found.version == found.version
        seen = seen._replace(found=found) if seen is not None and is_same else Seen.of(found)
        yield seen, away
        if tick is not None:
            tick()
        time.sleep(POLL_SECONDS if tick is None else OWN_POLL_SECONDS)


def view(seen: Seen, *, away: bool = False) -> Group:
    """The live view: the participants, and one line of clocks."""
    standing = seen.standing
    heading = f"#{standing.issue} {short(standing.name, 60)}  {standing.outcome or seen.state.status}"
    missing = " · no worker is running" if away and not standing.outcome else ""
    clocks = f"{seen.presenter.clocks(seen.found, seen.state)}{missing}"
    return Group(styled(heading, "bold"), seen.presenter.table(seen.state), styled(clocks, "dim"))
