"""Taking a feature through: `run`, `resume`, `enqueue`."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fixloop.commands import watch as watching
from fixloop.commands.doors.table import door_of
from fixloop.commands.exit_codes import ExitCode
from fixloop.commands.features import (
    Options,
    PlanFile,
    Profiled,
    ProfileName,
    Task,
    TaskFile,
    Type,
    Urgency,
    facts_of,
)
from fixloop.commands.files import restore_lost
from fixloop.commands.getting_out import apply_to, repair, way_out
from fixloop.commands.screen import note, print_lines, say
from fixloop.commands.session import OptionalIssue, ProjectOption, Session, look, open_session
from fixloop.commands.trying import preflight_lines, say_what_goes_along, try_feature
from fixloop.commands.views.view import PASSED, UNVERIFIED, Standing
from fixloop.commands.watch import print_result, waiting_child
from fixloop.errors import InfrastructureError, UsageError
from fixloop.intake.feature import Feature
from fixloop.intake.preparation import refuse_unusable
from fixloop.intake.submission import Enqueued, enqueue
from fixloop.machine.processes import supervisor
from fixloop.outside.transfer import snapshot_in
from fixloop.protocol.ids import called
from fixloop.protocol.letters import DELIVER
from fixloop.protocol.notifying import NOTIFY
from fixloop.repository.snapshot import is_url


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command()(run)
    app.command()(resume)
    app.command(name="enqueue")(enqueue_command)


Ref = Annotated[
    str | None,
    typer.Option(
        "--ref", help="A branch, tag or commit instead of the working tree (a URL: instead of its HEAD)."
    ),
]
BaseRevision = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="REV",
        help="Failures that are there too are not the feature's; none: all are.",
        show_default="the merge base with the default branch",
    ),
]
All = Annotated[bool, typer.Option("--all", help="Failures that are older than the feature count, too.")]
Push = Annotated[
    bool,
    typer.Option("--push", help="When everything has passed, push the branch fixloop/ISSUE to the git URL."),
]


def run(
    repo: Annotated[
        str, typer.Argument(metavar="PATH|URL", help="The project, a folder below its top, or a git URL.")
    ] = ".",
    issue: Annotated[
        int | None, typer.Option("--issue", min=1, help="Its issue number; else the lowest one never used.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The feature's name.")] = "",
    profile: Profiled = ProfileName.VALIDATION,
    task: Task = "",
    task_file: TaskFile = None,
    plan: PlanFile = None,
    type: Type = None,
    priority: Urgency = None,
    fixer: Annotated[
        str | None, typer.Option("--fixer", help="The main agent's command, instead of the file's.")
    ] = None,
    only: Annotated[str | None, typer.Option("--only", help="One specialist.")] = None,
    dry: Annotated[
        bool, typer.Option("--dry", help="Show what would run and why, run each check once, and no more.")
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Put the verified fixes into the checkout.")] = False,
    ref: Ref = None,
    base: BaseRevision = None,
    all: All = False,
    push: Push = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Cancel what is live of this issue first.")
    ] = False,
) -> None:
    """
    Validate a feature, have its failures fixed and checked again, until everything passes or a person decides.

    With --profile cycle or handoff: have it made by its agents, until it is complete or a person decides.
    """
    validating = {"--fixer": fixer, "--only": only, "--dry": dry, "--base": base, "--all": all}
    feature = Feature(
        **facts_of(Options(profile, task, task_file, plan, type, priority, validating)),
        issue=issue,
        repo=repo,
        ref=ref,
        base=base,
        gates_all=all,
        push=push,
        name=name,
        fixer=fixer,
        only=only,
        restart=restart,
        own_queue=True,
    )
    path = _directory(repo)
    if dry:
        _refuse_with_dry({"--apply": apply, "--push": push, "--restart": restart})
        raise typer.Exit(try_feature(feature))
    if apply and is_url(repo):
        raise UsageError(
            "--apply needs a checkout to change; with a URL use --push, or apply in a checkout of it"
        )
    with _handed_in(feature, path) as (session, handed_in):
        state = handed_in.state
        note(f"issue {state.issue}: {state.name}, workflow {handed_in.workflow}")
        if handed_in.created and profile is ProfileName.VALIDATION:
            note(*preflight_lines(handed_in.configuration, snapshot_in(state)))
        with _interruptible(state):
            _carry_on(session, handed_in.workflow, since=0)
        _close(session, handed_in.workflow, path, apply=apply)


def resume(
    issue: OptionalIssue = None,
    project: ProjectOption = None,
) -> None:
    """Go on where a killed `run` stopped; of a finished one, the result again."""
    restore_lost(issue)
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        seen = look(session, workflow)
        if seen.standing.held:
            again = f"`fixloop continue {seen.standing.called}`"
            say(f"issue {seen.standing.issue} is paused; {again} lets it go on")
        session.draw(workflow)
        with _interruptible(seen.state):
            _carry_on(session, workflow, since=None)
        _close(session, workflow, session.directory, apply=False)


def enqueue_command(
    issue: Annotated[int, typer.Option("--issue", min=1, help="Its issue number.")],
    repo: Annotated[str, typer.Option("--repo", help="A folder or a git URL.")] = ".",
    ref: Ref = None,
    base: BaseRevision = None,
    all: All = False,
    push: Push = False,
    name: Annotated[str, typer.Option("--name", help="The feature's name.")] = "",
    profile: Profiled = ProfileName.VALIDATION,
    task: Task = "",
    task_file: TaskFile = None,
    plan: PlanFile = None,
    type: Type = None,
    priority: Urgency = None,
    fixer: Annotated[str | None, typer.Option("--fixer", help="The main agent's command.")] = None,
    only: Annotated[str | None, typer.Option("--only", help="One specialist.")] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Cancel what is live of this issue first.")
    ] = False,
) -> None:
    """Hand a feature to the workers; the same call twice is one workflow."""
    validating = {"--fixer": fixer, "--only": only, "--base": base, "--all": all}
    feature = Feature(
        **facts_of(Options(profile, task, task_file, plan, type, priority, validating)),
        issue=issue,
        repo=repo,
        ref=ref,
        base=base,
        gates_all=all,
        push=push,
        name=name,
        fixer=fixer,
        only=only,
        restart=restart,
    )
    with _handed_in(feature, _directory(repo)) as (session, handed_in):
        print_lines(handed_in.workflow)
        what = "handed in" if handed_in.created else "was handed in before"
        note(f"issue {issue} {what}; `fixloop watch {issue}` follows it")
        now = look(session, handed_in.workflow).standing
        if now.waits_for == "decision":
            raise typer.Exit(now.exit_code)


def _refuse_with_dry(given: Mapping[str, bool]) -> None:
    for name, value in given.items():
        if value:
            raise UsageError(
                f"{name} has nothing to act on with --dry, which only looks; leave one of them out"
            )


def _directory(repo: str) -> Path:
    return Path.cwd() if is_url(repo) else Path(repo)


@contextmanager
def _handed_in(feature: Feature, directory: Path) -> Iterator[tuple[Session, Enqueued]]:
    """A session in which the feature has a workflow."""
    refuse_unusable(feature)
    with open_session(directory, create=True) as session:
        found = enqueue(session.engine, feature, cache=session.settings.cache_dir)
        session.draw(found.workflow)
        say_what_goes_along(snapshot_in(found.state))
        yield session, found


@contextmanager
def _interruptible(state: Any) -> Iterator[None]:
    """Ctrl-C ends the worker with all it runs, and one line tells how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"interrupted; go on with `fixloop resume {called(state)}`")
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _carry_on(session: Session, workflow: str, *, since: int | None) -> None:
    """Follow the workflow, with a worker of its own, until it ends or nobody here can go on."""
    seen = look(session, workflow)

    def until(now: Standing) -> bool:
        return _stops(now) or waiting_child(session, workflow) is not None

    with ExitStack() as running:
        tick = None
        if _brings_worker(session, seen.state) and (
            not seen.standing.is_settled or _is_telling(session, workflow)
        ):
            tick = _worker(session, workflow, seen.state.queue, running)
        while True:
            now = watching.follow(session, workflow, until=until, since=since, tick=tick).standing
            since = None
            if now.waits_for_agent and sys.stdout.isatty():
                door_of(session, workflow).show(session, workflow)
                watching.follow(session, workflow, until=_moved_on, tick=tick)
            else:
                break
        if tick is not None:
            _until_told(session, workflow, tick)


