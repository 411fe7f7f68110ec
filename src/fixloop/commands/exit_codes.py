"""What the program's exit codes mean."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's end means."""

    DONE = 0
    """Every specialist that runs here passed, or was skipped by a person; for other commands: done."""
    WRONG = 1
    """Aborted or cancelled; for a command that examines: something is wrong."""
    USAGE = 2
    WAITS = 3
    """For a decision, for an outside agent's fix with no terminal, or for what is missing where it is not verified."""
    AWAY = 4
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    """The reader of a pipe went away, as a shell reports it."""
