"""What a command stands on: settings, Redis, store, engine and the project of the current directory.

Owns the way from what a person wrote to a workflow. Refuses to guess between projects, and to create a
project's `.fixloop` for a command that only looks.
"""

import os
import re
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from fixloop.commands.lost_data import SHOWN_ISSUES, listed, lost_by
from fixloop.commands.screen import say
from fixloop.commands.telling import Hints, announce
from fixloop.commands.views.table import view_in
from fixloop.commands.views.view import Standing, View
from fixloop.configuration.project import project_at
from fixloop.errors import (
    Damaged,
    FixloopError,
    InfrastructureError,
    ProtocolError,
    RefusedError,
    UsageError,
)
from fixloop.machine.disk import READ_ONLY, obstacle
from fixloop.profiles.reading import profile_of
from fixloop.protocol.durations import stamp
from fixloop.protocol.ids import called
from fixloop.repository.identity import Project, top_of
from fixloop.repository.traces import issues_handed_in
from fixloop.servers.redis_place import Place
from fixloop.servers.redis_url import shown_url
from fixloop.servers.settings import RedisUrls, Settings, load_settings, redis_urls
from fixloop.store.contract import Store
from fixloop.store.damage import BROKEN, reading
from fixloop.store.keys import project_hash
from fixloop.store.records import Snapshot
from fixloop.store.redis_store import RedisStore

if TYPE_CHECKING:
    from fixloop.engine.engine import Engine, ProfileEngine
    from fixloop.profiles.profile import AnyEvent, AnyOutcome, Profile
    from fixloop.protocol.ticket import Ticket

_WORKFLOW: Final = re.compile(r"[0-9a-f]{8}-\d{1,15}-\d{1,9}")
_HASH: Final = re.compile(r"[0-9a-f]{8}")

