"""A chaos run: real workers on a Redis of their own, injured by a plan, and every end compared with the undisturbed.

The same workflows run twice: once left alone, for the time that takes, and once injured. What each should come to is
known from its rehearsal in memory.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.protocol.events import DecisionMade, WorkflowStarted
from fixloop.protocol.state import Limits
from fixloop.store.contract import Store
from fixloop.store.keys import workflow_id
from fixloop.testing.agents import AGENTS, Agent
from fixloop.testing.caller import EXTENDED, GIVEN_UP, Caller, Workflows, calling
from fixloop.testing.contrast import Contrast, contrast
from fixloop.testing.plan import COMMAND, Plan, plan
from fixloop.testing.processes import Host
from fixloop.testing.script import script_of
from fixloop.testing.site import EXECUTIONS, HostKind, Progress, Site, site
from fixloop.testing.undisturbed import Answer, Rehearsal, rehearse
from fixloop.testing.verdict import Execution, Verdict, judged, resumptions, unexplained

__all__ = ["Order", "Progress", "Report", "chaos"]

LEFT_ALONE: Final = "0a1e1e55"
INJURED: Final = "d15a57e2"
"""Two projects, by their hashes."""
ENOUGH: Final = 0.9
"""So much of the plan has to be done, or the run says nothing."""


class Order(NamedTuple):
    """What is asked for."""

    workflows: int
    kills: int
    seed: int
    concurrency: int = 2
    """Work processes of each of the two workers."""
    contrast: bool = False
    """Whether bare Celery chains are injured by the same plan, too."""
    twice: bool = False
    """Whether every message is delivered twice, from the first to the last."""


class Report(NamedTuple):
    """What came of it."""

    order: Order
    verdicts: tuple[Verdict, ...]
    """Of the injured workflows."""
    left_alone: tuple[Verdict, ...]
    """Of the undisturbed ones: what is wrong there is no injury's fault."""
    planned: Counter[str]
    """Injuries by kind."""
    done: Counter[str]
    """Those that took effect."""
    executions: int
    repeated: int
    """Executions of a ticket after its first."""
    unexplained: tuple[Execution, ...]
    resumptions: tuple[float, ...]
    """Seconds from each death of a work process until its step began again elsewhere, the shortest first."""
    surplus: int
    """Deliveries of tickets that were not to be had."""
    undisturbed_seconds: float
    injured_seconds: float
    contrast: Contrast | None = None
    """What came of the bare chains, if they were wanted."""
    copies: int = 0
    """Messages that were delivered twice."""

    @property
    def lost(self) -> int:
        """Workflows that are not there, or ended otherwise than undisturbed."""
        return sum(bool(one.lost) for one in self.verdicts)

    @property
    def doubled(self) -> int:
        """Effects that are there twice."""
        return sum(len(one.doubled) for one in self.verdicts)

    @property
    def stuck(self) -> int:
        """Workflows that have not ended and do not go on."""
        return sum(one.stuck for one in self.verdicts)

    @property
    def verified(self) -> int:
        """Histories in which nothing was changed, and whose decisions come out the same again."""
        return sum(not one.problems for one in self.verdicts)

    @property
    def astray(self) -> int:
        """Workflows with which something is wrong although nothing was injured."""
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


class _Play(NamedTuple):
    started: WorkflowStarted
    rehearsal: Rehearsal
    decisions: tuple[DecisionMade, ...] = ()
    """What a person says to its escalations."""


