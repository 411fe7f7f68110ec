"""Finds the project of a folder, the first step of every command."""

from pathlib import Path

from fixloop.configuration.document import read_document
from fixloop.repository.identity import Project, project_of


def project_at(path: Path) -> Project:
    """The project of a folder, from its configuration or its repository."""
    return project_of(path, read_document(path).project)
