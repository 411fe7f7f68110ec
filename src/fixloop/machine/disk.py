"""Checks for free disk space by writing."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

READ_ONLY: Final = os.strerror(errno.EROFS)
"""The obstacle that more space does not remove."""

PROBE_BYTES: Final = 1_000_000
"""With less space, Redis accepts a few more writes and then none."""


def obstacle(folder: Path) -> str:
    """Why `folder` cannot be written, such as `No space left on device`; empty if it can."""
    probe = folder / f".probe.{os.getpid()}"
    try:
        probe.write_bytes(bytes(PROBE_BYTES))
    except OSError as error:
        return error.strerror or str(error)
    finally:
        with suppress(OSError):
            probe.unlink()
    return ""
