"""A cycle on a virtual clock: events in, states and messages out. Nothing waits, nothing is stored."""

from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from typing import Any

from fixloop.profiles.cycle.decide import decide
from fixloop.profiles.cycle.events import (
    AgentStarted,
    CycleFinished,
    CycleStarted,
    DecisionMade,
    Event,
    PhaseReported,
    Written,
)
from fixloop.profiles.cycle.messages import Input, Message
from fixloop.profiles.cycle.outcome import Outcome
from fixloop.profiles.cycle.phase_result import read_result
from fixloop.profiles.cycle.state import Agent, Cycle
from fixloop.protocol.moment import Moment

ZONE = timezone(timedelta(hours=8))
COMMANDS = {key: f"run-{key}" for key in ("ra", "ep", "cd", "vas")}


class CycleStage:
    """One cycle and the clock on its wall, in the zone of the named files."""

    def __init__(self, clock: str = "10:00", **settings: Any) -> None:
        self.now = datetime(2026, 1, 22, tzinfo=ZONE)
        self.at(clock)
        self.outcomes: list[Outcome] = []
        self._state: Cycle | None = None
        facts: dict[str, Any] = {
            "workflow": "be9c4a11-7-1",
            "issue": 7,
            "name": "OAuth login",
            "cycle_id": "cycle-v1-20260122T100000-abc123",
            "commands": COMMANDS,
        }
        self.bring(CycleStarted(**facts | settings))

    def at(self, clock: str) -> "CycleStage":
        """Set the clock, `HH:MM` or `HH:MM:SS`."""
        hours, minutes, seconds = (*map(int, clock.split(":")), 0)[:3]
        self.now = self.now.replace(hour=hours, minute=minutes, second=seconds)
        return self

    @property
    def moment(self) -> Moment:
        return Moment(self.now.astimezone(UTC), self.now.timestamp())

    @property
    def state(self) -> Cycle:
        assert self._state is not None
        return self._state

    @property
    def last(self) -> Outcome:
        return self.outcomes[-1]

    @property
    def messages(self) -> list[Message]:
        return [message for outcome in self.outcomes for message in outcome.messages]

    def inputs(self, recipient: str) -> list[Input]:
        """All that was sent to an agent by `send_input`."""
        said = (m.body for m in self.messages if m.recipient == recipient)
        return [body for body in said if isinstance(body, Input)]

    def agent(self, key: str) -> Agent:
        return self.state.agent(key)

    def statuses(self) -> dict[str, str]:
        return {agent.key: agent.status.value for agent in self.state.agents}

    def bring(self, event: Event) -> Outcome:
        """Let an event happen now."""
        outcome = decide(self._state, event, self.moment)
        self._state = outcome.state
        self.outcomes.append(outcome)
        return outcome

    def start(self, key: str) -> Outcome:
        return self.bring(AgentStarted(agent=key))

    def report(self, key: str, status: str = "success", *documents: str, **facts: Any) -> Outcome:
        """An agent's PHASE_RESULT as it printed it, and the documents it left."""
        return self.bring(reported(key, status, *documents, **facts))

    def work(self, key: str, status: str = "success", *documents: str, **facts: Any) -> Outcome:
        """A whole run of an agent at one moment."""
        self.start(key)
        return self.report(key, status, *documents, **facts)

    def finish(self) -> Outcome:
        return self.bring(CycleFinished())

    def decide(self, decision: Any, text: str = "", **facts: Any) -> Outcome:
        return self.bring(DecisionMade(decision=decision, text=text, **facts))


def reported(key: str, status: str = "success", *documents: str, **facts: Any) -> PhaseReported:
    """`document=text` for each main document; further facts are lines of the block, `logs` and `tasks` of the event."""
    written = tuple(_written(document) for document in documents)
    further: dict[str, Any] = {name: facts.pop(name) for name in ("logs", "sender") if name in facts}
    further["plan"] = facts.pop("tasks", None)
    lines = {"summary": "done", "issues": "none"} | facts
    names = ", ".join(document.name for document in written)
    block = "\n".join(f"- {name}: {value}" for name, value in lines.items())
    text = f"PHASE_RESULT:\n- phase: {key}\n- status: {status}\n- files_written: [{names}]\n{block}\n"
    event: dict[str, Any] = {"sender": key, "result": read_result(text), "documents": written}
    return PhaseReported(**event | further)


def _written(document: str) -> Written:
    name, _, text = document.partition("=")
    return Written(name=name, digest=sha256((text or name).encode()).hexdigest())
