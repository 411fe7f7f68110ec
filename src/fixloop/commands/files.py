"""`files`: check and rewrite the named files of a cycle or handoff, or rebuild Redis from them (K23)."""

from pathlib import Path
from typing import Annotated

from typer import Exit, Option

from fixloop.commands.lookup import files_root
from fixloop.commands.screen import print_lines, say
from fixloop.commands.session import Issue, ProjectOption, Session, here, open_session
from fixloop.errors import InfrastructureError, RefusedError, UsageError
from fixloop.servers.settings import load_settings
from fixloop.statefiles.named_files import NamedFiles, records_below
from fixloop.statefiles.rebuild import lost, rebuild
from fixloop.statefiles.rendering import has_files
from fixloop.statefiles.sync import lay, place_of, project as projected, root_of


def files(
    issue: Issue,
    to: Annotated[
        Path | None, Option(metavar="DIR", help="Instead write plain copies to this folder.")
    ] = None,
    rebuild_: Annotated[
        bool, Option("--rebuild", help="Rebuild from its files a workflow that Redis lost.")
    ] = False,
    project: ProjectOption = None,
) -> None:
    """
    Check the named files of a cycle or handoff. Rewrites those that were changed.

    While a workflow runs, Redis is authoritative. An edited file is reported with field and value, kept in
    `.fixloop/files/edited` and rewritten, with exit code 2. Prints the folder.
    """
    if rebuild_:
        number = issue.removeprefix("#")
        if not (number.isascii() and number.isdecimal()):
            raise UsageError(f"{issue[:60]!r} is not an issue number; --rebuild needs one such as 47")
        with open_session(create=True) as session:
            print_lines(_put_back(session, files_root(session.directory), int(number)))
        return
    with open_session() as session:
        found = session.store.read(session.workflow_of(issue, project))
        if found is None or not has_files(found.snapshot):
            raise UsageError(f"workflow {found.workflow if found else issue} has no named files")
        if to is not None:
            try:
                to.mkdir(parents=True, exist_ok=True)
                lay(session.store, found.snapshot, to)
            except OSError as error:
                raise UsageError(f"cannot write {error.filename or to}: {error.strerror}") from None
            print_lines(to.absolute())
            return
        root = root_of(found.snapshot)
        if root is None or not root.is_dir():
            raise UsageError(
                f"workflow {found.workflow} has no folder on this machine; `--to DIR` writes its files elsewhere"
            )
        done = projected(session.store, found.workflow, again=True)
        for edit in done.edits:
            say(edit)
        if done.problem:
            raise InfrastructureError(done.problem)
        version = NamedFiles(root, place_of(found.snapshot, found.workflow)).record.version
        if not done.written and version > found.version:
            raise RefusedError(
                f"the files in {root} are of version {version} of {found.workflow}, but Redis has version "
                f"{found.version}: it was set back; restore its newer data, or remove .fixloop/files to rewrite them"
            )
        print_lines(root)
        if done.edits:
            raise Exit(UsageError.exit_code)


def restore_lost(issue: str | None) -> None:
    """If a project's embedded Redis lost a live workflow, restore it from its files (K23). Not for a Redis behind a
    URL, because another one could have the workflow: there a person uses --rebuild."""
    root = files_root(here())
    if all(record.ended for record in records_below(root)) or not load_settings().is_embedded:
        return
    with open_session(create=True) as session:
        for record in lost(session.store, root):
            if issue in (None, str(record.issue), f"#{record.issue}", record.workflow):
                _put_back(session, root, record.issue)


def _put_back(session: Session, root: Path, issue: int) -> str:
    workflow = rebuild(session.store, root, issue, cache=session.settings.cache_dir, hint=session.hints)
    say(f"issue {issue} was lost, and rebuilt from the files in {root}; its history starts over")
    return workflow
