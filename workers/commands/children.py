"""
Work that a workflow of its own does: a validation loop for an agent of a cycle or of handoffs, handoffs for a fixer.

The ticket's holder begins the child, or finds it as it is, and puts the ticket off until it has ended: no worker is
held while it works. A process that dies on the way leaves a ticket that the next one takes up at the same place.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fixloop.configuration.model import Configuration
from fixloop.engine.bridging import attended, child_of
from fixloop.engine.history import open_report
from fixloop.engine.profile import AnyStart, Profile
from fixloop.engine.registry import profile_in
from fixloop.intake.redaction_scope import redaction_of
from fixloop.outside.transfer import bring_work, keep_bundle, keep_diff, snapshot_in
from fixloop.profiles.cycle.agent_output import Writings
from fixloop.profiles.cycle.events import Written
from fixloop.profiles.cycle.verdict import phase_answer, phase_documents
from fixloop.profiles.handoff.beginning import handoffs_started
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.routes import Kind
from fixloop.profiles.handoff.verdict import review_answer
from fixloop.profiles.validation.beginning import validation_started
from fixloop.profiles.validation.engine import VALIDATION
from fixloop.protocol.events import FixCompleted, FixFailed
from fixloop.protocol.rendering import render_delivery
from fixloop.protocol.state import Completion, State, WorkflowOutcome
from fixloop.repository.change import change_between
from fixloop.repository.mirror import Mirror
from fixloop.repository.tree import tree_id
from fixloop.statefiles.agent_run import Brought, Played
from workers.process import process
from workers.steps.crew import PutOff, Work

_STOPPED = (WorkflowOutcome.ABORTED, WorkflowOutcome.CANCELLED)


def judged(work: Work, configuration: Configuration, snapshot: bytes, cache: Path) -> Played:
    """
    The answer of an agent whose run is a validation loop.

    Args:
        snapshot: the state of the workflow that asks, as it is stored.

    Raises:
        PutOff: the loop has not ended.
    """
    asking, ticket = profile_in(snapshot).load(snapshot), work.holding.ticket
    loop: State = _attended(
        work, VALIDATION, lambda child: _validation(work, asking, configuration, child, cache)
    )
    if loop.outcome in _STOPPED:
        return Played(error=f"its validation {loop.workflow} was {loop.outcome.value}", fatal=True)
    [first, *_] = work.store.history(loop.workflow)
    base = str(first.body["event"]["tip"])
    bundle = _brought_home(work, asking.model_copy(update={"tip": base}), loop, cache)[1]
    answer, documents = review_answer(loop), dict[str, bytes]()
    if asking.profile == "cycle":
        answer = phase_answer(loop, ticket.specialist, asking.cycle_id)
        documents = phase_documents(loop, ticket.specialist)
    keep = partial(work.store.put_artifact, ticket.workflow)
    written = tuple(Written(name=name, digest=keep(content)) for name, content in documents.items())
    return Played(
        answer=answer,
        writings=Writings(documents=written),
        artifacts=(keep(answer.encode()),),
        brought=Brought(base, loop.tip, bundle),
    )


def fixed(work: Work, configuration: Configuration, cache: Path) -> FixCompleted | FixFailed:
    """
    The fix of a fixer that is a workflow of handoffs.

    Raises:
        PutOff: it has not ended.
    """
    state, ticket = work.holding.state, work.holding.ticket
    ended = _attended(work, HANDOFF, lambda child: _handoffs(work, configuration, child, cache))
    if ended.outcome not in ("success", "skipped"):
        return FixFailed(
            specialist=ticket.specialist,
            iteration=ticket.iteration,
            attempt=ticket.attempt,
            error=f"its workflow of handoffs {ended.workflow} was {ended.outcome}",
            fatal=True,
        )
    mirror, bundle = _brought_home(work, state, ended, cache)
    change = change_between(mirror.git, state.tip, ended.tip)
    completion = Completion(
        iteration=ticket.iteration,
        by=f"handoffs {ended.workflow}",
        fixes=tuple(f"changed {name}" for name in change.files[:20]),
        files=change.files,
        tip=change.commit,
        tree=change.tree,
        marks=change.marks,
        **keep_diff(
            work.store, state, mirror, change.commit, hide=redaction_of(configuration).text
        )._asdict(),
    )
    return FixCompleted(specialist=ticket.specialist, completion=completion, bundle=bundle)


def _attended(work: Work, profile: Profile[Any], begin: Callable[[str], AnyStart]) -> Any:
    ended = attended(work.store, process().engine_of, work.holding.ticket, profile, begin)
    if ended is None:
        raise PutOff(f"{child_of(work.holding.ticket.id)} works for it")
    return ended


def _validation(work: Work, asking: Any, configuration: Configuration, child: str, cache: Path) -> AnyStart:
    """A loop on the work so far; without a fixer of its own it judges every phase once."""
    fixer = configuration.fixer
    is_own = fixer is not None and not (fixer.is_handoffs and asking.profile == "handoff")
    if not is_own and configuration.agent is None:
        configuration = configuration.model_copy(update={"fixer": None, "max_iterations": 1})
    mirror = bring_work(work.store, asking, cache)
    return validation_started(
        configuration,
        **_handed_on(work, asking, configuration, child, mirror),
        name=f"{asking.name}: {work.holding.ticket.specialist}",
        tree=tree_id(mirror.git, asking.tip),
    )


def _handoffs(work: Work, configuration: Configuration, child: str, cache: Path) -> AnyStart:
    """Planner, builder, reviewer and fixer on what a phase found."""
    state, ticket = work.holding.state, work.holding.ticket
    report = open_report(work.store, state.workflow, work.holding.version)
    mirror = bring_work(work.store, state, cache)
    return handoffs_started(
        configuration,
        **_handed_on(work, state, configuration, child, mirror),
        name=f"{state.name}: fix what {ticket.specialist} found in run {ticket.iteration}",
        request=render_delivery(report.message),
        type=Kind.BUGFIX,
    )


def _handed_on(
    work: Work, asking: Any, configuration: Configuration, child: str, mirror: Mirror
) -> dict[str, Any]:
    """What every child has of those whom it works for."""
    base = asking.model_copy(update={"workflow": child, "tip": snapshot_in(asking).commit})
    return {
        "workflow": child,
        "project": asking.project,
        "issue": asking.issue,
        "queue": asking.queue,
        "configuration": work.store.put_artifact(child, configuration.to_json().encode(), shared=True),
        "snapshot": asking.snapshot,
        "tip": asking.tip,
        "bundle": keep_bundle(work.store, base, mirror, asking.tip),
        "parent": work.holding.ticket.id,
    }


def _brought_home(work: Work, asking: Any, ended: Any, cache: Path) -> tuple[Mirror, str]:
    """The mirror with what a child made, and the digest of the bundle that brings it to other machines."""
    mirror = bring_work(work.store, ended, cache)
    return mirror, keep_bundle(work.store, asking, mirror, ended.tip)
