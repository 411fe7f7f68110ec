"""The main agent's and the person's side: `ack`, `fixed`, `decide`, `cancel`.

The readers of answers and of configuration are loaded by the calls that have one to read.
"""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fixloop.carrying import bring_work, keep_bundle, snapshot_in
from fixloop.commands.session import Issue, ProjectOption, Session, caller, open_session
from fixloop.errors import RefusedError, UsageError
from fixloop.offering import offer, offered_at
from fixloop.protocol.events import (
    BlockerSignalled,
    Cancelled,
    DecisionMade,
    FixAcknowledged,
    FixCompleted,
    ManualFixDone,
)
from fixloop.protocol.messages import MAIN_AGENT, USER, Decision, Reason
from fixloop.protocol.state import Completion, Limits, State
from fixloop.protocol.statuses import Status
from fixloop.repository.change import Change
from fixloop.repository.merge import commit_of_directory, merge_checkout, resolve_descendant
from fixloop.repository.publish import publish
from fixloop.repository.snapshot import mirror_of

if TYPE_CHECKING:
    from fixloop.protocol.answers import Answer

__all__ = ["register"]

Reread = tuple[str, tuple[str, ...], Limits | None]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    for command in (ack, fixed, decide, cancel):
        app.command()(command)


def ack(issue: Issue, project: ProjectOption = None) -> None:
    """Take the open request: prints it, and the directory to work in."""
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        state = session.engine.state(workflow)
        event = FixAcknowledged(
            specialist=state.active.name,
            iteration=state.active.iteration,
            by=getpass.getuser(),
            sender=caller(MAIN_AGENT),
        )
        session.bring(workflow, event)
        made = offer(session.engine, state, session.settings.cache_dir)
        typer.echo(made.request.read_text())
        typer.echo(f"work in {made.directory}, then `fixloop fixed {state.issue}`", err=True)


def fixed(
    issue: Issue,
    file: Annotated[
        Path | None, typer.Option("--file", help="A Fix Completion, as Markdown or JSON.")
    ] = None,
    here: Annotated[bool, typer.Option("--here", help="Take the current checkout instead.")] = False,
    rev: Annotated[
        str | None, typer.Option("--rev", help="Take a commit that builds on the work so far.")
    ] = None,
    blocked: Annotated[str | None, typer.Option("--blocked", help="Say why it cannot be done.")] = None,
    project: ProjectOption = None,
) -> None:
    """Say that the fix is done: takes the offered directory as it stands, and prints the files it took."""
    if sum((here, rev is not None, blocked is not None)) > 1:
        raise UsageError("--here, --rev and --blocked exclude each other; use one of them")
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        change: Change | None = None
        if blocked is not None:
            _signal(session, workflow, blocked)
        else:
            from fixloop.commands.answer_file import read_answer

            raw = read_answer(file) if file is not None else None
            change = _hand_in(session, workflow, raw, here=here, rev=rev)
        if session.engine.state(workflow).held is not None:
            typer.echo(f"it is kept; `fixloop continue {issue}` takes it up", err=True)
        elif change is None:
            typer.echo(f"issue {issue} waits for a decision: `fixloop inbox`", err=True)
        if change is None:
            return
        _publish(session, workflow)
        for name in change.files:
            typer.echo(name)
        if not change.files:
            typer.echo("no file was changed", err=True)


def decide(
    issue: Issue,
    decision: Annotated[Decision, typer.Argument(help="What to do with the escalation.")],
    iterations: Annotated[
        int | None, typer.Option("--iterations", min=1, help="extend: how many more (3).")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0.01, help="extend: how much longer (30).")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is logged.")] = "",
    project: ProjectOption = None,
) -> None:
    """Answer an escalation: manual-fix, skip, abort or extend."""
    if (iterations is not None or minutes is not None) and decision is not Decision.EXTEND:
        raise UsageError(f"--iterations and --minutes go with extend, not with {decision}")
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        state = session.engine.state(workflow)
        opened = state.escalation
        event = DecisionMade(
            decision=decision,
            escalation=opened.message_id if opened is not None else "",
            by=getpass.getuser(),
            sender=caller(USER),
            reason=reason,
            iterations=iterations,
            minutes=minutes,
        )
        again = opened is not None and opened.reason is Reason.SPECIALIST_ERROR and opened.decision is None
        if decision is Decision.MANUAL_FIX and again:
            event = _reread_decision(session, state, event)
        session.bring(workflow, event)
        _say_next(session, workflow, decision)


