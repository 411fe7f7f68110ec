"""The specification that an agent of handoffs names: a file of the work that it hands in (D22)."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from fixloop.outside.transfer import Carried, snapshot_in
from fixloop.repository.git import Git

MOST_CHARACTERS: Final = 500


def missing_specification(state: Carried, git: Git, commit: str, said: Mapping[str, Any]) -> str:
    """
    What is wrong with the `spec` of an agent's result, in one sentence; empty: it names none, or a file.

    Args:
        commit: the work with what the agent changed; `git` knows it.
        said: the result; a path in it is relative to the folder that the agent worked in.
    """
    spec = said.get("spec")
    if not isinstance(spec, str) or not spec:
        return ""
    path = PurePosixPath(snapshot_in(state).subdirectory, spec)
    can_be = spec.isprintable() and len(spec) <= MOST_CHARACTERS
    if can_be and git.found("cat-file", "-t", f"{commit}:{path}") == "blob":
        return ""
    return (
        f"spec {spec[:100]!r} is no file of the work that was handed in; write it there, where git does not ignore it, "
        "or name the file that is the specification"
    )
