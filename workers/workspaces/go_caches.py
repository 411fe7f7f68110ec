"""Go's caches for commands that run a fix's code: nobody else reads what they write, not even the run that judges it.

Go trusts its caches. Owns the build cache in a workspace's scratch folder, with links to what earlier checks used.
"""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from workers.workspaces.workspace import Workspace


def shared_caches(env: Mapping[str, str]) -> tuple[Path, Path]:
    """The build cache and the module cache that Go uses by itself."""
    home = Path(env.get("HOME") or Path.home())
    cache, go = Path(env.get("XDG_CACHE_HOME") or home / ".cache"), Path(env.get("GOPATH") or home / "go")
    return Path(env.get("GOCACHE") or cache / "go-build"), Path(env.get("GOMODCACHE") or go / "pkg" / "mod")


def has_modules(directory: Path) -> bool:
    """Whether commands in `directory` may call Go, there or in a folder inside."""
    return any(any(directory.glob(place)) for place in ("go.mod", "*/go.mod", "*/*/go.mod"))


def own_caches(workspace: Workspace, base: str, env: Mapping[str, str], began: float) -> dict[str, str]:
    """The variables that name them. `base`: the commit before the fix, whose checks began at `began`, in seconds since
    the epoch. If a `go.sum` changed since, all modules are kept in the workspace, and come from the shared cache's
    downloads first. Without a `go.mod` the caches are empty, as a command may write one."""
    build, modules = shared_caches(env)
    own = workspace.scratch / "go-build"
    named = {"GOCACHE": str(own)}
    if not has_modules(workspace.directory):
        return named
    for each in build.glob("[0-9a-f][0-9a-f]/*-[ad]"):
        with suppress(OSError):
            # Go renews the date of what it uses if that is older than an hour.
            if each.stat().st_mtime >= began - 3600:
                (own / each.parent.name).mkdir(parents=True, exist_ok=True)
                # It may rewrite the small files that say which result belongs to what.
                put = shutil.copyfile if each.name.endswith("-a") else os.symlink
                put(each, own / each.parent.name / each.name)
    sums = (base, workspace.commit, "--", ":(glob)**/go.sum")
    if not workspace.mirror.git.run("diff", "--quiet", *sums, accept=(0, 1)).returncode:
        return named
    proxies = f"file://{modules}/cache/download,{os.environ.get('GOPROXY', 'direct')}"
    return {
        **named,
        "GOMODCACHE": str(workspace.scratch / "go-mod"),
        "GOPROXY": proxies,
        "GOFLAGS": "-modcacherw",
    }
