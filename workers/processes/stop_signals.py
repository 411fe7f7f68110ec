"""Being told to stop: heeded from the first moment on, when little else of a supervisor is loaded yet."""

import signal
import threading
import time
from typing import Any, Final, NamedTuple

NUMBERS: Final = (signal.SIGTERM, signal.SIGINT)
"""The signals that ask for it."""

SAME_SECONDS: Final = 1.0
"""Signals so close together are one request: a terminal and a service manager tell all processes of a group."""


class Stop(NamedTuple):
    """What was asked for so far."""

    stopped: threading.Event
    hastened: threading.Event
    """Somebody asked a second time and does not want to wait."""


def heeded() -> Stop:
    """From now on SIGTERM and SIGINT are requests to stop."""
    asked, since = Stop(threading.Event(), threading.Event()), 0.0

    def heed(*_: Any) -> None:
        nonlocal since
        if not asked.stopped.is_set():
            since = time.monotonic()
            asked.stopped.set()
        elif time.monotonic() - since > SAME_SECONDS:
            asked.hastened.set()

    for number in NUMBERS:
        signal.signal(number, heed)
    return asked


def unheeded() -> None:
    """From now on they do what they do in every Python program."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
