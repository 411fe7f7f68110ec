"""An embedded Redis: a real server, append-only, shared by all processes that work on one project.

A user holds a shared flock instead of being listed: the kernel drops the lock however the user ends. Programs started
from here do not inherit it. The keeper (`fixloop.servers.keeper`) owns the server.
"""

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Final
from urllib.parse import quote

from fixloop.errors import FixloopError, InfrastructureError
from fixloop.files.atomic import write_whole
from fixloop.files.locks import Lock
from fixloop.servers.keeper import SILENCE_SECONDS, START_SECONDS, Assignment, password_in, ping
from fixloop.servers.redis_binary import WRITTEN_BY, server_for
from fixloop.servers.redis_place import Place

# A keeper that stops gives its server 5 s to end before it kills it.
LEAVING_SECONDS: Final = SILENCE_SECONDS + 3
# A keeper has to start, too, before it waits for its server.
STARTING_SECONDS: Final = START_SECONDS + SILENCE_SECONDS
WATCH_SECONDS: Final = 0.2
LOG_BYTES: Final = 1_000_000
_LIBRARY: Final = Path(__file__).parents[2]
_KEEPER: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); from fixloop.servers.keeper import main; main()"
)
_OTHERS: Final = frozenset({"FIXLOOP_BROKER_URL", "FIXLOOP_EMBEDDED", "FIXLOOP_STATE_URL"})
_KEPT_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TZ")


@contextmanager
def embedded_redis(project_directory: Path) -> Iterator[str]:
    """The `unix://` URL of the project's embedded Redis, which runs while any process is in such a context."""
    place = Place.prepare(project_directory)
    with closing(_opened(place, "users.lock")) as user:
        # From here on no keeper stops the server.
        if not user.take(shared=True, patience_seconds=LEAVING_SECONDS):
            raise InfrastructureError(
                f"the embedded Redis of {place.project} has been shutting down for {LEAVING_SECONDS:g} s"
                f"{_keeper_hint(place)}"
            )
        socket = _reach(place)
        done = threading.Event()

        def start_again() -> None:
            """While in use, start a new keeper if the current one is killed."""
            while not done.wait(WATCH_SECONDS):
                with suppress(FixloopError, OSError):
                    if not _is_kept(place) and not done.is_set():
                        _reach(place)

        watch = threading.Thread(target=start_again, name="embedded-redis", daemon=True)
        watch.start()
        try:
            password = password_in(place.data)
            yield f"unix://{password and f':{password}@'}{quote(str(socket))}"
        finally:
            done.set()
            watch.join(timeout=1)


def start_ahead() -> None:
    """Start the project's server in the background, if it had one here and no variable names another. Problems are
    found by the code that needs the server; it must not import this module at the same time."""
    if not _OTHERS.isdisjoint(map(str.upper, os.environ)):
        return

    def hold() -> None:
        with suppress(FixloopError, OSError):
            for folder in (Path.cwd(), *Path.cwd().parents):
                if Place(folder).data.is_dir():
                    with embedded_redis(folder):
                        threading.Event().wait()
                if (folder / ".git").exists():
                    return

    threading.Thread(target=hold, name="embedded-redis-ahead", daemon=True).start()


def _opened(place: Place, name: str) -> Lock:
    try:
        return Lock(place.data / name)
    except OSError as error:
        raise InfrastructureError(f"cannot lock {place.data / name}: {error.strerror}") from None


def _is_kept(place: Place) -> bool:
    with closing(_opened(place, "keeper.lock")) as lock:
        return not lock.take(shared=True)


def _reach(place: Place) -> Path:
    """The socket of the running server, which is started if necessary."""
    deadline = time.monotonic() + SILENCE_SECONDS + 1
    latest = deadline + STARTING_SECONDS
    while time.monotonic() < deadline:
        socket = place.recorded_socket()
        if socket is not None and _is_kept(place):
            answer = ping(socket, password_in(place.data))
            if answer.ready:
                return socket
            if answer.loading:
                deadline = time.monotonic() + SILENCE_SECONDS
        # Start a keeper unless one runs or another process is starting one.
        with closing(_opened(place, "start.lock")) as turn:
            is_first = turn.take()
            may_start = is_first and not _is_kept(place)
            if may_start:
                _start(place)
        if may_start or not is_first:
            deadline = min(latest, time.monotonic() + SILENCE_SECONDS + 1)
        if not may_start:
            time.sleep(0.02)
    told = f"the embedded Redis of {place.project} does not answer{_keeper_hint(place)}{_last_words(place)}"
    raise InfrastructureError(told)


def _start(place: Place) -> None:
    server, version = server_for(place.data)
    socket = place.socket()
    try:
        write_whole(place.data / WRITTEN_BY, f"{version}\n".encode(), synced=True)
        said = _launch(place, Assignment(server=str(server), data=str(place.data), socket=str(socket)))
    except OSError as error:
        told = f"the embedded Redis ({version}, {server}) cannot be started on {place.data}: {error.strerror}"
        raise InfrastructureError(told) from None
    if said in ("ready", "taken"):
        return
    reason = said.removeprefix("failed ") or "its keeper said nothing"
    raise InfrastructureError(
        f"the embedded Redis ({version}, {server}) did not start on {place.data}: {reason}"
        f"{_last_words(place)}"
    )


def _launch(place: Place, assignment: Assignment) -> str:
    """Start a keeper in a new session; returns its last report on the start."""
    environment = {kept: os.environ[kept] for kept in _KEPT_VARIABLES if kept in os.environ}
    for name in ("keeper.log", "server.log"):
        path = place.data / name
        with suppress(OSError):
            if path.stat().st_size > LOG_BYTES:
                path.replace(path.with_suffix(".old.log"))
    with (place.data / "keeper.log").open("ab") as log:
        # Isolated, without site, the library last: no module of the user's project or environment can shadow one.
        program = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _KEEPER, str(_LIBRARY), json.dumps(asdict(assignment))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            env={**environment, "LC_ALL": "C"},
            start_new_session=True,
        )
    with program:  # it forks and ends at once; the keeper is its child
        assert program.stdout is not None
        try:
            return _answer(program.stdout)
        finally:
            program.kill()  # it is gone, unless it froze before it forked


def _answer(pipe: IO[bytes]) -> str:
    said = b""
    while select.select([pipe], [], [], STARTING_SECONDS)[0]:
        piece = os.read(pipe.fileno(), 4096)
        said += piece
        *_, last = [line for line in said.decode(errors="replace").splitlines() if line != "loading"] or [""]
        if not piece or (last and said.endswith(b"\n")):
            return last
    return f"failed its keeper did not answer for {STARTING_SECONDS:g} s"


def _keeper_hint(place: Place) -> str:
    with suppress(OSError):
        return (
            f"; its keeper is process {(place.data / 'keeper.pid').read_text().strip()}, end it to start anew"
        )
    return ""


def _last_words(place: Place) -> str:
    path = place.data / "server.log"
    with suppress(OSError):
        lines = path.read_bytes()[-2000:].decode(errors="replace").splitlines()
        return f"; {path} ends with: {lines[-1][:200]}" if lines else ""
    return f"; see {place.data / 'keeper.log'}"
