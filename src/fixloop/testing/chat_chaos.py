"""A chaos run of chats: real runners and agents, injured by a plan, and every file compared with the undisturbed run's.

It needs no Redis, because a chat consists of files (S28). The same chats are played twice, once undisturbed; in the
end each must contain the same bytes, apart from times.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fixloop.chat.conversation import JOURNAL, digest
from fixloop.chat.directory import Plan as Opening, open_chat, read_chat
from fixloop.chat.rules import examine
from fixloop.chat.vocabulary import Role
from fixloop.testing.chat_agent import LAST
from fixloop.testing.chat_injurer import Chat, ChatInjurer, RunnerHost
from fixloop.testing.executions import executions_in
from fixloop.testing.injuries import record
from fixloop.testing.inotify import Watch
from fixloop.testing.plan import CHAT, Schedule, plan
from fixloop.testing.report import Report, Verdict, reported, unexplained
from fixloop.testing.site import EXECUTIONS, HOSTS, Order, Progress

POLL_SECONDS: Final = 0.02
PATIENCE_SECONDS: Final = 60.0
"""If no turn is taken for this long, open chats count as stuck."""
_TIME: Final = re.compile(rb"20\d\d-\d\d-\d\d(T[\d:.]+Z)?")


def chaos_of_chats(order: Order, folder: Path, tell: Callable[[Progress], object]) -> Report:
    """Run it; see `chaos`. Raises InfrastructureError if directories cannot be watched here."""
    turns = {"answer": (LAST - 1) * order.workflows, "close": order.workflows}
    planned = plan(order.seed, order.kills, turns, CHAT)
    site = _Site(folder, order.concurrency)
    with closing(site):
        seconds, injured_since = {}, 0.0
        for name in ("undisturbed", "injured"):
            chats = _open_chats(folder / name, order.workflows)
            if name == "injured":
                injured_since = time.monotonic()
                site.injurer.schedule = Schedule(planned, CHAT)
            seconds[name] = site.play(name, chats, tell)
        site.heal()
    executions, numbers = executions_in(folder / EXECUTIONS), range(1, order.workflows + 1)
    # Both runs use the same chat names.
    undisturbed = [one for one in executions if one.at < injured_since]
    report = reported(order, planned, site.injurer.injuries, executions[len(undisturbed) :])
    return report._replace(
        verdicts=tuple(_verdict(folder, number, "injured") for number in numbers),
        left_alone=tuple(_verdict(folder, number, "undisturbed") for number in numbers),
        unexplained=(*unexplained(undisturbed, (), (), {}), *report.unexplained),
        undisturbed_seconds=seconds["undisturbed"],
        injured_seconds=seconds["injured"],
    )


def _open_chats(folder: Path, count: int) -> list[Chat]:
    made = []
    for number in range(1, count + 1):
        opening = Opening(
            area="dx",
            slug="chaos",
            title="Ten messages, whatever happens",
            scope=("turns",),
            acceptance=("every turn leaves a file",),
            outputs=("ten files",),
            id=f"{number:04}",
        )
        directory = open_chat(folder / "chats", opening, Role.TWIN, datetime.now(UTC))
        work = folder / "work" / directory.name
        work.mkdir(parents=True)
        made.append(Chat(directory, work))
    return made


class _Site:
    def __init__(self, folder: Path, concurrency: int) -> None:
        self._folder = folder
        self._executions = folder / EXECUTIONS
        self._executions.touch()
        self._concurrency = concurrency
        self._watch = Watch()
        self._watch.add(folder)
        self._seen = 0
        self.hosts = {name: RunnerHost(name, folder, self._executions) for name in HOSTS}
        self.injurer = ChatInjurer(self.hosts)

    def play(self, what: str, chats: Sequence[Chat], tell: Callable[[Progress], object]) -> float:
        """Play all chats to their ends; returns the seconds until then, or until nothing happens for too long."""
        began = moved = time.monotonic()
        for chat in chats:
            self._watch.add(chat.directory)
        waiting = list(chats)
        while waiting and time.monotonic() - moved < PATIENCE_SECONDS:
            # Start a runner for each chat without one, if its host has room.
            running = [runner for host in self.hosts.values() for runner in host.running()]
            load, played = Counter(one.host for one in running), {one.chat for one in running}
            for chat in waiting:
                host = min(self.hosts, key=lambda name: load[name])
                if chat not in played and load[host] < self._concurrency:
                    self.hosts[host].start(chat)
                    load[host] += 1
            if self._watch_changes():
                moved = time.monotonic()
            played = {runner.chat for each in self.hosts.values() for runner in each.running()}
            left = (chat.directory for chat in waiting if chat not in played)
            decided = (each for each in left if (each / "DECISION.md").exists())
            closed = [each for each in decided if read_chat(each).is_closed]
            waiting = [chat for chat in waiting if chat.directory not in closed]
            ended, seconds = len(chats) - len(waiting), time.monotonic() - began
            tell(Progress(what, ended, len(chats), len(self.injurer.injuries), seconds))
        return time.monotonic() - began

    def _watch_changes(self) -> bool:
        """Watch for changes, and inflict the injuries that are due; returns whether a turn was taken."""
        taken = False
        for change in self._watch.changes(POLL_SECONDS):
            if change.directory == self._folder:
                found = executions_in(self._executions)
                for execution in found[self._seen :]:
                    self.injurer.began(execution)
                self._seen = len(found)
            else:
                taken = self.injurer.changed(change) or taken
        self.injurer.tend()
        return taken

    def heal(self) -> None:
        while self.injurer.under_way:
            self._watch_changes()
        record(self.injurer.injuries, self._folder, executions_in(self._executions))

    def close(self) -> None:
        for host in self.hosts.values():
            host.stop()
        self._watch.close()


def _verdict(folder: Path, number: int, which: str) -> Verdict:
    name = f"{number:04}-dx-chaos"
    chat = folder / which / "chats" / name
    found, expected = _files(folder / which, name), _files(folder / "undisturbed", name)
    differing = sorted(file for file in {*found, *expected} if found.get(file) != expected.get(file))
    entries: list[dict[str, str]] = []
    for line in (chat / JOURNAL).read_text(encoding="utf-8").splitlines():
        # A line cut short by a crash does not count.
        with suppress(ValueError):
            entries.append(json.loads(line))
    did = Counter((entry["did"], entry.get("file", "")) for entry in entries if entry["did"] != "read")
    posted = {entry["file"]: entry["sha256"] for entry in entries if entry["did"] == "posted"}
    changed = [file for file, sha256 in posted.items() if digest((chat / file).read_bytes()) != sha256]
    problems = [*map(str, examine(read_chat(chat)))]
    problems += [f"{file} was changed after it was posted" for file in changed]
    if len(posted) != LAST - 1:
        problems.append(f"the journal has {len(posted)} messages, not {LAST - 1}")
    return Verdict(
        name,
        stuck=not read_chat(chat).is_closed,
        lost=f"other {', '.join(differing)} than undisturbed" if differing else "",
        doubled=tuple(
            f"{what} {file}".strip() + f" {count} times" for (what, file), count in did.items() if count > 1
        ),
        problems=tuple(problems),
        steps=sum(entry["did"] in ("posted", "closed") for entry in entries),
        fixes=sum(entry["did"] == "posted" for entry in entries),
    )


def _files(folder: Path, name: str) -> dict[str, bytes]:
    """The files of a chat and of its agents' work, without times; the journal is checked separately."""
    roots = (folder / "chats" / name, folder / "work" / name)
    paths = [path for root in roots for path in root.rglob("*") if path.is_file() and path.name != JOURNAL]
    return {str(path.relative_to(folder)): _TIME.sub(b"TIME", path.read_bytes()) for path in paths}
