"""The sandbox: what a command may read, write and reach, and which means of the system enforces that.

Bubblewrap if it runs, else Landlock, else none, which is reported. Owns the choice and the arguments of both. It does
not guess: bubblewrap is tested by running a program, and a command whose rules cannot be enforced is not started.
"""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import InfrastructureError
from fixloop.machine import landlock
from fixloop.machine.guard import Confined, GuardedResult, run_guarded
from fixloop.machine.variables import allowed_variables
from fixloop.servers.redis_place import Place, made_own
from fixloop.servers.settings import load_settings

PROBE_SECONDS: Final = 30.0
TEMPORARY: Final = "/tmp"
TRIES: Final = 20
"""Creating the folder is retried: a workspace that removes the last temporary files removes the shared parent."""
# Capabilities with which root could escape, or set the machine's network or clock; other users have none in a sandbox.
_DROP: Final = (
    *("DAC_READ_SEARCH", "MKNOD", "NET_ADMIN", "SYS_ADMIN", "SYS_BOOT", "SYS_MODULE", "SYS_PTRACE"),
    *("SYS_RAWIO", "SYS_TIME"),
)
_answers: Final[dict[str, str]] = {}
"""Why bubblewrap does not run here, by its program; empty if it does. Checked once per process."""


class Confinement(NamedTuple):
    """The rights of a confined command: it reads everything except hidden paths, and writes writable ones."""

    writable: tuple[Path, ...]
    hidden: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()
    """Below hidden paths."""
    tmp: Path = Path(TEMPORARY)
    """Its own folder for temporary files, in place of the shared one."""
    network: bool = True
    needed: tuple[Path, ...] = ()
    """Nothing may be laid over these: its program or what links lead to."""
    overlays: str = ""
    """Rules for the guard, see `overlay`."""


class Means(NamedTuple):
    """The means that enforces a confinement."""

    name: str
    """`bubblewrap`, `landlock` and its version, or `none`."""
    reason: str = ""
    """Why there is none."""


def means_in_use(mode: str = "auto") -> Means:
    """The means of confinement if a project requests `mode`; `FIXLOOP_SANDBOX` overrides the project."""
    wanted = load_settings().sandbox or mode
    if wanted == "off":
        return Means("none", "it is switched off")
    if sys.platform != "linux":
        return Means("none", "this system has neither bubblewrap nor Landlock")
    refusal = _refusal_of_bubblewrap() if wanted != "landlock" else ""
    if wanted != "landlock" and not refusal:
        return Means("bubblewrap")
    version = landlock.version()
    if wanted != "bubblewrap" and version >= landlock.OLDEST:
        return Means(f"landlock {min(version, landlock.KNOWN)}")
    told = f"the kernel's Landlock is {version or 'absent'}, {landlock.OLDEST} is needed"
    return Means("none", "; ".join(filter(None, (refusal, told if wanted != "bubblewrap" else ""))))


def required(mode: str) -> None:
    """InfrastructureError if there is no means and one is required."""
    means = means_in_use(mode)
    if means.name == "none" and (load_settings().sandbox or mode) not in ("auto", "off"):
        raise InfrastructureError(f"a sandbox is required, and there is none: {means.reason}")


