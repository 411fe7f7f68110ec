"""Waits for conditions by asking again and again."""

import time
from collections.abc import Callable


def comes(is_so: Callable[[], object], seconds: float = 120.0, step_seconds: float = 0.01) -> bool:
    """Whether it is so before `seconds` are over."""
    give_up = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > give_up:
            return False
        time.sleep(step_seconds)
    return True
