"""What came of a chaos run: every workflow compared with its rehearsal, every second execution with the injuries."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from fixloop.engine.history import said
from fixloop.engine.replay import audit
from fixloop.engine.snapshots import load_state
from fixloop.protocol.outcome import Transition
from fixloop.store.contract import Store
from fixloop.store.limits import LEASE_SECONDS
from fixloop.testing.executions import Execution
from fixloop.testing.injuries import AppliedInjury, Takeover
from fixloop.testing.plan import Boundary, Injury
from fixloop.testing.rehearsal import Rehearsal, told

AFTERMATH_SECONDS: Final = 15.0
"""So long after it lost Redis a worker may still die over it: Celery needs up to six seconds, twice."""
BEGINNING_SECONDS: Final = 0.25
"""From the answer to a claim until the agent has written down that it begins."""

_IN_STEP: Final = (Boundary.AFTER_CLAIM, Boundary.MID_WORK, Boundary.BEFORE_COMMIT)
"""Where a process has a ticket; before that, what dies is a hint, and its step waits its turn among all others."""


class Verdict(NamedTuple):
    """One workflow: what is wrong with it, nothing where all is well."""

    workflow: str
    stuck: bool = False
    lost: str = ""
    """How it ended otherwise than undisturbed."""
    doubled: tuple[str, ...] = ()
    """Effects that are there twice."""
    problems: tuple[str, ...] = ()
    """What its history does not hold up to."""
    steps: int = 0
    fixes: int = 0
    """Completions of the main agent, each with its commit where it changed something."""

    @property
    def is_well(self) -> bool:
        return not (self.stuck or self.lost or self.doubled or self.problems)


def judged(store: Store, workflow: str, rehearsal: Rehearsal) -> Verdict:
    found = store.read(workflow)
    if found is None:
        return Verdict(workflow, lost="it is not there")
    stuck, problems = not found.fields.get("outcome"), audit(store, workflow).problems
    if stuck or problems:
        return Verdict(workflow, stuck=stuck, problems=problems)
    state, entries = load_state(found.snapshot), store.history(workflow)
    changes = [
        Transition.model_validate(change) for entry in entries for change in entry.body.get("transitions", ())
    ]
    story = told([line.message for line in said(entries)], changes, state)
    differing = [
        name for name, one, two in zip(story._fields, story, rehearsal.story, strict=True) if one != two
    ]
    bodies = [entry.body for entry in entries]
    return Verdict(
        workflow,
        lost=f"other {', '.join(differing)} than undisturbed" if differing else "",
        doubled=tuple(_doubled(bodies, rehearsal)),
        steps=len(entries) - 1,
        fixes=sum(_text(body, "event", "kind") == "fix-completed" for body in bodies),
    )


def _doubled(bodies: Sequence[Mapping[str, object]], rehearsal: Rehearsal) -> Iterable[str]:
    tickets = Counter(_text(body, "by", "ticket") for body in bodies if "by" in body)
    yield from (f"{ticket} committed {count} times" for ticket, count in tickets.items() if count > 1)
    made = Counter(
        (_text(body, "event", "specialist"), _text(body, "event", "completion", "iteration"))
        for body in bodies
        if _text(body, "event", "kind") == "fix-completed"
    )
    may = Counter((name, str(number)) for name, number in rehearsal.fixes)
    for (name, number), count in made.items():
        if count > may[name, number]:
            yield f"fix of {name} run {number} made {count} times"


def _text(found: object, *path: str) -> str:
    for name in path:
        found = found.get(name, "") if isinstance(found, Mapping) else ""
    return str(found)


def check_clock_shifts(injuries: Iterable[AppliedInjury], executions: Sequence[Execution]) -> None:
    """A wrong clock was felt by an agent that began meanwhile and saw it."""
    for applied in injuries:
        if applied.injury is Injury.WRONG_CLOCK:
            seen = [one.skew_seconds for one in executions if applied.began <= one.at <= applied.ended]
            applied.took_effect = any(abs(skew - applied.skew_seconds) < 1.0 for skew in seen)


def resumptions(executions: Iterable[Execution], injuries: Iterable[AppliedInjury]) -> list[float]:
    """Seconds from the death of a work process in mid-step to the next beginning of that step, in order of size."""
    began: dict[str, list[float]] = defaultdict(list)
    for execution in executions:
        began[execution.ticket].append(execution.at)
    later = [
        [at - applied.began for at in began[applied.ticket] if at > applied.began]
        for applied in injuries
        if applied.injury in (Injury.KILL_WORKER, Injury.KILL_RUNNER) and applied.boundary in _IN_STEP
    ]
    return sorted(min(seconds) for seconds in later if seconds)


def unexplained(
    executions: Iterable[Execution],
    injuries: Sequence[AppliedInjury],
    takeovers: Iterable[Takeover],
    host_of: Mapping[int, str],
) -> list[Execution]:
    """The executions of a ticket after its first for which no injury of the worker before is to blame."""
    living = {(one.ticket, one.pid) for one in takeovers if one.alive}
    by_ticket: dict[str, list[Execution]] = defaultdict(list)
    for execution in executions:
        by_ticket[execution.ticket].append(execution)
    return [
        again
        for runs in by_ticket.values()
        # By fence: a process that was stopped between claim and beginning begins after the one that took over.
        for before, again in pairwise(sorted(runs, key=lambda run: run.fence))
        if not any(_hit(applied, before, again.at, host_of, living) for applied in injuries)
    ]


def _hit(
    applied: AppliedInjury,
    before: Execution,
    until: float,
    host_of: Mapping[int, str],
    living: Container[tuple[str, int]],
) -> bool:
    if applied.began > until:
        return False
    if applied.injury in (Injury.KILL_COMMAND, Injury.KILL_AGENT):
        return applied.ticket == before.ticket and applied.began >= before.at
    if before.pid in applied.pids:
        return applied.ended + BEGINNING_SECONDS >= before.at
    # A process that lives through a loss of Redis shorter than its lease keeps its ticket.
    lived = (before.ticket, before.pid) in living
    cut_off = host_of.get(before.pid) in applied.hosts and applied.ended + AFTERMATH_SECONDS >= before.at
    return cut_off and (not lived or applied.ended - applied.began >= LEASE_SECONDS)
