"""The program's exit codes."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    """Every specialist that runs here passed or was skipped by a person; other commands: done."""
    WRONG = 1
    """Aborted or cancelled; commands that examine: something is wrong."""
    USAGE = 2
    WAITS = 3
    """Waits for a decision, for an outside agent's fix without a terminal, or, if not verified, for what is missing."""
    AWAY = 4
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    """The reader of a pipe went away; the code a shell reports."""
