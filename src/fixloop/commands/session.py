"""What every command needs: settings, Redis, store, engine and the project of the current directory.

Does not create a project's `.fixloop` for a command that only reads.
"""

import getpass
import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Option

from fixloop.commands.lookup import Lookup, NothingYet, lost_by
from fixloop.commands.presenter import Presenter, Standing
from fixloop.commands.screen import note, say
from fixloop.errors import Damaged, FixloopError, InfrastructureError, RefusedError, UsageError
from fixloop.intake.project import project_at
from fixloop.machine.disk import READ_ONLY, obstacle
from fixloop.profile_table import loaded, profile_of, registered_in
from fixloop.protocol.ids import called
from fixloop.repository.identity import Project, top_of
from fixloop.repository.snapshot import issues_handed_in
from fixloop.servers.redis_place import Place
from fixloop.servers.settings import RedisUrls, Settings, load_settings, redis_urls
from fixloop.store.connection import Connection
from fixloop.store.contract import Store, snapshot_of
from fixloop.store.damage import BROKEN, reading
from fixloop.store.records import Snapshot
from fixloop.store.redis_store import RedisStore
from fixloop.store.seal import sealing_in

if TYPE_CHECKING:
    from fixloop.engine.engine import Engine, ProfileEngine
    from fixloop.engine.profile import AnyOutcome, Profile
    from fixloop.protocol.event import Event
    from fixloop.protocol.ticket import Ticket

_MEANT = "An issue number, for its latest workflow in this directory's project, or a workflow id."
Issue = Annotated[str, Argument(metavar="ISSUE", help=_MEANT)]
OptionalIssue = Annotated[str | None, Argument(metavar="ISSUE", help=_MEANT, show_default=False)]
ProjectOption = Annotated[
    str | None,
    Option(
        "--project",
        metavar="NAME",
        help="The project, if the number is ambiguous: its name or eight hex digits.",
    ),
]
OnlyProject = Annotated[
    str | None, Option("--project", metavar="NAME", help="Only this project: its name or eight hex digits.")
]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead of text.")]


