"""A snapshot read back as state, for those who only look: apart from the engine, which loads every decision."""

from fixloop.errors import ProtocolError
from fixloop.protocol.state import State

__all__ = ["load_state"]


def load_state(snapshot: bytes) -> State:
    """
    A snapshot as state.

    Raises:
        ProtocolError: it was written by a newer version; nothing was changed.
    """
    try:
        return State.model_validate_json(snapshot)
    except ValueError as error:
        raise ProtocolError(f"this snapshot needs another version of fixloop: {error}") from None