def chaos(order: Order, folder: Path, tell: Callable[[Progress], object] = lambda _: None) -> Report:
    """
    Run it, with everything it leaves in `folder`: logs, data, executions and injuries.

    Raises:
        UsageError: there are too few workflows for so many injuries.
        InfrastructureError: there is no Redis server, or the workers do not start.
    """
    left_alone, injured = _plays(LEFT_ALONE, order), _plays(INJURED, order)
    commands = {ticket for one in injured for ticket in _commands(one)}
    steps = Counter(ticket.step for one in injured for ticket in one.rehearsal.tickets)
    planned = plan(order.seed, order.kills, {**steps, COMMAND: len(commands)})
    with site(folder, _host_kind(order, folder)) as place, calling(place.server.url) as caller:
        works = [_work(caller, plays) for plays in (left_alone, injured)]
        undisturbed_seconds = place.run("undisturbed", works[0], tell)
        place.arm(planned, commands, twice_over=order.twice)
        injured_seconds = place.run("injured", works[1], tell)
        place.heal()
        report = _report(order, planned, place)._replace(
            verdicts=_judged(caller.store, injured),
            left_alone=_judged(caller.store, left_alone),
            undisturbed_seconds=undisturbed_seconds,
            injured_seconds=injured_seconds,
        )
    if not order.contrast:
        return report
    tickets = {one.started.workflow: [ticket.id for ticket in one.rehearsal.tickets] for one in injured}
    chains = contrast(planned, tickets, concurrency=order.concurrency, folder=folder / "contrast", tell=tell)
    return report._replace(contrast=chains)


def _host_kind(order: Order, folder: Path) -> HostKind:
    environment = {
        "FIXLOOP_CREW": "fixloop.testing:scripted_crew",
        "FIXLOOP_EXECUTIONS": str(folder / EXECUTIONS),
        "FIXLOOP_CACHE_DIR": str(folder / "cache"),
        "FIXLOOP_LOG_LEVEL": os.environ.get("FIXLOOP_LOG_LEVEL", "WARNING"),
        "FIXLOOP_TASK_EVENTS": "0",
    }
    return partial(Host, concurrency=order.concurrency, environment=environment)


def _plays(project: str, order: Order) -> list[_Play]:
    """One agent after the other, each with the issue of its number."""
    agents = islice(cycle(AGENTS.values()), order.workflows)
    return [_play(project, issue, agent) for issue, agent in enumerate(agents, 1)]


def _play(project: str, issue: int, agent: Agent) -> _Play:
    started = WorkflowStarted(
        workflow=workflow_id(project, issue, 1),
        issue=issue,
        name=agent.script,
        specialists=agent.specialists,
        fixer="command",
        tip="commit-0",
        tree="tree-0",
        limits=Limits(backoff_seconds=0.1, fix_seconds=agent.fix_seconds, reminder_window_seconds=1.0),
    )
    return _played(started, (EXTENDED, GIVEN_UP) if agent.is_extended else (GIVEN_UP,))


def _played(started: WorkflowStarted, decisions: tuple[DecisionMade, ...]) -> _Play:
    """As many of the decisions are made as it waits for."""
    rehearsal, made = rehearse(started), 0
    while rehearsal.story.paused:
        made += 1
        rehearsal = rehearse(started, [Answer("ESC", decision) for decision in decisions[:made]])
    return _Play(started, rehearsal, decisions[:made])


def _work(caller: Caller, plays: Sequence[_Play]) -> Workflows:
    decisions = {one.started.workflow: one.decisions for one in plays}
    return caller.workflows([one.started for one in plays], decisions)


def _commands(play: _Play) -> list[str]:
    """The tickets whose work is done by a command of its own."""
    script = script_of(play.started.name)
    return [ticket.id for ticket in play.rehearsal.tickets if script.runs_command(ticket.step)]


def _judged(store: Store, plays: Sequence[_Play]) -> tuple[Verdict, ...]:
    return tuple(judged(store, one.started.workflow, one.rehearsal) for one in plays)


def _report(order: Order, planned: Plan, place: Site) -> Report:
    """What the injurer and the agents wrote down."""
    injurer = place.injurer
    executions = [one for one in place.executions() if one.ticket.startswith(INJURED)]
    return Report(
        order=order,
        verdicts=(),
        left_alone=(),
        planned=Counter(injury.value for injury in planned.values()),
        done=Counter(wound.injury.value for wound in injurer.wounds if wound.is_felt),
        copies=injurer.doubled,
        executions=len(executions),
        repeated=len(executions) - len({execution.ticket for execution in executions}),
        unexplained=tuple(unexplained(executions, injurer.wounds, injurer.takeovers, injurer.host_of)),
        resumptions=tuple(resumptions(executions, injurer.wounds)),
        surplus=injurer.answers.total() - injurer.answers["ok"],
        undisturbed_seconds=0.0,
        injured_seconds=0.0,
    )