@dataclass(frozen=True)
class Session:
    """One command's connections, closed by `open_session`."""

    settings: Settings
    urls: RedisUrls
    store: Store
    """Including the archive, if there is one."""
    connection: Connection
    """To the same Redis, for what belongs to no workflow."""
    directory: Path
    meant: list[str] = field(default_factory=list)
    """The workflows that were asked for, in order."""
    person: str = ""
    """Who asks remotely, and how they were identified; empty: the user of this process."""
    operation: str = ""
    """Each operation is applied once; empty: every call is."""

    @cached_property
    def project(self) -> Project:
        """Of the directory."""
        return project_at(self.directory)

    @cached_property
    def engine(self) -> "Engine":
        """Sends a hint for each new ticket; an unreachable broker costs only time."""
        # It loads every decision; a command that only reads needs none of them.
        from fixloop.engine.engine import Engine

        return Engine(self.store, self.hints, self._announce)

    def engine_of(self, workflow: str) -> "ProfileEngine[Any]":
        from fixloop.engine.profile import profile_in

        return self._engine(profile_in(self.stored(workflow).snapshot))

    def stored(self, workflow: str) -> Snapshot:
        """A workflow as stored. Raises UsageError if there is none with that id."""
        return snapshot_of(self.store, workflow)

    def _engine(self, profile: "Profile[Any]") -> "ProfileEngine[Any]":
        from fixloop.engine.engine import ProfileEngine

        return ProfileEngine(self.store, profile, self.hints, self._announce)

    @cached_property
    def hints(self) -> "Hints":
        return Hints(self.urls.broker)

    def _announce(self, outcome: "AnyOutcome[Any]") -> None:
        """Notify outside agents and other workflows; whoever misses it finds it in the state."""
        from fixloop.engine.bridging import bridge
        from fixloop.engine.profile import profile_named

        told = profile_named(outcome.state.profile).letters(outcome)
        if told:
            from fixloop.outside.mailbox import Mailboxes, announce

            mailboxes = Mailboxes(self.urls.broker)
            with suppress(InfrastructureError):
                announce(mailboxes, told, outcome.state.workflow, outcome.state.issue)
                mailboxes.close()

        def hint_again(ticket: "Ticket") -> None:
            found = self.store.read(ticket.workflow)
            if found is not None:
                self.hints.send(ticket, profile_of(found.snapshot))

        bridge(self.store, self._engine, outcome, hint_again)

    @property
    def lookup(self) -> Lookup:
        return Lookup(
            self.store, self.project.hash8, self.directory, self.urls.state, self.settings.archive_dir
        )

    def workflow_of(self, issue: int | str | None, project: str | None = None) -> str:
        """The workflow a person means by a number, `#47` or an id; by None, the only live one, else the latest.
        Searches `project`, given by name or hash; by default this directory's project, then all others."""
        self.meant.append(self.lookup.meant(issue, project))
        return self.meant[-1]

    @property
    def who(self) -> str:
        """The caller, for the history."""
        return self.person or getpass.getuser()

    def acting_for(self, person: str, operation: str) -> "Session":
        """The same connections, for one remote request."""
        acting = replace(self, meant=[], person=person, operation=operation)
        vars(acting).update(hints=self.hints, project=self.project)
        return acting

    def bring(self, workflow: str, event: "Event") -> None:
        """Apply an event from outside, without secrets, and rewrite named files; refusals go into the history."""
        from fixloop.intake.redaction_scope import redaction_for, without_secrets

        engine = self.engine_of(workflow)
        state = engine.state(workflow)
        if state.ended and event.kind != "result-noted":
            said = f"issue {state.issue} ended already ({state.outcome}); `fixloop log {called(state)}` shows how"
            kept = getattr(event, "artifacts", ())
            engine.refuse(workflow, event.kind, said, sender=event.sender, artifacts=kept)
            raise RefusedError(said)
        told = without_secrets(event, redaction_for(self.store, state).text)
        if self.person and "by" in type(told).model_fields:
            told = told.with_(by=self.person)
        engine.apply(workflow, told, operation=self.operation or uuid.uuid4().hex)
        self.draw(workflow)

    def write_branch(self, state: Any) -> None:
        """Update the repository's refs to the work so far."""
        from fixloop.outside.transfer import bring_work, snapshot_in
        from fixloop.repository.publication import publish

        mirror = bring_work(self.store, state, self.settings.cache_dir)
        published = publish(snapshot_in(state), issue=state.issue, tip=state.tip, mirror=mirror)
        if published.note:
            note(published.note)

    def obstacle(self) -> str:
        """What keeps an embedded Redis from writing, in one sentence; raised if its disk is read-only."""
        home = self.settings.embedded or top_of(self.directory)[0]
        return _obstacle(home) if self.settings.is_embedded else ""

    def draw(self, workflow: str) -> None:
        """Update a workflow's named files to its current version, and say what prevents it."""
        from fixloop.statefiles.sync import project

        told = project(self.store, workflow)
        for sentence in (told.problem, *told.edits):
            if sentence:
                say(sentence)


class Hints:
    """Sends hints over one connection; losing one does no harm, because the state says what is open."""

    def __init__(self, broker_url: str) -> None:
        self._broker_url = broker_url
        self._app: Any = None
        self._producer: Any = None

    def __call__(self, ticket: "Ticket", state: Any) -> None:
        self.send(ticket, state.profile)

    def send(self, ticket: "Ticket", profile: str) -> None:
        # Loads Celery with the first hint: most commands send none.
        from fixloop.engine.hints import send_hint

        send_hint(self._loaded(), ticket, profile, self._producer)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Send what the block sends in few round trips, at its end at the latest."""
        from kombu.exceptions import BatchPublishError, OperationalError

        with ExitStack() as batch:
            with suppress(OperationalError):
                found = batch.enter_context(self._loaded().producer_or_acquire())
                batch.enter_context(found.batch())
                self._producer = found
            try:
                yield
            finally:
                self._producer = None
                with suppress(OperationalError, BatchPublishError):
                    batch.close()

    def _loaded(self) -> Any:
        from fixloop.engine.hints import producer

        self._app = self._app or producer(self._broker_url)
        return self._app


class Seen(NamedTuple):
    """One workflow as a command sees it."""

    found: Snapshot
    presenter: Presenter[Any]
    state: Any
    """As the presenter's profile defines it."""

    @classmethod
    def of(cls, found: Snapshot) -> "Seen":
        """Read what the store has. Raises NewerVersion for what this version cannot read."""
        with reading(found.workflow):
            presenter: Presenter[Any] = loaded(registered_in(found.snapshot).presenter)
            return cls(found, presenter, presenter.load(found.snapshot))

    @property
    def standing(self) -> Standing:
        """Where the workflow stands, for those who follow it."""
        return self.presenter.standing(self.state)


