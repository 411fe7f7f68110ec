"""Servers that run with the settings of a deployment."""

import base64
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
import redis
from redis.exceptions import NoPermissionError

from fixloop.servers.broker_url import celery_url
from fixloop.servers.embedded import embedded_redis
from fixloop.servers.keeper import ping
from fixloop.servers.redis_binary import server_binary
from fixloop.testing.waiting import comes
from tests.fixtures.ports import free_port
from tests.unit.test_deployment import ROOT, compose

pytestmark = pytest.mark.slow


def test_the_compose_file_fits_the_compose_schema() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "check_jsonschema",
            "--builtin-schema",
            "vendor.compose-spec",
            "docker-compose.yml",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def guarded_redis(tmp_path: Path) -> Iterator[Path]:
    """A Redis as the Compose file starts it, but for its places; its socket."""
    [shell, option, script] = compose()["services"]["redis"]["command"]
    binary, version = server_binary()
    # Since 7.0 DEBUG is disabled by default; here the user's rights have to refuse it.
    debug = " --enable-debug-command yes" if version.numbers >= (7, 0) else ""
    for old, new in {
        "$$": "$",
        "/run/redis": str(tmp_path),
        "/etc/redis.conf": str(ROOT / "config" / "redis.conf"),
        "redis-server": binary,
        "--bind 0.0.0.0": f"--port 0 --unixsocket {tmp_path}/socket --dir {tmp_path}{debug}",
    }.items():
        script = script.replace(old, str(new))
    server = subprocess.Popen(
        [shell, option, script], env={**os.environ, "REDISCLI_AUTH": "passw0rd"}, stdout=subprocess.DEVNULL
    )
    try:
        assert comes(lambda: _listens(tmp_path / "socket") or server.poll() is not None)
        assert server.poll() is None
        yield tmp_path / "socket"
    finally:
        server.terminate()
        server.wait()


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
        client.connect(str(path))
        return True
    return False


def test_redis_serves_one_user_and_only_fixloop_s_commands(guarded_redis: Path) -> None:
    stranger = redis.Redis(unix_socket_path=str(guarded_redis))
    with closing(stranger), pytest.raises(redis.AuthenticationError):
        stranger.ping()
    known = redis.Redis(unix_socket_path=str(guarded_redis), username="fixloop", password="passw0rd")
    with closing(known) as client:
        assert client.ping()
        assert client.set("fixloop:x", "1")
        for words in (
            ("FLUSHALL",), ("FLUSHDB",), ("CONFIG", "GET", "*"), ("DEBUG", "SLEEP", "0"), ("SHUTDOWN",), ("KEYS", "*"),
            ("ACL", "LIST"), ("REPLICAOF", "NO", "ONE"), ("MODULE", "LIST"), ("BGREWRITEAOF",), ("MONITOR",),
        ):  # fmt: skip
            with pytest.raises(NoPermissionError):
                client.execute_command(*words)  # type: ignore[no-untyped-call]


def test_a_real_redis_takes_the_settings(tmp_path: Path) -> None:
    socket = tmp_path / "r.sock"
    server = subprocess.Popen(
        [
            server_binary()[0],
            ROOT / "config" / "redis.conf",
            "--port",
            "0",
            "--unixsocket",
            socket,
            "--dir",
            tmp_path,
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        assert comes(lambda: ping(socket).ready or server.poll() is not None)
        assert server.poll() is None

        with closing(redis.Redis(unix_socket_path=str(socket))) as client:
            assert client.config_get("appendfsync")["appendfsync"] == "always"
            assert client.info("memory")["maxmemory_policy"] == "noeviction"
            assert client.info("persistence")["aof_enabled"] == 1
    finally:
        server.terminate()
        server.wait()


def page(address: str, credentials: str = "") -> int:
    """The status of a page, 0 while there is no answer."""
    request = urllib.request.Request(address)
    if credentials:
        request.add_header("Authorization", f"Basic {base64.b64encode(credentials.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def test_a_real_flower_refuses_access_without_the_password(tmp_path: Path) -> None:
    port = free_port()
    with embedded_redis(tmp_path) as url:
        flower = subprocess.Popen(
            [
                *(sys.executable, "-m", "celery", "--broker", celery_url(url), "flower"),
                *(f"--conf={ROOT / 'config' / 'flowerconfig.py'}", f"--port={port}"),
            ],
            cwd=tmp_path,
            env={**os.environ, "FIXLOOP_FLOWER_AUTH": "me:secret"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            tasks = f"http://127.0.0.1:{port}/tasks"
            assert comes(lambda: page(tasks) or flower.poll() is not None)

            assert page(tasks) == 401
            assert page(tasks, "me:guess") == 401
            assert page(tasks, "me:secret") == 200
            assert page(f"http://127.0.0.1:{port}/api/tasks") == 401
            assert page(f"http://127.0.0.1:{port}/metrics") == 401
            assert page(f"http://127.0.0.1:{port}/metrics", "me:secret") == 200
        finally:
            flower.terminate()
            flower.wait(60)
