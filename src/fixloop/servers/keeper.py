"""The keeper: a program that owns an embedded Redis server while it has users.

Started by `fixloop.servers.embedded` with only the standard library and `fixloop.files`, so that neither project nor
environment affects it. There is one keeper (`keeper.lock`) and one server (`server.lock`, held by the server itself)
per data directory. The kernel drops a flock when its holder dies, even by `kill -9`.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.files.atomic import write_whole
from fixloop.files.locks import Lock

SILENCE_SECONDS: Final = 5.0
"""A server that does not answer for so long counts as frozen; one that is loading its data answers."""
START_SECONDS: Final = 30.0
"""The same for its first answer: with ten processes for each processor, starting one takes 10 s. An end is noticed at
once."""

ACCESS: Final = "access.conf"
"""With the server's data: the login it requires. Without read access to it, a user can only reach the socket."""
POLL_SECONDS: Final = 0.1
IDLE_SECONDS: Final = 1.0
"""How long an unused server is kept: commands often follow each other, and starting a server takes half their time."""
SHORTEST_LIFE_SECONDS: Final = 2.0
LONGEST_BACKOFF_SECONDS: Final = 2.0
_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True)
class Assignment:
    """What one keeper has to run; passed as JSON on its command line."""

    server: str
    data: str
    socket: str

    def path(self, name: str) -> Path:
        return Path(self.data, name)


class Answer(NamedTuple):
    """A server's answer to PING."""

    ready: bool
    loading: bool = False


def password_in(data: str | Path) -> str:
    """The password of the server with these data; empty if an older version started it."""
    try:
        return Path(data, ACCESS).read_text(encoding="ascii").split()[1]
    except (OSError, ValueError, IndexError):
        return ""


def ping(path: str | Path, password: str = "") -> Answer:
    """Check whether the server at socket `path` is ready; one that is away or frozen is not."""
    said = _say(path, b"PING", password)
    return Answer(ready=said.startswith(b"+PONG"), loading=said.startswith(b"-LOADING"))


def _say(path: str | Path, command: bytes, password: str) -> bytes:
    """The answer to one command; empty if it does not come within a second."""
    lines = [*([b"AUTH " + password.encode()] if password else []), command]
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1.0)
            connection.connect(str(path))
            connection.sendall(b"".join(line + b"\r\n" for line in lines))
            said = b""
            while said.count(b"\r\n") < len(lines) and (more := connection.recv(256)):
                said += more
            return said.split(b"\r\n")[len(lines) - 1]
    except (OSError, IndexError):
        return b""


def _log(text: str) -> None:
    print(time.strftime("%Y-%m-%dT%H:%M:%S"), os.getpid(), text, file=sys.stderr, flush=True)


def _arguments(assignment: Assignment) -> list[str]:
    settings = {
        "port": "0",
        "unixsocket": assignment.socket,
        "unixsocketperm": "700",
        "dir": assignment.data,
        "appendonly": "yes",
        "appendfsync": "always",
        "save": "",
        "maxmemory-policy": "noeviction",
        "hash-max-ziplist-entries": "64",
        "hash-max-ziplist-value": "2048",
        "daemonize": "no",
        "logfile": str(assignment.path("server.log")),
    }
    options = (part for name, value in settings.items() for part in (f"--{name}", value))
    return [assignment.server, str(assignment.path(ACCESS)), *options]


