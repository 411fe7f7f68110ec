"""Features that callers from elsewhere hand in: of repositories that this deployment has listed, and of no others."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from fixloop.errors import UsageError
from fixloop.intake.feature import Feature, Kind, Priority
from fixloop.repository.identity import normalised_url
from fixloop.repository.snapshot import is_url
from fixloop.serve.problems import Problem

LONGEST_TASK: Final = 256 * 1024
_Word = Annotated[str, Field(pattern=r"^[^\s-][^\s]*$", max_length=300)]


class NewWorkflow(BaseModel):
    """What is handed in. Which commands check and fix it, the repository's own configuration says, and no caller."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repo: str = Field(min_length=1, max_length=2000)
    """A git URL, or an absolute path that is the same on every machine."""
    issue: int = Field(ge=1, lt=10**15)
    ref: _Word | None = None
    base: _Word | None = None
    name: str = Field("", max_length=300)
    profile: str = Field("validation", max_length=40)
    task: str = Field("", max_length=LONGEST_TASK)
    kind: Kind = Kind.FEATURE
    priority: Priority = Priority.HIGH

    def feature(self) -> Feature:
        return Feature(**self.model_dump())


class Repositories:
    """The repositories that may be handed in: each is one of these, or lies below one of them."""

    def __init__(self, allowed: Sequence[str]) -> None:
        """Raises UsageError for what is neither a URL nor an absolute path."""
        for each in allowed:
            if not (is_url(each) or os.path.isabs(each)):
                raise UsageError(f"--repository {each!r} is neither a git URL nor an absolute path")
        self._allowed = [(_scheme(each), normalised_url(each, Path("/"))) for each in allowed]

    def check(self, repo: str) -> None:
        """Raises Problem for a repository that is not among them."""
        if not (is_url(repo) or os.path.isabs(repo)):
            raise Problem("invalid", f"{repo[:200]!r} is neither a git URL nor an absolute path")
        parts = urlsplit(repo) if "://" in repo else None
        if parts is not None and (parts.password or ".." in parts.path.split("/")):
            raise Problem("invalid", "a repository's URL holds neither a password nor `..`")
        name = normalised_url(repo, Path("/"))
        if not any(
            _scheme(repo) == scheme and f"{name}/".startswith(f"{known}/") for scheme, known in self._allowed
        ):
            raise Problem("not-allowed", f"{repo[:200]!r} is not below a --repository of this server")


def _scheme(repo: str) -> str:
    """How it is reached; a path is as good as its file URL."""
    if not is_url(repo):
        return "file"
    return urlsplit(repo).scheme if "://" in repo else "ssh"
