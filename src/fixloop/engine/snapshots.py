"""Snapshots read back as states, for those who only look, too: apart from the engine, which loads every decision."""

import json
import re
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from fixloop.errors import Damaged, NewerVersion
from fixloop.protocol.state import SCHEMA_VERSION, State

_WORKFLOW: Final = re.compile(rb'"workflow":"([0-9a-f]{8}-\d{1,15}-\d{1,9})"')


class _Model(Protocol):
    schema_version: int

    @classmethod
    def model_validate_json(cls, data: bytes) -> Any: ...


M = TypeVar("M", bound=_Model)


def loader(model: type[M], newest: int) -> Callable[[bytes], M]:
    """What reads snapshots of `model`, up to schema version `newest`; NewerVersion and Damaged for what it cannot
    read."""

    def load(snapshot: bytes) -> M:
        version = _parsed(snapshot).get("schema_version", 1)
        if isinstance(version, int) and version > newest:
            raise NewerVersion(
                f"a workflow was written by a newer fixloop (schema {version}, this one reads up to {newest}); "
                "it was left as it is: upgrade this one"
            )
        try:
            found: M = model.model_validate_json(snapshot)
        except ValueError as error:
            raise unreadable(snapshot, error) from None
        return found

    return load


def unreadable(snapshot: bytes, error: ValueError) -> Damaged:
    """What is said of a snapshot that is no state; of which workflow, it may say itself."""
    named = _WORKFLOW.search(snapshot)
    said = " ".join(str(error).split())[:300]
    return Damaged(named[1].decode() if named is not None else "", f"its snapshot cannot be read: {said}")


def load_state(snapshot: bytes) -> State:
    """A snapshot as state; NewerVersion where a newer fixloop wrote it, Damaged where it is none."""
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