def _die_with(keeper: int) -> Callable[[], None]:
    """A step for the server between fork and exec, by which it ends when its keeper is killed."""
    # Loaded before the fork: loading a library after it could wait for a lock that is never released.
    control = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def step() -> None:
        if control is not None:
            control(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(1)

    return step


class Server:
    """The server process of one assignment; restarted whenever it dies."""

    def __init__(self, assignment: Assignment, say: Callable[[str], None]) -> None:
        self.assignment = assignment
        self.say = say
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0

    def start(self) -> str:
        """Start it and wait until it answers; returns the reason if it does not, else an empty text."""
        lock = Lock(self.assignment.path("server.lock"))
        try:
            if not lock.take(patience_seconds=0.5):
                # If the kernel cannot tie the server to its keeper, a killed keeper leaves a server behind.
                _log("asking the server of a lost keeper to end")
                _say(self.assignment.socket, b"SHUTDOWN NOSAVE", password_in(self.assignment.data))
                if not lock.take(patience_seconds=SILENCE_SECONDS / 2):
                    return "another server still uses this data"
            socket_path = Path(self.assignment.socket)
            socket_path.parent.mkdir(mode=0o700, exist_ok=True)
            # A server whose data was removed may still answer there.
            socket_path.unlink(missing_ok=True)
            if not password_in(self.assignment.data):
                text = f"requirepass {os.urandom(16).hex()}\n"
                write_whole(self.assignment.path(ACCESS), text.encode(), mode=0o600, synced=True)
            write_whole(self.assignment.path("socket"), self.assignment.socket.encode(), synced=True)
            # The server inherits this descriptor, so that the data stays locked exactly as long as it lives.
            self.process = subprocess.Popen(
                _arguments(self.assignment),
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                preexec_fn=_die_with(os.getpid()),
                pass_fds=(lock.descriptor,),
            )
        except OSError as error:
            return f"{error.strerror} ({error.filename})"
        finally:
            lock.close()
        self.started = time.monotonic()
        return self._until_ready()

    def _until_ready(self) -> str:
        limit = START_SECONDS
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            if not self.is_alive():
                return "the server ended at once"
            answer = ping(self.assignment.socket, password_in(self.assignment.data))
            if answer.ready:
                return ""
            if answer.loading:
                self.say("loading")
                limit = SILENCE_SECONDS
                deadline = time.monotonic() + limit
            time.sleep(0.01)
        return f"the server did not answer for {limit:g} s"

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Stop it: asked first, killed after a while. Every answered write is already on the disk."""
        if self.process is None:
            return
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(SILENCE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill it at once; its socket stays."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def _watch(server: Server, has_data: Callable[[], bool]) -> Lock | None:
    """Keep the server running until it has been unused for a while or its data is gone; returns the users' lock."""
    backoff_seconds, used_at = 0.0, time.monotonic()
    while has_data():
        users = Lock(server.assignment.path("users.lock"))
        if not users.take():
            used_at = time.monotonic()
        elif time.monotonic() - used_at >= IDLE_SECONDS:
            return users
        # A new user finds the lock free while there are no others.
        users.close()
        time.sleep(POLL_SECONDS)
        # A cleanup may have removed its socket.
        if (server.is_alive() and os.path.exists(server.assignment.socket)) or not has_data():
            continue
        lived_seconds = time.monotonic() - server.started
        backoff_seconds = 0.0 if lived_seconds > SHORTEST_LIFE_SECONDS else backoff_seconds * 2 + POLL_SECONDS
        _log(f"the server is gone after {lived_seconds:.1f} s; starting it again")
        time.sleep(min(backoff_seconds, LONGEST_BACKOFF_SECONDS))
        server.stop()
        if reason := server.start():
            _log(reason)
            server.stop()
    return None


def keep(assignment: Assignment, say: Callable[[str], None]) -> None:
    """Start the server, report `ready`, `taken` or `failed …`, and stay until it is unused."""
    charge = Lock(assignment.path("keeper.lock"))
    if not charge.take(patience_seconds=1.0):
        say("taken")
        return

    def has_data() -> bool:
        return charge.is_of(assignment.path("keeper.lock"))

    write_whole(assignment.path("keeper.pid"), b"%d\n" % os.getpid(), synced=True)
    server, users = Server(assignment, say), None
    try:
        if reason := server.start():
            say(f"failed {reason}")
            return
        say("ready")
        users = _watch(server, has_data)
    finally:
        if has_data():
            server.stop()
        else:  # asked to end, it would take along the socket of the server after it
            _log("the data were removed")
            server.kill()
        # In this order, so that a process that then gets the users' lock never meets a stopping keeper.
        charge.close()
        if users is not None:
            users.close()


def main() -> None:
    """Detach from the starter's process tree, then keep the server."""
    os.umask(0o077)
    if os.fork() > 0:
        os._exit(0)

    def say(text: str) -> None:
        _log(text)
        with suppress(OSError):  # the one who started us may be dead
            os.write(1, f"{text}\n".encode())
        if text != "loading":
            os.dup2(2, 1)

    keep(Assignment(**json.loads(sys.argv[1])), say)
