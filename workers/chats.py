"""Posting to chats and checking them as Celery tasks, for callers that have only celery (E33, R2)."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fixloop.chat.directory import apply
from fixloop.chat.events import MessageWritten
from fixloop.chat.findings import Level, shown
from fixloop.chat.message import MAX_SEQ
from fixloop.chat.roles import Role
from fixloop.chat.validation import examine_all, summed_up
from fixloop.errors import FixloopError
from fixloop.repository.git import branch_of
from workers.app import app, taken_for


class Chats(BaseModel):
    """Chats that a caller wants examined."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    path: str
    """A directory on the worker's machine."""
    title: str | None = None
    """Of a pull request."""


class Draft(BaseModel):
    """A message that a caller wants posted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path
    """The chat's directory on the worker's machine."""
    by: Role
    to: Role
    purpose: str
    body: str
    seq: Annotated[int, Field(strict=True, ge=1, le=MAX_SEQ)]
    """The number it has to get: a task that comes twice posts it once."""


log = logging.getLogger("fixloop.chat")


@app.task(name="fixloop.chat.examine", form=Chats)  # type: ignore[untyped-decorator]
def examine(*, path: str, title: str | None = None) -> str:
    """Look at the chats below `path` on this machine, and at a pull request's title; what `fixloop chat validate` ends
    with. The findings are in the log, for nobody waits for the answer."""
    try:
        examined = examine_all([Path(path)], title=title)
    except FixloopError as error:
        log.error("%s", error)
        return str(error)
    for finding in examined.findings:
        log.log(logging.ERROR if finding.level is Level.ERROR else logging.WARNING, "%s", finding)
    return summed_up(examined)


@app.task(name="fixloop.chat.write", form=Draft)  # type: ignore[untyped-decorator]
def write(**draft: Any) -> str:
    """Post to a chat on this machine, under the rules of `fixloop chat post`: the message's file, or why there is
    none."""
    try:
        given = Draft.model_validate(draft)
        event = MessageWritten(
            given.by, given.to, given.purpose, given.body, seq=given.seq, branch=branch_of(given.path)
        )
        return apply(given.path, event, datetime.now(UTC)).file
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(map(str, wrong["loc"]))
        refused = f"{name} is {shown(str(wrong['input']))}: {wrong['msg'].lower()}"
    except FixloopError as error:
        refused = str(error)
    log.error("nothing was posted: %s", refused)
    return refused


taken_for(examine, "fixloop.chat.validate", Chats)
taken_for(write, "fixloop.chat.post", Draft)
