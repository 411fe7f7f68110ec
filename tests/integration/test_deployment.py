"""Servers that run with the settings of a deployment."""

import base64
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
import redis
from redis.exceptions import NoPermissionError

from fixloop.engine.engine import Engine
from fixloop.servers.broker_url import celery_url
from fixloop.servers.embedded import embedded_redis
from fixloop.servers.keeper import ping
from fixloop.servers.redis_binary import ServerVersion, installed_servers, server_binary
from fixloop.store.redis_store import RedisStore
from fixloop.testing.crew import scripted_workflow
from fixloop.testing.processes import comes
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


@contextmanager
def guarded_redis(folder: Path, binary: Path, version: ServerVersion) -> Iterator["subprocess.Popen[bytes]"]:
    """A Redis as the Compose file starts it, but for its places, with a socket in `folder`."""
    [shell, option, script] = compose()["services"]["redis"]["command"]
    # Since 7.0 DEBUG is disabled by default; here the user's rights have to refuse it.
    debug = " --enable-debug-command yes" if version.numbers >= (7, 0) else ""
    for old, new in {
        "$$": "$",
        "/dev/shm": str(folder),
        "/etc/redis.conf": str(ROOT / "config" / "redis.conf"),
        "redis-server": str(binary),
        "--bind 0.0.0.0": f"--port 0 --unixsocket {folder}/socket --dir {folder}{debug}",
    }.items():
        script = script.replace(old, new)
    (folder / "socket").unlink(missing_ok=True)
    server = subprocess.Popen(
        [shell, option, script], env={**os.environ, "REDISCLI_AUTH": "passw0rd"}, stdout=subprocess.DEVNULL
    )
    try:
        assert comes(lambda: _serves(folder) or server.poll() is not None)
        assert server.poll() is None
        yield server
    finally:
        server.terminate()
        server.wait()


def at(folder: Path) -> str:
    return f"unix://fixloop:passw0rd@{folder}/socket"


def _serves(folder: Path) -> bool:
    """Whether it answers its user: while it loads its data, it only refuses."""
    with closing(redis.Redis.from_url(at(folder))) as client, suppress(redis.RedisError):
        return bool(client.ping())
    return False


def test_redis_serves_one_user_and_only_fixloop_s_commands(tmp_path: Path) -> None:
    with guarded_redis(tmp_path, *server_binary()):
        for login in ("", "default:@", "default:passw0rd@"):
            stranger = redis.Redis.from_url(f"unix://{login}{tmp_path}/socket")
            with closing(stranger), pytest.raises(redis.AuthenticationError):
                stranger.ping()
        with closing(redis.Redis.from_url(at(tmp_path))) as client:
            assert client.ping()
            assert client.set("fixloop:x", "1")
            for words in (
                ("FLUSHALL",), ("FLUSHDB",), ("CONFIG", "GET", "*"), ("DEBUG", "SLEEP", "0"), ("SHUTDOWN",),
                ("KEYS", "*"), ("ACL", "LIST"), ("REPLICAOF", "NO", "ONE"), ("MODULE", "LIST"),
                ("BGREWRITEAOF",), ("MONITOR",),
            ):  # fmt: skip
                with pytest.raises(NoPermissionError):
                    client.execute_command(*words)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(("binary", "version"), list(installed_servers()))
def test_redis_keeps_what_scripts_wrote_when_it_is_killed(
    tmp_path: Path, binary: Path, version: ServerVersion
) -> None:
    with guarded_redis(tmp_path, binary, version) as server, closing(RedisStore(at(tmp_path))) as store:
        Engine(store, lambda ticket, _: None).start(scripted_workflow("be9c4a11", 47, "a -"))
        before = {workflow: store.history(workflow) for workflow, _ in store.workflows()}
        server.kill()
        server.wait()

    with guarded_redis(tmp_path, binary, version), closing(RedisStore(at(tmp_path))) as store:
        assert before
        assert {workflow: store.history(workflow) for workflow, _ in store.workflows()} == before


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
