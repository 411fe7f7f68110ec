"""The two pipes between a supervisor and each of its processes (docs/decisions/0003).

When the lifeline closes, the parent is gone and the child ends at once. By the other the child says that it serves.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Final

LIFELINE: Final = "FIXLOOP_LIFELINE"
"""Names the pipe's reading end."""
PRESENCE: Final = "FIXLOOP_PRESENCE"
"""Names the pipe's writing end, which a process has open as long as it or what it forked is there."""
BEAT_SECONDS: Final = 1.0


def attach() -> None:
    """Watch the lifeline in a thread of this process; after a fork, attach again."""
    number = os.environ.get(LIFELINE, "")
    if not number.isdigit():
        return

    def watch() -> None:
        with suppress(OSError):
            while os.read(int(number), 1):
                pass
        # SIGKILL: Celery's own handlers would wait for the running step.
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="fixloop-lifeline", daemon=True).start()


def beat(serving: int = 1) -> None:
    """Say that this process serves, with so many processes."""
    number = os.environ.get(PRESENCE, "")
    if number.isdigit():
        # A supervisor that does not listen is stopped, or gone: no reason to wait.
        with suppress(OSError):
            os.write(int(number), b"%d\n" % serving)


def beat_with(consumer: Any, count: Callable[[], int]) -> None:
    """Beat from Celery's own loop, and have it look up at a signal, and not only when its broker's next answer comes.
    Once for each connection, because it cancels the timers of a lost one."""
    beat(count())
    consumer.hub.call_repeatedly(BEAT_SECONDS, lambda: beat(count()))
    reading = _told_of_signals()
    consumer.hub.add_reader(reading, os.read, reading, 4096)


@cache
def _told_of_signals() -> int:
    """What can be read as soon as this process got a signal."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading
