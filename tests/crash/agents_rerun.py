"""A cycle or a workflow of handoffs whose workers die at named points, by the step handlers that real workers have."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from fixloop.engine.engine import ProfileHolding
from fixloop.outside.mailbox import Letter
from fixloop.profiles.cycle.events import CycleStarted
from fixloop.profiles.handoff.events import HandoffsStarted
from fixloop.protocol.event import Event, Repeated, Start
from fixloop.statefiles.rendering import drawn
from fixloop.store.contract import Store
from fixloop.testing.crew import ScriptedError
from tests.crash.rerun import WORKFLOW, Boundary, Ending, Rerun
from workers.steps.execution import STEP_HANDLERS
from workers.steps.step import crew
from workers.steps.step_handlers import Failure

AGENTS: Final = {"cycle": ("ra", "ep", "cd", "vas"), "handoff": ("planner", "builder", "reviewer", "fixer")}


class _Step:
    """A claimed step as its step handler sees it, without a lease."""

    def __init__(self, rerun: "AgentsRerun", holding: ProfileHolding[Any]) -> None:
        self.holding = holding
        self._rerun = rerun

    @property
    def store(self) -> Store:
        return self._rerun.store

    def cancelled(self) -> bool:
        return False

    def post(self, agent: str, letter: Letter) -> None:
        """A mailbox accepts it; then its worker may die."""
        self._rerun.take_letter(agent, letter, self.holding.ticket.id)

    def tell(self, event: Event, what: str) -> None:
        """Commit an event during the step; then its agent is at work."""
        self._rerun.tell(self.holding, event, what)


class AgentsRerun(Rerun):
    """One way through a scene of such a profile."""

    letters: Counter[tuple[str, Letter]]
    """The letters in the mailboxes of outside agents, with their counts."""

    def play(self) -> Ending:
        """From start to end, with the scripted crew."""
        self.letters = Counter()
        with _scripted_crew():
            return super().play()

    def take_letter(self, agent: str, letter: Letter, ticket: str) -> None:
        """It is in the mailbox; the worker that delivered it has not reported yet."""
        self.letters[agent, letter] += 1
        self._at(Boundary.MID_WORK, ticket)

    def tell(self, holding: ProfileHolding[Any], event: Event, what: str) -> None:
        """The events that a step commits before it ends."""
        with suppress(Repeated):
            self._engine.apply(WORKFLOW, event, operation=f"{holding.ticket.id}/{what}")
        self._at(Boundary.MID_WORK, holding.ticket.id)

    def _event(self, holding: ProfileHolding[Any]) -> Event:
        ticket = holding.ticket
        self.executed[ticket.id.removeprefix(f"{WORKFLOW}.")] += 1
        step: Any = _Step(self, holding)
        if ticket.step in ("finish", "notify"):
            self._at(Boundary.MID_WORK, ticket.id)
        handlers = STEP_HANDLERS[self.scene.kind]
        try:
            event = handlers.steps[ticket.step].do(step)
        except ScriptedError as error:
            event = handlers.failure(step, Failure(str(error)))
        assert event is not None, "nobody cancels here"
        return event

    def _waits_for_person(self, state: Any) -> bool:
        return bool(self._engine.profile.fields(state)["paused"])

    def _files(self) -> dict[str, str]:
        """The named files at the end, as text."""
        files = drawn(self._found().snapshot, partial(self.store.get_artifact, WORKFLOW))
        found = {file.path: file.content for file in (*files.inside(), *files.files)}
        return {path: content.decode() for path, content in found.items()}

    def _started(self) -> Start:
        facts: dict[str, Any] = {
            "workflow": WORKFLOW,
            "issue": 101,
            "name": self.scene.script,
            "commands": dict.fromkeys(set(AGENTS[self.scene.kind]) - set(self.scene.outside), "scripted"),
            "tip": "commit-0",
            "notify": self.scene.notify,
        }
        if self.scene.kind == "cycle":
            return CycleStarted(cycle_id="cycle-101", **facts)
        return HandoffsStarted(**facts)


@contextmanager
def _scripted_crew() -> Iterator[None]:
    """The crew of this process, for as long as it plays."""
    before = os.environ.get("FIXLOOP_CREW")
    os.environ["FIXLOOP_CREW"] = "fixloop.testing:scripted_crew"
    crew.cache_clear()
    try:
        yield
    finally:
        crew.cache_clear()
        if before is None:
            del os.environ["FIXLOOP_CREW"]
        else:
            os.environ["FIXLOOP_CREW"] = before
