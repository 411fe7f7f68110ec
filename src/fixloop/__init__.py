"""fixloop: take a finished feature through validate, report, fix, re-check, durably."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fixloop.commands.api import FeatureStatus, HandedIn, enqueue, enqueue_many, status

    __version__: str

__all__ = ["FeatureStatus", "HandedIn", "__version__", "enqueue", "enqueue_many", "status"]


def __getattr__(name: str) -> Any:
    """Load the calls with the first use: the pure protocol must be importable without Redis or git."""
    if name in __all__ and name != "__version__":
        from fixloop.commands import api

        return getattr(api, name)
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("fixloop")
        except PackageNotFoundError:  # a checkout that was never installed
            return "0.0.0"
    raise AttributeError(f"module 'fixloop' has no attribute {name!r}")
