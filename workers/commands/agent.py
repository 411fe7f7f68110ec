"""An agent of a cycle or handoffs as a command: it gets its request on stdin and answers on stdout.

It runs in a workspace at the workflow's tip that also has the named files. If it succeeds, its changes become a commit,
without the named files.
"""

from pathlib import Path
from typing import Any, Final

from fixloop.configuration.model import Configuration
from fixloop.configuration.settings import Role
from fixloop.errors import ProtocolError
from fixloop.machine.guard import GuardedResult
from fixloop.outside.offer import request_for
from fixloop.outside.transfer import NotKept, bring_work, keep_bundle
from fixloop.profile_table import loaded, registered_in
from fixloop.repository.change import change_between
from fixloop.repository.merge import rebased
from fixloop.statefiles.agent_run import AgentRuns, Brought, Played
from fixloop.statefiles.sync import lay
from workers.commands import child_workflows
from workers.commands.fixer import end_of
from workers.steps.step import Step, with_grace
from workers.workspaces.confinement import writable_by
from workers.workspaces.ground import Ground, open_ground, site_of

SHOWN_CHARACTERS: Final = 300


def play(work: Step, configuration: Configuration, snapshot: bytes, cache: Path) -> Played | None:
    """Run the command of the ticket's agent, see `Commands`."""
    state, ticket = work.holding.state, work.holding.ticket
    key = ticket.specialist
    settings = getattr(configuration, state.profile)
    role: Role | None = settings.agent.get(key) if settings is not None else None
    if role is None or not role.command:
        raise ProtocolError(f"{key} of {state.workflow} has no command in its configuration")
    if role.is_validation_loop:
        return child_workflows.validate(work, configuration, snapshot, cache)
    with open_ground(work, configuration, cache) as ground:
        lay(work.store, snapshot, ground.workspace.directory)
        limit = state.limits.seconds_of(key)
        if limit is not None:
            limit += getattr(state.limits, "converge_seconds", 0.0)
        env = ground.environment(role.env) | {
            "FIXLOOP_WORKFLOW": ticket.workflow,
            "FIXLOOP_ISSUE": str(state.issue),
            "FIXLOOP_ROLE": key,
            "FIXLOOP_ITERATION": str(ticket.iteration),
            "FIXLOOP_ATTEMPT": str(ticket.attempt),
        }
        folder, site = ground.workspace.directory, site_of(work, configuration, cache)
        result = work.run(
            role.command,
            cwd=folder,
            env=env,
            confined=site.confined(folder, env, writable=writable_by(role.command)),
            stdin=request_for(work.store, snapshot, key).encode(),
            unheard_seconds=with_grace(limit),
            apart=True,
        )
        return _result_of(work, ground, result, snapshot) if result is not None else None


def bring_onto(work: Step, state: Any, base: str, tip: str, cache: Path) -> Brought:
    """Merge the changes from `base` to `tip` onto the tip of `state`, see `Commands`."""
    mirror = bring_work(work.store, state, cache)
    own = change_between(mirror.git, base, tip)
    change = rebased(state.tip, own, base=base, mirror=mirror, message=_message(work))
    return Brought(state.tip, change.commit, keep_bundle(work.store, state, mirror, change.commit))


def _result_of(work: Step, ground: Ground, result: GuardedResult, snapshot: bytes) -> Played:
    state, key, workspace = work.holding.state, work.holding.ticket.specialist, ground.workspace
    command = f"the command of {key}"
    if injury := workspace.injury():
        return Played(error=f"{command} {injury}")
    answer, talk = ground.redaction.text(result.output), ground.redaction.text(result.talk)
    kept = work.keep(answer, talk)
    if result.exit_code != 0:
        why, tail = end_of(result, command, command), " ".join((talk or answer).split())[-SHOWN_CHARACTERS:]
        is_told = tail and not result.not_found and not result.timed_out
        return Played(error=f"{why}: {tail}" if is_told else why, artifacts=kept)
    runs: AgentRuns = loaded(registered_in(snapshot).agent_runs)
    left = runs.left(work.store, state, snapshot, key, workspace.directory, ground.redaction.data)
    if left.wrong:
        return Played(wrong=ground.redaction.text(left.wrong), artifacts=kept)
    change = workspace.capture(state.tip, _message(work))
    try:
        bundle = keep_bundle(work.store, state, workspace.mirror, change.commit)
    except NotKept as error:
        return Played(error=str(error), artifacts=kept)
    return Played(
        answer=answer,
        wrong=runs.missing(state, workspace.mirror.git, change.commit, answer),
        writings=left.writings,
        artifacts=kept,
        brought=Brought(state.tip, change.commit, bundle),
        files=tuple(map(ground.redaction.text, change.files)),
        fields=left.fields,
    )


def _message(work: Step) -> str:
    ticket = work.holding.ticket
    return f"fixloop: issue {work.holding.state.issue}, {ticket.specialist}, iteration {ticket.iteration}\n"
