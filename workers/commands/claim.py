"""The claim that judges look at: a run that passed on a tree that a fix made, and what it rests on."""

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fixloop.configuration.model import Check, Configuration
from fixloop.reports.coverage import NAME as COVERAGE
from fixloop.repository.tree import Delta
from workers.commands.check_run import Ran, Run
from workers.steps.step import Step
from workers.workspaces.ground import Ground, site_of


class Claim(NamedTuple):
    """A passing run of a specialist's checks on a tree that a fix made."""

    work: Step
    configuration: Configuration
    cache: Path
    ground: Ground
    """Where the checks ran; still there, with what they left."""
    checks: tuple[Check, ...]
    ran: tuple[Ran, ...]
    """One for each check, in order."""
    changed: tuple[Delta, ...]
    """What differs between the trusted commit and the tip."""
    run: Run
    """Runs a command under guard in a folder with an environment; None: nobody wants the result any more."""
    learned: dict[str, dict[str, Any]]
    """What judges learn for the evidence of each check: fields of it by the check's name."""

    @property
    def trusted(self) -> str:
        return str(self.work.holding.state.trusted)

    @property
    def tip(self) -> str:
        return str(self.work.holding.state.tip)

    def beside(self, name: str, commit: str = "") -> AbstractContextManager[Ground]:
        """A fresh workspace at a commit, by default the tip; `name` tells it from the run's other ones."""
        site = site_of(self.work, self.configuration, self.cache)
        # What imports the project where the checks ran does so beside.
        probed = {(self.ground.interpreter.path, self.tip)}
        return replace(site, name=f"{site.name}.{name}", probed=probed).ground(commit or self.tip)

    @property
    def was_uncovered(self) -> bool:
        """Whether a gate of coverage was missed before."""
        runs = self.work.holding.state.active.runs
        return any(failure.name == COVERAGE for run in runs for failure in run.failures)