@contextmanager
def open_session(directory: Path | None = None, *, create: bool = False) -> Iterator[Session]:
    """Everything a command needs, for the current directory's project if none is given. If there never was an embedded
    Redis, `create` starts one; without it, NothingYet is raised. If a command fails and its workflow does not verify,
    Damaged is raised."""
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
        with (
            redis_urls(settings, top) as urls,
            closing(
                RedisStore(urls.state, sealing=sealing_in(urls.seal_key_file, create=settings.is_embedded))
            ) as redis,
        ):
            redis.ping()
            with _keeping_time(settings, home):
                store: Store = redis
                if settings.archive_dir is not None:
                    from fixloop.store.archive.files import Archive
                    from fixloop.store.archive.read_through import with_archive

                    store = with_archive(redis, Archive(settings.archive_dir))
                session = Session(settings, urls, store, redis.connection, place)
                try:
                    yield session
                except BROKEN:
                    from fixloop.engine.replay import audit

                    # Report what failed: the workflow it was about, or the command itself.
                    found = audit(session.store, session.meant[-1]) if session.meant else None
                    if found is not None and found.problems:
                        raise Damaged(found.workflow, found.problems[0]) from None
                    raise
    except (InfrastructureError, OSError):
        problem = _obstacle(home) if settings.is_embedded else ""
        if not problem:
            raise
        raise InfrastructureError(f"{problem}; free some space, then try again") from None


@contextmanager
def open_workflow(issue: str | None, project: str | None) -> Iterator[tuple[Session, str]]:
    """`open_session` for the current directory, and the workflow a person means."""
    with open_session() as session:
        yield session, session.workflow_of(issue, project)


def _obstacle(home: Path) -> str:
    data = Place(home).data
    found = obstacle(data) if data.is_dir() else ""
    said = f"the embedded Redis cannot write to {data}: {found}"
    if found == READ_ONLY:
        raise InfrastructureError(f"{said}; mount it writable, then run `fixloop resume`")
    return said if found else ""


@contextmanager
def _keeping_time(settings: Settings, home: Path) -> Iterator[None]:
    """Keep an embedded Redis's clocks running while something waits: now, and after the command has ended."""
    # What a worker runs need not do it: the command that started the worker does.
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
        if started := keep_time(Place(home.resolve())):
            say(
                f"process {started} keeps the clocks running until nothing waits, for reminders and escalations "
                "(FIXLOOP_KEEP=0 turns it off)"
            )
    except (FixloopError, OSError) as error:
        say(f"clocks are stopped until a worker runs: {error}")


def caller(otherwise: str) -> str:
    """The caller: the role fixloop set for what it runs (`FIXLOOP_ROLE`), else `otherwise`. It proves nothing, but
    keeps a check from answering for the main agent and a fixer from deciding."""
    from fixloop.protocol.roles import handle_of

    named = os.environ.get("FIXLOOP_ROLE", "").strip()
    return handle_of(named) if named else otherwise


def here() -> Path:
    """The current directory, or one sentence if it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the current directory no longer exists; change to another one") from None


def project_folder(directory: Path, name: str, otherwise: str) -> Path:
    """A folder of this name in `.fixloop` at the project's top; `otherwise` says what to do if it cannot be made."""
    top, _ = top_of(directory)
    try:
        folder = Place(top).made() / name
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {top}: {error.strerror}; {otherwise}") from None
    return folder


def look(session: Session, workflow: str) -> Seen:
    """A workflow as stored, and how its profile shows it."""
    return Seen.of(session.stored(workflow))
