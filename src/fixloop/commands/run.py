"""`run`, `resume` and `enqueue`: submit a feature, and follow it until it ends or waits."""

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

from fixloop.commands import run_options as options
from fixloop.commands.apply import apply_to
from fixloop.commands.dry_run import preflight_lines, try_feature
from fixloop.commands.files import restore_lost
from fixloop.commands.handlers import handlers_of
from fixloop.commands.presenter import PASSED, UNVERIFIED, Standing
from fixloop.commands.screen import counted, note, print_lines, say
from fixloop.commands.session import OptionalIssue, ProjectOption, Session, look, open_session, open_workflow
from fixloop.commands.watch import POLL_SECONDS, follow, print_result, waiting_child
from fixloop.errors import ExitCode, FixloopError, InfrastructureError, UsageError
from fixloop.intake.bulk import enqueue_many
from fixloop.intake.feature import Feature
from fixloop.intake.preparation import usable
from fixloop.intake.submission import Enqueued, enqueue
from fixloop.machine.processes import log_in, supervisor
from fixloop.outside.transfer import snapshot_in
from fixloop.protocol.ids import called
from fixloop.protocol.ticket import DELIVER, NOTIFY
from fixloop.repository.snapshot import is_url


def run(
    repo: Annotated[
        str, Argument(metavar="PATH|URL", help="The project, a folder inside it, or a git URL.")
    ] = ".",
    issue: Annotated[int | None, Option(min=1, help="The issue number; default: the lowest unused.")] = None,
    name: options.Name = "",
    profile: options.Profiled = "validation",
    task: options.Task = "",
    task_file: options.TaskFile = None,
    plan: options.PlanFile = None,
    type: options.Type = None,
    priority: options.Urgency = None,
    fixer: Annotated[str | None, Option(help="Override the main agent's command.")] = None,
    only: options.Only = None,
    dry: Annotated[
        bool, Option("--dry", help="Show what would run and why, run each check once, then stop.")
    ] = False,
    apply: Annotated[bool, Option("--apply", help="Apply the verified fixes to the checkout.")] = False,
    ref: options.Ref = None,
    base: options.BaseRevision = None,
    all: options.All = False,
    push: options.Push = False,
    restart: options.Restart = False,
) -> None:
    """
    Validate a feature, have failures fixed, and check again. Ends when everything passes or a person decides.

    With --profile cycle or handoff, have its agents build it until it is complete or a person decides.
    """
    feature = options.feature_of(locals(), queue=f"run-{uuid.uuid4().hex[:12]}")
    path = _directory(repo)
    if dry:
        for option, is_given in {"--apply": apply, "--push": push, "--restart": restart}.items():
            if is_given:
                raise UsageError(f"{option} has no effect with --dry; leave one of them out")
        raise Exit(try_feature(feature))
    if apply and is_url(repo):
        told = "--apply needs a checkout; with a URL, use --push, or run `apply` in a checkout of it"
        raise UsageError(told)
    with _handed_in(feature, path) as (session, handed_in, worker):
        state = handed_in.state
        note(f"issue {state.issue}: {state.name}, workflow {handed_in.workflow}")
        if handed_in.created and profile == "validation":
            note(*preflight_lines(handed_in.configuration, snapshot_in(state)))
        with _interruptible(state):
            _carry_on(session, handed_in.workflow, since=0, worker=worker)
        _close(session, handed_in.workflow, path, apply=apply)


def resume(issue: OptionalIssue = None, project: ProjectOption = None) -> None:
    """Continue a `run` that was killed. If it has ended, show its result again."""
    restore_lost(issue)
    with open_workflow(issue, project) as (session, workflow):
        seen = look(session, workflow)
        if seen.standing.held:
            again = f"`fixloop continue {seen.standing.called}`"
            say(f"issue {seen.standing.issue} is paused; {again} resumes it")
        session.draw(workflow)
        with _interruptible(seen.state):
            _carry_on(session, workflow, since=None)
        _close(session, workflow, session.directory, apply=False)


