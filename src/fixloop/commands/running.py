"""Taking a feature through: `run`, `resume`, `enqueue`, `apply`, `push`."""

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from fixloop.carrying import bring_work, snapshot_in
from fixloop.commands import outcome, progress
from fixloop.commands.exit_codes import ExitCode
from fixloop.commands.screen import say
from fixloop.commands.session import Issue, OptionalIssue, ProjectOption, Session, caller, open_session
from fixloop.configuration.project import project_at
from fixloop.enqueueing import Enqueued, Feature, enqueue, refuse_unusable
from fixloop.errors import FixloopError, InfrastructureError, RefusedError, UsageError
from fixloop.offering import offer
from fixloop.protocol.events import BranchPushed, DecisionMade
from fixloop.protocol.messages import USER, Decision
from fixloop.protocol.state import State, WorkflowOutcome
from fixloop.pushing import push_branch
from fixloop.repository.apply import apply_changes
from fixloop.repository.publish import publish
from fixloop.repository.snapshot import is_url
from fixloop.serving import supervisor

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command()(run)
    app.command()(resume)
    app.command(name="enqueue")(enqueue_command)
    app.command(name="apply")(apply_command)
    app.command(name="push")(push_command)


Ref = Annotated[
    str | None,
    typer.Option(
        "--ref", help="A branch, tag or commit instead of the working tree (a URL: instead of its HEAD)."
    ),
]
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
    fixer: Annotated[
        str | None, typer.Option("--fixer", help="The main agent's command, instead of the file's.")
    ] = None,
    only: Annotated[str | None, typer.Option("--only", help="One specialist.")] = None,
    dry: Annotated[
        bool, typer.Option("--dry", help="The first validation only: nobody is asked to fix.")
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Put the verified fixes into the checkout.")] = False,
    ref: Ref = None,
    push: Push = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Cancel what is live of this issue first.")
    ] = False,
) -> None:
    """Validate a feature, have its failures fixed and checked again, until everything passes or a person decides."""
    feature = Feature(
        issue=issue,
        repo=repo,
        ref=ref,
        push=push,
        name=name,
        fixer=fixer,
        only=only,
        max_iterations=1 if dry else None,
        restart=restart,
        may_join=not dry,
        own_queue=True,
    )
    path = Path.cwd() if is_url(repo) else Path(repo)
    if apply and is_url(repo):
        raise UsageError(
            "--apply needs a checkout to change; with a URL use --push, or apply in a checkout of it"
        )
    refuse_unusable(feature)
    with open_session(path, create=True) as session:
        handed_in = enqueue(session.engine, feature, cache=session.settings.cache_dir)
        state = handed_in.state
        typer.echo(f"issue {state.issue}: {state.name}, workflow {handed_in.workflow}", err=True)
        _say_what_is_missing(state)
        with _interruptible(state):
            _carry_on(session, handed_in.workflow, dry=dry, since=0)
        _close(session, handed_in.workflow, path, apply=apply, dry=dry, handed_in=handed_in)


def resume(
    issue: OptionalIssue = None,
    project: ProjectOption = None,
) -> None:
    """Go on where a killed `run` stopped; of a finished one, the result again."""
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        state = session.engine.state(workflow)
        if state.held is not None:
            say(f"issue {state.issue} is paused; `fixloop continue {state.issue}` lets it go on")
        with _interruptible(state):
            _carry_on(session, workflow, dry=False, since=None)
        _close(session, workflow, session.directory, apply=False, dry=False, handed_in=None)


