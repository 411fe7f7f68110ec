"""The cache directory: what lies in it is source code and what agents were told, so nobody else may look."""

import os
from pathlib import Path


def usual_cache() -> Path:
    """Where it lies unless the environment names another place: in the user's cache directory."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "fixloop"


def make_cache(cache: Path) -> None:
    """Make the cache directory for its owner alone; one that is there stays as it is, because somebody may share it."""
    if not cache.is_dir():
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.mkdir(mode=0o700, exist_ok=True)
