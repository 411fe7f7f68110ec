"""`chat run`: roles played by commands."""

import os
import shlex
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Annotated

import typer

from fixloop.chat.crew import Crew, Stop, play
from fixloop.chat.message import MAX_SEQ
from fixloop.chat.roles import Role
from fixloop.commands.chat_places import Chat, Chats, directory_of
from fixloop.commands.exit_codes import ExitCode
from fixloop.commands.screen import print_lines, print_text, say
from fixloop.errors import UsageError
from fixloop.repository.git import branch_of

_EXIT_CODES = {Stop.CLOSED: ExitCode.DONE, Stop.FULL: ExitCode.DONE, Stop.FAILED: ExitCode.WRONG}


def run(
    chat: Chat,
    architect: Annotated[
        str, typer.Option("--architect", metavar="CMD", help="Plays the architect.", show_default="outside")
    ] = "",
    engineer: Annotated[
        str, typer.Option("--engineer", metavar="CMD", help="Plays the engineer.", show_default="outside")
    ] = "",
    twin: Annotated[
        str, typer.Option("--twin", metavar="CMD", help="Plays the twin.", show_default="outside")
    ] = "",
    most: Annotated[
        int, typer.Option("--messages", min=1, max=MAX_SEQ, help="Post at most so many.")
    ] = MAX_SEQ,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout-minutes", min=0.01, help="How long a command may take.", show_default="no limit"
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log", metavar="FILE", help="What commands print on stderr, by role.", show_default="stderr"
        ),
    ] = None,
    chats: Chats = None,
) -> None:
    """
    Let commands play the roles until the chat is closed.

    A command gets contract, latest message and rules on stdin, and prints the body of its message; run again it
    goes on where the files are. Exit code 0: closed, or as many messages as allowed; 1: a command failed three
    times, or twice gave no answer that fits; 3: a role without a command, or a person, is to answer.
    """
    directory = directory_of(chat, chats)
    words = {Role.ARCHITECT: architect, Role.ENGINEER: engineer, Role.TWIN: twin}
    commands = {role: _split(role, text) for role, text in words.items() if text}
    with ExitStack() as opened:
        crew = Crew(
            commands=commands,
            directory=Path.cwd(),
            environment=os.environ,
            branch=partial(branch_of, directory),
            posted=print_lines,
            timeout_seconds=60 * timeout if timeout is not None else None,
            log=_opened(log, opened),
        )
        ended = play(directory, crew, most)
    if ended.stop is Stop.FOR_USER:
        print_text(ended.text)
    else:
        say(ended.text)
    code = _EXIT_CODES.get(ended.stop, ExitCode.WAITS)
    if code:
        raise typer.Exit(code)


def _opened(log: Path | None, opened: ExitStack) -> IO[str]:
    if log is None:
        return sys.stderr
    try:
        return opened.enter_context(log.open("a", encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{log} cannot be written: {(error.strerror or str(error)).lower()}") from None


def _split(role: Role, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--{role} is {text!r}: {str(error).lower()}") from None
