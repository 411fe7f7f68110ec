"""The public projects fixloop is tried on, as `projects.toml` names them."""

import tomllib
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

PROJECTS_FILE = Path(__file__).with_name("projects.toml")
_STRICT = ConfigDict(frozen=True, extra="forbid")


class Registry(StrEnum):
    """Where a release comes from; each is asked by its usual client."""

    PYPI = "PyPI"
    NPM = "npm"
    DEBIAN = "Debian"
    DEBIAN_SOURCE = "Debian source"
    GITHUB = "GitHub"
    """For projects whose releases carry no tests: the commit of a tag, `package` being owner/name."""


class Edit(BaseModel):
    """One replacement in one file; `old` stands there exactly once."""

    model_config = _STRICT

    file: str
    old: str
    new: str

    def apply(self, checkout: Path) -> None:
        """Replace it below `checkout`; ValueError when the file does not hold `old` exactly once."""
        path = checkout / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{path}: {self.old!r} stands there {text.count(self.old)} times, not once")
        path.write_text(text.replace(self.old, self.new))


class Project(BaseModel):
    """One release, how a developer prepares it, its own commands, and three bugs that they notice."""

    model_config = _STRICT

    name: str
    language: str
    shape: str
    registry: Registry
    package: str
    version: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the release; of what comes from GitHub, of `git archive --format=tar --prefix=release/`."""
    inside: str = ""
    """The folder of the sources inside a Debian package."""
    remove: tuple[str, ...] = ()
    """What the release carries and the project's repository does not."""
    ignore: tuple[str, ...] = ()
    """What is git-ignored, besides what its own `.gitignore` says."""
    edits: tuple[Edit, ...] = ()
    """Changes without which the release does not work as a checkout does."""
    change: str = ""
    """What `edits` do and why, for the page."""
    packages: tuple[str, ...] = ()
    """What pip installs into `.venv`."""
    commands: tuple[str, ...] = Field(min_length=1)
    """What its developers run, as their own documentation or CI says."""
    bugs: tuple[Edit, ...] = Field(min_length=3, max_length=3)


class _File(BaseModel):
    model_config = _STRICT

    project: tuple[Project, ...]


def public_projects(file: Path = PROJECTS_FILE) -> tuple[Project, ...]:
    return _File.model_validate(tomllib.loads(file.read_text())).project
