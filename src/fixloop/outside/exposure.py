"""Whether a change would put a secret of this environment into the repository: into a file, or into a file's name.

A commit travels: as a bundle among the artifacts, as a branch that anybody may fetch. It cannot be cut as a text is.
"""

from collections.abc import Mapping

from fixloop.repository.git import Git, shown
from fixloop.repository.tree import Delta, deltas
from fixloop.secrets.redaction import Redaction
from fixloop.secrets.variables import worker_secrets


def exposure(git: Git, old: str, new: str, variables: Mapping[str, str]) -> str:
    """
    The sentence that refuses the change from one commit to another; empty where it puts no secret anywhere.

    What the old commit has in any file is none: everybody who has the repository knows it.
    """
    redaction = Redaction.of((), variables)
    for delta in deltas(git, old, new):
        if delta.is_deletion or delta.is_submodule:
            continue
        written = {
            "the name of a file": delta.path,
            redaction.text(shown(delta.path)): _blob(git, delta.new.blob),
        }
        for where, data in written.items():
            if redaction.holds(data) and (name := _named(git, delta, data, old, variables)):
                return (
                    f"the change puts the value of {name} into {where}; have it read from the environment, or take "
                    f"{name} out of the environment if it is no secret"
                )
    return ""


def _named(git: Git, delta: Delta, data: bytes, old: str, variables: Mapping[str, str]) -> str:
    before = b"" if delta.is_addition else _blob(git, delta.old.blob)
    for name, value in variables.items():
        own = Redaction.of((), {name: value})
        if own.holds(data) and not own.holds(before):
            values = "\n".join(sorted(set(worker_secrets((), {name: value}))))
            found = git.run("grep", "-q", "-F", "-f", "/dev/stdin", old, stdin=values.encode(), accept=(0, 1))
            if found.returncode != 0:
                return name
    return ""


def _blob(git: Git, blob: str) -> bytes:
    return git.output("cat-file", "blob", blob)
