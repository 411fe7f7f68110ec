"""One workflow as a line of JSON: what it is for people, and every stored byte of it for `audit verify`."""

import base64
import json
import zlib
from datetime import datetime
from typing import Final

from fixloop.errors import ProtocolError
from fixloop.store.records import Stored

FORMAT: Final = 1


def line_of(stored: Stored, ended_at: datetime) -> bytes:
    """The line of a workflow, with its end."""
    kept = {
        "fixloop_archive": FORMAT,
        "workflow": stored.workflow,
        "ended_at": ended_at.isoformat(),
        "fields": dict(stored.fields),
        "version": stored.version,
        "head": stored.head,
        "stale": stored.stale,
        "snapshot": _text(stored.snapshot),
        "entries": [_text(entry) for entry in stored.entries],
        "artifacts": {digest: _text(zlib.compress(data)) for digest, data in stored.artifacts.items()},
    }
    return json.dumps(kept, separators=(",", ":")).encode() + b"\n"


def stored_of(line: bytes) -> Stored:
    """The workflow in a line. Raises ProtocolError: a newer version of fixloop wrote it; ValueError: it is damaged."""
    kept = json.loads(line)
    if not isinstance(kept, dict) or not isinstance(kept.get("fixloop_archive"), int):
        raise ValueError("it is no record of an archived workflow")
    if kept["fixloop_archive"] > FORMAT:
        raise ProtocolError(
            f"workflow {kept.get('workflow')} was archived by a newer fixloop "
            f"(format {kept['fixloop_archive']}, this one reads up to {FORMAT}); upgrade this one"
        )
    try:
        return Stored(
            workflow=kept["workflow"],
            version=kept["version"],
            head=kept["head"],
            snapshot=_bytes(kept["snapshot"]),
            entries=tuple(map(_bytes, kept["entries"])),
            artifacts={digest: zlib.decompress(_bytes(text)) for digest, text in kept["artifacts"].items()},
            fields=dict(kept["fields"]),
            stale=kept["stale"],
        )
    except (KeyError, TypeError, AttributeError, zlib.error) as error:
        raise ValueError(f"its record is damaged: {error!r}") from None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
