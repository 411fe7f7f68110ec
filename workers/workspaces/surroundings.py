"""The folders above a workspace, where tools look for settings that a project does not have."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from workers.workspaces.workspace import Workspace

SETTINGS: Final = re.compile(
    # Python's tools, git and tools that use its ignore files, JavaScript's, Go's and Rust's, and tool versions.
    r"pyproject\.toml|setup\.(?:cfg|py)|tox\.ini|conftest\.py|\.?(?:ruff|pytest)\.toml|\.?(?:mypy|pytest)\.ini"
    r"|\.?pylintrc(?:\.toml)?|\.(?:flake8|coveragerc|bandit|isort\.cfg|pre-commit-config\.yaml|editorconfig)"
    r"|\.git|\.gitattributes|\.\w*ignore"
    r"|package\.json|node_modules|tsconfig.*\.json|\.npmrc|\.(?:eslint|prettier|babel|stylelint|mocha|nyc)rc.*"
    r"|(?:eslint|prettier|babel|stylelint|jest|vitest|vite|biome)\.(?:config\..*|jsonc?)"
    r"|go\.(?:mod|work)|\.golangci\..*|Cargo\.toml|\.cargo|\.?(?:rustfmt|clippy)\.toml|rust-toolchain(?:\.toml)?"
    r"|\.tool-versions|\.python-version|\.nvmrc"
)
"""Names of files that tools look for in a folder and in all folders above it."""


def settings_above(workspace: Workspace) -> Iterator[Path]:
    """The settings in the folders above a checkout, nearest first."""
    for folder in workspace.path.parents:
        with suppress(OSError), os.scandir(folder) as entries:
            yield from sorted(Path(entry.path) for entry in entries if SETTINGS.fullmatch(entry.name))


def planted(workspace: Workspace) -> str:
    """What is wrong with fixloop's own folders above the checkout, as the end of a sentence about a check; usually
    empty, because fixloop puts no settings there."""
    cache = workspace.folder.parent.parent
    found = ", ".join(str(path) for path in settings_above(workspace) if path.is_relative_to(cache))
    return f"found settings that are not the project's ({found}): remove them" if found else ""
