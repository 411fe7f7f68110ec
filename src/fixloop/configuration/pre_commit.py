"""Reads the hooks of .pre-commit-config.yaml, and finds the environments that pre-commit installed for them.

Reads pre-commit's own record of its cache. Installs nothing: that takes the network.
"""

import os
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.configuration.declarations import items_in, yaml_of

FILE: Final = ".pre-commit-config.yaml"
DATABASE: Final = "db.db"


class Hook(NamedTuple):
    id: str
    repo: str
    rev: str
    args: tuple[str, ...]
    files: str
    """The expression a path must match; empty for every path."""
    exclude: tuple[str, ...]
    """Expressions of paths that are left out: the file's own and the hook's."""
    dependencies: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        return f"{FILE}: {self.id}"

    def leaves_out(self, path: str) -> bool:
        """Whether the hook skips `path`; an invalid expression leaves nothing out."""
        for expression, leaves_out in ((self.files, False), *((each, True) for each in self.exclude)):
            with suppress(re.error):
                if bool(re.search(expression, path)) is leaves_out:
                    return True
        return False

    def environment(self, variables: Mapping[str, str]) -> Path | None:
        """The folder of a Python hook's installed environment; None if there is none."""
        home = variables.get("XDG_CACHE_HOME") or os.path.join(variables.get("HOME", "~"), ".cache")
        cache = Path(variables.get("PRE_COMMIT_HOME") or Path(home) / "pre-commit")
        name = ":".join((self.repo, ",".join(self.dependencies))) if self.dependencies else self.repo
        try:
            with closing(sqlite3.connect(f"file:{cache / DATABASE}?mode=ro", uri=True, timeout=1)) as known:
                rows = known.execute("SELECT path FROM repos WHERE repo = ? AND ref = ?", (name, self.rev))
                folders = [Path(row[0]) for row in rows.fetchall()]
        except (sqlite3.Error, ValueError):
            return None
        found = (env for folder in folders for env in sorted(folder.glob("py_env-*")))
        return next((env for env in found if any(env.glob(".install_state_v*"))), None)


def hooks_of(directory: Path) -> tuple[Hook, ...]:
    """The hooks of the project, in their order, without those of the manual stage, which do not run by themselves."""
    document = yaml_of(directory / FILE)
    if not isinstance(document, dict):
        return ()
    outer = _texts([document.get("exclude")])
    return tuple(
        Hook(
            id=str(hook["id"]),
            repo=str(repo.get("repo", "")),
            rev=str(repo.get("rev", "")),
            args=_texts(hook.get("args")),
            files=str(hook.get("files") or document.get("files") or ""),
            exclude=(*outer, *_texts([hook.get("exclude")])),
            dependencies=_texts(hook.get("additional_dependencies")),
        )
        for repo in items_in(document.get("repos"), dict)
        for hook in items_in(repo.get("hooks"), dict)
        if hook.get("id") and hook.get("stages") != ["manual"]
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(entry) for entry in value if entry) if isinstance(value, list) else ()
