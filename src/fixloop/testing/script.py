"""Scripts for agents as a line of text in the feature's name: one word for each run of a specialist.

The last word repeats forever:

    scripted 3 1 0                     run 1 fails with three failures, run 2 with one, run 3 passes
    ab c -                             run 1 fails with a and b, run 2 with c, run 3 passes
    security: a -; unit-test: - b -    separate words for each specialist; others pass
    !a -                               the first attempt of run 1 raises, the second fails with a; `!` raises always
    #a -                               run 1 kills its own process once, then fails with a; `#` kills it always
    a~2 -                              run 1 takes 2 seconds, or until it is cancelled
    $a~2 -                             the same, as a separate command that runs under guard
    a b -; fix: fail gone ok           what the fixer does in each attempt to answer a request

A confirmation of run n uses word n + 1, because it becomes that run if it fails. The fixer's words: `ok` changes the
tree, `same` says that it changed nothing, `lie` claims a fix but changes nothing, `fail` ends without a fix, `gone`
cannot be started, `bad` gives an invalid answer, `blocked` cannot continue, `silent` never answers; `!`, `#`, `~2` and
`$` as above.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.protocol.specialists import specialist

FIX: Final = "fix"
AFFIXED: Final = r"(?P<raises>!*)(?P<dies>#*)(?P<command>\$?)(?P<what>{})(?:~(?P<seconds>\d+(?:\.\d+)?))?"
_RUN: Final = re.compile(AFFIXED.format(r"-|\d+|[A-Za-z]+|"))
_ANSWER: Final = re.compile(AFFIXED.format(r"ok|same|lie|fail|gone|bad|blocked|silent|"))


class Word(NamedTuple):
    """The action of one run, or of one attempt of the fixer."""

    what: str
    """Letters or a number of failures, `-` for a pass, or a word of the fixer."""
    raises: float = 0
    """The number of attempts that raise."""
    dies: float = 0
    """The number of process deaths before it."""
    seconds: float = 0.0
    is_command: bool = False
    """Whether a separate command takes these seconds."""


class Script(NamedTuple):
    """The script of a feature's name, by the name of a specialist, `fix`, or empty for all others."""

    clauses: Mapping[str, tuple[Word, ...]]

    def run(self, name: str, number: int) -> Word:
        """The word for run `number` of specialist `name`."""
        words = self.clauses.get(name) or self.clauses.get("") or (Word("-"),)
        return words[min(number, len(words)) - 1]

    def answer(self, attempt: int) -> Word:
        words = self.clauses.get(FIX) or (Word("ok"),)
        return words[min(attempt, len(words)) - 1]

    def runs_command(self, step: str) -> bool:
        """Whether a separate command does the work of every `step`."""
        if step not in (FIX, "validate", "recheck", "confirm"):
            return False
        words = [word for key, each in self.clauses.items() if (key == FIX) == (step == FIX) for word in each]
        return bool(words) and all(word.is_command for word in words)


def script_of(name: str) -> Script:
    """
    The script in a feature's name.

    Raises:
        UsageError: a word is unknown, or a clause names no specialist.
    """
    clauses = {}
    for clause in name.split(";"):
        target, _, words = clause.rpartition(":")
        key = target.strip()
        if key and key != FIX:
            key = specialist(key).name
        pattern, otherwise = (_ANSWER, "ok") if key == FIX else (_RUN, "-")
        where = f"{key or 'a specialist'}; see fixloop.testing"
        clauses[key] = tuple(
            read_word(word, pattern, otherwise, where) for word in words.split() if word != "scripted"
        )
    return Script(clauses)


def read_word(text: str, pattern: re.Pattern[str], otherwise: str, where: str) -> Word:
    """Parse a word with a pattern made from `AFFIXED`; affixes alone apply to every attempt, with `otherwise` as the
    word; `where` is for the message of a UsageError."""
    match = pattern.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is no word of a script for {where}")
    what = match["what"]
    endless = float("inf") if not what else 0.0
    return Word(
        what=what or otherwise,
        raises=len(match["raises"]) and (endless or len(match["raises"])),
        dies=len(match["dies"]) and (endless or len(match["dies"])),
        seconds=float(match["seconds"] or 0),
        is_command=bool(match["command"]),
    )


class Agent(NamedTuple):
    script: str
    what: str
    specialists: Sequence[str] = ("test-runner",)
    """The specialists that its workflow needs."""
    fix_seconds: float = 1800.0
    """The time limit for its answer."""
    is_extended: bool = False
    """Whether a person extends it when its runs are used up; other escalations are aborted."""


_AGENTS: Final = tomllib.loads(Path(__file__).with_name("scripted_agents.toml").read_text(encoding="utf-8"))
AGENTS: Final[Mapping[str, Agent]] = {name: Agent(**told) for name, told in _AGENTS.items()}
"""Good and bad behaviour of a main agent or a specialist, by name. Use a script as a workflow's feature name, with
`FIXLOOP_CREW=fixloop.testing:scripted_crew` in the worker's environment."""