def enqueue_command(
    issue: Annotated[int | None, Option(min=1, help="The issue number.", show_default=False)] = None,
    repo: Annotated[str, Option(help="A folder or a git URL.")] = ".",
    ref: options.Ref = None,
    base: options.BaseRevision = None,
    all: options.All = False,
    push: options.Push = False,
    name: options.Name = "",
    profile: options.Profiled = "validation",
    task: options.Task = "",
    task_file: options.TaskFile = None,
    plan: options.PlanFile = None,
    type: options.Type = None,
    priority: options.Urgency = None,
    fixer: Annotated[str | None, Option(help="The main agent's command.")] = None,
    only: options.Only = None,
    restart: options.Restart = False,
    from_file: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="FILE",
            help='Submit many, one JSON object per line: {"issue": 47, "ref": "login"}; - for stdin. '
            "The other options are defaults for all lines.",
        ),
    ] = None,
) -> None:
    """Submit a feature to the workers. The same call twice creates one workflow."""
    feature = options.feature_of(locals())
    if from_file is not None:
        hand_in_many(from_file, feature, _directory(repo))
        return
    if issue is None:
        raise UsageError("no issue given; use `--issue N`, or `--from FILE` for many")
    with _handed_in(feature, _directory(repo)) as (session, handed_in, _):
        print_lines(handed_in.workflow)
        what = "submitted" if handed_in.created else "was already submitted"
        note(f"issue {issue} {what}; `fixloop watch {issue}` follows it")
        now = look(session, handed_in.workflow).standing
        if now.waits_for == "decision":
            raise Exit(now.exit_code)


def _directory(repo: str) -> Path:
    return Path.cwd() if is_url(repo) else Path(repo)


@dataclass
class _Worker:
    """A child process that serves one queue and writes a log."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def check(self) -> None:
        """Raises InfrastructureError if it has ended."""
        if self.process.poll() is not None:
            raise InfrastructureError(
                f"the worker ended with exit code {self.process.returncode}; see {self.log}, then `fixloop resume`"
            )


@contextmanager
def _worker(session: Session, queue: str, name: str) -> Iterator[_Worker]:
    log = log_in(session.settings.cache_dir, name)
    with supervisor(session.urls, {"concurrency": 1, "queue": queue}, log=log) as process:
        yield _Worker(process, log)


@contextmanager
def _handed_in(feature: Feature, directory: Path) -> Iterator[tuple[Session, Enqueued, _Worker | None]]:
    """The feature's workflow and the worker of its own queue. Starting the worker takes as long as the snapshot, so
    both start at once."""
    known = usable(feature)
    with open_session(directory, create=True) as session, ExitStack() as running:
        worker = None
        if feature.queue:
            worker = running.enter_context(_worker(session, feature.queue, feature.queue))
            running.callback(worker.log.unlink, missing_ok=True)
        found = enqueue(session.engine, feature, cache=session.settings.cache_dir, known=known)
        if worker is not None and found.created:
            worker.log = worker.log.rename(worker.log.with_stem(found.workflow))
        elif worker is not None:
            # The live workflow that was joined has another queue, or has ended.
            running.close()
            worker = None
        session.draw(found.workflow)
        note(*snapshot_in(found.state).notes)
        yield session, found, worker


@contextmanager
def _interruptible(state: Any) -> Iterator[None]:
    """On Ctrl-C, end the worker and all it runs, and print how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"interrupted; continue with `fixloop resume {called(state)}`")
        raise Exit(ExitCode.INTERRUPTED) from None


