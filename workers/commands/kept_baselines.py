"""What checks found on features' bases, kept on this machine so that each is run there once.

Owns `{cache}/baselines/`: a file for each tree, check and set of tools, whole or not there. One that cannot be read
counts as absent, and the oldest go when there are many.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from fixloop.files.atomic import write_whole
from fixloop.protocol.failures import Failure

FORMAT: Final = 2
"""Raised when checks' failures are read or compared differently."""
MOST: Final = 200
"""Files that are kept: some megabytes, and years of one project's branches."""


class Baseline(BaseModel):
    """What one check found on one tree."""

    model_config = ConfigDict(frozen=True)

    failures: tuple[Failure, ...] = ()


def key_of(*parts: str) -> str:
    """The name of what was found under these circumstances; each of them counts."""
    return hashlib.sha256(json.dumps([FORMAT, *parts]).encode()).hexdigest()[:32]


class Baselines:
    """Those of one cache directory."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "baselines"

    def find(self, key: str) -> Baseline | None:
        """What is kept under this key; None where nothing is, or nothing that can be read."""
        file = self._folder / f"{key}.json"
        try:
            found = Baseline.model_validate_json(file.read_bytes())
            os.utime(file)
        except (OSError, ValidationError):
            return None
        return found

    def keep(self, key: str, baseline: Baseline) -> None:
        """Keep it: without effect where the cache cannot be written, as it can be found out again."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            text = baseline.model_dump_json(exclude_defaults=True)
            write_whole(self._folder / f"{key}.json", text.encode(), mode=0o600)
            for file in sorted(self._folder.iterdir(), key=_age)[MOST:]:
                file.unlink(missing_ok=True)


def _age(file: Path) -> float:
    """Older ones come last; what is gone meanwhile comes first."""
    try:
        return -file.stat().st_mtime
    except OSError:
        return float("-inf")
