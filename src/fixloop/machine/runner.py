"""The runner: starts guards for workers whose network checks and fixers must not reach.

Substitutes of guards (`remote_guard.py`) connect to its Unix socket, each with one command and its pipes; the end of
the connection ends the command. It has no address, no password and no state.
"""

import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final, NoReturn

from fixloop.machine import guard_program
from fixloop.machine.orphans import adopting

PIPES: Final = 4
"""Per command: its three streams, and the pipe that closes when the worker is gone."""
HEAD_BYTES: Final = 8
MOST_BYTES: Final = 16 * 1024 * 1024
_GUARD: Final = (sys.executable, "-I", "-S", guard_program.__file__)


def serve(place: Path) -> NoReturn:
    """Accept commands at a socket until told to stop."""
    place.unlink(missing_ok=True)
    os.umask(0o077)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen(128)
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=_serve, args=(connection,), daemon=True).start()


def _serve(connection: socket.socket) -> None:
    """Run one command until it or the connection ends."""
    with connection, adopting() as ward:
        if _is_below(connection):
            return
        head, pipes, _, _ = socket.recv_fds(connection, HEAD_BYTES, PIPES)
        reading, writing = os.pipe()
        try:
            size, data = int.from_bytes(head, "big"), b""
            if size > MOST_BYTES:
                raise ValueError(f"{size} bytes are no command")
            while len(data) < size and (more := connection.recv(size - len(data))):
                data += more
            asked = json.loads(data)
            stdin, stdout, stderr, life = pipes
            guard = subprocess.Popen(
                [*_GUARD, asked["mode"], str(life), str(writing), asked.get("rules", ""), *asked["argv"]],
                cwd=asked["cwd"],
                env=asked["env"],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(life, writing),
                start_new_session=True,
            )
        except (OSError, ValueError, KeyError) as error:
            os.close(reading)
            with contextlib.suppress(OSError):
                connection.sendall(b"unstartable %d\n" % (getattr(error, "errno", None) or 22))
            return
        finally:
            for pipe in (*pipes, writing):
                os.close(pipe)
        ward.guard = guard.pid
        with guard:
            group = _follow(guard, connection, reading)
            ward.end(group)


def _is_below(connection: socket.socket) -> bool:
    """Whether the caller is a command that runs here: what it starts this way would escape its sandbox. Callers in
    another container have no process id here."""
    if sys.platform != "linux":
        return False
    pid: int = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    while pid and pid != os.getpid():
        fields = guard_program.stat_fields(str(pid))
        # A caller that has ended cannot be identified.
        pid = int(fields[1]) if fields else os.getpid()
    return pid != 0


def _follow(guard: "subprocess.Popen[bytes]", connection: socket.socket, reading: int) -> int:
    """Forward the guard's reports; when the connection closes, end it, and the group of a command it left running."""
    said = b""
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    poll.register(connection, select.POLLIN)
    with os.fdopen(reading, "rb", buffering=0) as status:
        while True:
            ready = dict(poll.poll())
            if connection.fileno() in ready and not connection.recv(1):
                guard.kill()
                poll.unregister(connection)
            if reading in ready:
                more = status.read(256) or b""
                said = (said + more)[-4096:]
                if not more:
                    break
                with contextlib.suppress(OSError):
                    connection.sendall(more)
    words = [line for line in said.decode().splitlines() if line != "alive"]
    groups = [int(word.partition(" ")[2]) for word in words if word.startswith("started ")]
    is_over = bool(words) and words[-1].startswith(("exited", "signalled", "unstartable", "unavailable"))
    return 0 if is_over or not groups else groups[0]
