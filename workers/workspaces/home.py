"""The home folder of a check: a new one without the user's settings.

Owns which parts of the real one are linked: caches and installed tools. Settings are not, nor are earlier results that
a tool remembers, because they would affect a result.
"""

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from workers.workspaces.workspace import Workspace

_ELSEWHERE: Final = {
    ".cache": "XDG_CACHE_HOME",
    ".config": "XDG_CONFIG_HOME",
    ".local/share": "XDG_DATA_HOME",
    ".local/state": "XDG_STATE_HOME",
}
"""Folders of a home folder, and the variables that move them."""
_BY_VARIABLE: Final = {
    "GOPATH": "go",
    "GOCACHE": ".cache/go-build",
    "CARGO_HOME": ".cargo",
    "RUSTUP_HOME": ".rustup",
    "npm_config_cache": ".npm",
}
"""Named by their real paths, because compilers store the paths of their outputs."""
_BY_LINK: Final = (
    *(".asdf", ".goenv", ".nodenv", ".nvm", ".pyenv", ".rbenv", ".sdkman", ".tool-versions", ".volta"),
    *(".local/share/mise", ".local/share/pnpm", ".local/share/uv", ".config/mise", ".config/pip"),
    *(".bundle", ".gem", ".hex", ".local/share/gem", ".m2/repository", ".mix", ".nuget/packages"),
    *(".bun", ".pub-cache", ".stack", ".yarn/berry", "Library/Caches", "nltk_data"),
)
"""What installed tools need to start, where packages are, and where they come from."""
_REMEMBERED: Final = frozenset(
    {"biome", "black", "fixloop", "flake8", "golangci-lint", "mypy", "pylint", "python-entrypoints", "ruff"}
    | {"rubocop_cache", "semistandard", "standard", "standardx", "staticcheck", "ts-standard"}
)
"""Caches of earlier results; some tools fail if they cannot write them."""
# Tests that commit need an identity; the user's own is a setting.
_GITCONFIG: Final = "[user]\n\tname = fixloop\n\temail = fixloop@localhost\n[safe]\n\tdirectory = *\n"


def in_own_home(env: Mapping[str, str], workspace: Workspace, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment `env` with a new home folder in the workspace's scratch instead of that of `variables`."""
    home = Path(tempfile.mkdtemp(prefix="home-", dir=workspace.scratch))
    (home / ".gitconfig").write_text(_GITCONFIG)
    kept = {}
    if os.path.isabs(variables.get("HOME", "")):
        kept = {name: _real(place, variables) for name, place in _BY_VARIABLE.items()}
        linked = {place: _real(place, variables) for place in _BY_LINK}
        linked = {place: target for place, target in linked.items() if os.path.exists(target)}
        with suppress(OSError), os.scandir(_real(".cache", variables)) as caches:
            linked |= {f".cache/{each.name}": each.path for each in caches if each.name not in _REMEMBERED}
        for place, target in linked.items():
            (home / place).parent.mkdir(parents=True, exist_ok=True)
            (home / place).symlink_to(target)
    kept |= {name: value for name, value in env.items() if name not in _ELSEWHERE.values()}
    git = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": str(workspace.folder)}
    return kept | git | {"HOME": str(home), "PYTHONNOUSERSITE": "1"}


def _real(place: str, variables: Mapping[str, str]) -> str:
    for folder, variable in _ELSEWHERE.items():
        if place.startswith(folder) and os.path.isabs(variables.get(variable, "")):
            return variables[variable] + place.removeprefix(folder)
    return os.path.join(variables["HOME"], place)
