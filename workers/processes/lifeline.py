"""The lifeline: a pipe from parent to child. When it closes, the parent is gone and the child ends at once.

Nothing is lost by that (a lease comes back, a guard kills its command), and nothing is left running.
"""

import os
import signal
import threading
from contextlib import suppress
from typing import Final

VARIABLE: Final = "FIXLOOP_LIFELINE"


def attached_fd() -> int | None:
    """The pipe's reading end in this process, if it was given one."""
    number = os.environ.get(VARIABLE, "")
    return int(number) if number.isdigit() else None


def attach() -> None:
    """Watch the lifeline in a thread of this process; after a fork, attach again."""
    descriptor = attached_fd()
    if descriptor is None:
        return

    def watch() -> None:
        with suppress(OSError):
            while os.read(descriptor, 1):
                pass
        # SIGKILL: Celery's own handlers would wait for the running step.
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="fixloop-lifeline", daemon=True).start()
