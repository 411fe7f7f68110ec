"""A chaos run: real workers on a Redis of their own, injured by a plan, and every end compared with the undisturbed.

The same workflows run twice: once left alone, for the time that takes, and once injured. What each should come to is
known from its rehearsal in memory.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.protocol.events import DecisionMade, WorkflowStarted
from fixloop.protocol.state import Limits
from fixloop.store.contract import Store
from fixloop.store.keys import workflow_id
from fixloop.testing.agent_chaos import chaos_of_agents
from fixloop.testing.agents import AGENTS, Agent
from fixloop.testing.caller import EXTENDED, GIVEN_UP, Caller, Workflows, calling
from fixloop.testing.chats import chaos_of_chats
from fixloop.testing.contrast import contrast
from fixloop.testing.places import VALIDATION
from fixloop.testing.plan import COMMAND, Schedule, plan
from fixloop.testing.report import Order, Report, reported
from fixloop.testing.script import script_of
from fixloop.testing.site import INJURED, LEFT_ALONE, Progress, host_kind, site
from fixloop.testing.undisturbed import Answer, Rehearsal, rehearse
from fixloop.testing.verdict import Verdict, judged


class _Play(NamedTuple):
    started: WorkflowStarted
    rehearsal: Rehearsal
    decisions: tuple[DecisionMade, ...] = ()
    """What a person says to its escalations."""


def chaos(order: Order, folder: Path, tell: Callable[[Progress], object] = lambda _: None) -> Report:
    """
    Run it, with everything it leaves in `folder`: logs, data, executions and injuries.

    Raises:
        UsageError: there are too few workflows for so many injuries, or the profile has none of what is asked for.
        InfrastructureError: there is no Redis server, or the workers do not start.
    """
    return _run_of(order)(order, folder, tell)


def _run_of(order: Order) -> Callable[[Order, Path, Callable[[Progress], object]], Report]:
    found = _RUNS.get(order.profile)
    if found is None:
        raise UsageError(f"there is no chaos run of {order.profile!r}; there are {', '.join(_RUNS)}")
    if order.profile != "validation" and order.contrast:
        raise UsageError("bare Celery chains are compared with the validation profile only")
    if order.profile == "chat" and order.twice:
        raise UsageError("a chat has no messages that could be delivered twice")
    if order.profile == "chat" and order.network != "auto":
        raise UsageError("a chat has no network that could be cut")
    return found


def _validation(order: Order, folder: Path, tell: Callable[[Progress], object]) -> Report:
    left_alone, injured = _plays(LEFT_ALONE, order), _plays(INJURED, order)
    commands = {ticket for one in injured for ticket in _commands(one)}
    steps = Counter(ticket.step for one in injured for ticket in one.rehearsal.tickets)
    planned = plan(order.seed, order.kills, {**steps, COMMAND: len(commands)}, VALIDATION)
    with (
        site(folder, host_kind(order.concurrency, folder), order.network) as place,
        calling(place.server.url) as caller,
    ):
        works = [_work(caller, plays) for plays in (left_alone, injured)]
        undisturbed_seconds = place.run("undisturbed", works[0], tell)
        place.arm(Schedule(planned, VALIDATION), commands, twice_over=order.twice)
        injured_seconds = place.run("injured", works[1], tell)
        place.heal()
        report = reported(order, planned, place)._replace(
            verdicts=_judged(caller.store, injured),
            left_alone=_judged(caller.store, left_alone),
            undisturbed_seconds=undisturbed_seconds,
            injured_seconds=injured_seconds,
        )
    if not order.contrast:
        return report
    tickets = {one.started.workflow: [ticket.id for ticket in one.rehearsal.tickets] for one in injured}
    chains = contrast(
        planned,
        tickets,
        concurrency=order.concurrency,
        folder=folder / "contrast",
        network=order.network,
        compared_seconds=report.injured_seconds,
        tell=tell,
    )
    return report._replace(contrast=chains)


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
    # As many of the decisions are made as it waits for.
    decisions = (EXTENDED, GIVEN_UP) if agent.is_extended else (GIVEN_UP,)
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


_RUNS: Final[Mapping[str, Callable[[Order, Path, Callable[[Progress], object]], Report]]] = {
    "validation": _validation,
    "cycle": chaos_of_agents,
    "handoff": chaos_of_agents,
    "chat": chaos_of_chats,
}
