"""The command line: where the program begins and ends. A worker that it needs loads while it loads itself."""

import atexit
import gc
import io
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from fixloop.commands.exit_codes import ExitCode
from fixloop.machine.attached import start_waiting

COLLECT_AFTER: Final = 200_000
"""Objects made and not yet let go: more than any command loads."""
_NEEDS_NO_WORKER: Final = frozenset({"--dry", "--help", "-h"})


def main(words: Sequence[str] | None = None) -> int:
    """The program `fixloop`; `words` are its arguments, those of this process if not given; returns the exit code."""
    if words is None:
        # Looking for garbage in what has just been loaded, and again at the end, takes a quarter of most calls.
        gc.set_threshold(COLLECT_AFTER)
        atexit.register(gc.freeze)
        words = sys.argv[1:]
        if words[:1] == ["run"] and _NEEDS_NO_WORKER.isdisjoint(words):
            # Where loading fails, it fails again once there is a log to say so.
            start_waiting("supervise", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    from fixloop.commands.program import call

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A log may hold what this terminal's encoding has not; that is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = call(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _without_reader()
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _without_reader() -> int:
    """The pipe's reader is gone: nothing more to say, not even when Python flushes at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        sys.stdout = io.StringIO()
    return ExitCode.PIPE_CLOSED


if __name__ == "__main__":
    sys.exit(main())
