"""The protocol: pure decisions, messages and their Markdown. No I/O, no clock, no Redis, no Celery."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fixloop.protocol.parsing import UnreadableMessage, parse

__all__ = ["UnreadableMessage", "parse"]


def __getattr__(name: str) -> Any:
    # Reading messages needs all of their templates; whoever wants one module here does not pay for that.
    if name in __all__:
        from fixloop.protocol import parsing

        return getattr(parsing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