def cancel(
    issue: Issue,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is logged.")] = "",
    project: ProjectOption = None,
) -> None:
    """Stop a workflow; it ends in the status it had."""
    with open_session() as session:
        workflow = session.workflow_of(issue, project)
        session.bring(workflow, Cancelled(by=getpass.getuser(), reason=reason, sender=caller(USER)))
        typer.echo(f"workflow {workflow} is cancelled", err=True)


def _signal(session: Session, workflow: str, text: str, artifacts: tuple[str, ...] = ()) -> None:
    event = BlockerSignalled(by=getpass.getuser(), text=text, sender=caller(MAIN_AGENT), artifacts=artifacts)
    session.bring(workflow, event)


def _hand_in(
    session: Session, workflow: str, raw: bytes | None, *, here: bool, rev: str | None
) -> Change | None:
    """Bring the fix with its answer; None when the answer says that it is not ready (A33, G8)."""
    from fixloop.commands.answer_file import keep, said

    state = session.engine.state(workflow)
    awaited = _is_awaited(state)
    answer = said(session, state, raw, awaited=awaited) if raw is not None else None
    kept = keep(session, workflow, raw)
    if not awaited:
        _refuse(session, state, kept)
    if answer is not None and not answer.ready:
        _signal(session, workflow, answer.blocker, kept)
        return None
    change = _taken(session, state, here=here, rev=rev)
    event = _completion(session, state, change, answer)
    bundle = _bundle(session, state, change)
    session.bring(workflow, event.model_copy(update={"artifacts": kept, "bundle": bundle}))
    return change


def _is_awaited(state: State) -> bool:
    manual = state.escalation is not None and state.escalation.decision is Decision.MANUAL_FIX
    asked = state.active.status in (Status.AWAITING_FIX, Status.FIXING)
    return not state.ended and (manual or state.paused or asked)


def _refuse(session: Session, state: State, artifacts: tuple[str, ...]) -> None:
    why = f"issue {state.issue} awaits no fix: {state.active.name} is {state.active.status}"
    why += f", outcome {state.outcome}" if state.ended else ""
    session.engine.refuse(
        state.workflow, "fix-completed", why, sender=caller(MAIN_AGENT), artifacts=artifacts
    )
    raise RefusedError(why)


def _taken(session: Session, state: State, *, here: bool, rev: str | None) -> Change:
    cache = session.settings.cache_dir
    mirror = bring_work(session.store, state, cache)
    message = f"fixloop: fix {state.issue}, {state.active.name} run {state.active.iteration}\n"
    if rev is not None:
        return resolve_descendant(rev, path=session.directory, tip=state.tip, mirror=mirror)
    base = snapshot_in(state).commit
    if here:
        return merge_checkout(session.directory, base=base, tip=state.tip, mirror=mirror, message=message)
    made = offered_at(state, cache)
    if not made.top.is_dir():
        raise RefusedError(
            f"nothing was offered yet; `fixloop ack {state.issue}` makes a directory to work in, "
            "or use --here for the current checkout"
        )
    return commit_of_directory(made.top, state.tip, mirror, message)


def _bundle(session: Session, state: State, change: Change) -> str:
    """What brings the change to the machine that checks it."""
    mirror = mirror_of(snapshot_in(state), session.settings.cache_dir)
    return keep_bundle(session.store, state, mirror, change.commit)


