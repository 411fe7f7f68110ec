"""What a chaos run is asked for, and what came of it: workflows and repeated executions, compared and explained."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from fixloop.engine.history import said
from fixloop.engine.replay import audit
from fixloop.engine.snapshots import load_state
from fixloop.protocol.statuses import Transition
from fixloop.store.contract import Store
from fixloop.store.limits import LEASE_SECONDS
from fixloop.store.records import Entry, Snapshot
from fixloop.testing.contrast import Contrast
from fixloop.testing.executions import Execution
from fixloop.testing.injuries import AppliedInjury, Takeover
from fixloop.testing.networks import Network
from fixloop.testing.plan import Boundary, Injury, Plan
from fixloop.testing.rehearsal import Rehearsal, told
from fixloop.testing.site import INJURED, Site

ENOUGH: Final = 0.9
"""So much of the plan has to be done, or the run says nothing."""
AFTERMATH_SECONDS: Final = 15.0
"""So long after it lost Redis a worker may still die over it: Celery needs up to six seconds, twice."""
BEGINNING_SECONDS: Final = 0.25
"""From the answer to a claim until the agent has written down that it begins."""

_IN_STEP: Final = (Boundary.AFTER_CLAIM, Boundary.MID_WORK, Boundary.BEFORE_COMMIT)
"""Where a process has a ticket; before that, what dies is a hint, and its step waits its turn among all others."""


class Order(NamedTuple):
    workflows: int
    kills: int
    seed: int
    concurrency: int = 2
    """Work processes of each of the two workers."""
    contrast: bool = False
    """Whether bare Celery chains are injured by the same plan, too."""
    twice: bool = False
    """Whether every message is delivered twice, from the first to the last."""
    profile: str = "validation"
    network: Network = "auto"
    """How workers are cut off: by network namespaces where they can be made, or by the relay."""


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
    """Of the injured workflows."""
    left_alone: tuple[Verdict, ...] = ()
    """Of the undisturbed ones: what is wrong there is no injury's fault."""
    undisturbed_seconds: float = 0.0
    injured_seconds: float = 0.0
    surplus: int = 0
    """Deliveries of tickets that were not to be had."""
    contrast: Contrast | None = None
    copies: int = 0
    network: str = ""

    @property
    def lost(self) -> int:
        """Workflows that are not there, or ended otherwise than undisturbed."""
        return sum(bool(one.lost) for one in self.verdicts)

    @property
    def doubled(self) -> int:
        return sum(len(one.doubled) for one in self.verdicts)

    @property
    def stuck(self) -> int:
        return sum(one.stuck for one in self.verdicts)

    @property
    def verified(self) -> int:
        """Histories in which nothing was changed, and whose decisions come out the same again."""
        return sum(not one.problems for one in self.verdicts)

    @property
    def astray(self) -> int:
        return sum(not one.is_well for one in self.left_alone)

    @property
    def is_well(self) -> bool:
        """Whether nothing at all is wrong, and the plan took effect."""
        found = self.lost + self.doubled + self.stuck + len(self.unexplained) + self.astray
        return not found and self.verified == len(self.verdicts) and self.is_injured

    @property
    def is_injured(self) -> bool:
        """Whether injuries of every planned kind took effect, and of all but a few that came too late."""
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
    """What was done and what the agents wrote down while it was; verdicts and times are to be added."""
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
    """The same, with what the injurer of a site saw pass by."""
    injurer = place.injurer
    executions = [one for one in place.executions() if one.ticket.startswith(INJURED)]
    found = reported(order, planned, injurer.injuries, executions, injurer.takeovers, injurer.host_of)
    return found._replace(
        copies=injurer.doubled,
        network=place.networks.told,
        surplus=injurer.answers.total() - injurer.answers["ok"],
    )


def ended(store: Store, workflow: str) -> Snapshot | Verdict:
    """A workflow that can be compared with another, or what is wrong with it already."""
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
    changes = [
        Transition.model_validate(change) for entry in entries for change in entry.body.get("transitions", ())
    ]
    story = told([line.message for line in said(entries)], changes, load_state(found.snapshot))
    differing = [
        name for name, one, two in zip(story._fields, story, rehearsal.story, strict=True) if one != two
    ]
    events = [entry.body["event"] for entry in entries]
    fixes = [
        (event["specialist"], event["completion"]["iteration"])
        for event in events
        if event["kind"] == "fix-completed"
    ]
    surplus = tuple(
        f"fix of {name} run {number} made {count} times"
        for (name, number), count in Counter(fixes).items()
        if count > rehearsal.fixes.count((name, number))
    )
    verdict = compared(workflow, entries, differing, len(fixes))
    return verdict._replace(doubled=verdict.doubled + surplus)


def compared(workflow: str, entries: Sequence[Entry], differing: Sequence[str], fixes: int) -> Verdict:
    """A workflow that is whole, held against the undisturbed."""
    tickets = Counter(tickets_of(entries))
    return Verdict(
        workflow,
        lost=f"other {', '.join(differing)} than undisturbed" if differing else "",
        doubled=tuple(f"{ticket} committed {count} times" for ticket, count in tickets.items() if count > 1),
        steps=len(entries) - 1,
        fixes=fixes,
    )


def tickets_of(entries: Iterable[Entry]) -> list[str]:
    """Those that were committed, as often as they were."""
    found = (entry.body.get("by", {}).get("ticket", "") for entry in entries)
    return list(filter(None, found))


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
