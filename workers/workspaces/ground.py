"""The ground a command stands on: workspace, interpreter, environment, fresh places for its reports."""

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fixloop.configuration.model import Configuration
from fixloop.errors import FixloopError
from fixloop.intake.redaction_scope import redaction_of
from fixloop.machine.interpreters import Interpreter, choose_interpreter
from fixloop.outside.transfer import bring_work, snapshot_in
from fixloop.repository.snapshot import Snapshot, mirror_of
from fixloop.secrets.redaction import Redaction
from fixloop.servers.settings import load_settings
from workers.workspaces.environment import allowed_names, allowed_variables, environment_for, with_named
from workers.workspaces.interpreter import probe_imports
from workers.workspaces.node_modules import lend_generated, lend_node_modules
from workers.workspaces.setup import Setup, prepare
from workers.workspaces.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from workers.steps.step import Step

_ENDINGS = {"junit": ".xml", "sarif": ".sarif", "go-test": ".jsonl", "cargo-test": ".txt", "clippy": ".jsonl"}


@dataclass(frozen=True)
class Ground:
    """Where and how the commands of one step run."""

    workspace: Workspace
    interpreter: Interpreter
    shared: bool
    """On a worker for everybody: a project gets only the variables that the operator allows."""
    redaction: Redaction
    donors: tuple[Path, ...] = ()
    """Other checkouts' `node_modules`, to whose packages there are links."""
    problem: str = ""
    """Why nothing can be checked here, in one sentence; empty when all is well."""

    @cached_property
    def _environment(self) -> dict[str, str]:
        return environment_for(self.workspace, self.interpreter)

    def environment(self, names: Sequence[str]) -> dict[str, str]:
        """What a command sees, with `names` from the configuration; its caches are shared by all commands here."""
        allowed = allowed_names(names, shared=self.shared, operators=load_settings().allow_env)
        return with_named(self._environment, allowed, os.environ)

    def report_path(self, check: str, kind: str) -> Path:
        """Where a check is to write its report; nothing is there yet, and no other check is told this place."""
        name = re.sub(r"[^\w.-]", "_", check)
        return Path(
            tempfile.mkdtemp(prefix="report-", dir=self.workspace.scratch),
            f"{name}{_ENDINGS.get(kind, '.json')}",
        )


class Attempt(NamedTuple):
    """Who needs a ground, as far as its making depends on it."""

    name: str
    """The ticket's id; without a ticket any name for a folder."""
    fence: int = 1
    shared: bool = False
    cancelled: Callable[[], bool] = lambda: False


def attempt_of(work: "Step") -> Attempt:
    holding = work.holding
    return Attempt(holding.ticket.id, holding.fence, not holding.state.queue, work.cancelled)


@contextmanager
def open_ground(work: "Step", configuration: Configuration, cache: Path) -> Iterator[Ground]:
    """A workspace of the ticket's own at the workflow's present tip, made ready; removed at the end."""
    state = work.holding.state
    bring_work(work.store, state, cache)
    with ground_at(snapshot_in(state), state.tip, configuration, cache, attempt_of(work)) as ground:
        yield ground


@contextmanager
def ground_at(
    snapshot: Snapshot, commit: str, configuration: Configuration, cache: Path, attempt: Attempt
) -> Iterator[Ground]:
    """A workspace at a commit that is in the snapshot's mirror, made ready; removed at the end."""
    with open_workspace(
        cache,
        mirror_of(snapshot, cache),
        commit,
        ticket=attempt.name,
        fence=attempt.fence,
        subdirectory=snapshot.subdirectory,
        copied=snapshot.copied,
    ) as workspace:
        yield _made_ready(workspace, snapshot, configuration, cache, attempt)


def _made_ready(
    workspace: Workspace, snapshot: Snapshot, configuration: Configuration, cache: Path, attempt: Attempt
) -> Ground:
    """Run setup, choose the interpreter, and look whether it imports the project from the workspace."""
    hidden, made = redaction_of(configuration), None
    try:
        if command := configuration.workspace.setup:
            setup = Setup(
                command,
                allowed_variables(os.environ),
                copied=snapshot.copied,
                cancelled=attempt.cancelled,
                hide=hidden.text,
            )
            made = prepare(
                cache, workspace.mirror, workspace.commit, subdirectory=snapshot.subdirectory, setup=setup
            )
            lend_generated(workspace.path, workspace.directory, made)
    except FixloopError as error:
        nothing = Interpreter("", "", "none")
        return Ground(workspace, nothing, attempt.shared, hidden, problem=hidden.text(str(error)))
    source = None if snapshot.is_url else Path(snapshot.source)
    donors = lend_node_modules(
        workspace.path, workspace.directory, [place for place in (made, source) if place]
    )
    chosen = choose_interpreter(
        made=made, source=source, subdirectory=snapshot.subdirectory, variables=os.environ
    )
    ground = Ground(workspace, chosen, attempt.shared, hidden, donors)
    environment = ground.environment(())
    problem = probe_imports(chosen, workspace.directory, workspace.path, environment, hide=hidden.text)
    return replace(ground, problem=problem) if problem else ground