def _completion(
    session: Session, state: State, change: Change, answer: "Answer | None"
) -> FixCompleted | ManualFixDone:
    from fixloop.protocol.claims import Differences, differences

    opened = state.escalation
    if opened is not None and opened.decision is Decision.MANUAL_FIX:
        digest, specialists, limits = _reread(session, state, change.commit)
        return ManualFixDone(
            by=getpass.getuser(),
            sender=caller(USER),
            summary=answer.summary if answer is not None else "",
            files=change.files,
            tip=change.commit,
            tree=change.tree,
            marks=change.marks,
            configuration=digest,
            specialists=specialists,
            limits=limits,
        )
    active = state.active
    summary, fixes = (answer.summary, answer.fixes) if answer is not None else ("", ())
    differ = differences(answer.files, change.files) if answer is not None else Differences()
    completion = Completion(
        iteration=active.iteration,
        by=getpass.getuser(),
        summary=summary,
        fixes=fixes or tuple(f"changed {name}" for name in change.files[:20]),
        files=change.files,
        tip=change.commit,
        tree=change.tree,
        marks=change.marks,
        unchanged=differ.unchanged,
        unnamed=differ.unnamed,
    )
    return FixCompleted(specialist=active.name, completion=completion, sender=caller(MAIN_AGENT))


def _reread(session: Session, state: State, commit: str) -> Reread:
    """The configuration as the person left it: a manual fix may change the gates, and the log says so."""
    from fixloop.enqueueing import configuration_in, exported, frozen_configuration, limits_of

    snapshot = snapshot_in(state)
    frozen = frozen_configuration(session.store, state)
    with exported(snapshot, commit, session.settings.cache_dir) as folder:
        home = folder if snapshot.is_url else Path(snapshot.source) / snapshot.subdirectory
        loaded = configuration_in(folder, home=home, only=frozen.only or None, project=state.project)
    # The gates are re-read; who fixes stays as it was handed in.
    loaded = loaded.model_copy(update={"fixer": frozen.fixer, "agent": frozen.agent})
    digest = session.store.put_artifact(state.workflow, loaded.to_json().encode(), shared=True)
    return digest, tuple(entry.name for entry in loaded.specialists), limits_of(loaded)


def _reread_decision(session: Session, state: State, event: DecisionMade) -> DecisionMade:
    """After a specialist error the person has mended the checkout: take it, gates included."""
    change = _taken(session, state, here=True, rev=None)
    digest, specialists, limits = _reread(session, state, change.commit)
    return event.model_copy(
        update={
            "tip": change.commit,
            "tree": change.tree,
            "bundle": _bundle(session, state, change),
            "configuration": digest,
            "specialists": specialists,
            "limits": limits,
        }
    )


def _publish(session: Session, workflow: str) -> None:
    state = session.engine.state(workflow)
    mirror = bring_work(session.store, state, session.settings.cache_dir)
    published = publish(snapshot_in(state), issue=state.issue, tip=state.tip, mirror=mirror)
    if published.note:
        typer.echo(published.note, err=True)


def _say_next(session: Session, workflow: str, decision: Decision) -> None:
    state = session.engine.state(workflow)
    issue = state.issue
    if state.ended:
        typer.echo(f"issue {issue} ended: {state.outcome}", err=True)
    elif state.paused and decision is Decision.MANUAL_FIX:
        _say_where(session, state)
    else:
        typer.echo(
            f"issue {issue} goes on; `fixloop resume {issue}` or a running worker takes it up", err=True
        )


def _say_where(session: Session, state: State) -> None:
    """A manual fix is made in a directory of its own, or in the person's checkout."""
    here = f"mend it in your checkout, then `fixloop fixed {state.issue} --here`"
    try:
        made = offer(session.engine, state, session.settings.cache_dir)
    except RefusedError:
        typer.echo(here, err=True)
        return
    typer.echo(f"{here}; or in {made.directory}, then `fixloop fixed {state.issue}`", err=True)