_MEANT: Final = (
    "The issue's number: its latest workflow in this directory's project. A workflow's id is taken too."
)
Issue = Annotated[str, typer.Argument(metavar="ISSUE", help=_MEANT)]
OptionalIssue = Annotated[str | None, typer.Argument(metavar="ISSUE", help=_MEANT, show_default=False)]
ProjectOption = Annotated[
    str | None,
    typer.Option(
        "--project",
        metavar="NAME",
        help="The project, where the number alone is not enough: its name or its eight hex digits.",
    ),
]
OnlyProject = Annotated[
    str | None,
    typer.Option("--project", metavar="NAME", help="Only this project: its name or its eight hex digits."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


class NothingYet(UsageError):
    """No workflow here yet: this project has no `.fixloop`, and no Redis is named."""


@dataclass(frozen=True)
class Session:
    """One command's connections; closed with `open_session`."""

    settings: Settings
    urls: RedisUrls
    store: Store
    """With what the archive has, where there is one."""
    directory: Path
    project: Project

    meant: list[str] = field(default_factory=list)
    """The workflows that were asked for, the last one last."""

    def name_damage(self) -> None:
        """
        Tell what a command broke over: the workflow it was about, or itself.

        Raises:
            Damaged: the workflow does not verify.
        """
        from fixloop.engine.replay import audit

        found = audit(self.store, self.meant[-1]) if self.meant else None
        if found is not None and found.problems:
            raise Damaged(found.workflow, found.problems[0]) from None

    @cached_property
    def engine(self) -> "Engine":
        """Sends a hint for each new ticket; a broker that is away loses nothing but time."""
        # It knows every decision there is; a command that only looks needs none of them.
        from fixloop.engine.engine import Engine

        return Engine(self.store, self._hints, self._announce)

    def engine_of(self, workflow: str) -> "ProfileEngine[Any]":
        """
        The engine of a workflow's profile.

        Raises:
            UsageError: there is no such workflow.
            NewerVersion: this version has no such profile.
        """
        from fixloop.profiles.table import profile_in

        found = self.store.read(workflow)
        if found is None:
            raise UsageError(f"no workflow {workflow}; `fixloop status` lists what there is")
        return self._engine(profile_in(found.snapshot))

    def _engine(self, profile: "Profile[Any]") -> "ProfileEngine[Any]":
        from fixloop.engine.engine import ProfileEngine

        return ProfileEngine(self.store, profile, self._hints, self._announce)

    @cached_property
    def _hints(self) -> Hints:
        return Hints(self.urls.broker)

    def _announce(self, outcome: "AnyOutcome[Any]") -> None:
        """Tell outside agents and other workflows what follows for them; whoever misses it finds it in the state."""
        from fixloop.engine.bridging import bridge

        announce(self.urls.broker, outcome)
        bridge(self.store, self._engine, outcome, self._hint_again)

    def _hint_again(self, ticket: "Ticket") -> None:
        found = self.store.read(ticket.workflow)
        if found is not None:
            self._hints.send(ticket, profile_of(found.snapshot))

    def workflow_of(self, issue: int | str | None, project: str | None = None) -> str:
        """
        The workflow a person means.

        Args:
            issue: A number, `#47` or a workflow's id; None for the only live one, else the latest.
            project: A project's name or hash; the current directory's if not given, then all others.

        Raises:
            UsageError: there is none, or there are several and `project` does not decide.
        """
        self.meant.append(self._meant(issue, project))
        return self.meant[-1]

    def _meant(self, issue: int | str | None, project: str | None) -> str:
        if isinstance(issue, str) and _WORKFLOW.fullmatch(issue):
            return self._existing(issue)
        number, hash8 = _number(issue), self.project.hash8 if project is None else _hash_of(project)
        if number is None:
            return self._only_one(hash8)
        found = self.store.latest(hash8, number)
        if found is not None:
            return found
        self._refuse_retired(hash8, number)
        if project is not None:
            raise UsageError(f"project {project} has no issue {number}; `fixloop status` lists what there is")
        return self._elsewhere(number)

    def bring(self, workflow: str, event: "AnyEvent") -> None:
        """
        Apply what somebody outside says, without secrets; a refusal is in the history, too. Named files are drawn anew.

        Raises:
            RefusedError: the workflow does not allow it, or ended.
        """
        from fixloop.intake.redaction_scope import redaction_for, without_secrets

        engine = self.engine_of(workflow)
        state = engine.state(workflow)
        if state.ended:
            said = f"issue {state.issue} ended already ({state.outcome}); `fixloop log {called(state)}` shows how"
            kept = getattr(event, "artifacts", ())
            engine.refuse(workflow, event.kind, said, sender=event.sender, artifacts=kept)
            raise RefusedError(said)
        told = without_secrets(event, redaction_for(self.store, state).text)
        engine.apply(workflow, told, operation=uuid.uuid4().hex)
        self.draw(workflow)

    def obstacle(self) -> str:
        """
        What keeps an embedded Redis from writing, in one sentence; empty where nothing is known to.

        Raises:
            InfrastructureError: its disk can only be read.
        """
        home = self.settings.embedded or top_of(self.directory)[0]
        return _obstacle(home) if self.settings.is_embedded else ""

    def draw(self, workflow: str) -> None:
        """Bring a workflow's named files to its present version; what stands in the way is told."""
        from fixloop.statefiles.sync import project

        told = project(self.store, workflow)
        for sentence in (told.problem, *told.edits):
            if sentence:
                say(sentence)

    def stored_of(self, project: str | None = None) -> list[str]:
        """
        All workflows of a project, this one if not given, in the order of their issues.

        Those of which only parts are left, too.
        """
        prefix = f"{self.project.hash8 if project is None else _hash_of(project)}-"
        names = {name for name, _ in self.store.workflows()}.union(self.store.unlisted())
        return sorted((name for name in names if name.startswith(prefix)), key=_order)

    def _refuse_retired(self, hash8: str, issue: int) -> None:
        """Of a workflow that was there once, say where it is."""
        retired = self.store.retired(hash8, issue)
        if retired is None:
            return
        said = f"workflow {retired.workflow} was {retired.how.replace('-', ' ')} on {stamp(retired.at)} UTC"
        if retired.how == "set-aside":
            raise UsageError(
                f"{said}, because it was damaged; the file that `fixloop repair` named has all of it"
            )
        if retired.how == "purged":
            raise UsageError(f"{said}; nothing of it is left")
        raise UsageError(
            f"{said}, and is not in {self.settings.archive_dir or 'an archive that this call knows'}; "
            "set FIXLOOP_ARCHIVE_DIR to where the workers keep it"
        )

    def nothing_here(self) -> str:
        """The sentence for a Redis that knows no workflow: there was none yet, or it lost them."""
        return self._lost(None) or "no workflow here yet; `fixloop run` starts one"

    def _lost(self, issue: int | None) -> str:
        handed_in = [
            number for number in issues_handed_in(top_of(self.directory)[0]) if issue in (None, number)
        ]
        unknown = [number for number in handed_in if self.store.retired(self.project.hash8, number) is None]
        return lost_by(f"Redis at {shown_url(self.urls.state)}", unknown, self.directory)

    def _existing(self, workflow: str) -> str:
        try:
            is_there = self.store.read(workflow) is not None
        except ProtocolError:
            # Whatever is asked of it says so itself; `repair` does not ask.
            is_there = True
        if not is_there:
            hash8, issue, _ = workflow.split("-")
            self._refuse_retired(hash8, int(issue))
            raise UsageError(f"no workflow {workflow}; `fixloop status` lists what there is")
        return workflow

    def _only_one(self, hash8: str) -> str:
        live = [name for name, _ in self.store.workflows(live_only=True) if name.startswith(f"{hash8}-")]
        if len(live) == 1:
            return live[0]
        if live:
            # The latest of several would be a guess, and `cancel` and `decide` act on it.
            issues = [name.split("-")[1] for name in sorted(live, key=_order)]
            more = ", …" if len(issues) > SHOWN_ISSUES else ""
            raise UsageError(f"{len(live)} workflows are live here (issues {listed(issues)}{more}); name one")
        ended = [
            (fields.get("updated_at", ""), name)
            for name, fields in self.store.workflows()
            if name.startswith(f"{hash8}-")
        ]
        if not ended:
            raise NothingYet(self.nothing_here())
        return max(ended)[1]

    def _elsewhere(self, number: int) -> str:
        # One that works for another has its issue, and is named by its id.
        found = [name for name in self.store.search(number) if not self._fields(name).get("parent")]
        if not found:
            lost = self._lost(number)
            raise UsageError(lost or f"no workflow of issue {number}; `fixloop status` lists what there is")
        if len(found) > 1:
            names = ", ".join(self._named(workflow) for workflow in found[:SHOWN_ISSUES])
            raise UsageError(f"issue {number} is in {len(found)} projects: {names}; name one with --project")
        return found[0]

    def _fields(self, workflow: str) -> Mapping[str, str]:
        try:
            known = self.store.read(workflow)
        except ProtocolError:
            # A damaged one is found all the same: `audit verify` says what is wrong with it.
            return {}
        return known.fields if known is not None else {}

    def _named(self, workflow: str) -> str:
        name = self._fields(workflow).get("project", "")
        return f"{name} ({workflow[:8]})" if name else workflow[:8]


class Seen(NamedTuple):
    """One workflow as a command looks at it."""

    found: Snapshot
    view: View[Any]
    state: Any
    """Of the view's profile."""

    @classmethod
    def of(cls, found: Snapshot) -> "Seen":
        """What a store has, read. Raises NewerVersion for what this version cannot read."""
        with reading(found.workflow):
            view = view_in(found.snapshot)
            return cls(found, view, view.load(found.snapshot))

    @property
    def standing(self) -> Standing:
        """Where it stands for whoever follows it."""
        standing: Standing = self.view.standing(self.state)
        return standing


@contextmanager
def open_session(directory: Path | None = None, *, create: bool = False) -> Iterator[Session]:
    """
    Everything a command needs, for as long as it is entered.

    Args:
        directory: The project's; the current one if not given.
        create: Start an embedded Redis where there never was one, instead of refusing.

    Raises:
        NothingYet: there is nothing, and nothing is to be made.
        UsageError, InfrastructureError: settings, the directory or Redis cannot be used.
    """
    place = (directory or here()).absolute()
    settings = load_settings()
    top, _ = top_of(place)
    home = settings.embedded or top
    if not create and settings.is_embedded and not Place(home).data.is_dir():
        lost = lost_by(f"the embedded Redis in {home}", issues_handed_in(top), place)
        raise NothingYet(
            lost or f"no workflow here yet: nothing was started in {home}; `fixloop run` starts one"
        )
    try:
        with redis_urls(settings, top) as urls, closing(RedisStore(urls.state)) as redis:
            redis.ping()
            with _keeping_time(settings, home):
                session = Session(settings, urls, _with_archive(redis, settings), place, project_at(place))
                try:
                    yield session
                except BROKEN:
                    session.name_damage()
                    raise
    except (InfrastructureError, OSError):
        problem = _obstacle(home) if settings.is_embedded else ""
        if not problem:
            raise
        raise InfrastructureError(f"{problem}; make room, then try again") from None


def _obstacle(home: Path) -> str:
    data = Place(home).data
    found = obstacle(data) if data.is_dir() else ""
    said = f"the embedded Redis cannot write to {data}: {found}"
    if found == READ_ONLY:
        raise InfrastructureError(f"{said}; mount it writable, then `fixloop resume` goes on")
    return said if found else ""


@contextmanager
def _keeping_time(settings: Settings, home: Path) -> Iterator[None]:
    """Have clocks run on beside an embedded Redis where something waits: now, and when the command has ended."""
    # What a worker runs need not: whoever started the worker does.
    if not settings.keeps_time or "FIXLOOP_ROLE" in os.environ:
        yield
        return
    _keep_time(home)
    try:
        yield
    finally:
        if not isinstance(sys.exception(), InfrastructureError):
            _keep_time(home)


def _keep_time(home: Path) -> None:
    from fixloop.machine.timekeeper import keep_time

    try:
        started = keep_time(Place(home.resolve()))
    except (FixloopError, OSError) as error:
        say(f"clocks stand still until a worker runs: {error}")
        return
    if started:
        say(
            f"process {started} keeps the clocks until nothing waits, so that reminders and escalations come "
            "(FIXLOOP_KEEP=0 turns it off)"
        )


def _with_archive(redis: RedisStore, settings: Settings) -> Store:
    if settings.archive_dir is None:
        return redis
    from fixloop.archive.files import Archive
    from fixloop.archive.reading import with_archive

    return with_archive(redis, Archive(settings.archive_dir))


def caller(otherwise: str) -> str:
    """
    Who calls: the role that fixloop gave what it runs (`FIXLOOP_ROLE`), else `otherwise`.

    Nothing is proven by it; it keeps a check from answering for the main agent, and a fixer from deciding.
    """
    from fixloop.protocol.roles import handle_of

    named = os.environ.get("FIXLOOP_ROLE", "").strip()
    return handle_of(named) if named else otherwise


def here() -> Path:
    """The current directory, or one sentence where it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the current directory no longer exists; change to another one") from None


def prefix_of(project: str | None) -> str:
    """What the ids of a project's workflows begin with; empty for all projects."""
    return f"{_hash_of(project)}-" if project is not None else ""


def project_of(workflow: str) -> str:
    """What the ids of all workflows of this one's project begin with."""
    return f"{workflow.partition('-')[0]}-"


def _number(issue: int | str | None) -> int | None:
    if issue is None:
        return None
    text = str(issue).removeprefix("#")
    if not (text.isascii() and text.isdigit() and 0 < int(text[:16]) < 10**15):
        raise UsageError(f"{str(issue)[:60]!r} is no issue; use a positive whole number such as 47")
    return int(text)


def _hash_of(project: str) -> str:
    return project if _HASH.fullmatch(project) else project_hash(project)


def _order(workflow: str) -> tuple[int, int]:
    _, issue, number = workflow.split("-")
    return int(issue), int(number)


def look(session: Session, workflow: str) -> Seen:
    """
    A workflow as the store has it, and how its profile is shown.

    Raises:
        UsageError: there is none of that id.
        NewerVersion: this version cannot read it.
    """
    found = session.store.read(workflow)
    if found is None:
        raise UsageError(f"no workflow {workflow}; `fixloop status` lists what there is")
    return Seen.of(found)
