"""Child workflows: a validation loop as an agent, or handoffs as a fixer (docs/decisions/0026)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fixloop.configuration.model import Configuration
from fixloop.engine.bridging import attended, child_of
from fixloop.engine.history import open_report
from fixloop.engine.profile import Profile, profile_in
from fixloop.intake.redaction_scope import redaction_of
from fixloop.outside.transfer import bring_work, facts_of_change, keep_bundle, snapshot_in
from fixloop.profile_table import loaded, registered_in
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.intake import handoffs_started
from fixloop.profiles.handoff.routes import Kind
from fixloop.profiles.validation.engine import VALIDATION
from fixloop.profiles.validation.intake import validation_started
from fixloop.protocol.event import Start
from fixloop.protocol.events import FixCompleted, FixFailed
from fixloop.protocol.rendering import render_delivery
from fixloop.protocol.state import Completion, State, WorkflowOutcome
from fixloop.repository.change import change_between
from fixloop.repository.mirror import Mirror
from fixloop.repository.tree import tree_id
from fixloop.statefiles.agent_run import AgentRuns, Brought, Played
from workers.process import process
from workers.steps.step import PutOff, Step
from workers.steps.validation_steps import fix_failed

_STOPPED = (WorkflowOutcome.ABORTED, WorkflowOutcome.CANCELLED)


def validate(work: Step, configuration: Configuration, snapshot: bytes, cache: Path) -> Played:
    """The answer of an agent whose run is a validation loop; raises PutOff until that has ended."""
    asking, ticket = profile_in(snapshot).load(snapshot), work.holding.ticket

    def begin(child: str) -> Start:
        # Without a fixer, or if it would nest handoffs in handoffs, the loop judges every phase once.
        used, fixer = configuration, configuration.fixer
        is_circular = fixer is not None and fixer.is_handoffs and asking.profile == HANDOFF.name
        if (fixer is None or is_circular) and configuration.agent is None:
            used = configuration.model_copy(update={"fixer": None, "max_iterations": 1})
        mirror = bring_work(work.store, asking, cache)
        fields, tree = _child_fields(work, asking, used, child, mirror), tree_id(mirror.git, asking.tip)
        return validation_started(used, **fields, name=f"{asking.name}: {ticket.specialist}", tree=tree)

    loop: State = _finished_child(work, VALIDATION, begin)
    if loop.outcome in _STOPPED:
        return Played(error=f"its validation {loop.workflow} was {loop.outcome.value}", fatal=True)
    [first, *_] = work.store.history(loop.workflow)
    base = str(first.body["event"]["tip"])
    bundle = _fetched(work, asking.model_copy(update={"tip": base}), loop, cache)[1]
    runs: AgentRuns = loaded(registered_in(snapshot).agent_runs)
    keep = partial(work.store.put_artifact, ticket.workflow)
    answer, writings = runs.verdict(loop, asking, ticket.specialist, keep)
    kept, brought = (keep(answer.encode()),), Brought(base, loop.tip, bundle)
    return Played(answer=answer, writings=writings, artifacts=kept, brought=brought)


def fix(work: Step, configuration: Configuration, cache: Path) -> FixCompleted | FixFailed:
    """The fix of a fixer that is a handoff workflow; raises PutOff until that has ended."""
    state, ticket = work.holding.state, work.holding.ticket

    def begin(child: str) -> Start:
        report = open_report(work.store, state.workflow, work.holding.version)
        mirror = bring_work(work.store, state, cache)
        return handoffs_started(
            configuration,
            **_child_fields(work, state, configuration, child, mirror),
            name=f"{state.name}: fix what {ticket.specialist} found in run {ticket.iteration}",
            request=render_delivery(report.message),
            type=Kind.BUGFIX,
        )

    ended = _finished_child(work, HANDOFF, begin)
    if ended.outcome not in ("success", "skipped"):
        why = f"its workflow of handoffs {ended.workflow} was {ended.outcome}"
        return fix_failed(ticket, why, fatal=True)
    mirror, bundle = _fetched(work, state, ended, cache)
    change = change_between(mirror.git, state.tip, ended.tip)
    completion = Completion(
        iteration=ticket.iteration,
        by=f"handoffs {ended.workflow}",
        fixes=tuple(f"changed {name}" for name in change.files[:20]),
        **facts_of_change(work.store, state, mirror, change, hide=redaction_of(configuration).text),
    )
    return FixCompleted(specialist=ticket.specialist, completion=completion, bundle=bundle)


def _finished_child(work: Step, profile: Profile[Any], begin: Callable[[str], Start]) -> Any:
    ended = attended(work.store, process().engine_of, work.holding.ticket, profile, begin)
    if ended is None:
        raise PutOff(f"{child_of(work.holding.ticket.id)} works for it")
    return ended


def _child_fields(
    work: Step, asking: Any, configuration: Configuration, child: str, mirror: Mirror
) -> dict[str, Any]:
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


def _fetched(work: Step, asking: Any, ended: Any, cache: Path) -> tuple[Mirror, str]:
    """The mirror with a child's commits, and the digest of the bundle that transfers them to other machines."""
    mirror = bring_work(work.store, ended, cache)
    return mirror, keep_bundle(work.store, asking, mirror, ended.tip)
