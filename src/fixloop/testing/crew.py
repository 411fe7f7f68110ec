"""The scripted crew: specialists and fixers that follow the feature's name, without a tool or a repository."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fixloop.protocol import events as ev
from fixloop.protocol.failures import Failure
from fixloop.protocol.state import Completion, State
from fixloop.protocol.ticket import Ticket
from fixloop.statefiles.agent_run import Brought, Played
from fixloop.store.keys import workflow_id
from fixloop.testing.executions import record_execution
from fixloop.testing.parts import part_of, scripts_of
from fixloop.testing.script import Word, script_of

_TEXT_BYTES: Final = 256
"""For all failures of a run; with the text around it, a step's output is 1 KB."""
POLL_SECONDS: Final = 0.05
COMMAND_SECONDS: Final = 3600.0
"""Longer than any step: the state ends steps that take too long."""
RUN_FIELDS: Final = ("step", "specialist", "iteration", "attempt")
"""The ticket fields that identify a run."""

Answered = ev.FixCompleted | ev.FixFailed | ev.AnswerRejected | ev.BlockerSignalled


class ScriptedError(Exception):
    """The script says that this attempt raises."""


class ScriptedCrew:
    """Follows the script in the feature's name, without delay unless the script sets one."""

    acknowledges = False

    def __init__(self, executions: str = "", pause: Callable[[float], object] = time.sleep) -> None:
        """`executions`: a file that gets a line at the start of each step; `pause` waits for some seconds."""
        self._executions = executions
        self._pause = pause

    def check(self, work: Any) -> ev.RunFinished | None:
        """Fail or pass as scripted; None if it was cancelled."""
        state, ticket = work.holding.state, work.holding.ticket
        word = script_of(state.name).run(ticket.specialist, ticket.iteration + (ticket.step == "confirm"))
        kept = self._begin(work, word)
        if kept is None:
            return None
        names = list(word.what) if word.what.isalpha() else []
        if word.what.isdigit():
            names = [f"test_{n}" for n in range(1, int(word.what) + 1)]
        text = "x" * (_TEXT_BYTES // max(1, len(names)))
        failures = tuple(
            Failure(name=name, file="test_scripted.py", line=n, error_type="AssertionError", message=text)
            for n, name in enumerate(names, 1)
        )
        return ev.RunFinished(
            **{name: getattr(ticket, name) for name in RUN_FIELDS},
            outcome="failed" if failures else "passed",
            tree=state.tree,
            failures=failures,
            artifacts=kept,
        )

    def fix(self, work: Any) -> Answered | None:
        """Answer the open request as scripted; None if it was cancelled."""
        state, ticket = work.holding.state, work.holding.ticket
        word = script_of(state.name).answer(ticket.attempt)
        kept = self._begin(work, word)
        if kept is None:
            return None
        answer = _fixer_answer(word.what, state, ticket)
        return answer.model_copy(update={"artifacts": kept}) if kept else answer

    def play(self, work: Any, snapshot: bytes) -> Played | None:
        """Play the agent as scripted, see `fixloop.testing.parts`; None if it was cancelled."""
        state, ticket = work.holding.state, work.holding.ticket
        agent, run = ticket.specialist, int(ticket.id.split(".")[-2])
        word = part_of(state.name, state.profile, agent, run)
        kept = self._begin(work, word)
        if kept is None:
            return None
        scripts = scripts_of(state.profile)
        return Played(
            answer="I am done.\n" if word.what == "bad" else scripts.answer(word.what, agent),
            writings=scripts.left(work.store, ticket, run),
            artifacts=kept,
            brought=Brought(state.tip, f"commit-{agent}-{run}" if state.tip else ""),
        )

    def bring_onto(self, work: Any, state: Any, base: str, tip: str) -> Brought:
        """Scripted changes never conflict."""
        return Brought(state.tip, f"{state.tip}+{tip}")

    def carried_out(self, work: Any) -> ev.Event | None:
        """The result of a validation loop's step; None if it was cancelled."""
        ticket = work.holding.ticket
        if ticket.step == "report":
            return ev.ReportDelivered(specialist=ticket.specialist, iteration=ticket.iteration)
        if ticket.step == "notify":
            return ev.PersonNotified(detail=self.notify(work))
        return self.fix(work) if ticket.step == "fix" else self.check(work)

    def notify(self, work: Any) -> str:
        self._begin(work, Word("-"))
        return "scripted"

    def push(self, work: Any) -> str:
        self._begin(work, Word("-"))
        return ""

    def settle(self, work: Any, state: State) -> None:
        """Do nothing: a scripted crew has no repository."""

    def _begin(self, work: Any, word: Word) -> tuple[str, ...] | None:
        """Do everything before the result; returns the artifacts, or None if it was cancelled."""
        holding = work.holding
        ticket, state = holding.ticket, holding.state
        if self._executions:
            # The base of the work: a tree in the validation loop, a commit elsewhere.
            ground = getattr(state, "tree", state.tip) or "-"
            record_execution(self._executions, ticket.id, holding.fence, ticket.step, ground)
        if holding.deaths < word.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        if ticket.attempt <= word.raises:
            raise ScriptedError(f"scripted to raise in attempt {ticket.attempt}")
        if word.is_command:
            words, environment = ["sleep", f"{word.seconds:g}"], {"PATH": os.defpath}
            ended = work.run(words, cwd=Path("/"), env=environment, unheard_seconds=COMMAND_SECONDS)
            if ended is None:
                return None
            output = f"{ticket.id} ended with {ended.exit_code}\n{ended.output}"
            return (work.store.put_artifact(ticket.workflow, output.encode()),)
        left = float("inf") if word.what == "silent" else word.seconds
        while left > 0 and not work.cancelled():
            self._pause(min(left, POLL_SECONDS))
            left -= POLL_SECONDS
        return () if left <= 0 else None


def scripted_workflow(hash8: str, issue: int, script: str, **more: Any) -> ev.WorkflowStarted:
    """The first workflow of an issue in the project `hash8`, with the test runner unless `more` overrides it."""
    facts = {"fixer": "command", "tip": "commit-0", "tree": "tree-0", "specialists": ("test-runner",)}
    own = {"workflow": workflow_id(hash8, issue, 1), "issue": issue, "name": script}
    return ev.WorkflowStarted.model_validate(own | facts | more)


def scripted_crew() -> ScriptedCrew:
    """The factory that `FIXLOOP_CREW` names; `FIXLOOP_EXECUTIONS` names the file of its executions."""
    return ScriptedCrew(os.environ.get("FIXLOOP_EXECUTIONS", ""))


def _fixer_answer(what: str, state: State, ticket: Ticket) -> Answered:
    name, iteration, attempt = ticket.specialist, ticket.iteration, ticket.attempt
    if what in ("fail", "gone"):
        return ev.FixFailed(
            specialist=name,
            iteration=iteration,
            attempt=attempt,
            error=f"scripted to {what} in attempt {attempt}",
            undelivered=what == "gone",
        )
    if what == "bad":
        return ev.AnswerRejected(specialist=name, iteration=iteration, violations=("scripted to be bad",))
    if what == "blocked":
        return ev.BlockerSignalled(by="scripted fixer", text="scripted to be blocked")
    changes, claims = what == "ok", what != "same"
    completion = Completion(
        iteration=iteration,
        by="scripted fixer",
        summary="scripted",
        fixes=(f"fix {iteration}",) if claims else (),
        files=("scripted.py",) if claims else (),
        tip=f"commit-{name}-{iteration}" if changes else state.tip,
        tree=f"tree-{name}-{iteration}" if changes else state.tree,
    )
    return ev.FixCompleted(specialist=name, completion=completion)
