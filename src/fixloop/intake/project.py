"""Which project a folder is, as each command asks first."""

from pathlib import Path

from fixloop.configuration.document import read_document
from fixloop.repository.identity import Project, project_of


def project_at(path: Path) -> Project:
    """The project of a folder, by its configuration or its repository."""
    return project_of(path, read_document(path).project)
