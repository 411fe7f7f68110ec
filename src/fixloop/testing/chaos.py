"""A chaos run: real workers with a separate Redis, injured by a plan, and all results compared to undisturbed ones.

The same workflows run twice: once undisturbed, to measure the time, and once injured. The expected result of a
validation loop is its rehearsal in memory. A cycle or a handoff must end like the undisturbed one: with the same events
and state, and the same bytes in every named file, apart from times and ids (S17, S23, S30).
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from fixloop.engine.profile import profile_named
from fixloop.errors import UsageError
from fixloop.profile_table import names, registered
from fixloop.protocol.events import DecisionMade
from fixloop.protocol.messages import Decision
from fixloop.protocol.state import Limits
from fixloop.repository.snapshot import Snapshot
from fixloop.statefiles.sync import project
from fixloop.store.contract import Store
from fixloop.store.keys import workflow_id
from fixloop.testing.chat_chaos import chaos_of_chats
from fixloop.testing.contrast import contrast
from fixloop.testing.crew import scripted_workflow
from fixloop.testing.parts import Scripts, part_of, scripts_of
from fixloop.testing.plan import COMMAND, VALIDATION, Schedule, plan
from fixloop.testing.rehearsal import Answer, Rehearsal, rehearse
from fixloop.testing.report import Report, Verdict, compared, ended, judged, reported_by, tickets_of
from fixloop.testing.script import AGENTS, script_of
from fixloop.testing.site import GIVEN_UP, INJURED, LEFT_ALONE, Order, Play, Progress, calling, site

EXTENDED: Final = DecisionMade(decision=Decision.EXTEND, by="chaos")
_TIMES: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?|\[\d\d:\d\d:\d\d\]|\d{8}T\d{6}Z?"
)
_IDS: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORKFLOWS: Final = re.compile(rf"(?:{LEFT_ALONE}|{INJURED})-")
_INTERNAL: Final = (".fixloop", ".gitignore")
"""The internal files of the writer."""
_GENERATION: Final = ".handoffs."
"""A generation of the swapped directory; the link `handoffs` points to the present one."""


def chaos(order: Order, folder: Path, tell: Callable[[Progress], object] = lambda _: None) -> Report:
    """Run it; leaves logs, data, executions and injuries in `folder`. Raises UsageError if the order is impossible."""
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
    tickets = [(one, ticket) for one in injured for ticket in one.expected.tickets]
    commands = {ticket.id for one, ticket in tickets if script_of(one.script).runs_command(ticket.step)}
    steps = Counter(ticket.step for _, ticket in tickets)
    planned = plan(order.seed, order.kills, {**steps, COMMAND: len(commands)}, VALIDATION)
    with site(folder, order) as place, calling(place.server.url) as caller:
        works = [caller.workflows(plays) for plays in (left_alone, injured)]
        undisturbed_seconds = place.run("undisturbed", works[0], tell)
        place.arm(Schedule(planned, VALIDATION), commands, twice_over=order.twice)
        injured_seconds = place.run("injured", works[1], tell)
        place.heal()
        report = reported_by(place, order, planned)._replace(
            verdicts=tuple(judged(caller.store, one.workflow, one.expected) for one in injured),
            left_alone=tuple(judged(caller.store, one.workflow, one.expected) for one in left_alone),
            undisturbed_seconds=undisturbed_seconds,
            injured_seconds=injured_seconds,
        )
    if not order.contrast:
        return report
    chains = {one.workflow: [ticket.id for ticket in one.expected.tickets] for one in injured}
    below, seconds = folder / "contrast", report.injured_seconds
    return report._replace(contrast=contrast(order, below, planned, chains, seconds, tell=tell))


def _plays(project: str, order: Order) -> list[Play[Rehearsal]]:
    made = []
    for issue, agent in enumerate(islice(cycle(AGENTS.values()), order.workflows), 1):
        limits = Limits(backoff_seconds=0.1, fix_seconds=agent.fix_seconds, reminder_window_seconds=1.0)
        start = scripted_workflow(project, issue, agent.script, specialists=agent.specialists, limits=limits)
        # Only as many decisions are made as it waits for.
        decisions = (EXTENDED, GIVEN_UP) if agent.is_extended else (GIVEN_UP,)
        rehearsal, count = rehearse(start), 0
        while rehearsal.story.paused:
            count += 1
            rehearsal = rehearse(start, [Answer("ESC", decision) for decision in decisions[:count]])
        made.append(Play(start, agent.script, decisions[:count], rehearsal))
    return made


def chaos_of_agents(order: Order, folder: Path, tell: Callable[[Progress], object]) -> Report:
    """Run it; see `chaos`."""
    scripts, profile = scripts_of(order.profile), profile_named(order.profile)
    left_alone, injured = (_make_plays(scripts, order, hash8, folder) for hash8 in (LEFT_ALONE, INJURED))
    with site(folder, order) as place, calling(place.server.url) as caller:
        works = [caller.workflows(plays, scripts.given_up, profile) for plays in (left_alone, injured)]
        undisturbed_seconds = place.run("undisturbed", works[0], tell)
        steps, commands = _steps(caller.store, left_alone, order)
        planned = plan(order.seed, order.kills, steps, scripts.places)
        place.arm(Schedule(planned, scripts.places), commands, twice_over=order.twice)
        injured_seconds = place.run("injured", works[1], tell)
        place.heal()
        pairs = list(zip(left_alone, injured, strict=True))
        return reported_by(place, order, planned)._replace(
            verdicts=tuple(_verdict(caller.store, scripts.results, one, other) for one, other in pairs),
            left_alone=tuple(_verdict(caller.store, scripts.results, one, one) for one in left_alone),
            undisturbed_seconds=undisturbed_seconds,
            injured_seconds=injured_seconds,
        )


def plain(text: str) -> str:
    """A text without times and workflow-specific ids."""
    return _WORKFLOWS.sub("PROJECT-", _IDS.sub("ID", _TIMES.sub("TIME", text)))


def _make_plays(scripts: Scripts, order: Order, hash8: str, folder: Path) -> list[Play[Path]]:
    made = []
    for issue, script in enumerate(islice(cycle(scripts.scripts), order.workflows), 1):
        root = folder / "files" / hash8 / str(issue)
        root.mkdir(parents=True)
        snapshot = Snapshot(source=str(root), commit="commit-0", tree="tree-0", is_git=False)
        facts: dict[str, Any] = {
            "workflow": workflow_id(hash8, issue, 1),
            "issue": issue,
            "name": script,
            "commands": dict.fromkeys(scripts.agents, "scripted"),
            "snapshot": snapshot.model_dump_json(exclude_defaults=True),
            "tip": "commit-0",
        }
        answers = [answer for word, answer in scripts.answers.items() if word in script]
        made.append(Play(scripts.begun(facts), script, answers, root))
    return made


def _steps(store: Store, left_alone: Sequence[Play[Path]], order: Order) -> tuple[dict[str, int], set[str]]:
    """The number of tickets of each step, and the injured tickets whose work a separate command does."""
    # The caller sends the hint for the first ticket of each workflow, and is not watched.
    runs, finish, commands = -order.workflows, 0, set()
    for one in left_alone:
        for ticket in tickets_of(store.history(one.workflow)):
            finish += ".finish." in ticket
            # Workflow, agent, run and attempt; notices and letters are delivered outside the runs.
            if ticket.count(".") == 3:
                runs += 1
                _, agent, run, _ = ticket.split(".")
                if part_of(one.script, order.profile, agent, int(run)).is_command:
                    commands.add(ticket.replace(LEFT_ALONE, INJURED, 1))
    return {"work": runs, "finish": finish, COMMAND: len(commands)}, commands


def _verdict(store: Store, results: str, calm: Play[Path], begun: Play[Path]) -> Verdict:
    found, expected = ended(store, begun.workflow), store.read(calm.workflow)
    if isinstance(found, Verdict):
        return found
    if expected is None:
        return Verdict(begun.workflow, lost="it is not there")
    differing = [
        *["events"][: _events(store, begun.workflow) != _events(store, calm.workflow)],
        *["state"][: _state(found.snapshot) != _state(expected.snapshot)],
    ]
    one, two = _files(store, calm), _files(store, begun)
    differing += sorted(name for name in {*one, *two} if one.get(name) != two.get(name))
    history = store.history(begun.workflow)
    fixes = sum(entry.body["event"]["kind"] == results for entry in history)
    return compared(begun.workflow, history, differing, fixes)


def _state(snapshot: bytes) -> str:
    # The path of its files differs.
    return plain(json.dumps({key: value for key, value in json.loads(snapshot).items() if key != "snapshot"}))


def _events(store: Store, workflow: str) -> list[str]:
    """Events and messages in order, without refusals, which the injuries cause."""
    found = []
    for entry in store.history(workflow):
        event = entry.body["event"]
        if event["kind"] != "event-refused":
            ids = [message.get("message_id", "") for message in entry.body.get("messages", ())]
            found.append(plain(f"{event['kind']} {event.get('sender', '')} {event.get('agent', '')} {ids}"))
    return found


def _files(store: Store, begun: Play[Path]) -> dict[str, list[str]]:
    """Contents by path, both without times and ids; several handoffs then share one name."""
    # If a process dies between its commit and the files, the next process renders them, here this one (K23).
    project(store, begun.workflow)
    root = begun.expected
    found: dict[str, list[str]] = {}
    for folder, folders, files in os.walk(root, followlinks=True):
        folders[:] = [name for name in folders if name not in _INTERNAL and not name.startswith(_GENERATION)]
        for path in (Path(folder, name) for name in files if name not in _INTERNAL):
            text = plain(path.read_text(encoding="utf-8"))
            found.setdefault(plain(str(path.relative_to(root))), []).append(text)
    return {name: sorted(contents) for name, contents in found.items()}


_RUNS: Final[Mapping[str, Callable[[Order, Path, Callable[[Progress], object]], Report]]] = {
    "validation": chaos_of_validation,
    **{name: chaos_of_agents for name in names() if registered(name).scripts},
    "chat": chaos_of_chats,
}
