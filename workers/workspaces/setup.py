"""The results of `[workspace] setup`: run once for each state of the dependency files, in a copy for all attempts.

Owns `{cache}/setups/`. A copy is built under a separate name, under a flock, and becomes visible by one rename of a
link when it is complete: virtual environments contain their own path and cannot be moved.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fixloop.errors import InfrastructureError, UsageError
from fixloop.files.locks import held
from fixloop.machine.guard import UNCONFINED, Confined, GuardedResult, run_guarded
from fixloop.repository.git import one_line
from fixloop.repository.mirror import Mirror
from fixloop.repository.tree import tracked_in_tree
from workers.workspaces.workspace import check_out, remove_folder, remove_temporary_files

DEPENDENCY_FILE: Final = re.compile(
    r"pyproject\.toml|setup\.(py|cfg)|[\w.-]*requirements[\w.-]*\.(txt|in)|constraints[\w.-]*\.txt|Pipfile"
    r"|package\.json|\.npmrc|\.yarnrc(\.yml)?|bun\.lockb|environment\.ya?ml|\.python-version|\.tool-versions"
    r"|go\.(mod|sum)|Cargo\.toml|Gemfile|.*[.-]lock(\.\w+)?|npm-shrinkwrap\.json|pylock[\w.]*\.toml"
)


@dataclass(frozen=True)
class Setup:
    """How a workspace is prepared."""

    command: tuple[str, ...]
    variables: Mapping[str, str]
    """The environment of the command."""
    copied: str = ""
    """A commit with the files that are copied, too."""
    timeout_seconds: float = 1800.0
    cancelled: Callable[[], bool] = lambda: False
    confined: Callable[[Path], Confined] = lambda folder: UNCONFINED
    """The command's confinement in a folder that is created for it."""
    hide: Callable[[str], str] = str
    """Removes secrets from the command's output."""


def prepare(cache: Path, mirror: Mirror, commit: str, *, subdirectory: str, setup: Setup) -> Path:
    """The top of a copy of `commit` in which setup has completed, now or earlier for the same dependencies. UsageError
    if the command failed, with the end of its output."""
    setups = Path(os.path.abspath(cache)) / "setups"
    parts = [mirror.source, subdirectory, *setup.command]
    copied = tracked_in_tree(mirror.git, setup.copied) if setup.copied else {}
    for path, entry in sorted({**copied, **tracked_in_tree(mirror.git, commit)}.items()):
        if DEPENDENCY_FILE.fullmatch(os.fsdecode(path.rpartition(b"/")[2])):
            parts += [os.fsdecode(path), entry.blob]
    key = hashlib.sha256(os.fsencode("\0".join(parts))).hexdigest()[:24]
    link = setups / key
    if not link.exists():
        try:
            # Twice the limit: the lock's holder may be doing the same work.
            limit = 2 * setup.timeout_seconds
            with held(setups / f"{key}.lock", timeout_seconds=limit, give_up=setup.cancelled):
                if not link.exists():
                    _build(link, mirror, commit, subdirectory, setup)
        except OSError as error:
            raise InfrastructureError(f"cannot write to the cache {cache}: {error.strerror}") from error
    return Path(os.path.realpath(link)) / "tree"


def _build(link: Path, mirror: Mirror, commit: str, subdirectory: str, setup: Setup) -> None:
    for left in link.parent.glob(f"{link.name}.made-*"):
        remove_temporary_files(left)
        remove_folder(left)
    folder = Path(tempfile.mkdtemp(prefix=f"{link.name}.made-", dir=link.parent))
    (folder / "tree").mkdir()
    check_out(folder / "tree", mirror, commit, setup.copied)
    result = run_guarded(
        setup.command,
        cwd=folder / "tree" / subdirectory,
        env=setup.variables,
        timeout_seconds=setup.timeout_seconds,
        cancelled=setup.cancelled,
        confined=setup.confined(folder),
    )
    remove_temporary_files(folder)
    if result.exit_code != 0:
        remove_folder(folder)
        raise _failure(setup, result)
    new = link.with_suffix(".new")
    new.unlink(missing_ok=True)
    new.symlink_to(folder.name)
    new.replace(link)


def _failure(setup: Setup, result: GuardedResult) -> InfrastructureError | UsageError:
    what = f"[workspace] setup `{' '.join(setup.command)}`"
    if result.cancelled or result.injured:
        how = "cancelled" if result.cancelled else "killed"
        return InfrastructureError(f"{what} was {how} before its end")
    if result.not_found:
        return UsageError(f"{what} cannot be started; is {setup.command[0]!r} on the PATH?")
    how = f"ended with exit code {result.exit_code}" if result.exit_code else "did not end well"
    if result.timed_out:
        how = f"took more than {setup.timeout_seconds:.0f} s"
    printed = one_line(setup.hide(result.output)[-500:]) or "it printed nothing"
    return UsageError(f"{what} {how}: {printed}{result.refusal}")