def _carry_on(session: Session, workflow: str, *, since: int | None, worker: _Worker | None = None) -> None:
    """Follow the workflow, with its own worker, until it ends or nothing here can continue it."""
    seen = look(session, workflow)
    # Enqueued work belongs to the shared workers; with an embedded Redis there may be none.
    brings_worker = seen.state.queue or session.settings.is_embedded

    def until(now: Standing) -> bool:
        return now.is_settled or now.waits_for == "agent" or waiting_child(session, workflow) is not None

    with ExitStack() as running:
        is_needed = not seen.standing.is_settled or _is_telling(session, workflow)
        if worker is None and brings_worker and is_needed:
            worker = running.enter_context(_worker(session, seen.state.queue, workflow))
        tick = worker.check if worker is not None else None
        while True:
            now = follow(session, workflow, until=until, since=since, tick=tick).standing
            since = None
            if not (now.waits_for == "agent" and sys.stdout.isatty()):
                break
            handlers_of(session, workflow).show(session, workflow)
            follow(session, workflow, until=lambda now: now.waits_for != "agent", tick=tick)
        while tick is not None and _is_telling(session, workflow):
            tick()
            time.sleep(POLL_SECONDS)


def _is_telling(session: Session, workflow: str) -> bool:
    """True while a notification is still due: the notify command and each letter are separate steps."""
    found = session.store.read(workflow)
    if found is None or found.fields.get("held"):
        return False
    return any(held.ticket.step in (NOTIFY, DELIVER) for held in found.tickets)


def _close(session: Session, workflow: str, path: Path, *, apply: bool) -> None:
    seen = look(session, workflow)
    state, now = seen.state, seen.standing
    if not now.is_settled and now.waits_for != "agent":
        child = waiting_child(session, workflow)
        raise Exit(print_result(session, child) if child is not None else ExitCode.INTERRUPTED)
    # Its worker ends with it, perhaps between the last commit and the files.
    session.draw(workflow)
    is_fixed = state.tip != snapshot_in(state).commit
    if is_fixed:
        # A killed worker may not have written it.
        try:
            session.write_branch(state)
        except FixloopError as error:
            note(f"the branch was not written: {error}")
    code = print_result(session, seen)
    if now.outcome in PASSED and apply:
        apply_to(path, session, state)
    elif now.outcome in (*PASSED, UNVERIFIED) and is_fixed and not now.pushes:
        issue = called(state)
        if snapshot_in(state).is_url:
            note(f"push the work as fixloop/{state.issue}: fixloop push {issue}")
        else:
            note(f"apply the work to your checkout: fixloop apply {issue}")
    if now.is_settled:
        note(f"see the report: fixloop report {state.issue} --open")
    raise Exit(code)


def hand_in_many(file: Path, usual: Feature, directory: Path) -> None:
    """Print each line's workflow or why it was refused, then the totals. Exit code 2: some were refused."""
    if usual.issue is not None:
        raise UsageError("--issue and --from exclude each other; each line names its own")
    made = joined = refused = 0
    with ExitStack() as opened:
        try:
            lines = sys.stdin.buffer if str(file) == "-" else opened.enter_context(file.open("rb"))
        except OSError as error:
            raise UsageError(f"cannot read the features {file}: {error.strerror or error}") from None
        session = opened.enter_context(open_session(directory, create=True))
        opened.enter_context(session.hints.together())
        cache = session.settings.cache_dir
        for each in counted(enqueue_many(session.engine, _features(lines, usual), cache=cache), "submitted"):
            if each.error:
                refused += 1
                say(f"line {each.number}{f', issue {each.issue}' if each.issue else ''}: {each.error}")
                continue
            made += each.created
            joined += not each.created
            print_lines(each.workflow)
    note(f"{made} submitted, {joined} already submitted, {refused} refused")
    if refused:
        raise Exit(ExitCode.USAGE)


def _features(lines: Iterable[bytes], usual: Feature) -> Iterator[Feature | UsageError]:
    for line in lines:
        try:
            given = json.loads(line.decode("utf-8-sig"))
            if not isinstance(given, dict):
                raise UsageError('each line must be an object such as {"issue": 47}')
            yield usual.with_given(given)
        except UsageError as error:
            yield error
        except (ValueError, RecursionError) as error:
            yield UsageError(f"the line is not valid JSON: {' '.join(str(error).split())}")
