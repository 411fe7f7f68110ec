"""Waits for conditions by polling."""

import time
from collections.abc import Callable


def comes(is_so: Callable[[], object], seconds: float = 60.0, step_seconds: float = 0.01) -> bool:
    """Poll until `is_so` holds; whether it did within `seconds`."""
    give_up = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > give_up:
            return False
        time.sleep(step_seconds)
    return True
