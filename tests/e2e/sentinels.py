"""A master, a replica and three sentinels for one test, on loopback; each ended by its own process id."""

import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
import redis

from tests.fixtures.ports import free_port
from tests.fixtures.redis_server import server_binary

SERVICE: Final = "fixloop"
PASSWORD: Final = "of the servers"
SENTINEL_PASSWORD: Final = "of the sentinels"
DOWN_AFTER_MS: Final = 1000
_START_SECONDS: Final = 30.0


class Sentinels:
    """Two Redis servers, of which sentinels make the other the master when one dies."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self.folder = Path(tempfile.mkdtemp(prefix="fixloop-"))
        self.servers = [free_port(), free_port()]
        self.sentinels = [free_port() for _ in range(3)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """The master's address, as the sentinels give it."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinels)
        return f"sentinel://:{quote(PASSWORD)}@{hosts}/{SERVICE}/0"

    def start(self) -> "Sentinels":
        """Return when the replica has all that the master has, and the sentinels know each other."""
        master, replica = self.servers
        self.start_server(master)
        self.start_server(replica, "--replicaof", "127.0.0.1", str(master))
        self.until(lambda: self.client(replica).info("replication")["master_link_status"] == "up")
        for port in self.sentinels:
            self._start_sentinel(port, master)
        self.until(lambda: all(self._knows_all(port) for port in self.sentinels))
        return self

    def start_server(self, port: int, *options: str) -> None:
        """Start one of the two; it continues with its data."""
        data = self.folder / str(port)
        data.mkdir(exist_ok=True)
        words = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(data), "--save", ""]
        words += ["--requirepass", PASSWORD, "--masterauth", PASSWORD]
        words += ["--appendonly", "yes", "--appendfsync", "everysec", "--repl-diskless-sync-delay", "0"]
        self._start(port, [*words, *options])

    def signal(self, port: int, number: signal.Signals) -> None:
        """Stop or continue one of them."""
        self._processes[port].send_signal(number)

    def kill(self, port: int) -> None:
        """`kill -9` one of them."""
        process = self._processes.pop(port)
        process.kill()
        process.wait(_START_SECONDS)

    def end(self) -> None:
        """Kill all that is left and remove the folder."""
        for port in list(self._processes):
            self.kill(port)
        shutil.rmtree(self.folder, ignore_errors=True)

    def client(self, port: int) -> Any:
        """A client of one server, to inspect it."""
        return redis.Redis(port=port, password=SENTINEL_PASSWORD if port in self.sentinels else PASSWORD)

    def master(self) -> int:
        """The port of the one that the sentinels name."""
        told = self.client(self.sentinels[0]).sentinel_get_master_addr_by_name(SERVICE)
        return int(told[1])

    def without_replica(self) -> int:
        """The port of the server that is not the master, which is ended if it runs; returns when the master knows."""
        (other,) = [port for port in self.servers if port != self.master()]
        if other in self._processes:
            self.kill(other)
        self.until(lambda: self.client(self.master()).info("replication")["connected_slaves"] == 0)
        return other

    def hand_over(self) -> bool:
        """Make the master and the replica change places; returns once that has started."""
        return bool(self.client(self.sentinels[0]).execute_command("SENTINEL FAILOVER", SERVICE))

    def _start_sentinel(self, port: int, master: int) -> None:
        configuration = self.folder / f"{port}.conf"
        configuration.write_text(
            f'port {port}\nbind 127.0.0.1\ndir {self.folder}\nrequirepass "{SENTINEL_PASSWORD}"\n'
            f"sentinel monitor {SERVICE} 127.0.0.1 {master} 2\n"
            f'sentinel auth-pass {SERVICE} "{PASSWORD}"\n'
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout {SERVICE} 5000\n"
        )
        self._start(port, [], str(configuration), "--sentinel")

    def _start(self, port: int, words: list[str], *first: str) -> None:
        with (self.folder / f"{port}.log").open("ab") as log:
            self._processes[port] = subprocess.Popen(
                [server_binary(), *first, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.until(lambda: self.client(port).ping())

    def _knows_all(self, port: int) -> bool:
        told = self.client(port).sentinel_master(SERVICE)
        return bool(told["num-other-sentinels"] == len(self.sentinels) - 1 and told["num-slaves"] == 1)

    def until(self, condition: Any) -> None:
        """Poll; a server that does not answer is asked again."""
        give_up = time.monotonic() + _START_SECONDS
        while time.monotonic() < give_up:
            try:
                if condition():
                    return
            except redis.RedisError:
                pass
            time.sleep(0.05)
        logs = "\n".join(path.read_text(errors="replace")[-800:] for path in self.folder.glob("*.log"))
        pytest.fail(f"waited in vain: {logs}")
