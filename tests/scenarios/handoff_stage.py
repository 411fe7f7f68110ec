"""A handoff workflow on a virtual clock: events in, states and messages out. Nothing waits, nothing is stored."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from fixloop.profiles.handoff.decide import decide
from fixloop.profiles.handoff.events import (
    AgentActivated,
    AgentEscalated,
    AgentFailed,
    AgentReturned,
    Answered,
    DecisionMade,
    Event,
    HandoffsStarted,
    LockAcquired,
    LockReleased,
)
from fixloop.profiles.handoff.outcome import Outcome
from fixloop.profiles.handoff.records import Message
from fixloop.profiles.handoff.returns import Returned
from fixloop.profiles.handoff.state import Handoffs
from fixloop.protocol.moment import Moment

COMMANDS = {name: f"run-{name}" for name in ("planner", "builder", "reviewer", "fixer")}
SPEC = "specs/20260122-user-auth.md"


class HandoffStage:
    """One workflow and its clock, which begins at 00:00."""

    def __init__(self, **settings: Any) -> None:
        self.began = datetime(2026, 1, 22, tzinfo=UTC)
        self.now = self.began
        self.outcomes: list[Outcome] = []
        self._state: Handoffs | None = None
        facts: dict[str, Any] = {
            "workflow": "be9c4a11-9-1",
            "issue": 9,
            "name": "Add user auth",
            "commands": COMMANDS,
        }
        self.bring(HandoffsStarted(**facts | settings))

    def at(self, minutes: float, seconds: float = 0.0) -> "HandoffStage":
        """Set the clock."""
        self.now = self.began + timedelta(minutes=minutes, seconds=seconds)
        return self

    @property
    def moment(self) -> Moment:
        return Moment(self.now, self.now.timestamp())

    @property
    def state(self) -> Handoffs:
        assert self._state is not None
        return self._state

    @property
    def last(self) -> Outcome:
        return self.outcomes[-1]

    @property
    def messages(self) -> list[Message]:
        return [said.message for outcome in self.outcomes for said in outcome.messages]

    def routes(self, *kinds: str) -> list[tuple[str, str, str]]:
        """Type and ends of all that was said of these kinds."""
        return [(m.type.value, m.sender, m.recipient) for m in self.messages if m.type.value in kinds]

    def events(self) -> Counter[str]:
        return Counter(event.event for event in self.state.events)

    def asked(self) -> list[str]:
        return [agent.name for agent in self.state.agents if agent.asked]

    def bring(self, event: Event) -> Outcome:
        """Let an event happen now."""
        outcome = decide(self._state, event, self.moment)
        self._state = outcome.state
        self.outcomes.append(outcome)
        return outcome

    def start(self, name: str) -> Outcome:
        return self.bring(AgentActivated(agent=name))

    def result(self, name: str, **facts: Any) -> Outcome:
        return self.bring(AgentReturned(sender=name, result=Returned(**facts)))

    def work(self, name: str, **facts: Any) -> Outcome:
        """A whole run of an agent at one moment."""
        self.start(name)
        return self.result(name, **facts)

    def plan(self) -> "HandoffStage":
        self.work("planner", status="completed", spec=SPEC)
        return self

    def build(self) -> "HandoffStage":
        self.work("builder", status="completed", commit="abc123", files_changed=["src/auth.ts"])
        return self

    def fail(self, name: str, *, fatal: bool = False) -> Outcome:
        return self.bring(AgentFailed(agent=name, reason="out of memory", fatal=fatal))

    def escalate(self, name: str, *options: str, blocking: bool = True) -> Outcome:
        facts: dict[str, Any] = {
            "reason": "spec_ambiguity",
            "details": "Cannot determine auth method",
            "context": "spec line 45",
        }
        return self.bring(AgentEscalated(sender=name, options=options, blocking=blocking, **facts))

    def answer(self, text: str) -> Outcome:
        return self.bring(Answered(answer=text))

    def decide(self, decision: Any, **facts: Any) -> Outcome:
        return self.bring(DecisionMade(decision=decision, **facts))

    def lock(self, name: str, resource: str) -> str:
        return self.bring(LockAcquired(sender=name, resource=resource)).answer

    def unlock(self, name: str, resource: str, token: int | None = None) -> str:
        return self.bring(LockReleased(sender=name, resource=resource, token=token)).answer
