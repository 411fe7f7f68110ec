"""What commands in a workspace may write, and which of fixloop's files are hidden from them.

Owns the list of tool folders outside a workspace that a command needs to write; no installed program is in them.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fixloop.configuration.coding_agents import CODING_AGENTS, named_in
from fixloop.machine.sandbox import Confinement, make_own_temporary, state_files
from fixloop.servers.settings import load_settings
from workers.workspaces.go_caches import has_modules, shared_caches
from workers.workspaces.node_modules import NAME, overlays_in


def writable_by(command: Sequence[str]) -> tuple[str, ...]:
    """Where the usual agents store logins and sessions. The folders of an agent in `command` are created: without them
    it does not start, and it cannot write in the home folder."""
    for place in (place for agent in named_in(command) for place in agent.writable if place.endswith("/")):
        with suppress(OSError):
            Path(place).expanduser().mkdir(parents=True, exist_ok=True)
    return tuple(place for agent in CODING_AGENTS.values() for place in agent.writable)


def confinement_in(
    cache: Path, source: Path | None, cwd: Path, env: Mapping[str, str], writable: Iterable[str]
) -> Confinement:
    """The confinement of a command in `cwd`, a folder of a workspace below `cache`; `writable` are further places,
    which may start with `~`. `source`: the user's checkout."""
    work = Path(os.path.abspath(cache)) / "work"
    folder = work / cwd.relative_to(work).parts[0]
    tmp = make_own_temporary(folder)
    trees = tuple((folder / "tree").iterdir())
    written = (*trees, folder / "scratch", *_caches(cwd, env, folder), *_named(source, writable))
    hidden = (work, tmp.parent, *state_files(source))
    has_links = any((tree / NAME).is_dir() for tree in (*trees, cwd))
    needed = (source,) if source and has_links else ()
    return Confinement(written, hidden, (folder,), tmp, needed=needed, overlays=overlays_in(folder))


def setup_confinement(
    cache: Path, source: Path | None, folder: Path, cwd: Path, writable: Sequence[str] | None
) -> Confinement:
    """The confinement of `[workspace] setup`, which may install anything anywhere it has to if `writable` is None, and
    else write what checks may and its own `folder`."""
    tmp = make_own_temporary(folder)
    work = Path(os.path.abspath(cache)) / "work"
    places = [Path("/")]
    if writable is not None:
        places = [folder, *_caches(cwd, os.environ, Path("/")), *_named(source, writable)]
    return Confinement(tuple(places), (work, tmp.parent, *state_files(source)), (), tmp)


def _named(source: Path | None, writable: Iterable[str]) -> Iterator[Path]:
    """The places that project and operator add. One that named its own `.fixloop` would be shown the keys in it."""
    state = [Path(os.path.realpath(place)) for place in state_files(source)]
    for each in (*(Path(place).expanduser() for place in writable), *load_settings().sandbox_writable):
        if not any(map(Path(os.path.realpath(each)).is_relative_to, state)):
            yield each


def _caches(cwd: Path, env: Mapping[str, str], own: Path) -> Iterator[Path]:
    """Caches without which the project's tools do not start, created; Go's only if its builds are not kept in `own`."""
    home = Path(env.get("HOME") or Path.home())

    def named(variable: str, otherwise: Path) -> Path:
        return Path(env.get(variable) or otherwise)

    cache, (build, modules) = named("XDG_CACHE_HOME", home / ".cache"), shared_caches(env)
    go = () if build.is_relative_to(own) else (build, modules, named("GOPATH", home / "go") / "pkg")
    cargo, gradle = named("CARGO_HOME", home / ".cargo"), named("GRADLE_USER_HOME", Path.home() / ".gradle")
    for name, places in {
        "go.mod": go,
        "Cargo.toml": (cargo / "registry", cargo / "git"),
        "package.json": (named("npm_config_cache", home / ".npm"),),
        "uv.lock": (named("UV_CACHE_DIR", cache / "uv"),),
        "pom.xml": (Path.home() / ".m2" / "repository",),
        "gradlew": tuple(gradle / one for one in ("caches", "daemon", "native", "notifications", "wrapper")),
        ".pre-commit-config.yaml": (named("PRE_COMMIT_HOME", cache / "pre-commit"),),
    }.items():
        for place in places if (has_modules(cwd) if places is go else (cwd / name).is_file()) else ():
            if place.is_absolute():
                place.mkdir(parents=True, exist_ok=True)
                yield place
