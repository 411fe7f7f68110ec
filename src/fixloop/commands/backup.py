"""`backup` and `restore`: one project's workflows as one file."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Exit, Option

from fixloop import __version__
from fixloop.commands.exit_codes import ExitCode
from fixloop.commands.lookup import prefix_of
from fixloop.commands.screen import counted, note, say
from fixloop.commands.session import OnlyProject, open_session
from fixloop.protocol.durations import iso_stamp
from fixloop.store.backup import Header, back_up, header_of, restore, sealed_with
from fixloop.store.seal import sealing_in

LATE_SECONDS: Final = 60.0
"""Limits that run on from so much later are worth a word."""


def backup(
    file: Annotated[Path, Argument(metavar="FILE", help="Where to write it.")], project: OnlyProject = None
) -> None:
    """
    Write all workflows of a project into one file, with their histories and artifacts.

    Of this directory's project, if none is named; while workers work, each workflow is as it was at one moment. What
    was archived lies in files of its own. It holds no token and no password, and what agents and tools wrote.
    """
    with open_session() as session:
        name = prefix_of(project).rstrip("-") or session.project.hash8
        sealed = sealed_with(sealing_in(session.urls.seal_key_file, create=False))
        header = Header(name, iso_stamp(datetime.now(UTC)), __version__, sealed)
        count = sum(1 for _ in counted(back_up(session.connection, header, file), "workflows are written"))
    say(f"{count} workflows of project {name} are in {file}")


def restore_command(
    file: Annotated[Path, Argument(metavar="FILE", help="What `fixloop backup` wrote.")],
    replace: Annotated[
        bool,
        Option("--replace", help="Put it in the place of what is there in another version; that is lost."),
    ] = False,
) -> None:
    """
    Put a project's workflows back, into this Redis or another one.

    The whole file is checked first. What is there as in the file stays; a workflow that is there in another version is
    left alone, with exit code 1, unless --replace is given. Steps that were at work are done again.
    """
    header = header_of(file)
    with open_session(create=True) as session:
        if header.sealed != sealed_with(sealing_in(session.urls.seal_key_file, create=False)):
            note(
                "the histories were sealed with another key; bring that of the backup's deployment along, or `fixloop "
                "audit verify` will not know them"
            )

        def put_aside(workflow: str) -> None:
            session.store.set_aside(workflow, lambda _: None)

        found = Counter[str]()
        late = 0.0
        for each in counted(
            restore(session.connection, file, put_aside if replace else None), "workflows are read"
        ):
            found[each.became] += 1
            late = max(late, each.late_seconds if each.is_live else 0.0)
            if each.became in ("other", "lives"):
                what = (
                    "is there in another version" if each.became == "other" else "has a successor that lives"
                )
                say(f"{each.workflow} {what}; --replace puts the backup in its place")
    say(
        f"{found['restored']} workflows of project {header.project} were restored, {found['same']} were there"
    )
    if late > LATE_SECONDS:
        note(f"this Redis has work of its own, so limits of what lives run on from {late:.0f} s later")
    if found["other"] or found["lives"]:
        raise Exit(ExitCode.WRONG)
