"""Loads snapshots as states. Separate from the engine, so that readers need not import every profile's decisions."""

import json
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from fixloop.errors import Damaged, NewerVersion
from fixloop.protocol.state import SCHEMA_VERSION, State

_WORKFLOW: Final = re.compile(rb'"workflow":"([0-9a-f]{8}-\d{1,15}-\d{1,9})"')
M = TypeVar("M", bound=BaseModel)


def loader(model: type[M], newest: int) -> Callable[[bytes], M]:
    """A function that loads snapshots of `model` up to schema version `newest`; it raises NewerVersion or Damaged."""

    def load(snapshot: bytes) -> M:
        try:
            found = model.model_validate_json(snapshot)
        except ValueError as error:
            _refuse_newer(object_in(snapshot), newest)
            # A snapshot that is no valid state may still name its workflow.
            named, said = _WORKFLOW.search(snapshot), " ".join(str(error).split())[:300]
            workflow = named[1].decode() if named is not None else ""
            raise Damaged(workflow, f"its snapshot cannot be read: {said}") from None
        _refuse_newer(found.__dict__, newest)
        return found

    return load


def _refuse_newer(found: dict[str, Any], newest: int) -> None:
    version = found.get("schema_version", 1)
    if isinstance(version, int) and version > newest:
        is_named = found.get("profile", "validation") == "validation"
        which = f"workflow {found.get('workflow', '')}" if is_named else "a workflow"
        raise NewerVersion(
            f"{which} was written by a newer fixloop (schema {version}, this one reads up to {newest}); "
            "it was left as it is: upgrade this one"
        )


def object_in(text: bytes) -> dict[str, Any]:
    """The JSON object in `text`; empty if it holds none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


load_state: Final = loader(State, SCHEMA_VERSION)
"""Loads the snapshot of a validation workflow."""
