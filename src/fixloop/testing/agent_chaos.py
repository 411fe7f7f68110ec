"""A chaos run of cycles and of handoffs: scripted agents, real workers, and every file compared (S17, S23, S30).

The same workflows run twice. What the undisturbed ones came to is what the injured ones have to come to: the same
events and state, and the same bytes in every named file, but for times and ids.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.engine.profile import profile_named
from fixloop.protocol.event import Start
from fixloop.repository.snapshot import Snapshot
from fixloop.statefiles.sync import project
from fixloop.store.contract import Store
from fixloop.store.keys import workflow_id
from fixloop.testing.parts import Scripts, part_of, scripts_of
from fixloop.testing.plan import COMMAND, Schedule, plan
from fixloop.testing.report import Order, Report, Verdict, ended, reported_by
from fixloop.testing.site import INJURED, LEFT_ALONE, Progress, calling, host_kind, site

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
    """Run it; see `chaos`."""
    scripts, profile = scripts_of(order.profile), profile_named(order.profile)
    left_alone, injured = (_begun(scripts, order, hash8, folder) for hash8 in (LEFT_ALONE, INJURED))
    with (
        site(folder, host_kind(order.concurrency, folder), order.network) as place,
        calling(place.server.url) as caller,
    ):
        works = [
            caller.workflows(
                [one.event for one in begun],
                {
                    one.workflow: [answer for word, answer in scripts.answers.items() if word in one.script]
                    for one in begun
                },
                scripts.given_up,
                profile,
            )
            for begun in (left_alone, injured)
        ]
        undisturbed_seconds = place.run("undisturbed", works[0], tell)
        steps, commands = _steps(caller.store, left_alone, order)
        planned = plan(order.seed, order.kills, steps, scripts.places)
        place.arm(Schedule(planned, scripts.places), commands, twice_over=order.twice)
        injured_seconds = place.run("injured", works[1], tell)
        place.heal()
        pairs = list(zip(left_alone, injured, strict=True))
        return reported_by(place, order, planned)._replace(
            verdicts=tuple(_judged(caller.store, scripts.results, one, other) for one, other in pairs),
            left_alone=tuple(_judged(caller.store, scripts.results, one, one) for one in left_alone),
            undisturbed_seconds=undisturbed_seconds,
            injured_seconds=injured_seconds,
        )


def plain(text: str) -> str:
    """A text without times, and without what is particular to one workflow."""
    return _WORKFLOWS.sub("PROJECT-", _IDS.sub("ID", _TIMES.sub("TIME", text)))


class _Begun(NamedTuple):
    event: Start
    script: str
    root: Path
    """Where its named files are."""

    @property
    def workflow(self) -> str:
        return self.event.workflow


def _begun(scripts: Scripts, order: Order, hash8: str, folder: Path) -> list[_Begun]:
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
        made.append(_Begun(scripts.begun(facts), script, root))
    return made


def _steps(store: Store, left_alone: Sequence[_Begun], order: Order) -> tuple[dict[str, int], set[str]]:
    """The number of tickets of each step, and the injured tickets whose work is done by a separate command."""
    # The first of each workflow is hinted by its caller, where nobody looks.
    runs, finish, commands = -order.workflows, 0, set()
    for one in left_alone:
        for ticket in _tickets(store, one.workflow):
            finish += ".finish." in ticket
            # Workflow, agent, run and attempt; notices and letters are delivered outside the runs.
            if ticket.count(".") == 3:
                runs += 1
                _, agent, run, _ = ticket.split(".")
                if part_of(one.script, order.profile, agent, int(run)).is_command:
                    commands.add(ticket.replace(LEFT_ALONE, INJURED, 1))
    return {"work": runs, "finish": finish, COMMAND: len(commands)}, commands


def _tickets(store: Store, workflow: str) -> list[str]:
    by = [entry.body.get("by", {}).get("ticket", "") for entry in store.history(workflow)]
    return list(filter(None, by))


def _judged(store: Store, results: str, calm: _Begun, begun: _Begun) -> Verdict:
    found, expected = ended(store, begun.workflow), store.read(calm.workflow)
    if isinstance(found, Verdict):
        return found
    if expected is None:
        return Verdict(begun.workflow, lost="it is not there")
    history, tickets = store.history(begun.workflow), Counter(_tickets(store, begun.workflow))
    differing = [
        *["events"][: _events(store, begun.workflow) != _events(store, calm.workflow)],
        *["state"][: _state(found.snapshot) != _state(expected.snapshot)],
    ]
    one, two = _files(store, calm), _files(store, begun)
    differing += sorted(name for name in {*one, *two} if one.get(name) != two.get(name))
    return Verdict(
        begun.workflow,
        lost=f"other {', '.join(differing)} than undisturbed" if differing else "",
        doubled=tuple(f"{ticket} committed {count} times" for ticket, count in tickets.items() if count > 1),
        steps=len(history) - 1,
        fixes=sum(entry.body["event"]["kind"] == results for entry in history),
    )


def _state(snapshot: bytes) -> str:
    told = json.loads(snapshot)
    # Where its files are is its own.
    return plain(json.dumps({key: value for key, value in told.items() if key != "snapshot"}))


def _events(store: Store, workflow: str) -> list[str]:
    """What happened and what was said, in order; what was refused is an effect of the injuries."""
    found = []
    for entry in store.history(workflow):
        event = entry.body["event"]
        if event["kind"] != "event-refused":
            said = [message.get("message_id", "") for message in entry.body.get("messages", ())]
            found.append(plain(f"{event['kind']} {event.get('sender', '')} {event.get('agent', '')} {said}"))
    return found


def _files(store: Store, begun: _Begun) -> dict[str, list[str]]:
    """Contents by path, both without times and ids; several handoffs then have one name."""
    # A process that dies between its commit and the files leaves those to the next who draws them, here to us (K23).
    project(store, begun.workflow)
    root = begun.root
    found: dict[str, list[str]] = {}
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = [name for name in folders if name not in _OWN and not name.startswith(_GENERATION)]
        for path in (Path(folder, name) for name in names if name not in _OWN):
            text = plain(path.read_text(encoding="utf-8"))
            found.setdefault(plain(str(path.relative_to(root))), []).append(text)
    return {name: sorted(contents) for name, contents in found.items()}
