"""What a process would otherwise say in its log again and again."""

import logging
from functools import lru_cache


@lru_cache(maxsize=1000)
def say_once(log: logging.Logger, sentence: str) -> None:
    """A warning, once in a process' life."""
    log.warning("%s", sentence)
