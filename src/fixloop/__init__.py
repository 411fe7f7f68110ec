"""fixloop: take a finished feature through validate, report, fix, re-check, durably."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("fixloop")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0.0.0"

__all__ = ["__version__"]
