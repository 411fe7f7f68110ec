"""Whether there is room on a disk, found out by writing."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

READ_ONLY: Final = os.strerror(errno.EROFS)
"""The obstacle that no room removes."""

PROBE_BYTES: Final = 1_000_000
"""With less room a Redis takes a few more writes, and then none."""


def obstacle(folder: Path) -> str:
    """Why nothing can be written in `folder`, such as `No space left on device`; empty when it can."""
    probe = folder / f".probe.{os.getpid()}"
    try:
        probe.write_bytes(bytes(PROBE_BYTES))
    except OSError as error:
        return error.strerror or str(error)
    finally:
        with suppress(OSError):
            probe.unlink()
    return ""
