"""The processes of a chaos run: a separate Redis and two supervisors, all of which can be killed, stopped and started.

They end with the process that started them: supervisors by their lifeline, Redis by the shell above it. Owns the wait
for conditions by polling.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from fixloop.errors import InfrastructureError
from fixloop.machine.guard_program import children, stat_fields
from fixloop.machine.process_name import role_of
from fixloop.machine.processes import supervisor
from fixloop.servers.redis_binary import server_binary
from fixloop.servers.settings import RedisUrls
from fixloop.testing import clock
from fixloop.testing.clock import set_clock

START_SECONDS: Final = 10.0
MEMORY: Final = "1gb"
# Prints the process id, then waits until the input ends. The process is reaped only then, so its id is not reused.
_GUARD_SCRIPT: Final = '"$@" & echo $!; read -r _; kill -9 $! 2>/dev/null; wait'


class RedisServer:
    """An append-only Redis on a Unix socket, restarted whenever it is killed."""

    def __init__(self, folder: Path, sockets: Path) -> None:
        self.socket = sockets / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._folder = folder
        self._guard: subprocess.Popen[bytes] | None = None
        self.pid = 0

    def start(self) -> None:
        place = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self._folder)]
        # With `everysec`, a slow background sync delays writes, and a kill would lose acknowledged data.
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        bounded = ["--maxmemory", MEMORY, "--maxmemory-policy", "noeviction"]
        log_file = ["--logfile", str(self._folder / "redis.log"), "--daemonize", "no"]
        command = [str(server_binary()[0]), *place, *durable, *bounded, *log_file]
        with (self._folder / "redis.log").open("ab") as log:
            words = ["/bin/sh", "-c", _GUARD_SCRIPT, "redis", *command]
            self._guard = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        if self._guard.stdout is None:
            raise InfrastructureError("redis-server has no output to read its process id from")
        self.pid = int(self._guard.stdout.readline())

    def tell(self, words: Sequence[bytes]) -> object:
        """The reply to one command; None on an error, or after a second if Redis is frozen."""
        once = Retry(NoBackoff(), 0)
        client: Any = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=1.0, retry=once)
        with suppress(redis.RedisError), closing(client):
            return client.execute_command(*words)
        return None

    def wait(self) -> None:
        """Wait until it serves; raises InfrastructureError after 10 s."""
        if not comes(lambda: self.tell([b"PING"]), START_SECONDS, 0.02):
            raise InfrastructureError(
                f"redis-server did not start within {START_SECONDS:.0f} s; see {self._folder}/redis.log"
            )

    def bound(self, memory: str) -> None:
        self.tell([b"CONFIG", b"SET", b"maxmemory", memory.encode()])

    def kill(self) -> None:
        """`kill -9`; returns when it is gone."""
        if self._guard is not None:
            self._guard.communicate()
            self._guard = None


class Access(NamedTuple):
    """How the processes of a host reach Redis."""

    url: str
    entering: tuple[str, ...] = ()
    """The prefix of a command to run on that host."""


class Host:
    """One machine's worker and its child processes: here `fixloop worker`."""

    wanted = frozenset({"sweep", "control", "work", "worker"})
    """The roles it needs to count as running."""

    def __init__(
        self, name: str, folder: Path, access: Access, *, concurrency: int, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self.access = access
        self._concurrency = concurrency
        self.clock = folder / f"{name}.clock"
        """The file with its wall clock's shift; see `fixloop.testing.clock`."""
        self._environment = {**environment, **with_clock(self.clock)}
        self._log = folder / f"{name}.log"
        self._running = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def start(self) -> None:
        """Start it, unless it is running or was stopped."""
        if self._is_over or (self._process is not None and self._process.poll() is None):
            return
        self._process = self._running.enter_context(self._launch())

    def _launch(self) -> AbstractContextManager[subprocess.Popen[bytes]]:
        urls, options = RedisUrls(self.access.url, self.access.url), {"concurrency": self._concurrency}
        return supervisor(
            urls, options, log=self._log, environment=self._environment, entering=self.access.entering
        )

    def tend(self) -> None:
        """Restart it if it ended by itself, like a service manager."""
        if self._process is not None and self._process.poll() is not None:
            self._running.close()
            self.start()

    def stop(self) -> None:
        self._is_over = True
        self.kill()

    def kill(self) -> set[int]:
        """`kill -9` the supervisor and its descendants at once; returns their process ids."""
        if self._process is None:
            return set()
        found = {self._process.pid, *self.roles()}
        kill(signal.SIGKILL, *found)
        self._process.wait()
        self._running.close()
        self._process = None
        return found

    def roles(self) -> dict[int, str]:
        """The roles of the processes below the supervisor: `sweep`, `control`, `work`, and `worker` below that."""
        if self._process is None:
            return {}
        roles = {pid: role_of(pid) for pid in children(self._process.pid)}
        work = [pid for pid, role in roles.items() if role == "work"]
        return roles | {pid: "worker" for each in work for pid in children(each)}

    def find(self, role: str) -> list[int]:
        return sorted(pid for pid, named in self.roles().items() if named == role)


def with_clock(path: Path) -> dict[str, str]:
    """The environment of processes whose clock `path` shifts; initially not at all."""
    set_clock(path, 0.0)
    place = path.with_name("clock")
    place.mkdir(exist_ok=True)
    shutil.copy(clock.__file__, place / "sitecustomize.py")
    paths = filter(None, [str(place), os.environ.get("PYTHONPATH")])
    return {"PYTHONPATH": os.pathsep.join(paths), clock.VARIABLE: str(path)}


def kill(number: signal.Signals, *pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def is_stopped(pid: int) -> bool:
    return stat_fields(str(pid))[:1] == [b"T"]


def below(pid: int, levels: int) -> list[int]:
    """The processes `levels` levels below one."""
    found = [pid]
    for _ in range(levels):
        found = [child for one in found for child in children(one)]
    return sorted(found)


def comes(is_so: Callable[[], object], seconds: float = 60.0, step_seconds: float = 0.01) -> bool:
    """Poll until `is_so` holds; whether it did within `seconds`."""
    give_up = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > give_up:
            return False
        time.sleep(step_seconds)
    return True
