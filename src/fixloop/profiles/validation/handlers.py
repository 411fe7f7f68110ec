"""Applies receipts, fixes, blockers and decisions from people and the main agent to a validation workflow."""

import getpass
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fixloop.commands.handlers import Answer as Given, CommandHandlers, Work
from fixloop.commands.screen import note, print_lines, print_text
from fixloop.commands.session import Session, caller
from fixloop.engine.history import shown_failure, what_is_asked
from fixloop.errors import RefusedError, UsageError
from fixloop.intake.redaction_scope import redaction_for
from fixloop.outside.declining import signalled
from fixloop.outside.offer import offer, offered_at
from fixloop.outside.transfer import bring_work, facts_of_change, keep_bundle, snapshot_in
from fixloop.protocol import events as ev
from fixloop.protocol.declining import Kind
from fixloop.protocol.event import Repeated
from fixloop.protocol.ids import called
from fixloop.protocol.messages import FOUR, MAIN_AGENT, USER, Decision, Reason
from fixloop.protocol.specialists import WITH_MAIN_AGENT
from fixloop.protocol.state import Completion, State
from fixloop.repository import merge
from fixloop.repository.change import Change
from fixloop.repository.copied import copied_paths
from fixloop.repository.snapshot import commit_of_source, mirror_of
from fixloop.store.waivers import Waiver, keep_waiver

if TYPE_CHECKING:
    from fixloop.protocol.answers import Answer

LISTED: Final = 10


def _ack(session: Session, workflow: str, agent: str, handoff: str) -> None:
    if agent or handoff:
        told = "--agent and --handoff go with cycles and handoffs; a validation workflow has one main agent"
        raise UsageError(told)
    state = _acknowledged(session, workflow)
    made = offer(session.engine, state, session.settings.cache_dir)
    print_text(made.request.read_text())
    note(f"work in {made.directory}, then `fixloop fixed {called(state)}`")


def _request(session: Session, workflow: str) -> str:
    # A repeated request gets the same answer.
    with suppress(Repeated):
        _acknowledged(session, workflow)
    return what_is_asked(session.store, workflow, session.stored(workflow).version)


def _acknowledged(session: Session, workflow: str) -> State:
    state = session.engine.state(workflow)
    event = ev.FixAcknowledged(
        specialist=state.active.name,
        iteration=state.active.iteration,
        by=session.who,
        sender=caller(MAIN_AGENT),
    )
    session.bring(workflow, event)
    return state


def _fixed(session: Session, workflow: str, work: Work) -> None:
    if work.agent:
        raise UsageError("--agent goes with cycles and handoffs; a validation workflow has one main agent")
    change: Change | None = None
    if work.blocked is not None:
        _signal(session, workflow, work.blocked, kind=work.declined)
    else:
        from fixloop.commands.answer_file import read_given

        change = _hand_in(session, workflow, read_given(work.file) if work.file is not None else None, work)
    state = session.engine.state(workflow)
    if state.held is not None:
        note(f"it is kept; `fixloop continue {called(state)}` resumes it")
    elif change is None:
        note(f"issue {state.issue} waits for a decision: `fixloop inbox`")
    if change is None:
        return
    session.write_branch(state)
    taken = [name for name in change.files if name not in change.left_out]
    print_lines(*taken)
    if not taken:
        note("no file was changed")
    if change.left_out:
        note(
            f"left out, because your checkout is taken as it is: what earlier fixes did to "
            f"{', '.join(change.left_out[:LISTED])}{' …' if len(change.left_out) > LISTED else ''}; "
            f"`fixloop fixed {called(state)} --here --merge` would have kept it"
        )


