"""A snapshot read back as state, for those who only look: apart from the engine, which loads every decision."""

import json
from typing import Any

from fixloop.errors import NewerVersion
from fixloop.profiles.reading import unreadable
from fixloop.protocol.state import SCHEMA_VERSION, State


def load_state(snapshot: bytes) -> State:
    """
    A snapshot as state.

    Raises:
        NewerVersion: a newer fixloop wrote it; nothing was changed.
        Damaged: it is no state.
    """
    try:
        state = State.model_validate_json(snapshot)
    except ValueError as error:
        _refuse_newer(_parsed(snapshot))
        raise unreadable(snapshot, error) from None
    if state.schema_version > SCHEMA_VERSION:
        _refuse_newer(state.__dict__)
    return state


def _refuse_newer(found: dict[str, Any]) -> None:
    version = found.get("schema_version", 1)
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise NewerVersion(
            f"workflow {found.get('workflow', '')} was written by a newer fixloop (schema {version}, this one reads "
            f"up to {SCHEMA_VERSION}); it was left as it is: upgrade this one"
        )


def _parsed(snapshot: bytes) -> dict[str, Any]:
    try:
        found = json.loads(snapshot)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
