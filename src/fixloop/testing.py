"""Scripted specialists and fixers for tests and benchmarks: the engine at work without a tool or a repository.

`FIXLOOP_CREW=fixloop.testing:scripted_crew` makes a worker use them. What they do is the feature's name, one word
for each run of a specialist; the last word goes on for ever:

    scripted 3 1 0                     run 1 fails with three failures, run 2 with one, run 3 passes
    ab c -                             run 1 fails with a and b, run 2 with c, run 3 passes
    security: a -; unit-test: - b -    each specialist by itself; one that is not named passes
    !a -                               the first attempt of run 1 raises, the second fails with a; `!` raises always
    #a -                               run 1 kills its own process once, then fails with a; `#` kills it always
    a~2 -                              run 1 takes 2 seconds, or until it is cancelled
    a b -; fix: fail gone ok           what the fixer does in each attempt to answer a request

A confirmation of run n reads word n + 1: that is the run it becomes if it fails. The fixer's words: `ok` changes the
tree, `same` says that it changed nothing, `lie` says that it mended all and changed nothing, `fail` ends without a
fix, `gone` cannot be started, `bad` answers what does not fit; `!`, `#` and `~2` as above.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, cast

from fixloop.errors import UsageError
from fixloop.protocol.events import AnswerRejected, FixCompleted, FixFailed, RunFinished
from fixloop.protocol.failures import Failure
from fixloop.protocol.specialists import specialist
from fixloop.protocol.state import Completion, State
from fixloop.protocol.ticket import Ticket

__all__ = ["MESSAGE_BYTES", "Script", "ScriptedCrew", "ScriptedError", "Word", "script_of", "scripted_crew"]

MESSAGE_BYTES: Final = 1024
"""What the messages of a step come to, at least: with the words around it, a run's own text is the smaller part."""
_TEXT_BYTES: Final = 256
POLL_SECONDS: Final = 0.05
FIX: Final = "fix"
_AFFIXED: Final = r"(?P<raises>!*)(?P<dies>#*)(?P<what>{})(?:~(?P<seconds>\d+(?:\.\d+)?))?"
_RUN: Final = re.compile(_AFFIXED.format(r"-|\d+|[A-Za-z]+|"))
_ANSWER: Final = re.compile(_AFFIXED.format(r"ok|same|lie|fail|gone|bad|"))


class ScriptedError(Exception):
    """The script says that this attempt raises."""


class Word(NamedTuple):
    """What one run, or one attempt of the fixer, does."""

    what: str
    """Letters or a number of failures, `-` for a pass, or a word of the fixer."""
    raises: float = 0
    """So many attempts raise."""
    dies: float = 0
    """So many deaths come before."""
    seconds: float = 0.0


class Script(NamedTuple):
    """What a feature's name says, by the name of a specialist, `fix`, or nothing for all others."""

    clauses: Mapping[str, tuple[Word, ...]]

    def run(self, name: str, number: int) -> Word:
        """The word for run `number` of specialist `name`."""
        return self._word(self.clauses.get(name) or self.clauses.get(""), number, "-")

    def answer(self, attempt: int) -> Word:
        """The word for the fixer's attempt `attempt` to answer a request."""
        return self._word(self.clauses.get(FIX), attempt, "ok")

    def _word(self, words: tuple[Word, ...] | None, number: int, otherwise: str) -> Word:
        return words[min(number, len(words)) - 1] if words else Word(otherwise)


def script_of(name: str) -> Script:
    """
    The script in a feature's name.

    Raises:
        UsageError: a word of it means nothing, or a clause is of no specialist.
    """
    clauses = {}
    for clause in name.split(";"):
        target, _, words = clause.rpartition(":")
        key = target.strip()
        if key and key != FIX:
            key = specialist(key).name
        clauses[key] = tuple(_word(word, key) for word in words.split() if word != "scripted")
    return Script(clauses)


