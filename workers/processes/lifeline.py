"""The two pipes between a supervisor and each of its processes (docs/decisions/0003).

When the lifeline closes, the parent is gone and the child ends at once. On the other, the child reports that it serves.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Final

LIFELINE: Final = "FIXLOOP_LIFELINE"
"""The variable with the descriptor of the lifeline's reading end."""
PRESENCE: Final = "FIXLOOP_PRESENCE"
"""The variable with the other pipe's writing end, which the process and its forks keep open while they live."""
BEAT_SECONDS: Final = 1.0


def attach() -> None:
    """Watch the lifeline in a thread of this process; a fork must attach again."""
    number = os.environ.get(LIFELINE, "")
    if not number.isdigit():
        return

    def watch() -> None:
        with suppress(OSError):
            while os.read(int(number), 1):
                pass
        # SIGKILL, because Celery's handlers would wait for the running step.
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="fixloop-lifeline", daemon=True).start()


def beat(serving: int = 1) -> None:
    """Report that this process serves, with so many processes."""
    number = os.environ.get(PRESENCE, "")
    if number.isdigit():
        # Ignore errors: the supervisor is stopped or gone, which is no reason to wait.
        with suppress(OSError):
            os.write(int(number), b"%d\n" % serving)


def beat_with(consumer: Any, count: Callable[[], int]) -> None:
    """Beat from Celery's own loop, and wake the loop at a signal instead of at the broker's next answer. Called once
    per connection, because the timers of a lost one are cancelled."""
    beat(count())
    consumer.hub.call_repeatedly(BEAT_SECONDS, lambda: beat(count()))
    reading = _signal_pipe()
    consumer.hub.add_reader(reading, os.read, reading, 4096)


@cache
def _signal_pipe() -> int:
    """A descriptor that becomes readable when this process gets a signal."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading
