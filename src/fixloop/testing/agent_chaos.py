"""A chaos run of cycles and of handoffs: scripted agents, real workers, and every file compared (S17, S23, S30).

The same workflows run twice. What the undisturbed ones came to is what the injured ones have to come to: the same
events and state, and the same bytes in every named file, but for times and ids.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.engine.profile import AnyStart, Profile
from fixloop.engine.registry import PROFILES
from fixloop.engine.replay import audit
from fixloop.repository.snapshot import Snapshot
from fixloop.statefiles.sync import project
from fixloop.store.contract import Store
from fixloop.store.keys import workflow_id
from fixloop.testing.caller import Caller, Workflows, calling
from fixloop.testing.parts import Scripts, part_of, scripts_of
from fixloop.testing.plan import COMMAND, Schedule, plan
from fixloop.testing.report import Order, Report, reported
from fixloop.testing.site import INJURED, LEFT_ALONE, Progress, host_kind, site
from fixloop.testing.verdict import Verdict

_TIMES: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?|\[\d\d:\d\d:\d\d\]|\d{8}T\d{6}Z?"
)
_IDS: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORKFLOWS: Final = re.compile(rf"(?:{LEFT_ALONE}|{INJURED})-")
_OWN: Final = (".fixloop", ".gitignore")
"""What the writer of the files keeps for itself."""
_GENERATION: Final = ".handoffs."
"""Of a directory whose files change places; the link `handoffs` leads to the present one."""


def chaos_of_agents(order: Order, folder: Path, tell: Callable[[Progress], object]) -> Report:
    """
    Run it, with everything it leaves in `folder`: named files, logs, data, executions and injuries.

    Raises:
        UsageError: there are too few workflows for so many injuries.
        InfrastructureError: there is no Redis server, or the workers do not start.
    """
    kind, profile = scripts_of(order.profile), PROFILES[order.profile]
    left_alone, injured = (_begun(kind, order, one, folder) for one in (LEFT_ALONE, INJURED))
    with (
        site(folder, host_kind(order.concurrency, folder), order.network) as place,
        calling(place.server.url) as caller,
    ):
        undisturbed_seconds = place.run("undisturbed", _work(caller, kind, profile, left_alone), tell)
        tickets = [ticket for one in left_alone for ticket in _tickets(caller.store, one.workflow)]
        commands = {
            ticket.replace(LEFT_ALONE, INJURED, 1)
            for ticket in tickets
            if _is_command(ticket, left_alone, order.profile)
        }
        planned = plan(order.seed, order.kills, _counts(tickets, commands, order), kind.places)
        place.arm(Schedule(planned, kind.places), commands, twice_over=order.twice)
        injured_seconds = place.run("injured", _work(caller, kind, profile, injured), tell)
        place.heal()
        pairs = list(zip(left_alone, injured, strict=True))
        return reported(order, planned, place)._replace(
            verdicts=tuple(_judged(caller.store, kind, one, other) for one, other in pairs),
            left_alone=tuple(_judged(caller.store, kind, one, one) for one, _ in pairs),
            undisturbed_seconds=undisturbed_seconds,
            injured_seconds=injured_seconds,
        )


def plain(text: str) -> str:
    """A text without times, and without what is particular to one workflow."""
    return _WORKFLOWS.sub("PROJECT-", _IDS.sub("ID", _TIMES.sub("TIME", text)))


class _Begun(NamedTuple):
    event: AnyStart
    script: str
    root: Path
    """Where its named files are."""

    @property
    def workflow(self) -> str:
        return self.event.workflow


def _begun(kind: Scripts, order: Order, hash8: str, folder: Path) -> list[_Begun]:
    scripts = islice(cycle(kind.scripts), order.workflows)
    return [
        _begin(kind, order.profile, hash8, issue, script, folder) for issue, script in enumerate(scripts, 1)
    ]


def _begin(kind: Scripts, profile: str, hash8: str, issue: int, script: str, folder: Path) -> _Begun:
    root = folder / "files" / hash8 / str(issue)
    root.mkdir(parents=True)
    snapshot = Snapshot(source=str(root), commit="commit-0", tree="tree-0", is_git=False)
    facts: dict[str, Any] = {
        "workflow": workflow_id(hash8, issue, 1),
        "issue": issue,
        "name": script,
        "commands": dict.fromkeys(kind.agents, "scripted"),
        "snapshot": snapshot.model_dump_json(exclude_defaults=True),
        "tip": "commit-0",
    }
    return _Begun(kind.begun(facts), script, root)


def _work(caller: Caller, kind: Scripts, profile: Profile[Any], begun: Sequence[_Begun]) -> Workflows:
    answers = {
        one.workflow: [answer for word, answer in kind.answers.items() if word in one.script] for one in begun
    }
    return caller.of(profile, [one.event for one in begun], answers, kind.given_up)


def _tickets(store: Store, workflow: str) -> list[str]:
    """Those whose results were committed, in order."""
    by = [entry.body.get("by", {}).get("ticket", "") for entry in store.history(workflow)]
    return list(filter(None, by))


def _is_command(ticket: str, begun: Sequence[_Begun], profile: str) -> bool:
    """Whether the script has a command of its own do the work of a ticket."""
    workflow, *run = ticket.split(".")
    if not _is_run(ticket):
        return False
    [script] = [one.script for one in begun if one.workflow == workflow]
    return part_of(script, profile, run[0], int(run[1])).is_command


def _counts(tickets: Sequence[str], commands: set[str], order: Order) -> dict[str, int]:
    """By step; the first of each workflow is hinted by its caller, where nobody looks."""
    finish = sum(".finish." in ticket for ticket in tickets)
    runs = sum(map(_is_run, tickets))
    return {"work": runs - order.workflows, "finish": finish, COMMAND: len(commands)}


def _is_run(ticket: str) -> bool:
    """Whether it is workflow, agent, run and attempt; notices and letters are brought beside the runs."""
    return ticket.count(".") == 3


def _judged(store: Store, kind: Scripts, calm: _Begun, begun: _Begun) -> Verdict:
    """One workflow compared with the same one undisturbed."""
    found, expected = store.read(begun.workflow), store.read(calm.workflow)
    if found is None or expected is None:
        return Verdict(begun.workflow, lost="it is not there")
    problems = audit(store, begun.workflow).problems
    stuck = not found.fields.get("outcome")
    if stuck or problems:
        return Verdict(begun.workflow, stuck=stuck, problems=problems)
    tickets = _tickets(store, begun.workflow)
    differing = [
        *["events"][: _events(store, begun.workflow) != _events(store, calm.workflow)],
        *["state"][: _state(found.snapshot) != _state(expected.snapshot)],
        *_differing_files(store, calm, begun),
    ]
    return Verdict(
        begun.workflow,
        lost=f"other {', '.join(differing)} than undisturbed" if differing else "",
        doubled=tuple(
            f"{ticket} committed {count} times" for ticket, count in Counter(tickets).items() if count > 1
        ),
        steps=len(store.history(begun.workflow)) - 1,
        fixes=sum(entry.body["event"]["kind"] == kind.results for entry in store.history(begun.workflow)),
    )


def _state(snapshot: bytes) -> str:
    told = json.loads(snapshot)
    # Where its files are is its own.
    return plain(json.dumps({key: value for key, value in told.items() if key != "snapshot"}))


def _events(store: Store, workflow: str) -> list[str]:
    """What happened and what was said, in order; what was refused is the injuries' own."""
    found = []
    for entry in store.history(workflow):
        event = entry.body["event"]
        if event["kind"] != "event-refused":
            said = [message.get("message_id", "") for message in entry.body.get("messages", ())]
            found.append(plain(f"{event['kind']} {event.get('sender', '')} {event.get('agent', '')} {said}"))
    return found


def _differing_files(store: Store, calm: _Begun, begun: _Begun) -> Iterator[str]:
    """
    Names of files that are not the same.

    A process that dies between its commit and the files leaves those to the next who draws them, here to us (K23).
    """
    project(store, calm.workflow)
    project(store, begun.workflow)
    one, two = _files(calm.root), _files(begun.root)
    for name in sorted({*one, *two}):
        if one.get(name) != two.get(name):
            yield name


def _files(root: Path) -> dict[str, list[str]]:
    """Contents by path, both without times and ids; several handoffs then have one name."""
    found: dict[str, list[str]] = {}
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = [name for name in folders if name not in _OWN and not name.startswith(_GENERATION)]
        for path in (Path(folder, name) for name in names if name not in _OWN):
            text = plain(path.read_text(encoding="utf-8"))
            found.setdefault(plain(str(path.relative_to(root))), []).append(text)
    return {name: sorted(contents) for name, contents in found.items()}
