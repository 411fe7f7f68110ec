"""Where a SARIF result lies: URIs, their bases and artifact tables, to a path in the workspace.

Owns the resolution of an artifact location. Follows no base in circles and no URI out of the workspace.
"""

import re
from typing import Any, Final
from urllib.parse import unquote

from fixloop.reports.sarif_model import ArtifactLocation
from fixloop.reports.tree import SourceTree

__all__ = ["Locations"]

# Two letters at least: `C:` is a drive.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_MOST_BASES: Final = 10


class Locations:
    """The tables of one run that locations refer to."""

    def __init__(self, run: dict[str, Any], tree: SourceTree) -> None:
        bases, artifacts = run.get("originalUriBaseIds"), run.get("artifacts")
        self._bases: dict[str, Any] = bases if isinstance(bases, dict) else {}
        self._artifacts: list[Any] = artifacts if isinstance(artifacts, list) else []
        self._tree = tree

    def path(self, location: ArtifactLocation | None) -> str:
        """
        The file of `location` relative to the workspace.

        Returns:
            A bare name when it lies outside, nothing when it names no file.
        """
        if location is None:
            return ""
        if location.uri is None and location.index is not None:
            location = self._artifact(location.index)
        return self._tree.relative(_decoded(self._absolute(location.uri or "", location.uri_base_id)))

    def _artifact(self, index: int) -> ArtifactLocation:
        found = self._artifacts[index] if 0 <= index < len(self._artifacts) else None
        location = found.get("location") if isinstance(found, dict) else None
        return ArtifactLocation.model_validate(location or {})

    def _absolute(self, uri: str, base_id: str | None) -> str:
        """`uri` with its chain of bases in front; a base nobody knows is the workspace itself."""
        for _ in range(_MOST_BASES):
            if base_id not in self._bases or _SCHEME.match(uri) or uri.startswith("/"):
                break
            base = ArtifactLocation.model_validate(self._bases[base_id])
            uri = f"{base.uri.rstrip('/')}/{uri}" if base.uri else uri
            base_id = base.uri_base_id
        return uri


def _decoded(uri: str) -> str:
    """The path in `uri`, percent-decoded; of a URI that is no file of this machine, the last part only."""
    scheme = _SCHEME.match(uri)
    if scheme is None:
        return unquote(uri)
    rest = unquote(uri[scheme.end() :])
    if scheme[1].lower() != "file":
        return rest.rstrip("/").rsplit("/", 1)[-1]
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    return slash + path if host in {"", "localhost"} else path.rsplit("/", 1)[-1]
