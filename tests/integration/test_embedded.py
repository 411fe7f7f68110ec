"""The embedded Redis, with real processes and real kills."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import redis

from fixloop.errors import InfrastructureError
from fixloop.servers.embedded import embedded_redis
from fixloop.servers.redis_binary import read_written_by, server_binary
from fixloop.servers.redis_place import Place
from fixloop.testing.processes import comes
from tests.fixtures.patience import slack
from tests.unit.golden_schema import FOLDER
from tests.unit.test_embedded import leftovers

pytestmark = pytest.mark.slow

USER = """
import json, sys
from pathlib import Path
import redis
from fixloop.servers.embedded import embedded_redis

name, project = sys.argv[1:]
with embedded_redis(Path(project)) as url:
    client = redis.Redis.from_url(url)
    written = 0
    server = client.info("server")["process_id"]
    while True:
        client.rpush(name, written)
        written += 1
        print(json.dumps({"url": url, "server": server, "written": written}), flush=True)
        if not sys.stdin.readline():
            break
    client.close()
"""


class User:
    """A process that uses the embedded Redis and writes once for each line it is given."""

    def __init__(self, project: Path, name: str = "user") -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, name, str(project)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def write(self) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> None:
        self.process.communicate(timeout=60)


Start = Callable[..., User]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    users: list[User] = []

    def start_user(name: str = "user") -> User:
        users.append(User(tmp_path, name))
        return users[-1]

    yield start_user
    for user in users:
        if user.process.returncode is None:
            user.kill()
    assert comes(lambda: leftovers(tmp_path) == [])


def keeper_process(project: Path) -> int:
    return int((project / ".fixloop" / "redis" / "keeper.pid").read_text())


def test_data_of_an_embedded_redis_6_2_is_loaded(tmp_path: Path) -> None:
    data = Place.prepare(tmp_path).data
    shutil.copy(FOLDER / "redis-6.2" / "appendonly.aof", data)
    (data / "written-by").write_text("redis 6.2.14\n")

    for changes in (1, 2):
        with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
            assert client.get("text") == b"appended"
            assert client.hgetall("hash") == {
                b"field0": b"changed",
                **{b"field%d" % number: b"value%d" % number for number in range(1, 5)},
            }
            assert client.hget("large hash", "field") == b"x" * 3000
            assert client.zrange("sorted set", 0, -1, withscores=True) == [(b"a", 1.5), (b"b", 2.0)]
            assert client.lrange("list", 0, -1) == [b"0", b"1", b"2", b"3", b"4"]
            assert client.smembers("set") == {b"1", b"2", b"3"}
            assert client.incr("changes") == changes

    assert comes(lambda: leftovers(tmp_path) == [])
    assert read_written_by(data) == server_binary()[1]


def test_only_the_data_survives_the_embedded_server(tmp_path: Path) -> None:
    for expected in (1, 2, 3):
        with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
            assert client.incr("starts") == expected
            assert client.config_get("appendfsync")["appendfsync"] == "always"
            assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
            assert client.config_get("save")["save"] == ""
            assert client.config_get("port")["port"] == "0"

    assert comes(lambda: leftovers(tmp_path) == [])
    assert (tmp_path / ".fixloop" / ".gitignore").read_text() == "*\n"
    assert read_written_by(tmp_path / ".fixloop" / "redis") == server_binary()[1]


def test_a_long_path_with_odd_characters_works(tmp_path: Path) -> None:
    project = tmp_path / ("a long 'name' with ü, \"quotes\" and % " * 5)
    project.mkdir()

    with embedded_redis(project) as url, closing(redis.Redis.from_url(url)) as client:
        assert client.incr("starts") == 1
        assert client.config_get("dir")["dir"] == str(project / ".fixloop" / "redis")

    assert comes(lambda: leftovers(project) == [])


def test_the_socket_is_for_its_owner_only(tmp_path: Path) -> None:
    with embedded_redis(tmp_path):
        socket = Place(tmp_path).recorded_socket()

        assert socket is not None
        assert socket.stat().st_mode & 0o077 == 0
        assert socket.parent.stat().st_mode & 0o077 == 0

    assert comes(lambda: leftovers(tmp_path) == [])


def test_two_processes_share_one_server_that_outlives_the_first(tmp_path: Path, start: Start) -> None:
    first, second = start("first"), start("second")
    one, other = first.answer(), second.answer()
    assert one["server"] == other["server"]
    assert one["url"] == other["url"]

    first.end()

    assert second.write()["written"] == 2
    assert second.process.poll() is None


def test_twenty_four_users_a_third_of_them_killed_share_one_start_and_lose_nothing(
    tmp_path: Path, start: Start
) -> None:
    chance = random.Random(24)
    users = [start(f"user-{number}") for number in range(24)]
    written = {user.name: user.answer() for user in users}
    doomed = chance.sample(users, 8)

    for user in chance.sample(users, len(users)):
        written[user.name] = user.write()
        if user in doomed:
            user.kill()
    for user in users:
        if user not in doomed:
            user.end()

    assert len({answer["server"] for answer in written.values()}) == 1
    assert comes(lambda: leftovers(tmp_path) == [])
    log = (tmp_path / ".fixloop" / "redis" / "keeper.log").read_text()
    assert log.count("ready") == 1
    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        assert {name: client.llen(name) for name in written} == dict.fromkeys(written, 2)


def test_users_that_start_while_the_last_one_stops_lose_nothing(tmp_path: Path, start: Start) -> None:
    rounds = 6
    for number in range(rounds):
        users = [start("relay"), start("relay")]
        for user in users:
            user.answer()
        users[number % 2].kill()
        users[1 - number % 2].end()

    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        assert client.llen("relay") == 2 * rounds


def test_a_killed_server_is_started_again_on_the_same_socket_with_its_data(tmp_path: Path) -> None:
    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        for number in range(50):
            client.rpush("list", number)
        killed = client.info("server")["process_id"]
        os.kill(killed, signal.SIGKILL)

        assert comes(lambda: serves_another(url, killed))

        assert client.lrange("list", 0, -1) == [str(number).encode() for number in range(50)]
    assert comes(lambda: leftovers(tmp_path) == [])


def test_the_server_ends_with_its_killed_keeper_and_the_next_user_starts_both(tmp_path: Path) -> None:
    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        client.set("key", "kept")
        killed = client.info("server")["process_id"]
        os.kill(keeper_process(tmp_path), signal.SIGKILL)

        assert comes(lambda: serves_another(url, killed))

        assert client.get("key") == b"kept"
    assert comes(lambda: leftovers(tmp_path) == [])


def test_a_keeper_killed_with_its_last_user_leaves_nothing_behind(tmp_path: Path, start: Start) -> None:
    user = start()
    user.answer()

    os.kill(keeper_process(tmp_path), signal.SIGKILL)
    user.kill()

    assert comes(lambda: leftovers(tmp_path) == [])
    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        assert client.llen("user") == 1


def test_a_deleted_socket_is_created_again(tmp_path: Path) -> None:
    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        before = client.info("server")["process_id"]
        socket = Place(tmp_path).recorded_socket()
        assert socket is not None
        socket.unlink()

        assert comes(lambda: serves_another(url, before))


def test_an_unloadable_log_is_reported_with_the_server_s_own_message(tmp_path: Path) -> None:
    data = Place.prepare(tmp_path).data
    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        client.set("key", "value")
    assert comes(lambda: leftovers(tmp_path) == [])
    for log in data.rglob("appendonly.aof*"):
        if log.is_file():
            log.write_bytes(b"no log at all\n" * 40)

    began = time.monotonic()
    with pytest.raises(
        InfrastructureError, match=r"did not start on .*the server ended at once; .*server\.log ends"
    ):
        embedded_redis(tmp_path).__enter__()

    assert time.monotonic() - began < slack(5)
    assert comes(lambda: leftovers(tmp_path) == [])


def test_a_server_that_a_busy_machine_starts_late_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, _ = server_binary()
    slow = tmp_path / "bin/redis-server"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\n[ "$1" = --version ] || sleep 7\nexec {real} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        assert client.ping()


def test_a_frozen_server_gives_one_sentence_within_seconds(tmp_path: Path, start: Start) -> None:
    server = start().answer()["server"]
    os.kill(server, signal.SIGSTOP)

    began = time.monotonic()
    try:
        with pytest.raises(InfrastructureError, match=r"does not answer; its keeper is process \d+"):
            embedded_redis(tmp_path).__enter__()
    finally:
        os.kill(server, signal.SIGCONT)

    assert time.monotonic() - began < slack(10)


def serves_another(url: str, process: int) -> bool:
    """Whether a server other than `process` answers at `url`."""
    try:
        with closing(redis.Redis.from_url(url, retry=None)) as client:
            return bool(client.info("server")["process_id"] != process)
    except redis.exceptions.RedisError:
        return False


def test_a_server_whose_data_was_removed_does_not_touch_the_next_server_s_data(tmp_path: Path) -> None:
    with ExitStack() as after:
        with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as old:
            pid = old.info("server")["process_id"]
            keeper = keeper_process(tmp_path)
            os.kill(keeper, signal.SIGSTOP)  # the old server answers until the new one is there
            try:
                shutil.rmtree(tmp_path / ".fixloop")
                new = redis.Redis.from_url(after.enter_context(embedded_redis(tmp_path)))
                after.enter_context(closing(new))
                new.set("is", "new")
                run = new.info("server")["run_id"]
            finally:
                os.kill(keeper, signal.SIGCONT)
        assert comes(lambda: not Path(f"/proc/{pid}").exists())
        assert comes(lambda: new.info("server")["uptime_in_seconds"] >= 2)

        assert new.info("server")["run_id"] == run
        assert new.get("is") == b"new"
    assert comes(lambda: leftovers(tmp_path) == [])
    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as again:
        assert again.get("is") == b"new"
