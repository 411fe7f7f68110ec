"""Which project a folder belongs to."""

from pathlib import Path

from fixloop.configuration.document import read_document
from fixloop.repository.identity import Project, project_of


def project_at(path: Path) -> Project:
    """The project of a folder, by its configuration or its repository."""
    configured = read_document(path).table.get("project", "")
    return project_of(path, configured if isinstance(configured, str) else "")