def confined(what: Confinement, env: Mapping[str, str], *, cwd: Path, mode: str = "auto") -> Confined:
    """How `run_guarded` starts a command in `cwd` with this confinement; see `required`."""
    required(mode)
    means = means_in_use(mode)
    if means.name == "none":
        return Confined(means.name)
    if not what.network and means.name.startswith("landlock") and landlock.version() < landlock.WITH_NETWORK:
        raise InfrastructureError("`network = false` needs bubblewrap or Landlock 4 (Linux 6.7)")
    real = _resolved(what)
    words = [os.path.realpath(cwd), *map(str, real.writable), __file__, sys.executable]
    closed = tuple(_session_places((*words, str(real.tmp))))
    real = real._replace(hidden=(*real.hidden, *closed))
    words += [*map(str, what.needed), *(word for value in env.values() for word in value.split(os.pathsep))]
    paths = (
        Path(real(word)) for word in words if "/" in word for real in (os.path.abspath, os.path.realpath)
    )
    # The entries of the shared `/tmp` that the command needs.
    needed = {Path(*path.parts[:3]) for path in paths if Path(TEMPORARY) in path.parents}
    if means.name == "bubblewrap":
        # Tools such as pytest want a folder of one name in it, which one of these entries may have.
        own = {"TMPDIR": str(real.tmp) if needed else TEMPORARY}
        rules = [*real.overlays.splitlines(), _scope(_program())]
        return Confined(means.name, _bubblewrap(real, needed), "\n".join(filter(None, rules)), own)
    rules = real.overlays.splitlines()
    rules += [f"{kind} {path}" for kind in ("hidden", "shown", "writable") for path in getattr(real, kind)]
    rules += [f"closed {path}" for path in closed]
    # A folder mounted over /tmp would hide the files there that the command, and the guard before it, need.
    rules += [f"writable {real.tmp}", *(() if needed else [f"tmp {real.tmp}"])]
    rules += [] if real.network else ["network off"]
    return Confined(means.name, rules="\n".join(rules), variables={"TMPDIR": str(real.tmp)})


def overlay(place: Path, lower: Path, own: Path) -> str:
    """The rule that shows `lower` at `place`, where what is written goes to `own`; creates the folders. Empty if a path
    has a character that mount options do not."""
    paths = [os.path.realpath(path) for path in (place, lower, own)]
    for folder in (place, own / "upper", own / "work"):
        folder.mkdir(parents=True, exist_ok=True)
    return "" if set("\\:,\t\n") & set("".join(paths)) else "overlay " + "\t".join(paths)


def can_mount(overlays: Sequence[str]) -> bool:
    """Whether the guard can mount these here: not without a namespace, or on some file systems."""
    how, env = Confined("the guard", rules="\n".join(overlays)), {"PATH": os.defpath}
    with suppress(InfrastructureError):
        if all(overlays):
            ran = run_guarded(["true"], cwd=Path("/"), env=env, timeout_seconds=PROBE_SECONDS, confined=how)
            return ran.exit_code == 0
    return False


def run_reading(
    argv: Sequence[str], *, cwd: Path, source: Path, variables: Mapping[str, str], timeout_seconds: float
) -> GuardedResult:
    """Run code of a project before its configuration is known: it writes temporary files only, and sees the variables
    that all commands see, and `variables`. `source`: the user's checkout. InfrastructureError: it cannot be started."""
    with tempfile.TemporaryDirectory(prefix="fixloop-") as folder:
        env = {**allowed_variables(os.environ), **variables}
        what = Confinement((), tuple(state_files(source)), tmp=Path(folder), needed=(Path(argv[0]).parent,))
        how = confined(what, env, cwd=cwd)
        return run_guarded(argv, cwd=cwd, env=env, timeout_seconds=timeout_seconds, apart=True, confined=how)


def state_files(source: Path | None) -> Iterator[Path]:
    """Files with which a command could forge results: data and socket of the embedded server, keys."""
    settings = load_settings()
    for project in filter(None, (source, settings.embedded)):
        yield project / ".fixloop"
        if socket := Place(project).recorded_socket():
            yield socket.parent
    yield from filter(None, (settings.seal_key_file, settings.tls_key))


def own_temporary(folder: Path) -> Path:
    """The folder for temporary files of a workspace's commands: a short path, because socket paths have to be short."""
    top = Path(tempfile.gettempdir(), f"fixloop-{os.getuid()}")
    return top / hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]


def make_own_temporary(folder: Path) -> Path:
    """The same, created if it is missing. InfrastructureError: it cannot be."""
    own = own_temporary(folder)
    for _ in range(TRIES):
        places = ((place, made_own(place)) for place in (own.parent, own))
        place, objection = next((each for each in places if each[1]), (own, ""))
        if not objection:
            return own
    raise InfrastructureError(f"{place} cannot hold temporary files: {objection}; remove it")


