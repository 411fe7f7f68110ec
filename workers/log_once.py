"""Log messages that a process writes only once."""

import logging
from functools import lru_cache


@lru_cache(maxsize=1000)
def say_once(log: logging.Logger, sentence: str) -> None:
    """Log a warning, once per process."""
    log.warning("%s", sentence)
