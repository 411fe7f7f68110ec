"""Plays roles with commands: the role whose turn it is gets its prompt, and its answer is posted, until none is left.

After a kill at any point it continues from the files: an answer is for one number, which is posted once. A command runs
under guard and dies with this process: a surviving agent would edit its successor's files.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Final, NamedTuple

from fixloop.chat.channels import Channel, log_findings, tagged
from fixloop.chat.conversation import Conversation
from fixloop.chat.decision import check_unedited
from fixloop.chat.directory import apply, read_chat
from fixloop.chat.events import ChatRead, MessageWritten, UserAsked
from fixloop.chat.turns import prompt, understood
from fixloop.chat.vocabulary import Role, errors_of
from fixloop.errors import RefusedError, UsageError
from fixloop.machine.guard import run_guarded
from fixloop.secrets.redaction import Redaction

MAX_RUNS: Final = 3
"""Runs of a failing command, including the first (K5)."""
MAX_ANSWERS: Final = 2
"""Invalid answers, including the first (G2)."""
MAX_BYTES: Final = 1024 * 1024
"""The limit of an answer; further output is not read."""
_TAIL_CHARACTERS: Final = 400


class Stop(StrEnum):
    """Why the play stopped."""

    CLOSED = "closed"
    OUTSIDE = "outside"
    """It is the turn of a role without a command."""
    FULL = "full"
    """The allowed number of messages was posted."""
    FOR_USER = "for-user"
    """The architect asks a person."""
    FAILED = "failed"
    """A command failed or gave no answer as often as allowed."""


class Crew(NamedTuple):
    """The commands, their directory, and the callbacks."""

    commands: Mapping[Role, Sequence[str]]
    directory: Path
    """Where the commands run."""
    environment: Mapping[str, str]
    branch: Callable[[], str | None] = lambda: None
    """The branch on which they work; read after each run."""
    posted: Callable[[str], None] = lambda file: None
    """Called with each file that was posted."""
    timeout_seconds: float = math.inf
    """The time limit of one run; by default there is none (G15)."""
    log: IO[str] | None = None
    """Gets the stderr of the commands, tagged with role and channel."""


class Ended(NamedTuple):
    stop: Stop
    text: str
    """For a person: the block, the failure, or whose turn it is."""


class AgentRun(NamedTuple):
    """How a command ended, and its output without secrets of this environment."""

    ending: str
    """`exited 0`, `exited 7`, `signalled 9` or `timed out`."""
    answer: str
    talk: str
    """Its stderr."""

    @property
    def is_good(self) -> bool:
        return self.ending == "exited 0"


def play(chat: Path, crew: Crew, most: int) -> Ended:
    """Let the roles of `crew` answer in turn, at most `most` messages."""
    posted = 0
    while True:
        found = read_chat(chat)
        owner = _owner(found)
        if found.is_closed:
            return Ended(Stop.CLOSED, f"{found.path} is closed")
        if posted >= most:
            told = f"as many messages as allowed ({most}) were posted; it is the turn of {owner}"
            return Ended(Stop.FULL, told)
        if owner not in crew.commands:
            told = f"it is the turn of {owner}: `fixloop chat read {found.called} --as {owner}`"
            return Ended(Stop.OUTSIDE, told)
        check_unedited(found)
        ended = _answered(chat, crew, owner)
        if isinstance(ended, Ended):
            return ended
        posted += ended


def _owner(chat: Conversation) -> Role:
    if chat.meta is None:
        told = f"{chat.path} has no meta.yaml that is right; see `fixloop chat validate {chat.called}`"
        raise UsageError(told)
    return chat.turn(chat.meta)


def _answered(chat: Path, crew: Crew, role: Role) -> int | Ended:
    """One turn of `role`: the number of posted messages, or why it stopped."""
    wrong = ""
    for _ in range(MAX_ANSWERS):
        apply(chat, ChatRead(role), datetime.now(UTC))
        found = read_chat(chat)
        if found.is_closed or _owner(found) is not role:
            return 0  # somebody else was quicker
        done = _run(crew, role, found, prompt(found, role, wrong))
        if not done.is_good:
            said = " ".join((done.talk or done.answer).split())[-_TAIL_CHARACTERS:] or "it said nothing"
            return Ended(Stop.FAILED, f"the command of {role} {done.ending}: {said}")
        try:
            turn = understood(done.answer, role, found)
            if isinstance(turn, UserAsked):
                # A block for a person that does not match the template is no answer.
                printed = "\n".join(tagged(role, Channel.TO_USER, turn.text))
                if errors := errors_of(log_findings(printed, "the answer")):
                    raise UsageError(errors[0].message)
            if isinstance(turn, MessageWritten):
                turn = turn._replace(branch=crew.branch())
            outcome = apply(chat, turn, datetime.now(UTC))
            if isinstance(turn, UserAsked):
                return Ended(Stop.FOR_USER, turn.text)
            if outcome.file:
                crew.posted(str(chat / outcome.file))
            return int(bool(outcome.file))
        except RefusedError as refused:
            after = read_chat(chat)
            if after.is_closed or after.next_seq != found.next_seq:
                return 0  # somebody else was quicker
            wrong = str(refused)
        except UsageError as error:
            wrong = str(error)
    return Ended(Stop.FAILED, f"{role} gave no answer that fits: {wrong}")


def _run(crew: Crew, role: Role, chat: Conversation, text: str) -> AgentRun:
    """Run until it succeeds, at most `MAX_RUNS` times."""
    environment = {
        **crew.environment,
        "FIXLOOP_CHAT": os.path.abspath(chat.path),
        "FIXLOOP_ROLE": role,
        "FIXLOOP_SEQ": f"{chat.next_seq:03}",
        "FIXLOOP_BRANCH": chat.meta.branch if chat.meta is not None else "",
    }
    for _ in range(MAX_RUNS):
        argv, limit = crew.commands[role], crew.timeout_seconds
        done = run_agent(argv, text, cwd=crew.directory, env=environment, timeout_seconds=limit)
        if crew.log is not None and done.talk.strip():
            channel = Channel.TOOL if done.is_good else Channel.ERROR
            crew.log.writelines(f"{line}\n" for line in tagged(role, channel, done.talk.rstrip("\n")))
            crew.log.flush()
        if done.is_good:
            break
    return done


def run_agent(
    argv: Sequence[str], prompt: str, *, cwd: Path, env: Mapping[str, str], timeout_seconds: float = math.inf
) -> AgentRun:
    """Run a command until its end, or its time limit if it has one."""
    result = run_guarded(
        argv,
        cwd=cwd,
        env=env,
        stdin=prompt.encode(),
        timeout_seconds=timeout_seconds,
        output_limit_bytes=2 * MAX_BYTES,
        apart=True,
    )
    if result.not_found:
        raise UsageError(f"{argv[0]} cannot be started: there is no such program, or it may not be run")
    # Secrets first: half of one could remain at the edge of a cut.
    answer, talk = map(Redaction.of((), os.environ).text, (result.output, result.talk))
    ending = f"exited {result.exit_code}" if result.signal is None else f"signalled {result.signal}"
    return AgentRun("timed out" if result.timed_out else ending, answer[:MAX_BYTES], talk[:MAX_BYTES])
