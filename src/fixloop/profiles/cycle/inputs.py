"""`send_input`, used only by the orchestrator, once per kind and occasion; and further runs (C20-C23, C37-C40, K15)."""

from typing import Final

from fixloop.profiles.cycle import conflicts, events as ev
from fixloop.profiles.cycle.messages import Input
from fixloop.profiles.cycle.outcome import Draft
from fixloop.profiles.cycle.records import AgentStatus, InputKind, SentInput
from fixloop.profiles.cycle.workers import worker
from fixloop.protocol.event import ORCHESTRATOR, Unexpected

_WHAT: Final = {
    InputKind.READY: "its dependency",
    InputKind.CLARIFICATION: "the blocker",
    InputKind.FEEDBACK: "iteration",
    InputKind.CONVERGENCE: "run",
}


def send(
    draft: Draft,
    recipient: str,
    kind: InputKind,
    occasion: str,
    *,
    source: str,
    summary: str,
    document: tuple[str, str] | None = None,
    actions: tuple[str, ...],
    criteria: tuple[str, ...],
    next_step: str = "",
    iterations: tuple[int, int] | None = None,
) -> None:
    """Send an input to an agent, once per occasion, else Unexpected (C22). `document` is the path and version of its
    subject, `next_step` what the agent does before it reports, `iterations` the previous one and the current."""
    sent = SentInput(kind=kind, recipient=recipient, occasion=occasion)
    if sent in draft.state.inputs:
        what = f"{_WHAT[kind]} {occasion}"
        told = f"{recipient} has had its {kind} for {what}; one is sent, then its PHASE_RESULT is waited for"
        raise Unexpected(told)
    draft.append(inputs=sent)
    file, version = document or ("", draft.state.version)
    previous, current = iterations or (draft.state.iteration, draft.state.iteration)
    body = Input(
        input=kind,
        source=source,
        summary=summary,
        file=file,
        version=version,
        actions=actions,
        criteria=criteria,
        next_step=f"{next_step}\nOutput PHASE_RESULT when complete.".lstrip(),
        previous_iteration=previous,
        current_iteration=current,
    )
    said = draft.say(body, recipient=recipient, summary=body.summary)
    draft.agent(recipient, message=f"{said.message_id}: {body.summary}")


def send_ready(draft: Draft, recipient: str, dependency: str) -> None:
    """Tell an agent that a dependency is complete (C40)."""
    source, told = worker(dependency), worker(recipient)
    document = draft.state.primary(dependency)
    send(
        draft,
        recipient,
        InputKind.READY,
        f"{dependency} run {draft.state.agent(dependency).runs}",
        source=source.name,
        summary=f"{source.name} is complete, v{draft.state.version}: {told.name} can start",
        document=document,
        actions=(f"Read {document[0] or 'the shared state'} and do the work of {told.role.lower()}",),
        criteria=tuple(f"{name} is written" for name in told.documents[:1]),
        next_step="Write your documents in your progress directory.",
    )


def send_feedback(draft: Draft, recipient: str, issues: tuple[str, ...], source: str) -> None:
    """Send issues to an agent that can fix them; their iteration has already started (C53, K15)."""
    current = draft.state.iteration
    send(
        draft,
        recipient,
        InputKind.FEEDBACK,
        str(current - 1),
        source=worker(source).name,
        summary=f"{len(issues)} blocking {'issue' if len(issues) == 1 else 'issues'} found in v{draft.state.version}",
        document=draft.state.primary(source),
        actions=issues,
        criteria=tuple(f"No longer found: {issue}" for issue in issues),
        next_step=f"Fix these, then update {worker(recipient).documents[0]}.",
        iterations=(current - 1, current),
    )


def input_requested(draft: Draft, event: ev.InputRequested) -> None:
    """Send a person's input in the orchestrator's place. Unexpected if an agent sends it (C20), if it contains no
    action (C21), or if feedback would arrive during work."""
    if event.sender != ORCHESTRATOR:
        told = f"send_input is the orchestrator's; {event.sender} reports to it with a PHASE_RESULT"
        raise Unexpected(told)
    agent = draft.state.agent(event.recipient)
    if draft.state.all_completed and not draft.state.escalations:
        told = f"all of cycle {draft.state.cycle_id} is complete, and it is about to end; begin another one"
        raise Unexpected(told)
    if agent.status is AgentStatus.COMPLETED and event.input is not InputKind.CLARIFICATION:
        raise Unexpected(
            f"{agent.key} has completed, and feedback opens an iteration, which only a validation does; "
            "send a clarification"
        )
    if not event.summary.strip() or not any(action.strip() for action in event.actions):
        told = "a send_input says what happened and what to do; give a summary and at least one action"
        raise Unexpected(told)
    key, present = event.recipient, draft.state.iteration
    send(
        draft,
        key,
        event.input,
        event.occasion or str(present),
        source=ORCHESTRATOR,
        summary=event.summary,
        actions=event.actions,
        criteria=event.criteria or tuple(f"Done: {action}" for action in event.actions),
        iterations=(present, present + (event.input is InputKind.FEEDBACK)),
    )
    if not draft.state.completed(key):
        return
    # A completed agent does this in a further run; a completed validation is repeated.
    ask_run(draft, key)
    vas = next((agent for agent in draft.state.agents if agent.key == "vas" and key != "vas"), None)
    if vas is not None and vas.status is not AgentStatus.IDLE:
        draft.drop(vas.key)
        waits = tuple(dict.fromkeys((*vas.waits_for, key)))
        draft.agent(vas.key, status=AgentStatus.WAITING, waits_for=waits)


def start_ready(draft: Draft) -> None:
    """Ask every agent that is idle, not held, and has complete dependencies (C37-C39)."""
    held = {key for escalation in draft.state.escalations for key in escalation.agents}
    for agent in draft.state.agents:
        may = agent.status in (AgentStatus.IDLE, AgentStatus.WAITING) and not agent.asked
        if may and agent.key not in held and draft.state.can_start(agent.key):
            ask_run(draft, agent.key)


def ask_run(draft: Draft, key: str) -> None:
    """Ask an agent for a further run."""
    agent = draft.state.agent(key)
    status = agent.status if agent.status is AgentStatus.IDLE else AgentStatus.WAITING
    draft.agent(key, runs=agent.runs + 1, attempt=1, invalid=0, begun=False, waits_for=(), status=status)
    draft.ask(key)
    if key == "vas":
        conflicts.retried(draft)
