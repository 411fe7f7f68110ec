"""A process says that it serves: one line a second to its supervisor, from the loop that does the serving.

From that loop and not from a separate thread: a process whose loop hangs has threads that are very well.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

VARIABLE: Final = "FIXLOOP_PRESENCE"
"""The pipe's writing end, which a process has open as long as it or what it forked is there."""
BEAT_SECONDS: Final = 1.0


def beat(serving: int = 1) -> None:
    """Say that this process serves, with so many processes."""
    number = os.environ.get(VARIABLE, "")
    if number.isdigit():
        # A supervisor that does not listen is stopped, or gone: no reason to wait.
        with suppress(OSError):
            os.write(int(number), b"%d\n" % serving)


def beat_with(consumer: Any, count: Callable[[], int]) -> None:
    """Beat from Celery's own loop; once for each connection, because it cancels the timers of a lost one."""
    beat(count())
    consumer.hub.call_repeatedly(BEAT_SECONDS, lambda: beat(count()))
