"""`audit verify` checks whether a workflow is damaged; `repair` sets one aside so that its issue can start again."""

import base64
import json
import os
from collections.abc import Mapping
from itertools import count
from typing import Final

import typer

from fixloop.commands.screen import print_json, print_lines, say
from fixloop.commands.session import (
    AsJson,
    Issue,
    OptionalIssue,
    ProjectOption,
    open_session,
    open_workflow,
    project_folder,
)
from fixloop.engine.replay import audit
from fixloop.errors import ExitCode, RefusedError, UsageError
from fixloop.protocol.durations import iso_stamp
from fixloop.store.archive.files import archive_at

FORMAT: Final = 1

group: Final = typer.Typer(help="Check that a history is as recorded.", rich_markup_mode=None)
group.callback()(lambda: None)


@group.command()
def verify(issue: OptionalIssue = None, json: AsJson = False, project: ProjectOption = None) -> None:
    """
    Check a history's digests and decisions.

    Checks the chain of digests and makes every decision again. Without ISSUE: all workflows of the project.
    Exit code 1 if anything differs from what was committed.
    """
    with open_session() as session:
        chosen = session.lookup.stored_of(project) if issue is None else [session.workflow_of(issue, project)]
        audits = [audit(session.store, workflow) for workflow in chosen]
        target = archive_at(session.settings.archive_dir)
        damaged = list(target.damaged()) if target is not None and issue is None else []
    if json:
        documents = [
            each._asdict() | {"workflow_id": each.workflow, "problems": list(each.problems)}
            for each in audits
        ]
        print_json({"workflows": documents, "damaged": damaged})
    else:
        for each in audits:
            rest = each.entries - each.replayed
            chain = f" ({rest} only by their chain: another version decided them)" if rest else ""
            verified = [f"verified: {each.entries} entries{chain}"]
            print_lines(*(f"{each.workflow}: {line}" for line in each.problems or verified))
        print_lines(*damaged)
    if any(each.problems for each in audits):
        raise typer.Exit(ExitCode.WRONG)


def repair(issue: Issue, project: ProjectOption = None) -> None:
    """
    Set a damaged workflow aside so that its issue can start again.

    Moves its data from Redis to a file under `.fixloop/damaged` and prints the file's name. Refuses a workflow that
    passes `audit verify`. Its number is not used again.
    """
    with open_workflow(issue, project) as (session, workflow):
        found = audit(session.store, workflow)
        if not found.problems:
            told = f"workflow {workflow} is not damaged; `fixloop audit verify {workflow}` verifies it"
            raise RefusedError(told)
        at = iso_stamp(session.store.now(workflow).at)
        folder = project_folder(session.directory, "damaged", "run it where you can write")
        names = (f"{workflow}.{number}.json" if number > 1 else f"{workflow}.json" for number in count(1))
        target = next(folder / name for name in names if not (folder / name).exists())

        def write(dumped: Mapping[str, bytes]) -> None:
            """Save the Redis data, as `RESTORE` accepts it."""
            keys = {name: base64.b64encode(data).decode() for name, data in dumped.items() if data}
            kept = {"workflow": workflow, "at": at, "problems": found.problems, "keys": keys}
            try:
                with target.open("w", encoding="utf-8") as file:
                    file.write(json.dumps({"fixloop_damaged": FORMAT, **kept}, indent=1) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise UsageError(f"cannot write {target}: {error.strerror}; nothing was changed") from None

        session.store.set_aside(workflow, write)
    print_lines(str(target))
    number = workflow.split("-")[1]
    say(f"workflow {workflow} is set aside: {found.problems[0]}; `fixloop run --issue {number}` starts again")
