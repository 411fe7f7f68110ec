"""The report of a chaos run: workflows compared with undisturbed ones, repeated executions explained."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from fixloop.engine.history import said
from fixloop.engine.profile import load_state
from fixloop.engine.replay import audit
from fixloop.protocol.specialists import Transition
from fixloop.store.contract import Store
from fixloop.store.limits import LEASE_SECONDS
from fixloop.store.records import Entry, Snapshot
from fixloop.testing.contrast import Contrast
from fixloop.testing.executions import Execution
from fixloop.testing.injuries import AppliedInjury, Takeover
from fixloop.testing.plan import Boundary, Injury, Plan
from fixloop.testing.rehearsal import Rehearsal, told
from fixloop.testing.site import INJURED, Order, Site

ENOUGH: Final = 0.9
"""The fraction of the plan that must take effect for a meaningful run."""
AFTERMATH_SECONDS: Final = 15.0
"""A worker may still die from a loss of Redis this long after it: Celery needs up to six seconds, twice."""
BEGINNING_SECONDS: Final = 0.25
"""From the reply to a claim until the agent has recorded its start."""

_IN_STEP: Final = (Boundary.AFTER_CLAIM, Boundary.MID_WORK, Boundary.BEFORE_COMMIT)
"""The boundaries where a process has a ticket; an earlier kill loses only a hint, and the step just waits."""


class Verdict(NamedTuple):
    """The problems of one workflow; empty if there are none."""

    workflow: str
    stuck: bool = False
    lost: str = ""
    """How it differs from the undisturbed workflow."""
    doubled: tuple[str, ...] = ()
    """Effects that occurred twice."""
    problems: tuple[str, ...] = ()
    """The checks that its history fails."""
    steps: int = 0
    fixes: int = 0
    """Completions of the main agent, each with its commit if it changed something."""

    @property
    def is_well(self) -> bool:
        return not (self.stuck or self.lost or self.doubled or self.problems)


class Report(NamedTuple):
    order: Order
    planned: Counter[str]
    done: Counter[str]
    """Injuries by kind: those that took effect."""
    executions: int
    repeated: int
    """Executions of a ticket after its first."""
    unexplained: tuple[Execution, ...]
    resumptions: tuple[float, ...]
    """Seconds from each death of a work process until its step began again elsewhere, the shortest first."""
    verdicts: tuple[Verdict, ...] = ()
    """The verdicts on the injured workflows."""
    left_alone: tuple[Verdict, ...] = ()
    """The verdicts on the undisturbed workflows, whose problems no injury causes."""
    undisturbed_seconds: float = 0.0
    injured_seconds: float = 0.0
    surplus: int = 0
    """Deliveries of tickets that could not be claimed."""
    contrast: Contrast | None = None
    copies: int = 0
    network: str = ""

    @property
    def lost(self) -> int:
        """Workflows that are missing, or ended differently from the undisturbed ones."""
        return sum(bool(one.lost) for one in self.verdicts)

    @property
    def doubled(self) -> int:
        return sum(len(one.doubled) for one in self.verdicts)

    @property
    def stuck(self) -> int:
        return sum(one.stuck for one in self.verdicts)

    @property
    def verified(self) -> int:
        """Histories that are unchanged, and whose decisions are the same on replay."""
        return sum(not one.problems for one in self.verdicts)

    @property
    def astray(self) -> int:
        return sum(not one.is_well for one in self.left_alone)

    @property
    def is_well(self) -> bool:
        """Whether there are no problems, and the plan took effect."""
        found = self.lost + self.doubled + self.stuck + len(self.unexplained) + self.astray
        return not found and self.verified == len(self.verdicts) and self.is_injured

    @property
    def is_injured(self) -> bool:
        """Whether injuries of every planned kind took effect, and all but a few late ones."""
        every = all(self.done[kind] for kind in self.planned)
        doubled = self.copies > 0 or not self.order.twice
        return every and doubled and self.done.total() >= ENOUGH * self.planned.total()

    def document(self) -> dict[str, object]:
        return {
            "profile": self.order.profile,
            "workflows": self.order.workflows,
            "seed": self.order.seed,
            "injuries": dict(self.done),
            "planned": dict(self.planned),
            "network": self.network,
            "messages_twice": self.copies,
            "lost": self.lost,
            "doubled": self.doubled,
            "effects": sum(one.steps for one in self.verdicts),
            "fixes": sum(one.fixes for one in self.verdicts),
            "executions": self.executions,
            "repeated": self.repeated,
            "unexplained": [one.ticket for one in self.unexplained],
            "stuck": self.stuck,
            "verified": self.verified,
            "histories": len(self.verdicts),
            "astray": self.astray,
            "resumed_seconds": [round(seconds, 3) for seconds in self.resumptions],
            "surplus_deliveries": self.surplus,
            "undisturbed_seconds": round(self.undisturbed_seconds, 3),
            "injured_seconds": round(self.injured_seconds, 3),
            "contrast": self.contrast._asdict() if self.contrast is not None else None,
            "well": self.is_well,
        }


def reported(
    order: Order,
    planned: Plan,
    injuries: Sequence[AppliedInjury],
    executions: Sequence[Execution],
    takeovers: Iterable[Takeover] = (),
    host_of: Mapping[int, str] = MappingProxyType({}),
) -> Report:
    """The report of injuries and executions; the caller adds verdicts and times."""
    return Report(
        order=order,
        planned=Counter(injury.value for injury in planned.values()),
        done=Counter(applied.injury.value for applied in injuries if applied.took_effect),
        executions=len(executions),
        repeated=len(executions) - len({execution.ticket for execution in executions}),
        unexplained=tuple(unexplained(executions, injuries, takeovers, host_of)),
        resumptions=tuple(resumptions(executions, injuries)),
    )


def reported_by(place: Site, order: Order, planned: Plan) -> Report:
    """The same, with the observations of a site's injurer."""
    injurer = place.injurer
    executions = [one for one in place.executions() if one.ticket.startswith(INJURED)]
    found = reported(order, planned, injurer.injuries, executions, injurer.takeovers, injurer.host_of)
    return found._replace(
        copies=injurer.doubled,
        network=place.networks.told,
        surplus=injurer.answers.total() - injurer.answers["ok"],
    )


