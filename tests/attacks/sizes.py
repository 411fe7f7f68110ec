"""The size of an attack: a sample in `make test`, all of it in `make attacks`."""

import os
from typing import Final

ATTACKS: Final = os.environ.get("ATTACKS") == "1"
"""Whether sizes are full; what takes minutes may be skipped without it."""


def size(sample: int, full: int) -> int:
    """How many messages, keys, secrets or races are tried."""
    return full if ATTACKS else sample