def _brings_worker(session: Session, state: Any) -> bool:
    """What was enqueued belongs to the shared workers; beside an embedded Redis there need be none."""
    return bool(state.queue) or session.settings.is_embedded


def _until_told(session: Session, workflow: str, tick: Callable[[], None]) -> None:
    while _is_telling(session, workflow):
        tick()
        time.sleep(watching.POLL_SECONDS)


def _is_telling(session: Session, workflow: str) -> bool:
    """True while somebody is still to be told: the notify command and each letter are a step of their own."""
    found = session.store.read(workflow)
    if found is None or found.fields.get("held"):
        return False
    return any(held.ticket.step in _TELLING for held in found.tickets)


_TELLING: Final = (NOTIFY, DELIVER)


def _stops(now: Standing) -> bool:
    return now.is_settled or now.waits_for_agent


def _moved_on(now: Standing) -> bool:
    return not now.waits_for_agent


def _worker(session: Session, workflow: str, queue: str, running: ExitStack) -> Callable[[], None]:
    """A worker for this workflow's queue; the returned check says when it has gone."""
    log = _log_file(session, workflow)
    options = {"concurrency": 1, "queue": queue}
    process = running.enter_context(supervisor(session.urls, options, log=log))

    def check() -> None:
        if process.poll() is not None:
            raise InfrastructureError(
                f"the worker ended with exit code {process.returncode}; see {log}, then `fixloop resume`"
            )

    return check


def _log_file(session: Session, workflow: str) -> Path:
    folder = session.settings.cache_dir / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{workflow}.log"


def _close(session: Session, workflow: str, path: Path, *, apply: bool) -> None:
    seen = look(session, workflow)
    state, now = seen.state, seen.standing
    if not _stops(now):
        child = waiting_child(session, workflow)
        raise typer.Exit(print_result(child) if child is not None else ExitCode.INTERRUPTED)
    # Its own worker goes with it, perhaps between the last commit and the files.
    session.draw(workflow)
    repair(session, state)
    code = print_result(seen)
    is_fixed = state.tip != snapshot_in(state).commit
    if now.outcome in PASSED and apply:
        apply_to(path, session, state)
    elif now.outcome in (*PASSED, UNVERIFIED) and is_fixed and not now.pushes:
        note(way_out(state))
    if now.is_settled:
        note(f"look at it: fixloop report {state.issue} --open")
    raise typer.Exit(code)
