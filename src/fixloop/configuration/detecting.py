"""Everything that is proposed for a project, language by language."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.configuration import go, javascript, python, rust
from fixloop.configuration.installed import Installed
from fixloop.configuration.proposal import Proposal
from fixloop.configuration.python_project import PythonProject, python_project
from fixloop.protocol.specialists import NAMES

GUESTS: Final[tuple[Callable[[Path], Iterable[Proposal]], ...]] = (
    javascript.proposals,
    go.proposals,
    rust.proposals,
)
"""The languages besides Python; each looks into a folder and proposes."""


class Found(NamedTuple):
    """What a project has."""

    project: PythonProject
    installed: Installed | None
    proposals: tuple[Proposal, ...]
    """In the order of the phases, and in each of the languages."""

    def of(self, specialist: str, *, gated: bool = False) -> tuple[Proposal, ...]:
        """
        What is proposed for one specialist.

        Args:
            specialist: its name.
            gated: fixloop's own configuration asks it for coverage.
        """
        proposals = _proposals(self.project, gated=True) if gated else self.proposals
        return tuple(proposal for proposal in proposals if proposal.specialist == specialist)


def found_in(directory: Path, pyproject: Mapping[str, Any], installed: Installed | None) -> Found:
    """Look into the checkout at `directory`."""
    project = python_project(directory, pyproject, installed)
    return Found(project, installed, _proposals(project))


def _proposals(project: PythonProject, *, gated: bool = False) -> tuple[Proposal, ...]:
    found = [*python.proposals(project, gated=gated)]
    for guest in GUESTS:
        found.extend(guest(project.directory))
    return tuple(sorted(found, key=lambda proposal: NAMES.index(proposal.specialist)))
