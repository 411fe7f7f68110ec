"""`apply` and `push`: put verified work into the checkout, which nothing else touches, or on the server."""

import uuid
from pathlib import Path
from typing import Any

from fixloop.commands.handlers import handlers_of
from fixloop.commands.presenter import PASSED, UNVERIFIED
from fixloop.commands.screen import note, print_lines
from fixloop.commands.session import Issue, ProjectOption, Session, look, open_workflow
from fixloop.errors import RefusedError
from fixloop.intake.project import project_at
from fixloop.outside.transfer import bring_work, push_branch, snapshot_in
from fixloop.protocol.ids import called
from fixloop.repository.apply import apply_changes


def apply_command(issue: Issue, project: ProjectOption = None) -> None:
    """Apply the verified fixes to the checkout. Makes uncommitted changes, all or nothing."""
    with open_workflow(issue, project) as (session, workflow):
        apply_to(session.directory, session, look(session, workflow).state)


def push_command(issue: Issue, project: ProjectOption = None) -> None:
    """Push the verified branch to the repository's URL. Also retries a refused push."""
    with open_workflow(issue, project) as (session, workflow):
        state = look(session, workflow).state
        _refuse_unpassed(state, "push")
        branch = push_branch(session.store, state, session.settings.cache_dir)
        if not branch:
            note(f"nothing to push: issue {state.issue} passed without a fix")
            return
        if branch != state.pushed:
            event = handlers_of(session, workflow).pushed(branch)
            session.engine_of(workflow).apply(workflow, event, operation=uuid.uuid4().hex)
            session.draw(workflow)
        print_lines(branch)


def apply_to(path: Path, session: Session, state: Any) -> None:
    """Apply the verified work to the checkout at `path`, all or nothing, and print its files."""
    _refuse_unpassed(state, "apply")
    snapshot = snapshot_in(state)
    if project_at(path).name != state.project:
        raise RefusedError(
            f"this folder is not project {state.project}; run `fixloop apply {called(state)}` in its checkout"
        )
    mirror = bring_work(session.store, state, session.settings.cache_dir)
    files = apply_changes(path, base=snapshot.commit, tip=state.tip, mirror=mirror)
    print_lines(*files)
    note(
        f"{len(files)} file{'s' * (len(files) > 1)} changed in {path.absolute()}"
        if files
        else "nothing to change: everything is already there"
    )


def _refuse_unpassed(state: Any, verb: str) -> None:
    if state.outcome not in (*PASSED, UNVERIFIED):
        told = f"issue {state.issue} has no verified tree to {verb}: it is {state.outcome or state.status}"
        raise RefusedError(told)
