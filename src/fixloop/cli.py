"""The command line: where the program begins and ends. What a command needs starts while the command loads."""

import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import Final

from fixloop.commands.exit_codes import ExitCode
from fixloop.machine.attached import start_waiting
from fixloop.machine.process_end import end_process

COLLECT_AFTER: Final = 200_000
"""Objects made and not yet let go: more than any command loads."""
_PROCESS_OF: Final = {"check": "try", "run": "supervise"}
_NEEDS_NOTHING: Final = frozenset({"--dry", "--help", "--show", "-h"})
_READ_STATES: Final = frozenset(
    {"ack", "decide", "decline", "fixed", "inbox", "log", "mailbox", "report", "status"}
)


def main(words: Sequence[str] | None = None) -> int:
    """The program `fixloop`, which ends with its exit code; with `words` as arguments, the code is returned instead."""
    if words is not None:
        return _called(words)
    # Looking for garbage in what has just been loaded takes a quarter of most calls.
    gc.set_threshold(COLLECT_AFTER)
    words = sys.argv[1:]
    if _NEEDS_NOTHING.isdisjoint(words):
        for command in _PROCESS_OF.keys() & words[:1]:
            start_waiting(_PROCESS_OF[command])
        if not _READ_STATES.isdisjoint(words[:1]):
            from fixloop.servers.embedded import start_ahead

            start_ahead()
    end_process(_called(words))


def _called(words: Sequence[str]) -> int:
    from fixloop.commands.program import call

    # A stream is None if the caller closed it.
    sys.stdout, sys.stderr = (each or io.StringIO() for each in (sys.stdout, sys.stderr))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A log may hold what this terminal's encoding has not; that is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    try:
        return call(words)
    except BrokenPipeError:
        # Nothing more to say, not even when Python flushes at its end.
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (OSError, ValueError, AttributeError):
            sys.stdout = io.StringIO()
        return ExitCode.PIPE_CLOSED
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


if __name__ == "__main__":
    main()
