"""What fixloop remembers of the named files it wrote: so much that an edit by hand is seen, and Redis rebuilt (K23)."""

import json
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from fixloop.files.atomic import write_whole


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Kept(_Value):
    """One file as it was written."""

    digest: str
    """Of its content."""
    sources: str
    """Tells one content from another without making it: a digest of what it was put together from."""
    sizes: tuple[int, ...] = ()
    """Of its parts in bytes, so that each artifact in it can be found again."""

    @classmethod
    def of(cls, parts: tuple[bytes, ...], sources: str) -> "Kept":
        digest = sha256(b"".join(parts)).hexdigest()
        return cls(digest=digest, sources=sources, sizes=tuple(map(len, parts)) if len(parts) > 1 else ())


class Stamp(_Value):
    """Whose state the files are drawn from, and which of its states that is."""

    workflow: str = ""
    profile: str = ""
    issue: int = 0
    rebuilt: int = 0
    """How often the workflow was rebuilt from its files; each time its versions start again."""
    version: int = 0
    ended: bool = False
    started_at: datetime | None = None
    snapshot: str = ""
    """The state itself, JSON."""
    configuration: str = ""
    """The frozen configuration, JSON."""

    @property
    def rank(self) -> tuple[int, int]:
        """Of two states of one workflow, the later has the higher."""
        return self.rebuilt, self.version


class Record(Stamp):
    """All that is known of the files of a place."""

    files: dict[str, Kept] = {}
    """By path below the root."""


def read_record(path: Path) -> Record:
    """What was written last; an empty record where nothing was, or it cannot be read."""
    try:
        return Record.model_validate(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return Record()


def write_record(path: Path, record: Record) -> None:
    """Replace the record in one moment."""
    write_whole(path, record.model_dump_json(exclude_defaults=True).encode())
