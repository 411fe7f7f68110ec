"""A chaos run: real workers with a separate Redis, injured by a plan, and every end compared with the undisturbed.

The same workflows run twice: once left alone, for the time that takes, and once injured. What each should come to is
known from its rehearsal in memory.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.profile_table import names, registered
from fixloop.protocol.events import DecisionMade, WorkflowStarted
from fixloop.protocol.state import Limits
from fixloop.store.keys import workflow_id
from fixloop.testing.agent_chaos import chaos_of_agents
from fixloop.testing.chat_chaos import chaos_of_chats
from fixloop.testing.contrast import contrast
from fixloop.testing.plan import COMMAND, VALIDATION, Schedule, plan
from fixloop.testing.rehearsal import Answer, Rehearsal, rehearse
from fixloop.testing.report import Order, Report, judged, reported_by
from fixloop.testing.script import AGENTS, script_of
from fixloop.testing.site import EXTENDED, GIVEN_UP, INJURED, LEFT_ALONE, Progress, calling, host_kind, site


class _Play(NamedTuple):
    started: WorkflowStarted
    rehearsal: Rehearsal
    decisions: tuple[DecisionMade, ...] = ()
    """What a person says to its escalations."""

    @property
    def workflow(self) -> str:
        return self.started.workflow


def chaos(order: Order, folder: Path, tell: Callable[[Progress], object] = lambda _: None) -> Report:
    """
    Run it, with everything it leaves in `folder`: logs, data, executions and injuries.

    Raises:
        UsageError: there are too few workflows for so many injuries, or the profile has none of what is asked for.
        InfrastructureError: there is no Redis server, or the workers do not start.
    """
    if order.profile not in _RUNS:
        raise UsageError(f"there is no chaos run of {order.profile!r}; there are {', '.join(_RUNS)}")
    if order.profile != "validation" and order.contrast:
        raise UsageError("bare Celery chains are compared with the validation profile only")
    if order.profile == "chat" and order.twice:
        raise UsageError("a chat has no messages that could be delivered twice")
    if order.profile == "chat" and order.network != "auto":
        raise UsageError("a chat has no network that could be cut")
    return _RUNS[order.profile](order, folder, tell)


def chaos_of_validation(order: Order, folder: Path, tell: Callable[[Progress], object]) -> Report:
    left_alone, injured = _plays(LEFT_ALONE, order), _plays(INJURED, order)
    tickets = [(one, ticket) for one in injured for ticket in one.rehearsal.tickets]
    commands = {ticket.id for one, ticket in tickets if script_of(one.started.name).runs_command(ticket.step)}
    steps = Counter(ticket.step for _, ticket in tickets)
    planned = plan(order.seed, order.kills, {**steps, COMMAND: len(commands)}, VALIDATION)
    with (
        site(folder, host_kind(order.concurrency, folder), order.network) as place,
        calling(place.server.url) as caller,
    ):
        works = [
            caller.workflows([one.started for one in plays], {one.workflow: one.decisions for one in plays})
            for plays in (left_alone, injured)
        ]
        undisturbed_seconds = place.run("undisturbed", works[0], tell)
        place.arm(Schedule(planned, VALIDATION), commands, twice_over=order.twice)
        injured_seconds = place.run("injured", works[1], tell)
        place.heal()
        report = reported_by(place, order, planned)._replace(
            verdicts=tuple(judged(caller.store, one.workflow, one.rehearsal) for one in injured),
            left_alone=tuple(judged(caller.store, one.workflow, one.rehearsal) for one in left_alone),
            undisturbed_seconds=undisturbed_seconds,
            injured_seconds=injured_seconds,
        )
    if not order.contrast:
        return report
    chains = contrast(
        planned,
        {one.workflow: [ticket.id for ticket in one.rehearsal.tickets] for one in injured},
        concurrency=order.concurrency,
        folder=folder / "contrast",
        network=order.network,
        compared_seconds=report.injured_seconds,
        tell=tell,
    )
    return report._replace(contrast=chains)


def _plays(project: str, order: Order) -> list[_Play]:
    made = []
    for issue, agent in enumerate(islice(cycle(AGENTS.values()), order.workflows), 1):
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
        rehearsal, count = rehearse(started), 0
        while rehearsal.story.paused:
            count += 1
            rehearsal = rehearse(started, [Answer("ESC", decision) for decision in decisions[:count]])
        made.append(_Play(started, rehearsal, decisions[:count]))
    return made


_RUNS: Final[Mapping[str, Callable[[Order, Path, Callable[[Progress], object]], Report]]] = {
    "validation": chaos_of_validation,
    **{name: chaos_of_agents for name in names() if registered(name).scripts},
    "chat": chaos_of_chats,
}
