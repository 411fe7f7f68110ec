"""Applies decisions, receipts and PHASE_RESULTs from people and outside agents to a cycle (C33, C35, C57)."""

from typing import Any, Final

from fixloop.commands.agent_work import DECISIONS
from fixloop.commands.handlers import Answer, Said
from fixloop.commands.outside_agents import Handed, Outside, handlers, refuse_bounds, sender, tell
from fixloop.commands.screen import note
from fixloop.commands.session import Session, look
from fixloop.errors import UsageError
from fixloop.intake.redaction_scope import redaction_for
from fixloop.profiles.cycle import events as ev
from fixloop.profiles.cycle.agent_output import Writings, written_by
from fixloop.profiles.cycle.phase_result import InvalidResult, PhaseResult, read_result
from fixloop.profiles.cycle.records import InputKind, ResultStatus
from fixloop.profiles.cycle.state import Cycle
from fixloop.protocol.event import ORCHESTRATOR, USER


def _decide(session: Session, workflow: str, given: Answer) -> None:
    if given.until or given.owner:
        raise UsageError("an expiry and an owner go with skip in a validation workflow")
    state: Cycle = look(session, workflow).state
    if given.word not in DECISIONS:
        raise UsageError(
            f"{given.word!r} is not a decision on a cycle; choose from {', '.join(DECISIONS)}, and what its agents are "
            "to do goes with manual-fix as --guidance"
        )
    if given.word == "manual-fix" and not given.text.strip():
        raise UsageError("manual-fix needs your guidance; add --guidance TEXT")
    refuse_bounds(given, "a cycle")
    opened = state.escalation
    if given.escalation and (opened is None or given.escalation != opened.id):
        open_ = f"{opened.id} is answered first" if opened is not None else "none is open"
        raise UsageError(f"escalation {given.escalation} cannot be answered now; {open_}")
    facts: dict[str, Any] = {"decision": given.word, "text": given.text, "sender": sender(USER)}
    if given.iterations is not None:
        facts["iterations"] = given.iterations
    session.bring(workflow, ev.DecisionMade(**facts))
    tell(look(session, workflow).standing, waits_for="another decision")


def _apply_result(handed: Handed) -> None:
    """Apply a PHASE_RESULT; the cycle counts one that is invalid or violates a rule (C35)."""
    store, state, agent = handed.session.store, handed.seen.state, handed.agent
    try:
        if handed.blocked is None:
            result = read_result(handed.text)
        else:
            said = handed.blocked.strip()
            result = PhaseResult(phase=agent, status=ResultStatus.FAILED, summary=said, issues=(said,))
        written = Writings()
        if handed.folder is not None:
            hide = redaction_for(store, state).data
            written = written_by(store, state, handed.laid, agent, handed.folder, hide=hide)
        event: dict[str, Any] = {"sender": agent, "result": result, **written._asdict()}
        handed.session.bring(state.workflow, ev.PhaseReported(**event | dict(handed.work)))
    except InvalidResult as invalid:
        problem = str(invalid)
        rejected = ev.AnswerInvalid(sender=agent, agent=agent, problem=problem, artifacts=handed.artifacts)
        handed.session.bring(state.workflow, rejected)
        raise UsageError(problem) from None


_KINDS: Final = (InputKind.CLARIFICATION.value, InputKind.FEEDBACK.value)


def _send(session: Session, workflow: str, said: Said) -> None:
    """Send an input as a person in the orchestrator's place; the cycle refuses an agent and logs the refusal (C20)."""
    kind = said.kind or InputKind.CLARIFICATION.value
    if kind not in _KINDS:
        raise UsageError(f"you cannot send {kind!r}; --type is {' or '.join(_KINDS)}")
    if said.agent:
        raise UsageError("--agent goes with handoffs; in a cycle you send for the orchestrator")
    event = ev.InputRequested(
        sender=sender(ORCHESTRATOR),
        recipient=said.to.lower(),
        input=InputKind(kind),
        summary=said.text,
        actions=said.actions or (said.text,),
        criteria=said.criteria,
        occasion=said.about,
    )
    session.bring(workflow, event)
    now = look(session, workflow)
    note(f"{event.recipient} has the message; issue {now.standing.issue} continues: {now.standing.at_work}")


OUTSIDE: Final = Outside(
    began=lambda agent: ev.AgentStarted(agent=agent, sender=agent),
    brought=_apply_result,
    # The run after an invalid answer uses the same directory, with its earlier files.
    number=lambda agent: int(agent.runs - agent.invalid),
)
HANDLERS: Final = handlers(OUTSIDE, decide=_decide, send=_send)