def _resolved(what: Confinement) -> Confinement:
    """The confinement with real paths, as the kernel uses them, without missing ones."""

    def there(paths: tuple[Path, ...]) -> tuple[Path, ...]:
        real = (Path(os.path.realpath(path)) for path in paths)
        return tuple(dict.fromkeys(path for path in real if path.exists() and "\n" not in str(path)))

    tmp = Path(os.path.realpath(what.tmp))
    writable, hidden, shown = map(there, (what.writable, what.hidden, what.shown))
    return what._replace(writable=writable, hidden=hidden, shown=shown, tmp=tmp)


def _program() -> str:
    bundled = Path(sys.prefix, "bin", "bwrap")
    return shutil.which("bwrap") or (str(bundled) if bundled.is_file() else "")


def _refusal_of_bubblewrap() -> str:
    program = _program()
    if not program:
        return "bubblewrap is not installed"
    if program not in _answers:
        before = _bubblewrap(Confinement(()))
        env = {"PATH": os.defpath}
        how = Confined(before=before, rules=_scope(program))
        ran = run_guarded(["true"], cwd=Path("/"), env=env, timeout_seconds=PROBE_SECONDS, confined=how)
        said = " ".join(ran.output.split())[:200]
        _answers[program] = "" if ran.exit_code == 0 else f"bubblewrap does not run here ({said})"
    return _answers[program]


def _scope(program: str) -> str:
    """The rules under which bubblewrap starts, for sockets without a path; a setuid program would lose its rights."""
    is_possible = landlock.version() >= landlock.WITH_SCOPES and not os.stat(program).st_mode & stat.S_ISUID
    return landlock.SCOPED if is_possible else ""


def _session_places(needed: Sequence[str]) -> Iterator[Path]:
    """Sockets of the user's session, whose services start programs, type or sign; none above what is `needed`."""
    named = (os.environ.get(name, "") for name in ("XDG_RUNTIME_DIR", "SSH_AUTH_SOCK"))
    system = ("/run/screen", "/run/systemd/private", "/run/dbus/system_bus_socket")
    for place in filter(os.path.isabs, (f"/run/user/{os.getuid()}", *system, *named)):
        real = Path(os.path.realpath(place))
        if real.exists() and not any(Path(each).is_relative_to(real) for each in needed):
            yield real


def _bubblewrap(what: Confinement, needed: Collection[Path] = ()) -> tuple[str, ...]:
    """The command line before the command; later arguments override earlier ones. `needed` entries of the shared `/tmp`
    are there, too, where a command has its own."""
    laid: list[tuple[Path, tuple[str, ...]]] = [(Path("/"), ("--ro-bind", "/"))]
    laid += [(Path("/dev"), ("--dev",)), (Path("/proc"), ("--proc",))]
    shared = Path(TEMPORARY)
    covers = shared not in what.writable
    for path in needed if covers else ():
        is_writable = any(map(path.is_relative_to, what.writable))
        laid.append((path, ("--bind-try" if is_writable else "--ro-bind-try", str(path))))
    laid += [(path, ("--tmpfs",) if path.is_dir() else ("--ro-bind", "/dev/null")) for path in what.hidden]
    laid += [(path, ("--ro-bind", str(path))) for path in what.shown]
    laid += [(path, ("--bind", str(path))) for path in what.writable]
    places = ([shared] if covers else []) + ([what.tmp] if needed or not covers else [])
    laid += [(path, ("--bind", str(what.tmp))) for path in places]
    steps = [
        (*how, str(path))
        for path, how in sorted(laid, key=lambda each: len(each[0].parts))
        if not covers or shared not in path.parents or path == what.tmp or Path(*path.parts[:3]) in needed
    ]
    closed = [("--remount-ro", step[-1]) for step in steps if step[0] == "--tmpfs"]
    start = ["--die-with-parent", "--unshare-pid"]
    start += [] if what.network else ["--unshare-net"]
    if os.geteuid() == 0:
        start += [word for name in _DROP for word in ("--cap-drop", f"CAP_{name}")]
    return (_program(), *start, *(word for step in (*steps, *closed) for word in step), "--")
