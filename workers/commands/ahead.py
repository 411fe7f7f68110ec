"""Runs of later phases in parallel with the present one: linters and scanners with any phase, one phase that runs the
project with linters and scanners (docs/decisions/0051).

The protocol's decision determines which runs follow if the present one passes, and on what state. Only a worker for a
single workflow does this, and its one work process owns these runs: the step of a later phase commits the result, or it
is dropped. Only a pass on the same state is used; everything else runs again in its phase.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from fixloop.intake.recheck import READING
from fixloop.profiles.validation.engine import VALIDATION
from fixloop.protocol.checks import RunOutcome
from fixloop.protocol.event import Unexpected
from fixloop.protocol.events import RunFinished
from fixloop.protocol.state import State
from fixloop.protocol.ticket import Ticket
from fixloop.servers.settings import load_settings
from workers.steps.step import Step
from workers.steps.validation_steps import run_finished

log = logging.getLogger("fixloop.ahead")

Check = Callable[[Step], RunFinished | None]
LOOK_SECONDS: Final = 0.1


class _Run:
    """One run ahead of its phase."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.specialist = step.holding.ticket.specialist
        self.inputs = _inputs_of(step.holding.state, step.holding.ticket)
        self.event: RunFinished | None = None
        """The result, if it is a pass."""
        self.begun = False
        self.done = threading.Event()

    def do(self, check: Check) -> None:
        try:
            event = check(self.step)
            if event is not None and event.outcome == "passed" and not event.findings:
                at = datetime.now(UTC).isoformat(timespec="seconds")
                ahead = {"ahead_at": at}
                evidence = tuple(
                    each if each.checked_at else each.model_copy(update=ahead) for each in event.evidence
                )
                self.event = event.model_copy(update={"evidence": evidence})
        except Exception as error:
            # The run in its phase will report the error.
            log.info("%s cannot be done ahead: %s", self.step.holding.ticket.id, error)
        finally:
            self.done.set()


class Ahead:
    """The runs of a process ahead of their phases."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._threads, self._present = 0, ""
        self._lock = threading.Lock()

    def begin(self, work: Step, check: Check) -> None:
        """Begin the runs that follow if `work` passes, if a processor is free; withdraw runs on another tree."""
        following = list(_following(work)) if work.holding.state.queue else []
        if any(run.step.holding.state.tip != work.holding.state.tip for run in self._runs):
            self.end()
        with self._lock:
            self._present = work.holding.ticket.specialist
            known = [run.inputs for run in self._runs]
            self._runs += [_Run(work.ahead(*each)) for each in following if _inputs_of(*each) not in known]
        self._start(check, load_settings().ahead)

    def end(self) -> None:
        """Withdraw all runs: a fix was requested or submitted."""
        with self._lock:
            for run in self._runs:
                run.step.withdraw()
            self._runs.clear()

    def _start(self, check: Check, threads: int) -> None:
        with self._lock:
            count = max(min(len(self._due()), threads - self._threads), 0)
            self._threads += count
        for _ in range(count):
            threading.Thread(target=self._do, args=(check,), name="fixloop-ahead", daemon=True).start()

    def _due(self) -> list[_Run]:
        """The runs that may begin: only one run at a time, including the present phase, runs the project's code."""
        running = (run.specialist for run in self._runs if run.begun and not run.done.is_set())
        is_free = READING.issuperset([self._present, *running])
        return [run for run in self._runs if not run.begun and (is_free or run.specialist in READING)]

    def _do(self, check: Check) -> None:
        while True:
            with self._lock:
                run = next(iter(self._due()), None)
                if run is None:
                    self._threads -= 1
                    return
                run.begun = True
            run.do(check)

    def taken(self, work: Step, check: Check) -> RunFinished | None:
        """The result of this run if it passed; otherwise None, and the step must run it."""
        inputs = _inputs_of(work.holding.state, work.holding.ticket)
        with self._lock:
            run = next((run for run in self._runs if run.inputs == inputs), None)
            if run is None:
                return None
            if not run.begun:
                self._runs.remove(run)
                return None
        # While this thread waits, its processor is free.
        self._start(check, load_settings().ahead + 1)
        while not run.done.wait(LOOK_SECONDS):
            if work.cancelled():
                run.step.withdraw()
                return None
        with self._lock:
            self._runs = [each for each in self._runs if each is not run]
        kept, found = work.holding.state.environments, run.event
        if found and any(kept.get(key, digest) != digest for key, digest in found.environments.items()):
            return None
        return found


def may_load_ahead(work: Step) -> bool:
    """Whether a worker for a single workflow has more than one processor."""
    return bool(work.holding.state.queue) and load_settings().ahead > 0


def _following(work: Step) -> Iterator[tuple[State, Ticket]]:
    """The runs that follow if all pass, each with its state."""
    state, ticket = work.holding.state, work.holding.ticket
    while True:
        owed = tuple(sorted(ref.name for ref in state.active.owed))
        passed = run_finished(ticket, state.tree, RunOutcome.PASSED, passed=owed)
        try:
            outcome = VALIDATION.decide(state, passed, work.holding.moment)
        except Unexpected:
            return
        steps = [each for each in outcome.steps if each.step in ("validate", "recheck", "confirm")]
        if not steps:
            return
        state, ticket = outcome.state, steps[0]
        yield state, ticket


def _inputs_of(state: State, ticket: Ticket) -> tuple[Any, ...]:
    """What a run's result depends on in addition to its files and tools."""
    active = state.active.model_copy(update={"started_clock": None})
    trust = state.trusted, state.accepted, state.rules_off
    identity = ticket.step, ticket.specialist, ticket.iteration, ticket.attempt
    return *identity, state.configuration, state.snapshot, state.tip, state.tree, trust, active