def ended(store: Store, workflow: str) -> Snapshot | Verdict:
    """The snapshot of an intact, ended workflow, or a verdict on its problems."""
    found = store.read(workflow)
    if found is None:
        return Verdict(workflow, lost="it is not there")
    stuck, problems = not found.fields.get("outcome"), audit(store, workflow).problems
    return Verdict(workflow, stuck=stuck, problems=problems) if stuck or problems else found


def judged(store: Store, workflow: str, rehearsal: Rehearsal) -> Verdict:
    found = ended(store, workflow)
    if isinstance(found, Verdict):
        return found
    entries = store.history(workflow)
    made = (change for entry in entries for change in entry.body.get("transitions", ()))
    changes = [*map(Transition.model_validate, made)]
    story = told([line.message for line in said(entries)], changes, load_state(found.snapshot))
    pairs = zip(story._fields, story, rehearsal.story, strict=True)
    differing = [name for name, one, two in pairs if one != two]
    events = (entry.body["event"] for entry in entries)
    completed = (event for event in events if event["kind"] == "fix-completed")
    fixes = [(event["specialist"], event["completion"]["iteration"]) for event in completed]
    surplus = tuple(
        f"fix of {name} run {number} made {count} times"
        for (name, number), count in Counter(fixes).items()
        if count > rehearsal.fixes.count((name, number))
    )
    verdict = compared(workflow, entries, differing, len(fixes))
    return verdict._replace(doubled=verdict.doubled + surplus)


def compared(workflow: str, entries: Sequence[Entry], differing: Sequence[str], fixes: int) -> Verdict:
    """The verdict on a complete workflow, compared with the undisturbed one."""
    tickets = Counter(tickets_of(entries))
    return Verdict(
        workflow,
        lost=f"other {', '.join(differing)} than undisturbed" if differing else "",
        doubled=tuple(f"{ticket} committed {count} times" for ticket, count in tickets.items() if count > 1),
        steps=len(entries) - 1,
        fixes=fixes,
    )


def tickets_of(entries: Iterable[Entry]) -> list[str]:
    """The committed tickets, one for each commit."""
    return list(filter(None, (entry.body.get("by", {}).get("ticket", "") for entry in entries)))


def resumptions(executions: Iterable[Execution], injuries: Iterable[AppliedInjury]) -> list[float]:
    """Seconds from the death of a work process during a step to the step's next start, sorted."""
    began: dict[str, list[float]] = defaultdict(list)
    for execution in executions:
        began[execution.ticket].append(execution.at)
    kills = (one for one in injuries if one.injury in (Injury.KILL_WORKER, Injury.KILL_RUNNER))
    amid = (one for one in kills if one.boundary in _IN_STEP)
    later = ([at - one.began for at in began[one.ticket] if at > one.began] for one in amid)
    return sorted(min(seconds) for seconds in later if seconds)


def unexplained(
    executions: Iterable[Execution],
    injuries: Sequence[AppliedInjury],
    takeovers: Iterable[Takeover],
    host_of: Mapping[int, str],
) -> list[Execution]:
    """The repeated executions of tickets that no injury of the previous worker explains."""
    living = {(one.ticket, one.pid) for one in takeovers if one.alive}

    def explains(applied: AppliedInjury, before: Execution, until: float) -> bool:
        if applied.began > until:
            return False
        if applied.injury in (Injury.KILL_COMMAND, Injury.KILL_AGENT):
            return applied.ticket == before.ticket and applied.began >= before.at
        if before.pid in applied.pids:
            return applied.ended + BEGINNING_SECONDS >= before.at
        # A process that survives a loss of Redis shorter than a lease keeps its ticket.
        lived = (before.ticket, before.pid) in living
        cut_off = host_of.get(before.pid) in applied.hosts and applied.ended + AFTERMATH_SECONDS >= before.at
        return cut_off and (not lived or applied.ended - applied.began >= LEASE_SECONDS)

    by_ticket: dict[str, list[Execution]] = defaultdict(list)
    for execution in executions:
        by_ticket[execution.ticket].append(execution)
    return [
        again
        for runs in by_ticket.values()
        # By fence: a process stopped between claim and start begins after the one that took over.
        for before, again in pairwise(sorted(runs, key=lambda run: run.fence))
        if not any(explains(applied, before, again.at) for applied in injuries)
    ]
