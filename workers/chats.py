"""The validator of chats as a Celery task, for callers that have only celery (E33)."""

import logging
from pathlib import Path

from fixloop.chat.examining import examine_all
from fixloop.chat.findings import Level
from fixloop.chat.listing import summed_up
from fixloop.errors import FixloopError
from workers.app import app

__all__ = ["examine", "validate"]

log = logging.getLogger("fixloop.chat")


@app.task(name="fixloop.chat.validate")  # type: ignore[untyped-decorator]
def validate(*, path: str, title: str | None = None) -> None:
    """Take a tree of chats from any caller; a work process looks at it, control stays quick."""
    examine.apply_async(kwargs={"path": path, "title": title}, queue="fixloop.prepare")


@app.task(name="fixloop.chat.examine")  # type: ignore[untyped-decorator]
def examine(*, path: str, title: str | None = None) -> str:
    """
    Look at the chats below `path`, a directory on this machine, and at a pull request's title.

    Returns:
        What `fixloop chat validate` ends with; the findings are in the log, for nobody waits for the answer.
    """
    try:
        examined = examine_all([Path(path)], title=title)
    except FixloopError as error:
        log.error("%s", error)
        return str(error)
    for finding in examined.findings:
        log.log(logging.ERROR if finding.level is Level.ERROR else logging.WARNING, "%s", finding)
    return summed_up(examined)
