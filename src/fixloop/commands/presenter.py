"""What a command needs to know of a profile to show its workflows: one record of functions for each."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from fixloop.commands.exit_codes import ExitCode
from fixloop.profile_table import loaded, names, registered
from fixloop.protocol.ids import called
from fixloop.protocol.moment import Moment
from fixloop.store.contract import Store
from fixloop.store.records import Entry, Snapshot

if TYPE_CHECKING:
    from rich.table import Table

S = TypeVar("S")
PASSED = ("success", "skipped")
"""The outcomes with which `run` ends well."""
UNVERIFIED = "unverified"
"""What ran has passed; whether that is enough is a person's to say."""


class Standing(NamedTuple):
    """Where a workflow stands for those who follow it."""

    issue: int
    name: str
    outcome: str = ""
    """Empty while it is live."""
    waits_for: Literal["", "decision", "agent"] = ""
    """Nothing goes on by itself until a person has decided, or somebody outside has done their work."""
    held: str = ""
    """Who paused it, and since when; empty: nobody did."""
    at_work: str = ""
    """What is going on, in a few words."""
    pushes: bool = False
    """Its branch goes to a server by itself."""
    called: str = ""
    """What a command's ISSUE has to be for it."""

    @property
    def is_settled(self) -> bool:
        """True when it ended or waits for a person: nothing goes on by itself."""
        return bool(self.outcome) or self.waits_for == "decision"

    @property
    def goes_on(self) -> bool:
        """True when nobody has to do anything for it to go on."""
        return not (self.outcome or self.waits_for or self.held)

    @property
    def exit_code(self) -> ExitCode:
        """What `run`, `resume` and `watch` exit with when they stop here."""
        if self.outcome == UNVERIFIED:
            return ExitCode.WAITS
        if self.outcome:
            return ExitCode.DONE if self.outcome in PASSED else ExitCode.WRONG
        return ExitCode.WAITS if self.waits_for else ExitCode.INTERRUPTED


class Across(NamedTuple):
    """What is counted over all workflows of a profile, of one project or of all."""

    document: Mapping[str, Any]
    label: str
    text: str


class Logged(NamedTuple, Generic[S]):
    """One workflow's history, read to be shown."""

    state: S
    moment: Moment
    entries: Sequence[Entry]
    everything: bool = False
    """Also what is no message."""
    agent: str = ""
    """Only what this agent or specialist says and is told."""
    artifact: Callable[[str], bytes | None] = lambda digest: None
    """What the entries only name, by its digest; None where it is not to be had."""
    diff: str = ""
    """What all fixes together changed."""
    across: Across | None = None
    texts: range | None = None
    """In a summary, the numbers of the messages that are given in full; None: all."""


class Presenter(NamedTuple, Generic[S]):
    """What a profile gives to the commands that show workflows."""

    load: Callable[[bytes], S]
    standing: Callable[[S], Standing]
    document: Callable[[Snapshot, S], dict[str, Any]]
    """`status ISSUE --json`."""
    details: Callable[[Snapshot, S, bool], Iterator[tuple[str, str]]]
    """`status ISSUE`: facts as label and text; the last argument says whether no worker is running."""
    table: Callable[[S], "Table"]
    """Who takes part, below the facts."""
    clocks: Callable[[Snapshot, S], str]
    """One line of times, below the table where it is watched on a terminal."""
    happened: Callable[[Iterable[Entry]], Iterator[str]]
    """What a `watch` on a pipe prints of new entries, a line each, without the time."""
    result: Callable[[S], Iterator[str]]
    """The last lines of `run` and `watch`."""
    items: Callable[[Snapshot, S, Path], Iterator[Mapping[str, Any]]]
    """What waits for somebody outside the engine; the path is the cache's."""
    log_text: Callable[[Logged[S]], str]
    log_markdown: Callable[[Logged[S]], str]
    log_document: Callable[[Logged[S]], dict[str, Any]]
    report: Callable[[Snapshot, Logged[S], str], str]
    """What came of it, as `markdown`, `html` or `json`."""
    across: Callable[[Store, str], Across | None] = lambda store, prefix: None
    """What is counted over all workflows of the profile whose ids begin with the second argument."""
    summary: Callable[[Snapshot, Logged[S]], Any] | None = None
    """The report as a `fixloop.summary.Summary`; None: its runs are not of specialists."""


def documented(document: dict[str, Any], across: Across | None) -> dict[str, Any]:
    """`status ISSUE --json` with what is counted over all workflows of its project."""
    return document if across is None else document | {"project_metrics": dict(across.document)}


def way_out(state: Any) -> str:
    """The command that takes a workflow's verified work further; empty where it is there, or there is none."""
    if state.push_error:
        return f"fixloop push {called(state)}"
    snapshot = json.loads(state.snapshot or "{}")
    began = snapshot.get("commit", "")
    if state.pushed or not began or state.outcome not in PASSED or state.tip == began:
        return ""
    return f"fixloop {'push' if snapshot.get('is_url') else 'apply'} {called(state)}"


def across_all(profiles: Collection[str], store: Store, prefix: str) -> Mapping[str, Across]:
    """By profile, what is counted over all its workflows whose ids begin with `prefix`."""
    counted = (each for each in map(registered, names()) if each.is_counted and each.name in profiles)
    found = {each.name: loaded(each.presenter).across(store, prefix) for each in counted}
    return {name: across for name, across in found.items() if across is not None}
