"""The claim that judges look at: a run that passed on a tree that a fix made, and what it rests on."""

import os
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fixloop.configuration.model import Check, Configuration
from fixloop.integrity.paths import Kind, Trust
from fixloop.integrity.started import started_by
from fixloop.reports.coverage import NAME as COVERAGE
from fixloop.repository.change import judging
from fixloop.repository.git import Git
from fixloop.repository.tree import GITLINK, Delta, tracked_in_tree
from workers.commands.check_run import Ran, Run
from workers.steps.step import Step
from workers.workspaces.ground import Ground, site_of


@dataclass(frozen=True)
class Claim:
    """A run of a specialist's checks on a tree that a fix made; it is judged where it has passed."""

    work: Step
    configuration: Configuration
    cache: Path
    ground: Ground
    """Where the checks ran; still there, with what they left."""
    checks: tuple[Check, ...]
    ran: Sequence[Ran]
    """One for each check that has ended, in order."""
    changed: tuple[Delta, ...]
    """What differs between the trusted commit and the tip."""
    run: Run
    """Runs a command under guard in a folder with an environment; None: nobody wants the result any more."""
    learned: dict[str, dict[str, Any]]
    """What judges learn for the evidence of each check: fields of it by the check's name."""
    begun: list[Future[Any]] = field(default_factory=list)
    """Where tests run once more, made while the checks run, see `proof`."""
    held: ExitStack = field(default_factory=ExitStack)
    """What is left when the claim has been judged."""

    @property
    def trusted(self) -> str:
        return str(self.work.holding.state.trusted)

    @property
    def tip(self) -> str:
        return str(self.work.holding.state.tip)

    @property
    def git(self) -> Git:
        return self.ground.workspace.mirror.git

    @cached_property
    def trust(self) -> Trust:
        """What the project says of its files, and which of them its checks start."""
        settings, tree = self.configuration.integrity, tracked_in_tree(self.git, self.trusted)
        directory = site_of(self.work, self.configuration, self.cache).snapshot.subdirectory

        def read(path: str) -> str | None:
            entry = tree.get(os.fsencode(path))
            if entry is None or entry.mode == GITLINK:
                return None
            return self.git.output("cat-file", "blob", entry.blob).decode(errors="replace")

        started = (started_by(check.command, directory, read) for check in self.checks)
        declared = {kind: getattr(settings, kind) for kind in Kind}
        return Trust(directory, declared, frozenset[str]().union(*started))

    @cached_property
    def kinds(self) -> dict[bytes, Kind]:
        """Those of the changed paths that judge, with what they are."""
        return judging(self.git, self.trusted, self.changed, self.trust)

    def beside(self, name: str, commit: str = "") -> AbstractContextManager[Ground]:
        """A fresh workspace at a commit, by default the tip; `name` tells it from the run's other ones."""
        site = site_of(self.work, self.configuration, self.cache)
        # What imports the project where the checks ran does so beside.
        probed = {(self.ground.interpreter.path, self.tip)}
        return replace(site, name=f"{site.name}.{name}", probed=probed).ground(commit or self.tip)

    @property
    def failed(self) -> list[str]:
        """The names of what failed in the specialist's earlier runs."""
        return [ref.name for run in self.work.holding.state.active.runs for ref in run.failures]

    @property
    def was_uncovered(self) -> bool:
        """Whether a gate of coverage was missed before."""
        return COVERAGE in self.failed
