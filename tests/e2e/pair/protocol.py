"""Two agents, one message, one status: states, events and what follows from them."""

from datetime import datetime
from typing import Any, Final, Literal

from fixloop.engine.profile import Profile, iso, loader
from fixloop.protocol import draft
from fixloop.protocol.agent_events import Cancelled, EventRefused
from fixloop.protocol.event import Event, Moment, Start, Unexpected, Value, kinds_in
from fixloop.protocol.ticket import Ticket

AGENTS: Final = ("first", "second")


class Message(Value):
    number: int
    message_id: str
    at: datetime
    sender: str
    text: str


class Pair(Value):
    profile: Literal["pair"]
    schema_version: int
    workflow: str
    issue: int
    name: str
    project: str = ""
    queue: str = ""
    configuration: str = ""
    snapshot: str = ""
    tip: str = ""
    push: bool = False
    pushed: str = ""
    push_error: str = ""
    status: str = "passing"
    turn: str = AGENTS[0]
    started_at: datetime
    last_at: datetime
    ended_at: datetime | None = None
    outcome: str = ""
    lines: int = 0

    @property
    def ended(self) -> bool:
        return self.ended_at is not None


class PairStarted(Start):
    kind: Literal["pair-started"] = "pair-started"
    issue: int
    name: str
    project: str = ""
    queue: str = ""
    configuration: str = ""
    snapshot: str = ""
    tip: str = ""
    push: bool = False


class Passed(Event):
    kind: Literal["passed"] = "passed"


class _Draft(draft.Draft[Pair, Message]):
    def ask(self, agent: str) -> None:
        self.state = self.state.with_(turn=agent)
        self._made.steps += (ticket_of(self.state, agent),)

    def say(self, sender: str) -> None:
        self.state = self.state.with_(lines=self.state.lines + 1)
        number, text = self.state.lines, f"{sender} has passed it on"
        said = Message(number=number, message_id=f"PASSED-{number}", at=self.at, sender=sender, text=text)
        self._made.messages += (said,)

    def end(self, outcome: str) -> None:
        self.withdraw()
        self.state = self.state.with_(outcome=outcome, ended_at=self.at, turn="")


def ticket_of(state: Pair, agent: str) -> Ticket:
    return Ticket(
        id=f"{state.workflow}.{agent}",
        workflow=state.workflow,
        step="pass",
        queue=state.queue or "fixloop.pair",
        specialist=agent,
        iteration=1,
    )


def decide(state: Pair | None, event: Any, now: Moment) -> draft.Outcome[Pair, Message]:
    if isinstance(event, PairStarted):
        facts = event.model_dump(exclude={"kind", "sender"})
        begun = _Draft(
            Pair(profile="pair", schema_version=1, started_at=now.at, last_at=now.at, **facts), now
        )
        begun.ask(AGENTS[0])
        return begun.outcome()
    if state is None:
        raise Unexpected(f"{event.kind} came before the workflow started")
    made = _Draft(state.with_(last_at=max(state.last_at, now.at)), now)
    if isinstance(event, EventRefused):
        made.note(f"refused: {event.refused}: {event.reason}")
    elif state.ended:
        raise Unexpected(f"{event.kind} came after workflow {state.workflow} ended")
    elif isinstance(event, Cancelled):
        made.end("cancelled")
    elif isinstance(event, Passed) and event.sender == state.turn:
        made.say(event.sender)
        if event.sender == AGENTS[0]:
            made.ask(AGENTS[1])
        else:
            made.end("success")
    else:
        raise Unexpected(f"{event.kind} of {event.sender} came while it is {state.turn}'s turn")
    return made.outcome()


def _fields(state: Pair) -> dict[str, str]:
    return {
        "project": state.project,
        "name": state.name,
        "profile": state.profile,
        "status": state.status,
        "outcome": state.outcome,
        "owner": "agent",
        "specialist": state.turn,
        "queue": state.queue,
        "updated_at": iso(state.last_at),
    }


PAIR: Final[Profile[Pair]] = Profile(
    name="pair",
    orchestrator="orchestrator",
    decide_version=1,
    decide=decide,
    load=loader(Pair, 1),
    kinds=kinds_in(vars()),
    fields=_fields,
    recorded=lambda message: message.model_dump(mode="json"),
    check_party=lambda event, worker: None,
    worker_of=lambda ticket: ticket.specialist,
    is_deadline=lambda name: False,
)