def _word(text: str, target: str) -> Word:
    match = (_ANSWER if target == FIX else _RUN).fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} is no word of a script for {target or 'a specialist'}; see fixloop.testing"
        )
    what = match["what"]
    endless = float("inf") if not what else 0.0
    return Word(
        what=what or ("ok" if target == FIX else "-"),
        raises=len(match["raises"]) and (endless or len(match["raises"])),
        dies=len(match["dies"]) and (endless or len(match["dies"])),
        seconds=float(match["seconds"] or 0),
    )


class ScriptedCrew:
    """Does what the feature's name says, at once unless that says otherwise."""

    acknowledges = False

    def __init__(self, executions: str = "", pause: Callable[[float], object] = time.sleep) -> None:
        """
        Nothing is done yet.

        Args:
            executions: a file that gets a line `{ticket} {fence} {step}` as each step begins.
            pause: how seconds pass.
        """
        self._executions = executions
        self._pause = pause

    def check(self, work: Any) -> RunFinished | None:
        """Fail or pass as scripted; None when it was cancelled meanwhile."""
        state, ticket = _of(work)
        number = ticket.iteration + (ticket.step == "confirm")
        word = script_of(state.name).run(ticket.specialist, number)
        if not self._begin(work, word):
            return None
        failures = _failures(word.what)
        return RunFinished(
            step=cast(Literal["validate", "recheck", "confirm"], ticket.step),
            specialist=ticket.specialist,
            iteration=ticket.iteration,
            attempt=ticket.attempt,
            outcome="failed" if failures else "passed",
            tree=state.tree,
            failures=failures,
        )

    def fix(self, work: Any) -> FixCompleted | FixFailed | AnswerRejected | None:
        """Answer the open request as scripted; None when it was cancelled meanwhile."""
        state, ticket = _of(work)
        word = script_of(state.name).answer(ticket.attempt)
        if not self._begin(work, word):
            return None
        return _answered(word.what, state, ticket)

    def notify(self, work: Any) -> str:
        """Nobody is told."""
        self._begin(work, Word("-"))
        return "scripted"

    def settle(self, work: Any, state: State) -> None:
        """Nothing lies outside."""

    def _begin(self, work: Any, word: Word) -> bool:
        """All that comes before the result; False when it was cancelled."""
        holding = work.holding
        self._record(f"{holding.ticket.id} {holding.fence} {holding.ticket.step}\n")
        if holding.deaths < word.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        if holding.ticket.attempt <= word.raises:
            raise ScriptedError(f"scripted to raise in attempt {holding.ticket.attempt}")
        left = word.seconds
        while left > 0 and not work.cancelled():
            self._pause(min(left, POLL_SECONDS))
            left -= POLL_SECONDS
        return left <= 0

    def _record(self, line: str) -> None:
        if self._executions:
            # One write to an appending descriptor: lines of many processes do not mix.
            descriptor = os.open(self._executions, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)


def scripted_crew() -> ScriptedCrew:
    """The factory that `FIXLOOP_CREW` names; `FIXLOOP_EXECUTIONS` names the file of its executions."""
    return ScriptedCrew(os.environ.get("FIXLOOP_EXECUTIONS", ""))


def _failures(what: str) -> tuple[Failure, ...]:
    if what == "-":
        return ()
    names = [f"test_{n}" for n in range(1, int(what) + 1)] if what.isdigit() else list(what)
    text = "x" * (_TEXT_BYTES // max(1, len(names)))
    return tuple(
        Failure(name=name, file="test_scripted.py", line=n, error_type="AssertionError", message=text)
        for n, name in enumerate(names, 1)
    )


def _answered(what: str, state: State, ticket: Ticket) -> FixCompleted | FixFailed | AnswerRejected:
    name, iteration, attempt = ticket.specialist, ticket.iteration, ticket.attempt
    if what in ("fail", "gone"):
        return FixFailed(
            specialist=name,
            iteration=iteration,
            attempt=attempt,
            error=f"scripted to {what} in attempt {attempt}",
            undelivered=what == "gone",
        )
    if what == "bad":
        return AnswerRejected(specialist=name, iteration=iteration, violations=("scripted to be bad",))
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
    return FixCompleted(specialist=name, completion=completion)


def _of(work: Any) -> tuple[State, Ticket]:
    return work.holding.state, work.holding.ticket
