"""The claim that judges examine: a passed run on a fix's tree, with its evidence."""

import os
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from fixloop.configuration.model import Check, Configuration
from fixloop.integrity.paths import Kind, Trust
from fixloop.integrity.started import started_by
from fixloop.protocol.failures import FailureRef
from fixloop.reports.coverage import NAME as COVERAGE
from fixloop.repository.change import judging
from fixloop.repository.git import Git
from fixloop.repository.tree import GITLINK, Delta, texts, tracked_in_tree
from workers.commands.check_run import Ran, Run
from workers.steps.step import Step
from workers.workspaces.ground import Ground, site_of

MOST_BYTES: Final = 1024 * 1024
"""Larger files are not read."""


@dataclass(frozen=True)
class Claim:
    """A run of a specialist's checks on a fix's tree; judged if it passed."""

    work: Step
    configuration: Configuration
    cache: Path
    ground: Ground
    """Where the checks ran, with the files they left."""
    checks: tuple[Check, ...]
    ran: Sequence[Ran]
    """The finished checks, in order."""
    changed: tuple[Delta, ...]
    """The differences between the trusted commit and the tip."""
    run: Run
    """See `check_run.Run`."""
    learned: dict[str, dict[str, Any]]
    """Evidence fields that judges add, by check name."""
    begun: list[Future[Any]] = field(default_factory=list)
    """The rerun that is prepared while the checks run, see `proof`."""
    held: ExitStack = field(default_factory=ExitStack)
    """Closed when the claim has been judged."""

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
        """The project's declarations about its files, and the files that its checks start."""
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
        """The changed paths that judge, with their kinds."""
        return judging(self.git, self.trusted, self.changed, self.trust)

    def fresh_ground(self, name: str, commit: str = "") -> AbstractContextManager[Ground]:
        """A fresh workspace at a commit, by default the tip; `name` distinguishes it from the run's others."""
        site = site_of(self.work, self.configuration, self.cache)
        # An interpreter that imports the project where the checks ran can do so here.
        probed = {(self.ground.interpreter.path, self.tip)}
        return replace(site, name=f"{site.name}.{name}", probed=probed).ground(commit or self.tip)

    def changed_of(self, *wanted: Kind) -> Sequence[Delta]:
        """The changed files of these kinds."""
        return [delta for delta in self.changed if self.kinds.get(delta.path, Kind.PRODUCT) in wanted]

    def sides(self, kind: Kind) -> tuple[dict[str, str], dict[str, str]]:
        """The old and new texts of the changed files of one kind, by path from where checks run."""
        changed = {path: one for one in self.changed_of(kind) if (path := self.inside(os.fsdecode(one.path)))}
        found = texts(
            self.git, [side.blob for each in changed.values() for side in (each.old, each.new)], MOST_BYTES
        )
        old = {path: found[delta.old.blob] for path, delta in changed.items() if delta.old.blob in found}
        new = {path: found[delta.new.blob] for path, delta in changed.items() if delta.new.blob in found}
        return old, new

    @property
    def folder(self) -> str:
        """Where checks run, relative to the repository root; `.` at the root."""
        return os.path.relpath(self.ground.workspace.directory, self.ground.workspace.path)

    def inside(self, path: str) -> str:
        """A path from the repository root relative to where checks run; empty if it is outside."""
        prefix = "" if self.folder == "." else f"{self.folder}/"
        return path.removeprefix(prefix) if path.startswith(prefix) else ""

    @property
    def failures(self) -> list[FailureRef]:
        """The failures in the specialist's earlier runs."""
        return [ref for run in self.work.holding.state.active.runs for ref in run.failures]

    @property
    def failed(self) -> list[str]:
        """Their names."""
        return [ref.name for ref in self.failures]

    @property
    def was_uncovered(self) -> bool:
        """Whether a coverage gate was missed before."""
        return COVERAGE in self.failed
