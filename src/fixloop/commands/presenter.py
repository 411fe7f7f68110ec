"""What a command needs to show a profile's workflows: one record of functions per profile, and their deadlines."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from fixloop.errors import ExitCode
from fixloop.profile_table import loaded, names, registered
from fixloop.protocol.durations import hours_minutes_seconds, minutes_seconds, stamp
from fixloop.protocol.event import Moment
from fixloop.protocol.ids import called
from fixloop.store.contract import Store
from fixloop.store.records import Entry, Snapshot

if TYPE_CHECKING:
    from rich.table import Table

S = TypeVar("S")
PASSED = ("success", "skipped")
"""The outcomes for which `run` succeeds."""
UNVERIFIED = "unverified"
"""What ran has passed; a person judges whether that is enough."""


class Standing(NamedTuple):
    """Where a workflow stands, for its followers."""

    issue: int
    name: str
    outcome: str = ""
    """Empty while it is live."""
    waits_for: Literal["", "decision", "agent"] = ""
    """Nothing continues until a person has decided, or somebody outside has done their work."""
    held: str = ""
    """Who paused it, and since when; empty: not paused."""
    at_work: str = ""
    """What is happening, in a few words."""
    pushes: bool = False
    """Its branch is pushed automatically."""
    called: str = ""
    """Its ISSUE argument for commands."""

    @property
    def is_settled(self) -> bool:
        """True when it ended or waits for a person: nothing continues by itself."""
        return bool(self.outcome) or self.waits_for == "decision"

    @property
    def goes_on(self) -> bool:
        """True when it continues without anybody's action."""
        return not (self.outcome or self.waits_for or self.held)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of `run`, `resume` and `watch` when they stop here."""
        if self.outcome == UNVERIFIED:
            return ExitCode.WAITS
        if self.outcome:
            return ExitCode.DONE if self.outcome in PASSED else ExitCode.WRONG
        return ExitCode.WAITS if self.waits_for else ExitCode.INTERRUPTED


class Across(NamedTuple):
    """Totals over all workflows of a profile, in one project or all."""

    document: Mapping[str, Any]
    label: str
    text: str


class Logged(NamedTuple, Generic[S]):
    """One workflow's history, read for display."""

    state: S
    moment: Moment
    entries: Sequence[Entry]
    everything: bool = False
    """Include what is not a message."""
    agent: str = ""
    """Only messages from and to this agent or specialist."""
    artifact: Callable[[str], bytes | None] = lambda digest: None
    """An artifact that entries name by its digest; None if unavailable."""
    diff: str = ""
    """The changes of all fixes together."""
    across: Across | None = None
    texts: range | None = None
    """In a summary, the numbers of the messages shown in full; None: all."""


class Presenter(NamedTuple, Generic[S]):
    """What a profile provides to commands that show workflows."""

    load: Callable[[bytes], S]
    standing: Callable[[S], Standing]
    document: Callable[[Snapshot, S], dict[str, Any]]
    """`status ISSUE --json`."""
    details: Callable[[Snapshot, S, bool], Iterator[tuple[str, str]]]
    """`status ISSUE`: facts as label and text; the last argument is true if no worker is running."""
    table: Callable[[S], "Table"]
    """The participants, below the facts."""
    clocks: Callable[[Snapshot, S], str]
    """One line of times, below the table when watched on a terminal."""
    happened: Callable[[Iterable[Entry]], Iterator[str]]
    """What `watch` prints to a pipe for new entries, one line each, without the time."""
    result: Callable[[S], Iterator[str]]
    """The last lines of `run` and `watch`."""
    items: Callable[[Snapshot, S, Path], Iterator[Mapping[str, Any]]]
    """What waits for somebody outside the engine; the path is the cache's."""
    log_text: Callable[[Logged[S]], str]
    log_markdown: Callable[[Logged[S]], str]
    log_document: Callable[[Logged[S]], dict[str, Any]]
    report: Callable[[Snapshot, Logged[S], str], str]
    """The report, as `markdown`, `html` or `json`."""
    across: Callable[[Store, str], Across | None] = lambda store, prefix: None
    """Totals over the profile's workflows whose ids begin with the second argument."""
    summary: Callable[[Snapshot, Logged[S]], Any] | None = None
    """The report as a `fixloop.summary.Summary`; None: its runs are not specialist runs."""


def documented(document: dict[str, Any], across: Across | None) -> dict[str, Any]:
    """`status ISSUE --json` with the totals of its project."""
    return document if across is None else document | {"project_metrics": dict(across.document)}


def way_out(state: Any) -> str:
    """The command that delivers a workflow's verified work; empty if delivered already, or if there is none."""
    if state.push_error:
        return f"fixloop push {called(state)}"
    snapshot = json.loads(state.snapshot or "{}")
    began = snapshot.get("commit", "")
    if state.pushed or not began or state.outcome not in PASSED or state.tip == began:
        return ""
    return f"fixloop {'push' if snapshot.get('is_url') else 'apply'} {called(state)}"


def across_all(profiles: Collection[str], store: Store, prefix: str) -> Mapping[str, Across]:
    """By profile, the totals over its workflows whose ids begin with `prefix`."""
    counted = (each for each in map(registered, names()) if each.is_counted and each.name in profiles)
    found = {each.name: loaded(each.presenter).across(store, prefix) for each in counted}
    return {name: across for name, across in found.items() if across is not None}


def is_away(before: Moment, after: Moment) -> bool:
    """True when no sweep has moved the engine's clock for 5 s (K34): there is no worker to continue."""
    return after.at > before.at and after.clock <= before.clock


def deadline_of(found: Snapshot) -> datetime | None:
    """When the next deadline is due on the wall clock, if the engine keeps running (K34)."""
    if not found.deadlines or found.fields.get("held"):
        return None
    return found.moment.at + timedelta(seconds=min(found.deadlines.values()) - found.moment.clock)


def clock_line(found: Snapshot, elapsed: timedelta, at_work: Iterable[str], turn: str) -> str:
    """Elapsed time, work, deadline and whose turn it is, on one line; without `turn` it has ended."""
    parts = [f"elapsed {hours_minutes_seconds(elapsed.total_seconds())}", *at_work]
    due = deadline_of(found)
    if due is not None:
        parts.append(f"deadline in {minutes_seconds((due - found.moment.at).total_seconds())}")
    return " · ".join([*parts, turn] if turn else parts)


def deadline_line(found: Snapshot, away: bool) -> Iterator[tuple[str, str]]:
    """When the next deadline is due, or how much time is left while clocks are stopped; nothing without one."""
    due = deadline_of(found)
    if due is None:
        return
    left = (due - found.moment.at).total_seconds()
    if away:
        yield "deadline", f"in {minutes_seconds(max(0.0, left))}, but clocks are stopped until a worker runs"
    else:
        yield "deadline", f"{stamp(due)} UTC, {f'in {minutes_seconds(left)}' if left > 0 else 'due'}"


def since(at: datetime, found: Snapshot) -> str:
    """` since` a time, and how long ago that is."""
    waited = max(0.0, (found.moment.at - at).total_seconds())
    return f" since {stamp(at)} UTC ({hours_minutes_seconds(waited)})"
