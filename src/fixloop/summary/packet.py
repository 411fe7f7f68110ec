"""Data for a person's decision and for comparing two runs, derived only from a summary and a history."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fixloop.protocol import diagnosis
from fixloop.protocol.failures import FailureRef
from fixloop.protocol.state import Run, State
from fixloop.store.records import Entry
from fixloop.summary.model import FixRow, Phase, RunRow, one_line

MOST_ROWS: Final = 60
"""Failures in the grid and in each list of a comparison; the others are counted."""
MOST_RUNS: Final = 20
MOST_CAUSES: Final = 10
MOST_TRIED: Final = 5
MOST_ARTIFACTS: Final = 200
_KEPT: Final = {
    "report_digest": "report",
    "diff_artifact": "difference",
    "failures_artifact": "failures in full",
    "old_failures": "failures of the base",
    "environment": "environment",
    "bundle": "git bundle",
    "configuration": "configuration",
}
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_OPTION: Final = re.compile(r" \(--\w+ N\)")
"""An option of the command line, for which a page has a field."""
_RUNS_AGAIN: Final = ("Specialist error", "Integrity hold")
"""Reasons after which `extend` repeats the same run."""
_LETTERS: Final = {"manual-fix": "m", "skip": "s", "abort": "a", "extend": "e", "accept": "y", "reject": "r"}


class Choice(NamedTuple):
    """An answer that a page offers."""

    answer: str
    does: str
    because: str
    """Why it is recommended; empty for all others."""
    whom: str
    """Who has to act next."""
    key: str
    """Its keyboard shortcut; empty: none."""


class Cause(NamedTuple):
    """Why a failure is still there."""

    name: str
    location: str
    error: str
    why: str
    tried: tuple[str, ...]


class Row(NamedTuple):
    """A failure, and the runs that had it."""

    name: str
    location: str
    stood: tuple[bool, ...]


class Grid(NamedTuple):
    """Failures by iteration."""

    runs: tuple[RunRow, ...]
    rows: tuple[Row, ...]
    more: int
    """The number of failures that are left out."""
    earlier: int
    """The number of runs that are left out."""


class Change(NamedTuple):
    """Failures with the same change between two runs."""

    word: str
    """`fixed`, `new`, `persisting` or `vanished`."""
    failures: tuple[FailureRef, ...]
    """The first of them."""
    total: int


class Comparison(NamedTuple):
    """Two runs of a specialist, and the changes between them."""

    first: Run
    second: Run
    changes: tuple[Change, ...]
    fixes: tuple[FixRow, ...]


class Artifact(NamedTuple):
    """An artifact that the history names and the store keeps."""

    digest: str
    what: str


def choices(item: Mapping[str, Any], agent: str = "") -> tuple[Choice, ...]:
    """The answers to an item of the inbox, the recommended one first; none if it is free text. `agent` makes fixes."""
    agent = agent or "the main agent"
    whom = {
        "manual-fix": "you",
        "skip": "the next phase",
        "abort": "nobody",
        "extend": "the checks" if item["reason"] in _RUNS_AGAIN else agent,
        "accept": "the checks",
        "reject": agent,
    }
    told = item.get("choices") or [{"answer": option} for option in item.get("options", ())]
    return tuple(
        Choice(
            answer=each["answer"],
            does=_OPTION.sub("", each.get("does", "")),
            because=each.get("because", ""),
            whom=whom.get(each["answer"], "") if item["profile"] == "validation" else "",
            key=_LETTERS.get(each["answer"], ""),
        )
        for each in told
        if each.get("answer")
    )


def causes(state: State) -> Sequence[Cause]:
    """Why the current failures persist, and what was tried."""
    return [
        Cause(
            one_line(each.name),
            f"{each.file}:{each.line}" if each.file and each.line is not None else each.file,
            one_line(each.error),
            one_line(each.why),
            tuple(one_line(fix) for fix in each.fixes[-MOST_TRIED:]),
        )
        for each in diagnosis.persistent_failures(state.active, state.failures)[:MOST_CAUSES]
    ]


def grid(phase: Phase) -> Grid:
    """The runs that had each failure, current failures first."""
    runs = phase.runs[-MOST_RUNS:]
    found: dict[tuple[str, str], set[int]] = {}
    for run in reversed(runs):
        for finding in run.findings:
            found.setdefault((finding.name, finding.location), set()).add(run.number)
    rows = [
        Row(*identity, tuple(run.number in stood for run in runs))
        for identity, stood in list(found.items())[:MOST_ROWS]
    ]
    return Grid(runs, tuple(rows), len(found) - len(rows), len(phase.runs) - len(runs))


def best(phase: Phase) -> RunRow | None:
    """The run with the fewest failures, if the last one has more."""
    ran = [run for run in phase.runs if run.result == "failed"]
    least = min(reversed(ran), key=lambda run: run.count, default=None)
    return least if least is not None and least.count < ran[-1].count else None


def compared(first: Run, second: Run, fixes: Iterable[FixRow]) -> Comparison:
    """The failures that are fixed, new, persisting and vanished in `second`; `fixes` are all of the specialist's."""
    gone = tuple(ref for ref in second.failures if ref.error_type == "vanished")
    before, after = {ref.key for ref in first.failures}, {ref.key for ref in second.failures}
    lost = {(ref.file, ref.name) for ref in gone}
    stands = [ref for ref in second.failures if ref not in gone]
    groups = {
        "fixed": [ref for ref in first.failures if ref.key not in after and (ref.file, ref.name) not in lost],
        "new": [ref for ref in stands if ref.key not in before],
        "persisting": [ref for ref in stands if ref.key in before],
        "vanished": gone,
    }
    changes = (Change(word, tuple(refs[:MOST_ROWS]), len(refs)) for word, refs in groups.items())
    between = (fix for fix in fixes if first.number <= fix.iteration < second.number)
    return Comparison(first, second, tuple(changes), tuple(between))


def artifacts(entries: Iterable[Entry]) -> Sequence[Artifact]:
    """The artifacts for download, latest first, each once."""
    found: dict[str, str] = {}
    for entry in entries:
        event = entry.body.get("event", {})
        run = f" run {event['iteration']}" if event.get("iteration") else ""
        where = f"{event.get('specialist') or event.get('agent') or ''}{run}".strip()
        parts = [event, event.get("completion") or {}, *(event.get("evidence") or ())]
        named = [
            (part.get(key), f"{what} of {part['check']}" if "check" in part else what)
            for part in parts
            for key, what in _KEPT.items()
        ]
        for digest, what in (*named, *((each, "output") for each in event.get("artifacts") or ())):
            if isinstance(digest, str) and _DIGEST.fullmatch(digest):
                found.setdefault(digest, f"{what}, {where}" if where else what)
    return [Artifact(*each) for each in list(reversed(found.items()))[:MOST_ARTIFACTS]]
