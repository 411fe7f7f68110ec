"""Celery tasks that post to chats and check them, for callers that only have Celery (E33, R2)."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from fixloop.chat.directory import apply
from fixloop.chat.events import MessageWritten
from fixloop.chat.message import MAX_SEQ
from fixloop.chat.validation import examine_all, summed_up
from fixloop.chat.vocabulary import Level, Role, shown
from fixloop.errors import FixloopError
from fixloop.repository.git import branch_of
from workers.app import app, taken_for


class Chats(BaseModel, frozen=True, strict=True, extra="forbid"):
    """The arguments of `fixloop.chat.validate`."""

    path: str
    """A directory on the worker's machine."""
    title: str | None = None
    """The title of a pull request."""


class Draft(BaseModel, frozen=True, extra="forbid"):
    """The arguments of `fixloop.chat.post`."""

    path: Path
    """The chat's directory on the worker's machine."""
    by: Role
    to: Role
    purpose: str
    body: str
    seq: Annotated[int, Field(strict=True, ge=1, le=MAX_SEQ)]
    """The number that the message must get, so that a repeated task posts it only once."""


log = logging.getLogger("fixloop.chat")


@app.task(name="fixloop.chat.examine", form=Chats)  # type: ignore[untyped-decorator]
def examine(*, path: str, title: str | None = None) -> str:
    """Check the chats below `path` on this machine, and a pull request's title; returns the last line of `fixloop chat
    validate`. The findings are logged, because nobody reads the result."""
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
    """Post to a chat on this machine, with the rules of `fixloop chat post`; returns the message's file, or why nothing
    was posted."""
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
