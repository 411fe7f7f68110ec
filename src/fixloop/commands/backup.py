"""`backup` and `restore`: one project's workflows in one file."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Exit, Option

from fixloop import __version__
from fixloop.commands.lookup import prefix_of
from fixloop.commands.screen import counted, note, say
from fixloop.commands.session import OnlyProject, open_session
from fixloop.errors import ExitCode
from fixloop.protocol.durations import iso_stamp
from fixloop.store.backup import Header, back_up, header_of, restore, sealed_with
from fixloop.store.seal import sealing_in

LATE_SECONDS: Final = 60.0
"""From this delay on, limits that resume late are mentioned."""


def backup(
    file: Annotated[Path, Argument(metavar="FILE", help="The output file.")], project: OnlyProject = None
) -> None:
    """
    Write a project's workflows to one file. Includes histories and artifacts.

    The default is this directory's project. Workers may keep running: each workflow is saved as of one moment.
    Archived workflows are not included. The file has no tokens or passwords, but all that agents and tools wrote.
    """
    with open_session() as session:
        name = prefix_of(project).rstrip("-") or session.project.hash8
        sealed = sealed_with(sealing_in(session.urls.seal_key_file, create=False))
        header = Header(name, iso_stamp(datetime.now(UTC)), __version__, sealed)
        count = sum(1 for _ in counted(back_up(session.connection, header, file), "workflows written"))
    say(f"{count} workflows of project {name} are in {file}")


def restore_command(
    file: Annotated[Path, Argument(metavar="FILE", help="What `fixloop backup` wrote.")],
    replace: Annotated[
        bool, Option("--replace", help="Overwrite workflows that are there in another version.")
    ] = False,
) -> None:
    """
    Restore a project's workflows to this Redis or another one.

    Checks the whole file first. Workflows that are already there stay; one that is there in another version is
    left alone, with exit code 1, unless --replace is given. Steps that were running are repeated. Live workflows
    run the commands that the file names: restore only a file from somebody whom you trust with that.
    """
    header = header_of(file)
    with open_session(create=True) as session:
        if header.sealed != sealed_with(sealing_in(session.urls.seal_key_file, create=False)):
            note(
                "the histories were sealed with another key; copy the key of the backup's deployment, or `fixloop "
                "audit verify` will reject them"
            )

        def put_aside(workflow: str) -> None:
            session.store.set_aside(workflow, lambda _: None)

        found = Counter[str]()
        late = 0.0
        for each in counted(
            restore(session.connection, file, put_aside if replace else None), "workflows read"
        ):
            found[each.became] += 1
            late = max(late, each.late_seconds if each.is_live else 0.0)
            if each.became in ("other", "lives"):
                what = "is there in another version" if each.became == "other" else "has a live successor"
                say(f"{each.workflow} {what}; --replace overwrites it")
    say(f"{found['restored']} workflows of project {header.project} restored, {found['same']} already there")
    if late > LATE_SECONDS:
        note(f"this Redis has other work, so limits of live workflows resume {late:.0f} s late")
    if found["other"] or found["lives"]:
        raise Exit(ExitCode.WRONG)
