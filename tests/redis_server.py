"""A Redis of a test's own: a Unix socket in a short temporary folder, ended by its own process id."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from fixloop.servers.redis_binary import installed_servers

_START_SECONDS = 60.0


def server_binary() -> str:
    """A Redis server on the PATH, or the one that fixloop brings; skips the test at home and fails it in CI."""
    return _binary("redis", "valkey")


def valkey_binary() -> str:
    """A Valkey server; skips the test at home and fails it in CI."""
    return _binary("valkey")


@cache
def _binary(*products: str) -> str:
    for product in products:
        for path, version in installed_servers():
            if version.product == product:
                return str(path)
    if os.environ.get("CI"):
        pytest.fail(f"no {products[0]}-server here, and CI has to have one")
    pytest.skip(f"no {products[0]}-server on the PATH or beside this Python")


def needs_tls() -> None:
    """Skips the test at home where the server was built without TLS, as the one that fixloop brings; fails it in CI."""
    # It reads the options before it goes to the folder, which is none: it never serves.
    told = subprocess.run(
        [server_binary(), "--port", "0", "--tls-port", "0", "--dir", os.devnull],
        capture_output=True,
        text=True,
    )
    if "'tls-port" not in told.stdout + told.stderr:
        return
    if os.environ.get("CI"):
        pytest.fail("this Redis has no TLS, and that of CI has to have it")
    pytest.skip("this Redis has no TLS (Debian: apt install redis-server)")


class RedisServer:
    """An append-only Redis that can be started again after it was ended, with the same data."""

    def __init__(self, *options: str, binary: str = "") -> None:
        # A socket's path may have 107 bytes: pytest's own temporary folders are too deep.
        self.folder = Path(tempfile.mkdtemp(prefix="fixloop-"))
        self.socket = self.folder / "redis.sock"
        self._options = options
        self._binary = binary or server_binary()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"unix://{self.socket}"

    def start(self) -> "RedisServer":
        """Return when it answers."""
        command = [
            self._binary,
            "--port",
            "0",
            "--unixsocket",
            str(self.socket),
            "--dir",
            str(self.folder),
        ]
        # While a background sync is slow, `everysec` writes late, and a kill would lose what was acknowledged.
        command += ["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no"]
        command += self._options
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._wait_until_it_answers(self._process)
        return self

    def signal(self, number: signal.Signals) -> None:
        """Stop, continue or kill it."""
        assert self._process is not None
        self._process.send_signal(number)
        if number is signal.SIGKILL:
            self._process.wait(_START_SECONDS)

    def end(self) -> None:
        """Kill it and remove its folder."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_START_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_until_it_answers(self, process: "subprocess.Popen[bytes]") -> None:
        client = redis.Redis(unix_socket_path=str(self.socket), retry=Retry(NoBackoff(), 0))
        give_up = time.monotonic() + _START_SECONDS
        while process.poll() is None and time.monotonic() < give_up:
            try:
                client.ping()
            except redis.AuthenticationError:
                break
            except redis.ConnectionError:
                time.sleep(0.01)
            else:
                break
        else:
            pytest.fail(f"redis-server did not start: {(self.folder / 'log').read_text()[-2000:]}")
        client.close()
