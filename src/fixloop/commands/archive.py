"""Where ended workflows go: `archive` moves them out of Redis, `purge` deletes them permanently."""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Final

from typer import Argument, BadParameter, Exit, Option

from fixloop.commands.lookup import prefix_of
from fixloop.commands.screen import print_json, print_lines, say
from fixloop.commands.session import AsJson, OnlyProject, open_session
from fixloop.errors import ExitCode, RefusedError, UsageError
from fixloop.machine.owner import identity
from fixloop.protocol.durations import iso_stamp, stamp
from fixloop.store.archive.files import archive_at
from fixloop.store.archive.retention import Moved, archive_ended, purge_ended
from fixloop.store.keys import feature_of

_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes"}


def _age(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([dhm]?)", text.strip())
    if found is None:
        raise BadParameter(f"{text!r} is not an age; use 90d, 12h or 30m")
    return timedelta(**{_UNITS[found[2] or "d"]: float(found[1])})


def archive(
    older_than: Annotated[
        timedelta | None,
        Option(
            metavar="AGE",
            parser=_age,
            help="Only what ended this long ago, such as 90d, 12h or 30m; 0 for all.",
            show_default="FIXLOOP_ARCHIVE_AFTER_DAYS, which is 30",
        ),
    ] = None,
    json: AsJson = False,
    project: OnlyProject = None,
) -> None:
    """
    Move ended workflows to the archive now.

    The archive is FIXLOOP_ARCHIVE_DIR; workers move them there after FIXLOOP_ARCHIVE_AFTER_DAYS.
    `log`, `status`, `report` and `audit verify` still read them. Prints one line for each; exit code 1
    if one has to stay because its history does not verify.
    """
    with open_session() as session:
        target = archive_at(session.settings.archive_dir)
        if target is None:
            raise UsageError("there is no archive; set FIXLOOP_ARCHIVE_DIR to a folder for it")
        age = older_than if older_than is not None else timedelta(days=session.settings.archive_after_days)
        moved = archive_ended(
            session.store,
            target,
            before=session.store.now(0).at - age,
            owner=identity(),
            project=prefix_of(project),
        )
        _tell(moved, json=json)


def purge(
    older_than: Annotated[
        timedelta,
        Option(
            metavar="AGE", parser=_age, help="What ended this long ago, such as 90d, 12h or 30m; 0 for all."
        ),
    ],
    issue: Annotated[
        str | None, Argument(metavar="ISSUE", help="Only the workflows of this issue.", show_default=False)
    ] = None,
    dry: Annotated[bool, Option("--dry", help="Only show what would be deleted.")] = False,
    json: AsJson = False,
    project: OnlyProject = None,
) -> None:
    """
    Permanently delete ended workflows from Redis and the archive.

    Nothing else ever deletes one. Prints one line for each; exit code 1 if one has to stay because it is damaged.
    Live workflows are never deleted, whatever their age; a live ISSUE is refused. The number of a deleted
    workflow is not used again.
    """
    with open_session() as session:
        prefix = prefix_of(project)
        if issue is not None:
            feature = feature_of(session.workflow_of(issue, project))
            hash8, number = feature.split("-")
            live = session.store.live(hash8, int(number))
            if live is not None:
                told = f"issue {number} is live (workflow {live}); run `fixloop cancel {number}` first"
                raise RefusedError(told)
            prefix = f"{feature}-"
        before = session.store.now(0).at - older_than
        target = archive_at(session.settings.archive_dir)
        _tell(purge_ended(session.store, target, before=before, project=prefix, dry=dry), json=json)


def _tell(moved: Iterable[Moved], *, json: bool) -> None:
    """Print each one as it happens; one that had to stay is an error."""
    told = []
    for each in moved:
        told.append(each)
        if not json:
            print_lines(f"{each.workflow}  {each.status}  ended {stamp(each.ended_at)} UTC  {each.detail}")
    if json:
        print_json({"workflows": [each._asdict() | {"ended_at": iso_stamp(each.ended_at)} for each in told]})
    elif not told:
        say("no workflow ended that long ago")
    if any(each.status == "kept" for each in told):
        raise Exit(ExitCode.WRONG)
