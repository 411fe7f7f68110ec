"""fixloop: take a finished feature through validate, report, fix, re-check, durably."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fixloop.api import FeatureStatus, enqueue, status

try:
    __version__ = version("fixloop")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0.0.0"

__all__ = ["FeatureStatus", "__version__", "enqueue", "status"]


def __getattr__(name: str) -> Any:
    """Load the calls with the first use: the pure protocol must be importable without Redis or git."""
    if name in ("FeatureStatus", "enqueue", "status"):
        from fixloop import api

        return getattr(api, name)
    raise AttributeError(f"module 'fixloop' has no attribute {name!r}")
