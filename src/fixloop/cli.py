"""The command line: where the program begins and ends. What a command needs starts while the command loads."""

import gc
import sys
from collections.abc import Sequence
from typing import Final

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
    given = sys.argv[1:] if words is None else words
    if words is None:
        # Looking for garbage in what has just been loaded takes a quarter of most calls.
        gc.set_threshold(COLLECT_AFTER)
        if _NEEDS_NOTHING.isdisjoint(given):
            for command in _PROCESS_OF.keys() & given[:1]:
                start_waiting(_PROCESS_OF[command])
            if not _READ_STATES.isdisjoint(given[:1]):
                from fixloop.servers.embedded import start_ahead

                start_ahead()
    from fixloop.commands.program import call

    code = call(given)
    if words is None:
        end_process(code)
    return code


if __name__ == "__main__":
    main()