def _decide(session: Session, workflow: str, given: Given) -> None:
    state = session.engine.state(workflow)
    opened = state.escalation
    if given.word not in tuple(Decision):
        possible = opened.reason.decisions if opened is not None else FOUR
        raise UsageError(f"{given.word!r} is not a decision; choose from {', '.join(possible)}")
    decision = Decision(given.word)
    if (given.iterations is not None or given.minutes is not None) and decision is not Decision.EXTEND:
        raise UsageError(f"--iterations and --minutes go with extend, not with {decision}")
    named = opened.message_id if opened is not None else ""
    if given.escalation and given.escalation != named:
        open_ = f"{named} is" if named else "none is"
        raise UsageError(f"escalation {given.escalation} is not open in issue {state.issue}; {open_}")
    try:
        until = date.fromisoformat(given.until).isoformat() if given.until else ""
    except ValueError:
        raise UsageError(f"{given.until[:40]!r} is not a day; use one such as 2027-01-31") from None
    event = ev.DecisionMade(
        decision=decision,
        escalation=named,
        by=session.who,
        sender=caller(USER),
        reason=given.text,
        iterations=given.iterations,
        minutes=given.minutes,
        until=until,
        owner=given.owner,
    )
    again = opened is not None and opened.reason is Reason.SPECIALIST_ERROR and opened.decision is None
    if decision is Decision.MANUAL_FIX and again:
        # The person has changed the checkout: take over the changes, gates included. The problem may have been in the
        # machine only, so the earlier fixes stay.
        change = _taken(session, state, Work(here=True, merge=True))
        brought = {"tip": change.commit, "tree": change.tree, "bundle": _bundle(session, state, change)}
        event = event.model_copy(update={**brought, **_reread(session, state, change.commit)})
    if event.until and opened is not None and decision is Decision.SKIP:
        owner = event.owner or session.who
        keep_waiver(session.connection, Waiver(workflow, state.current, event.until, owner, state.name))
    session.bring(workflow, event)
    _say_next(session, workflow, decision)


def _show(session: Session, workflow: str) -> None:
    state = session.engine.state(workflow)
    made = offer(session.engine, state, session.settings.cache_dir)
    note(f"the request is {made.request}")
    note(f"work in {made.directory}, then `fixloop fixed {called(state)}` in another terminal")


def _signal(
    session: Session, workflow: str, text: str, kept: tuple[str, ...] = (), kind: Kind | None = None
) -> None:
    state = session.engine.state(workflow)
    git = None
    if kind is Kind.TEST_IS_WRONG:
        git = bring_work(session.store, state, session.settings.cache_dir).git
    event = signalled(state, git, by=session.who, text=text, kind=kind, artifacts=kept)
    session.bring(workflow, event.model_copy(update={"sender": caller(MAIN_AGENT)}))


def _hand_in(session: Session, workflow: str, raw: bytes | None, work: Work) -> Change | None:
    """Submit the fix with its answer; None if the answer says that it is not ready (A33, G8)."""
    from fixloop.commands.answer_file import keep, said

    state = session.engine.state(workflow)
    manual = state.escalation is not None and state.escalation.decision is Decision.MANUAL_FIX
    awaited = not state.ended and (manual or state.paused or state.active.status in WITH_MAIN_AGENT)
    if manual and (work.patch is not None or work.revision):
        # It may change the gates, and with them which commands run.
        raise RefusedError(f"issue {state.issue} waits for the fix of the person who chose manual-fix")
    answer = said(session, state, raw, awaited=awaited) if raw is not None else None
    kept = keep(session, workflow, raw)
    if not awaited:
        why = f"issue {state.issue} awaits no fix: {state.active.name} is {state.active.status}"
        why += f", outcome {state.outcome}" if state.ended else ""
        session.engine.refuse(workflow, "fix-completed", why, sender=caller(MAIN_AGENT), artifacts=kept)
        raise RefusedError(why)
    if answer is not None and not answer.ready:
        _signal(session, workflow, answer.blocker, kept, answer.declined)
        return None
    change = _taken(session, state, work)
    event = _completion(session, state, change, answer, work.summary)
    bundle = _bundle(session, state, change)
    session.bring(workflow, event.model_copy(update={"artifacts": kept, "bundle": bundle}))
    return change


def _taken(session: Session, state: State, work: Work) -> Change:
    cache = session.settings.cache_dir
    mirror = bring_work(session.store, state, cache)
    message = f"fixloop: fix {state.issue}, {state.active.name} run {state.active.iteration}\n"
    if work.rev is not None:
        return merge.resolve_descendant(work.rev, path=session.directory, tip=state.tip, mirror=mirror)
    if work.revision:
        commit = commit_of_source(snapshot_in(state), work.revision, mirror)
        return merge.change_onto(state.tip, commit, work.revision, mirror)
    if work.patch is not None:
        return merge.commit_of_patch(work.patch, state.tip, mirror, message)
    base = snapshot_in(state).commit
    if work.here:
        take = merge.merge_checkout if work.merge else merge.take_checkout
        return take(session.directory, base=base, tip=state.tip, mirror=mirror, message=message)
    made = offered_at(state, cache)
    if not made.top.is_dir():
        way = f"`fixloop {'inbox' if state.paused else f'ack {called(state)}'}`"
        does = "shows what to decide" if state.paused else "makes a directory to work in"
        raise RefusedError(f"there is no directory yet; {way} {does}, or use --here for the current checkout")
    copied = copied_paths(mirror, snapshot_in(state).copied)
    return merge.commit_of_directory(made.top, state.tip, mirror, message, without=copied)


