"""fixloop: take a finished feature through validate, report, fix, re-check, durably."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fixloop.commands.api import FeatureStatus, enqueue, status

    __version__: str

__all__ = ["FeatureStatus", "__version__", "enqueue", "status"]


def __getattr__(name: str) -> Any:
    """Load the calls with the first use: the pure protocol must be importable without Redis or git."""
    if name in ("FeatureStatus", "enqueue", "status"):
        from fixloop.commands import api

        return getattr(api, name)
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("fixloop")
        except PackageNotFoundError:  # a checkout that was never installed
            return "0.0.0"
    raise AttributeError(f"module 'fixloop' has no attribute {name!r}")
