"""Durations and how often rules held, computed from histories: each entry once, as it arrives."""

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Final, NamedTuple

from fixloop.errors import Damaged, NewerVersion
from fixloop.store.records import Entry

SECONDS: Final = (1.0, 10.0, 60.0, 300.0, 1800.0, 3600.0, 14_400.0, 86_400.0)
ITERATIONS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
READ_SECONDS: Final = 0.25
"""How long one call reads histories; the next call continues."""
_BY_AGENTS: Final = ("fix-acknowledged", "fix-completed", "blocker-signalled")

Fields = Mapping[str, str]


class Seen(NamedTuple):
    """How far one workflow has been read."""

    seq: int = 0
    changed: str = ""
    """The time of its last change."""
    began: str = ""
    asked: tuple[str, str] = ("", "")
    """Since when a decision has been requested, and why."""
    reported: str = ""
    """Since when a fix has been requested."""
    is_over: bool = False


class AgentSeen(NamedTuple):
    """An agent or person that makes fixes, and when they were last active."""

    name: str
    at: str
    workflow: str


class Histogram:
    """Counts by upper bounds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """Upper bound → the number of values up to it, as in Prometheus."""
        names = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
        return list(zip(names, accumulate(self._counts), strict=True))


class Times:
    """The observations in all workflows that this process has seen; safe to share between threads."""

    def __init__(self, history: Callable[[str, int], Sequence[Entry]]) -> None:
        """`history` returns the entries of a workflow after a number."""
        self._history = history
        self._seen: dict[str, Seen] = {}
        self._lock = threading.Lock()
        self.histograms: dict[tuple[str, str], Histogram] = {}
        """Name and label → the observations."""
        self.holds: Counter[str] = Counter()
        """Rule → how often it held."""
        self.agents: dict[str, AgentSeen] = {}
        """Who makes fixes → when they were last active."""

    def read(self, rows: Mapping[str, Fields], seconds: float = READ_SECONDS) -> int:
        """Continue reading for this time; returns how many workflows are left. Raises InfrastructureError."""
        with self._lock:
            ends = time.monotonic() + seconds
            changed = [
                (workflow, fields)
                for workflow, fields in rows.items()
                if self._seen.get(workflow, Seen()).changed != fields.get("updated_at", "")
            ]
            for number, (workflow, fields) in enumerate(changed):
                if time.monotonic() > ends:
                    return len(changed) - number
                seen = self._seen.get(workflow, Seen())
                try:
                    entries = self._history(workflow, seen.seq)
                except (Damaged, NewerVersion):
                    entries = ()
                for entry in entries:
                    seen = self._observed(workflow, seen, entry)
                if fields.get("outcome") and not seen.is_over and entries:
                    took = _seconds(seen.began, entries[-1].body["at"])
                    self._add("workflow_seconds", fields["outcome"], took)
                    seen = seen._replace(is_over=True)
                self._seen[workflow] = seen._replace(changed=fields.get("updated_at", ""))
            return 0

    def _observed(self, workflow: str, seen: Seen, entry: Entry) -> Seen:
        """Count what one entry shows; returns the state after it."""
        at, event = entry.body["at"], entry.body.get("event", {})
        kind, is_pass = event.get("kind"), event.get("outcome") == "passed" and not event.get("findings")
        seen = seen._replace(seq=entry.seq, began=seen.began or at)
        # Who caused it, without their authentication.
        by = str(event.get("completion", event).get("by", "")) if kind in _BY_AGENTS else ""
        if agent := by.partition(" (")[0]:
            last = AgentSeen(agent, at, workflow)
            self.agents[agent] = max(last, self.agents.get(agent, last), key=lambda each: each.at)
        if kind == "run-finished" and is_pass and event.get("step") != "confirm":
            self._add("iterations_to_pass", event["specialist"], event["iteration"], ITERATIONS)
        elif kind == "fix-completed":
            if seen.reported:
                self._add("fix_seconds", agent, _seconds(seen.reported, at))
            seen = seen._replace(reported="")
        elif kind in ("decision-made", "answered"):
            since, reason = seen.asked
            if since:
                self._add("decision_seconds", reason, _seconds(since, at))
            seen = seen._replace(asked=("", ""))
        for message in entry.body.get("messages", ()):
            body = message.get("body", {})
            if body.get("kind") in ("escalation", "cycle.escalation"):
                seen = seen._replace(asked=(at, str(body.get("reason", ""))))
                self.holds.update({each["rule"] for each in body.get("findings", ())})
            elif body.get("kind") == "failure-report":
                seen = seen._replace(reported=at)
        return seen

    def _add(self, name: str, label: str, value: float, bounds: Sequence[float] = SECONDS) -> None:
        self.histograms.setdefault((name, label), Histogram(bounds)).add(value)


def _seconds(since: str, until: str) -> float:
    return max(0.0, (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds())
