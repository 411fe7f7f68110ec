"""The records of a backup, checked one by one before any is restored.

A backup is trusted in what its workflows say, including the commands they name. It is not trusted to stay in its
project, in the store's own keys and in bounded memory: it may come from somebody who may write to one project only.
"""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from io import BufferedIOBase
from math import isfinite
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter

from fixloop.store import keys
from fixloop.store.entries import digest_of
from fixloop.store.packing import inflate
from fixloop.store.waivers import Waiver

MOST_BYTES: Final = 256 * 1024 * 1024
"""Of one record: a workflow with everything that was stored of it."""
FOR_EVER: Final = 9007199254740991.0
"""The ready time of the tickets of a paused workflow."""
Record = dict[str, Any]

_WAIVER: Final = TypeAdapter(Waiver)
_Bytes = Annotated[bytes, BeforeValidator(b64decode)]
_Seconds = Annotated[float, Field(strict=True, ge=0, le=1e11)]
_Whole = Annotated[int, Field(strict=True, ge=0, le=2**52)]
_Text = Annotated[str, Field(strict=True)]


class _Shared(BaseModel, extra="forbid"):
    """An artifact that several workflows of a shard name."""

    artifact: _Text
    key: _Text
    data: _Bytes

    def is_of(self, _: str) -> bool:
        is_whole = digest_of(inflate(self.data) or b"") == self.artifact
        return is_whole and keys.is_artifact_key(self.key, self.artifact)


class _Project(BaseModel, extra="forbid"):
    """What is stored of a project apart from its workflows."""

    numbers: tuple[_Whole, ...]
    retired: dict[str, _Text]
    waivers: dict[str, _Text]

    def is_of(self, project: str) -> bool:
        waivers = [_WAIVER.validate_json(text) for text in self.waivers.values()]
        names = [*self.retired, *self.waivers, *(each.workflow for each in waivers)]
        return all(re.match(rf"{project}-\d{{1,15}}\b", name) for name in names)


class _Workflow(BaseModel, extra="forbid"):
    """Everything of one workflow."""

    workflow: _Text
    hash: dict[str, _Bytes]
    history: tuple[_Bytes, ...]
    artifacts: dict[str, _Bytes]
    ended: _Seconds | None
    clock: _Seconds
    fence: _Whole = 0

    def is_of(self, project: str) -> bool:
        _, due, delayed = requeued(self.hash)
        if not (
            {"version", "head"} <= self.hash.keys() and all(map(isfinite, (due or 0, *delayed.values())))
        ):
            raise ValueError("a workflow has no version, no head or a time that never comes")
        of = {keys.workflow_of(ticket) for ticket in delayed}
        return keys.is_workflow(self.workflow) and self.workflow[:8] == project and of <= {self.workflow}


_RECORD: Final[TypeAdapter[_Workflow | _Shared | _Project]] = TypeAdapter(_Workflow | _Shared | _Project)


def check(record: Record, project: str) -> None:
    """Raises ValueError, TypeError or UsageError for what no backup of `project` has."""
    if not _RECORD.validate_python(record).is_of(project):
        raise ValueError("it is not of its project, or of another key or content than it says")


def lines(file: BufferedIOBase) -> Iterator[bytes]:
    """Raises ValueError: one has more than MOST_BYTES, as no backup writes it."""
    while line := file.readline(MOST_BYTES + 1):
        if len(line) > MOST_BYTES:
            raise ValueError(f"a line has more than {MOST_BYTES:,} bytes")
        yield line


def requeued(hash_: Mapping[str, bytes]) -> tuple[dict[str, bytes], float | None, dict[str, float]]:
    """The hash with its tickets ready for the next sweep, its earliest deadline, and its members of `delayed`. Work
    that was in progress is repeated."""
    own, delayed = dict(hash_), dict[str, float]()
    is_parked = "parked" in hash_
    for field in [each for each in hash_ if each.startswith("s:")]:
        kind, number, owner, limit, rest = hash_[field].decode().split("\n", 4)
        ready = FOR_EVER if is_parked else float(rest) if kind == "d" else 0.0
        shown = f"{ready:.0f}" if is_parked else f"{ready:.6f}"
        own[field] = "\n".join(("d", number, owner, limit, shown)).encode()
        delayed[field[2:]] = ready
    due = min((float(at) for field, at in hash_.items() if field.startswith("d:")), default=None)
    return own, due, delayed