def _bundle(session: Session, state: State, change: Change) -> str:
    mirror = mirror_of(snapshot_in(state), session.settings.cache_dir)
    return keep_bundle(session.store, state, mirror, change.commit)


def _completion(
    session: Session, state: State, change: Change, answer: "Answer | None", summary: str
) -> ev.FixCompleted | ev.ManualFixDone:
    from fixloop.protocol.claims import Differences, differences

    mirror = mirror_of(snapshot_in(state), session.settings.cache_dir)
    hide = redaction_for(session.store, state).text
    shared: dict[str, Any] = {
        "by": session.who,
        "summary": answer.summary if answer is not None else summary,
        **facts_of_change(session.store, state, mirror, change, hide=hide),
    }
    opened = state.escalation
    if opened is not None and opened.decision is Decision.MANUAL_FIX:
        return ev.ManualFixDone(sender=caller(USER), **_reread(session, state, change.commit), **shared)
    fixes = answer.fixes if answer is not None else ()
    differ = differences(answer.files, change.files) if answer is not None else Differences()
    completion = Completion(
        iteration=state.active.iteration,
        fixes=fixes or tuple(f"changed {name}" for name in change.files[:20]),
        **differ._asdict(),
        **shared,
    )
    return ev.FixCompleted(specialist=state.active.name, completion=completion, sender=caller(MAIN_AGENT))


def _reread(session: Session, state: State, commit: str) -> dict[str, Any]:
    """The configuration as the person left it: a manual fix may change the gates, which the log records."""
    from fixloop.intake.frozen_configuration import configuration_in, frozen_configuration
    from fixloop.intake.preparation import exported
    from fixloop.profiles.validation.intake import limits_of, unverified_in

    snapshot = snapshot_in(state)
    frozen = frozen_configuration(session.store, state)
    with exported(snapshot, commit, session.settings.cache_dir) as folder:
        home = folder if snapshot.is_url else Path(snapshot.source) / snapshot.subdirectory
        loaded = configuration_in(folder, home=home, only=frozen.only or None, project=state.project)
    # Only the gates are re-read; the fixer stays as it was at the start.
    loaded = loaded.model_copy(
        update={"fixer": frozen.fixer, "agent": frozen.agent, "gates_all": frozen.gates_all}
    )
    return {
        "configuration": session.store.put_artifact(state.workflow, loaded.to_json().encode(), shared=True),
        "specialists": tuple(entry.name for entry in loaded.specialists),
        "unverified": unverified_in(loaded),
        "limits": limits_of(loaded),
    }


def _say_next(session: Session, workflow: str, decision: Decision) -> None:
    state = session.engine.state(workflow)
    issue = called(state)
    if state.ended:
        note(f"issue {issue} ended: {state.outcome}")
    elif state.paused and decision is Decision.MANUAL_FIX:
        # The fix is made in its own directory, or in the person's checkout.
        where = f"fix it in your checkout, then `fixloop fixed {issue} --here`"
        with suppress(RefusedError):
            made = offer(session.engine, state, session.settings.cache_dir)
            where += f"; or in {made.directory}, then `fixloop fixed {issue}`"
        note(where)
    else:
        note(f"issue {issue} continues with `fixloop resume {issue}` or a running worker")


HANDLERS: Final = CommandHandlers(
    cancelled=lambda reason: ev.Cancelled(by=getpass.getuser(), reason=reason, sender=caller(USER)),
    paused=lambda reason: ev.Paused(by=getpass.getuser(), reason=reason, sender=caller(USER)),
    continued=lambda: ev.Continued(by=getpass.getuser(), sender=caller(USER)),
    pushed=lambda branch: ev.BranchPushed(branch=branch, sender=caller(USER)),
    decide=_decide,
    ack=_ack,
    fixed=_fixed,
    request=_request,
    show=_show,
    failure=lambda session, workflow, number: shown_failure(
        session.store, session.engine.state(workflow), number
    ),
)
