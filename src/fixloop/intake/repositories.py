"""The repositories from which a deployment accepts outside features: those that it lists."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fixloop.errors import UsageError
from fixloop.repository.identity import normalised_url
from fixloop.repository.snapshot import is_url


class Repositories:
    """The accepted repositories: each is one of these, or below one of them."""

    def __init__(self, allowed: Sequence[str]) -> None:
        """UsageError for an entry that is neither a URL nor an absolute path."""
        for each in allowed:
            if not (is_url(each) or os.path.isabs(each)):
                raise UsageError(f"--repository {each!r} is neither a git URL nor an absolute path")
        self._allowed = [(_scheme(each), normalised_url(each, Path("/"))) for each in allowed]

    def check(self, repo: str) -> None:
        """UsageError for a repository that is not accepted."""
        if not (is_url(repo) or os.path.isabs(repo)):
            raise UsageError(f"{repo[:200]!r} is neither a git URL nor an absolute path")
        is_address = "://" in repo
        # Git, or a server of its, decodes the path.
        path = unquote(urlsplit(repo).path if is_address else repo)
        if ".." in path.split("/") or (is_address and urlsplit(repo).password):
            raise UsageError("a repository's URL holds neither a password nor `..`")
        name = normalised_url(repo, Path("/"))
        if not any(
            _scheme(repo) == scheme and f"{name}/".startswith(f"{known}/") for scheme, known in self._allowed
        ):
            raise UsageError(f"{repo[:200]!r} is not below a --repository of this server")


def _scheme(repo: str) -> str:
    """The scheme; a path counts as its file URL."""
    if not is_url(repo):
        return "file"
    return urlsplit(repo).scheme if "://" in repo else "ssh"
