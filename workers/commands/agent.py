"""
An agent of a cycle or of handoffs as a command: its request on stdin, its answer on stdout.

It runs in a workspace of its own at the workflow's tip, with the named files laid in. What differs there when it has
ended well is a commit; the named files are no part of it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fixloop.configuration.model import Configuration
from fixloop.configuration.settings import Role
from fixloop.errors import ProtocolError
from fixloop.files.atomic import read
from fixloop.machine.guard import GuardedResult
from fixloop.outside.prompts import request_for
from fixloop.outside.specification import missing_specification
from fixloop.outside.transfer import NotKept, bring_work, keep_bundle
from fixloop.profile_table import profile_of
from fixloop.profiles.cycle.agent_output import Writings, written_by
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.phase_result import InvalidResult
from fixloop.profiles.handoff.drawing import fields_written
from fixloop.profiles.handoff.engine import HANDOFF
from fixloop.profiles.handoff.files import STATE_FILE
from fixloop.profiles.handoff.returns import InvalidReturn, read_return
from fixloop.repository.change import Change, change_between
from fixloop.repository.merge import brought_onto
from fixloop.statefiles.agent_run import Brought, Played
from fixloop.statefiles.sync import lay, tell_of_edits
from workers.commands import children
from workers.steps.crew import Work
from workers.workspaces.ground import Ground, open_ground

GRACE_SECONDS: Final = 60.0
"""The state ends a late run by withdrawing its ticket; this is for a state that cannot be reached."""
SHOWN_CHARACTERS: Final = 300
_ENDLESS_SECONDS: Final = 24 * 3600.0


def play(work: Work, configuration: Configuration, snapshot: bytes, cache: Path) -> Played | None:
    """
    Run the command of the ticket's agent, see `Crew`.

    Raises:
        Injured: it was killed by somebody else; its changes are dropped.
        ProtocolError: the agent has no command.
        PutOff: it is a validation loop that has not ended.
    """
    state, key = work.holding.state, work.holding.ticket.specialist
    settings = getattr(configuration, state.profile)
    role: Role | None = settings.agent.get(key) if settings is not None else None
    if role is None or not role.command:
        raise ProtocolError(f"{key} of {state.workflow} has no command in its configuration")
    if role.is_validation_loop:
        return children.judged(work, configuration, snapshot, cache)
    with open_ground(work, configuration, cache) as ground:
        lay(work.store, snapshot, ground.workspace.directory)
        result = _run(work, role, ground, snapshot)
        return _played(work, ground, result, snapshot) if result is not None else None


def bring_onto(work: Work, state: Any, base: str, tip: str, cache: Path) -> Brought:
    """Merge what changed from `base` to `tip` onto the present tip of `state`, see `Crew`."""
    mirror = bring_work(work.store, state, cache)
    own = change_between(mirror.git, base, tip)
    change = brought_onto(state.tip, own, base=base, mirror=mirror, message=_message(work))
    return Brought(state.tip, change.commit, keep_bundle(work.store, state, mirror, change.commit))


def _run(work: Work, role: Role, ground: Ground, snapshot: bytes) -> GuardedResult | None:
    state, ticket = work.holding.state, work.holding.ticket
    limit = state.limits.seconds_of(ticket.specialist)
    if limit is not None:
        limit += getattr(state.limits, "converge_seconds", 0.0)
    return work.run(
        role.command,
        cwd=ground.workspace.directory,
        env=ground.environment(role.env)
        | {
            "FIXLOOP_WORKFLOW": ticket.workflow,
            "FIXLOOP_ISSUE": str(state.issue),
            "FIXLOOP_ROLE": ticket.specialist,
            "FIXLOOP_ITERATION": str(ticket.iteration),
            "FIXLOOP_ATTEMPT": str(ticket.attempt),
        },
        stdin=request_for(work.store, snapshot, ticket.specialist).encode(),
        unheard_seconds=(_ENDLESS_SECONDS if limit is None else limit) + GRACE_SECONDS,
        apart=True,
    )


def _played(work: Work, ground: Ground, result: GuardedResult, snapshot: bytes) -> Played:
    state, workspace = work.holding.state, ground.workspace
    if injury := workspace.injury():
        return Played(error=f"the command of {work.holding.ticket.specialist} {injury}")
    answer, talk = ground.redaction.text(result.output), ground.redaction.text(result.talk)
    kept = tuple(
        work.store.put_artifact(state.workflow, text.encode(errors="replace"))
        for text in (answer, talk)
        if text
    )
    if result.exit_code != 0:
        return Played(error=_why(work, result, talk or answer), artifacts=kept)
    fields = _fields(ground, snapshot)
    try:
        writings, change = _writings(work, ground, snapshot), workspace.capture(state.tip, _message(work))
        brought = Brought(
            state.tip, change.commit, keep_bundle(work.store, state, workspace.mirror, change.commit)
        )
    except InvalidResult as invalid:
        return Played(wrong=ground.redaction.text(str(invalid)), artifacts=kept)
    except NotKept as error:
        return Played(error=str(error), artifacts=kept)
    return Played(
        answer=answer,
        wrong=_without_spec(work, ground, change, answer) if profile_of(snapshot) == HANDOFF.name else "",
        writings=writings,
        artifacts=kept,
        brought=brought,
        files=tuple(map(ground.redaction.text, change.files)),
        fields=fields,
    )


def _writings(work: Work, ground: Ground, snapshot: bytes) -> Writings:
    state, key, folder = work.holding.state, work.holding.ticket.specialist, ground.workspace.directory
    if state.profile != CYCLE.name:
        taken = (STATE_FILE,) if _fields(ground, snapshot) else ()
        tell_of_edits(work.store, snapshot, folder, key, taken)
        return Writings()
    return written_by(work.store, state, snapshot, key, folder, hide=ground.redaction.data)


def _fields(ground: Ground, snapshot: bytes) -> Mapping[str, Any]:
    """What an agent of handoffs wrote into the shared state; in a cycle only the orchestrator writes (C5)."""
    if profile_of(snapshot) != HANDOFF.name:
        return {}
    content = read(ground.workspace.directory, STATE_FILE) or b""
    return fields_written(snapshot, ground.redaction.data(content))


def _without_spec(work: Work, ground: Ground, change: Change, answer: str) -> str:
    """What is wrong with the specification that its result names; empty: nothing, or there is no result."""
    try:
        said = read_return(answer)
    except InvalidReturn:
        return ""
    return missing_specification(work.holding.state, ground.workspace.mirror.git, change.commit, said)


def _message(work: Work) -> str:
    ticket = work.holding.ticket
    return f"fixloop: issue {work.holding.state.issue}, {ticket.specialist}, iteration {ticket.iteration}\n"


def _why(work: Work, result: GuardedResult, said: str) -> str:
    command = f"the command of {work.holding.ticket.specialist}"
    if result.not_found:
        return f"{command} was not found or cannot be executed"
    if result.timed_out:
        return f"{command} did not end within {result.duration_seconds:.0f} s"
    how = (
        f"died of signal {result.signal}"
        if result.signal is not None
        else f"ended with exit code {result.exit_code}"
    )
    tail = " ".join(said.split())[-SHOWN_CHARACTERS:]
    return f"{command} {how}: {tail}" if tail else f"{command} {how}"