def enqueue_command(
    issue: Annotated[int, typer.Option("--issue", min=1, help="Its issue number.")],
    repo: Annotated[str, typer.Option("--repo", help="A folder or a git URL.")] = ".",
    ref: Ref = None,
    push: Push = False,
    name: Annotated[str, typer.Option("--name", help="The feature's name.")] = "",
    fixer: Annotated[str | None, typer.Option("--fixer", help="The main agent's command.")] = None,
    only: Annotated[str | None, typer.Option("--only", help="One specialist.")] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Cancel what is live of this issue first.")
    ] = False,
) -> None:
    """Hand a feature to the workers; the same call twice is one workflow."""
    directory = Path.cwd() if is_url(repo) else Path(repo)
    feature = Feature(
        issue=issue, repo=repo, ref=ref, push=push, name=name, fixer=fixer, only=only, restart=restart
    )
    refuse_unusable(feature)
    with open_session(directory, create=True) as session:
        handed_in = enqueue(session.engine, feature, cache=session.settings.cache_dir)
        typer.echo(handed_in.workflow)
        what = "handed in" if handed_in.created else "was handed in before"
        typer.echo(f"issue {issue} {what}; `fixloop watch {issue}` follows it", err=True)
        _say_what_is_missing(handed_in.state)
        if handed_in.state.paused:
            raise typer.Exit(outcome.exit_code(handed_in.state))


def apply_command(issue: Issue, project: ProjectOption = None) -> None:
    """Put the verified fixes into the checkout as uncommitted changes, all or nothing."""
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        _apply(session.engine.state(workflow), session, session.directory)


def push_command(issue: Issue, project: ProjectOption = None) -> None:
    """Push the verified branch to the URL the repository was given by; repairs a push that was refused."""
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        state = session.engine.state(workflow)
        _refuse_unverified(state, "push")
        branch = push_branch(session.store, state, session.settings.cache_dir)
        if not branch:
            typer.echo(f"nothing to push: issue {state.issue} passed without a fix", err=True)
            return
        if branch != state.pushed:
            event = BranchPushed(branch=branch, sender=caller(USER))
            session.engine.apply(workflow, event, operation=uuid.uuid4().hex)
        typer.echo(branch)


def _say_what_is_missing(state: State) -> None:
    submodules = snapshot_in(state).submodules
    if submodules:
        more = f" and {len(submodules) - 5} more" if len(submodules) > 5 else ""
        typer.echo(
            f"submodules are empty folders where checks and fixers run: {', '.join(submodules[:5])}{more}",
            err=True,
        )


@contextmanager
def _interruptible(state: State) -> Iterator[None]:
    """Ctrl-C ends the worker with all it runs, and one line tells how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"interrupted; go on with `fixloop resume {state.issue}`", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _carry_on(session: Session, workflow: str, *, dry: bool, since: int | None) -> None:
    """Follow the workflow, with a worker of its own, until it ends or nobody here can go on."""
    state = session.engine.state(workflow)
    with ExitStack() as running:
        tick = None
        if _brings_worker(session, state) and (
            not outcome.is_settled(state) or _is_telling(session, workflow)
        ):
            tick = _worker(session, state, running)
        while True:
            state = progress.follow(session, workflow, until=_stops, since=since, tick=tick)
            since = None
            if dry and state.paused:
                _pass_over(session, workflow)
            elif outcome.waits_for_agent(state) and sys.stdout.isatty():
                _show_offer(session, state)
                state = progress.follow(session, workflow, until=_moved_on, tick=tick)
            else:
                break
        if tick is not None:
            _until_told(session, workflow, tick)


def _brings_worker(session: Session, state: State) -> bool:
    """What was enqueued belongs to the shared workers; beside an embedded Redis there need be none."""
    return bool(state.queue) or session.settings.is_embedded


def _until_told(session: Session, workflow: str, tick: Callable[[], None]) -> None:
    while _is_telling(session, workflow):
        tick()
        time.sleep(progress.POLL_SECONDS)


def _is_telling(session: Session, workflow: str) -> bool:
    """True while the person who has to decide is still to be told: the notify command is a step of its own."""
    found = session.store.read(workflow)
    return found is not None and any(held.ticket.step == "notify" for held in found.tickets)


def _stops(state: State) -> bool:
    return outcome.is_settled(state) or outcome.waits_for_agent(state)


def _moved_on(state: State) -> bool:
    return not outcome.waits_for_agent(state)


def _worker(session: Session, state: State, running: ExitStack) -> Callable[[], None]:
    """A worker for this workflow's queue; the returned check says when it has gone."""
    log = _log_file(session, state)
    options = {"concurrency": 1, "queue": state.queue}
    process = running.enter_context(supervisor(session.urls, options, log=log))

    def check() -> None:
        if process.poll() is not None:
            raise InfrastructureError(
                f"the worker ended with exit code {process.returncode}; see {log}, then `fixloop resume`"
            )

    return check


def _log_file(session: Session, state: State) -> Path:
    folder = session.settings.cache_dir / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{state.workflow}.log"


def _pass_over(session: Session, workflow: str) -> None:
    """A dry run looks at every phase once: what failed is a known issue, nobody is asked."""
    event = DecisionMade(decision=Decision.SKIP, by="run --dry", reason="the first validation only")
    session.engine.apply(workflow, event, operation=uuid.uuid4().hex)


def _show_offer(session: Session, state: State) -> None:
    made = offer(session.engine, state, session.settings.cache_dir)
    typer.echo(f"the request is {made.request}", err=True)
    typer.echo(f"work in {made.directory}, then `fixloop fixed {state.issue}` in another terminal", err=True)


def _close(
    session: Session, workflow: str, path: Path, *, apply: bool, dry: bool, handed_in: Enqueued | None
) -> None:
    state = session.engine.state(workflow)
    if not outcome.is_settled(state) and not outcome.waits_for_agent(state):
        raise typer.Exit(130)
    _repair(session, state)
    outcome.print_result(session, state)
    if handed_in is not None:
        for tool in handed_in.configuration.detected_not_configured:
            typer.echo(f"detected and not configured: {tool}", err=True)
    passed = state.outcome in (WorkflowOutcome.SUCCESS, WorkflowOutcome.SKIPPED)
    if passed and apply:
        _apply(state, session, path)
    elif passed and state.tip != snapshot_in(state).commit and not state.push:
        typer.echo(_way_out(state), err=True)
    if outcome.is_settled(state):
        typer.echo(f"look at it: fixloop report {state.issue} --open", err=True)
    code = outcome.exit_code(state)
    raise typer.Exit(1 if dry and state.outcome is WorkflowOutcome.SKIPPED else code)


def _way_out(state: State) -> str:
    if snapshot_in(state).is_url:
        return f"push the fixes as fixloop/{state.issue}: fixloop push {state.issue}"
    return f"put the fixes into your checkout: fixloop apply {state.issue}"


def _repair(session: Session, state: State) -> None:
    """Write the branch that a killed worker may have left out (DESIGN, Getting it out)."""
    if state.tip == snapshot_in(state).commit:
        return
    try:
        mirror = bring_work(session.store, state, session.settings.cache_dir)
        published = publish(snapshot_in(state), issue=state.issue, tip=state.tip, mirror=mirror)
    except FixloopError as error:
        typer.echo(f"the branch was not written: {error}", err=True)
        return
    if published.note:
        typer.echo(published.note, err=True)


def _refuse_unverified(state: State, verb: str) -> None:
    if state.outcome not in (WorkflowOutcome.SUCCESS, WorkflowOutcome.SKIPPED):
        raise RefusedError(
            f"issue {state.issue} has no verified tree to {verb}: it is {state.outcome or state.status}"
        )


def _apply(state: State, session: Session, path: Path) -> None:
    _refuse_unverified(state, "apply")
    snapshot = snapshot_in(state)
    if project_at(path).name != state.project:
        raise RefusedError(
            f"this folder is not project {state.project}; call `fixloop apply` in its checkout"
        )
    mirror = bring_work(session.store, state, session.settings.cache_dir)
    files = apply_changes(path, base=snapshot.commit, tip=state.tip, mirror=mirror)
    for name in files:
        typer.echo(name)
    typer.echo(
        f"{len(files)} file{'s' * (len(files) > 1)} changed in {path.absolute()}"
        if files
        else "nothing to change: it is all there",
        err=True,
    )
