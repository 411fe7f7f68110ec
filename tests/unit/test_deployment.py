"""The files a deployment stands on: compose, image, Redis and Flower settings, lock."""

import base64
import os
import re
import runpy
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis
from flower.inspector import Inspector
from packaging.requirements import Requirement
from redis.exceptions import NoPermissionError
from ruamel.yaml import YAML

from fixloop.servers.broker_url import celery_url
from fixloop.servers.embedded import embedded_redis
from fixloop.servers.keeper import ping
from fixloop.servers.redis_binary import server_binary
from tests.ports import free_port
from workers.celery_fast.remote_control import ALLOWED

ROOT = Path(__file__).parents[2]


def compose() -> dict[str, Any]:
    return dict(YAML(typ="safe").load(ROOT / "docker-compose.yml"))


def flower_settings(monkeypatch: pytest.MonkeyPatch, **environment: str) -> dict[str, Any]:
    for name in ("FIXLOOP_FLOWER_AUTH", "FIXLOOP_FLOWER_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return runpy.run_path(str(ROOT / "config" / "flowerconfig.py"))


@pytest.mark.slow
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


def test_every_service_comes_back_by_itself_and_says_whether_it_is_well() -> None:
    services = compose()["services"]

    assert set(services) == {"redis", "worker", "runner", "flower"}
    assert {service["restart"] for service in services.values()} == {"always"}
    assert all(service["healthcheck"]["test"] for service in services.values())
    assert all(
        services[name]["depends_on"]["redis"]["condition"] == "service_healthy"
        for name in ("worker", "flower")
    )


def test_workers_can_be_many() -> None:
    worker = compose()["services"]["worker"]

    assert "container_name" not in worker
    assert "ports" not in worker


def test_only_flower_is_published_and_only_on_loopback_with_a_password() -> None:
    services = compose()["services"]

    assert {name: service["ports"] for name, service in services.items() if "ports" in service} == {
        "flower": ["127.0.0.1:5555:5555"]
    }
    assert services["flower"]["environment"]["FIXLOOP_FLOWER_AUTH"].startswith("${FIXLOOP_FLOWER_AUTH:?")


def test_redis_is_on_an_internal_network_alone() -> None:
    definition = compose()

    assert definition["services"]["redis"]["networks"] == ["state"]
    assert definition["networks"]["state"]["internal"] is True


def test_what_runs_commands_shares_no_network_with_redis_and_knows_no_password() -> None:
    services = compose()["services"]
    runner, worker = services["runner"], services["worker"]

    assert set(runner["networks"]).isdisjoint({"state", "default"})
    assert "environment" not in runner
    assert worker["environment"]["FIXLOOP_RUNNER"] in runner["command"]
    # What workers believe, such as a mirror's configuration, is not what commands may write.
    places = {mount.split(":")[-2 if mount.endswith(":ro") else -1]: mount for mount in runner["volumes"]}
    assert set(places) == {"/repositories", "/cache/mirrors", "/cache/setups", "/cache/work", "/run/fixloop"}
    assert places["/cache/mirrors"].endswith(":ro")
    assert places["/repositories"].endswith(":ro")


def test_nothing_of_redis_is_there_without_a_password_from_outside() -> None:
    services = compose()["services"]

    assert services["redis"]["environment"]["REDISCLI_AUTH"].startswith("${FIXLOOP_REDIS_PASSWORD:?")
    for name in ("worker", "flower"):
        assert "fixloop:${FIXLOOP_REDIS_PASSWORD:?" in services[name]["environment"]["FIXLOOP_STATE_URL"]


@pytest.fixture
def guarded_redis(tmp_path: Path) -> Iterator[Path]:
    """A Redis as the Compose file starts it, but for its places; its socket."""
    [shell, option, script] = compose()["services"]["redis"]["command"]
    binary, version = server_binary()
    # Since 7.0 nobody may use DEBUG by default; here it is the user's rights that have to refuse it.
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
        deadline = time.monotonic() + 60
        while not (tmp_path / "socket").exists():
            assert server.poll() is None
            assert time.monotonic() < deadline
        yield tmp_path / "socket"
    finally:
        server.terminate()
        server.wait()


@pytest.mark.slow
def test_redis_serves_one_user_and_only_what_fixloop_does(guarded_redis: Path) -> None:
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


def test_the_image_has_a_user_of_its_own_git_and_a_health_check() -> None:
    image = (ROOT / "Dockerfile").read_text()
    final = image[image.rindex("FROM ") :]

    assert image.count("FROM ${PYTHON_IMAGE}") == 2
    assert re.search(r"^USER fixloop$", final, re.MULTILINE)
    assert "useradd" in final
    assert re.search(r"apt-get install .*\bgit\b", final)
    assert re.search(r'^HEALTHCHECK .* CMD \["fixloop", "worker", "--check"\]$', final, re.MULTILINE)


def test_the_image_is_built_from_what_the_wheel_is_built_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    carried = {
        path.split("/")[1] for path in project["tool"]["hatch"]["build"]["targets"]["wheel"]["include"]
    }
    ignore = (ROOT / ".dockerignore").read_text().splitlines()

    for folder in carried:
        assert f"COPY {folder} {folder}" in (ROOT / "Dockerfile").read_text()
        assert f"!{folder}" in ignore


def test_the_lock_holds_each_dependency_with_hashes_and_no_address() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pins = dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", lock, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [
        Requirement(text) for text in project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    ]

    for requirement in wanted:
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        assert pins[name] in requirement.specifier, f"make the lock anew: {requirement}"
    assert "://" not in lock
    assert not re.search(r"^-", lock, re.MULTILINE)
    assert len(re.split(r"\n(?=\S)", lock.strip())) == len(
        re.findall(r"==\S+[^\n]*\\\n    --hash=sha256:", lock)
    )


@pytest.mark.parametrize(
    "line", ["appendonly yes", "maxmemory-policy noeviction", "bind 127.0.0.1 -::1", "protected-mode yes"]
)
def test_redis_keeps_what_it_is_told_and_hides(line: str) -> None:
    assert line in (ROOT / "config" / "redis.conf").read_text().splitlines()


def test_flower_listens_on_loopback_shows_only_and_makes_up_a_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = flower_settings(monkeypatch)

    assert settings["address"] == "127.0.0.1"
    assert settings["read_only"] is True
    user, password = settings["basic_auth"][0].split(":")
    assert len(password) >= 16
    assert f"log in as {user} with {password}" in capsys.readouterr().err


def test_flower_takes_a_given_password_and_does_not_print_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = flower_settings(
        monkeypatch, FIXLOOP_FLOWER_AUTH="me:se:cret", FIXLOOP_FLOWER_ADDRESS="0.0.0.0"
    )

    assert settings["basic_auth"] == ["me:se:cret"]
    assert settings["address"] == "0.0.0.0"
    assert capsys.readouterr().err == ""


def test_flower_on_an_outside_address_needs_a_password_of_yours(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"would listen on 0\.0\.0\.0 without your password"):
        flower_settings(monkeypatch, FIXLOOP_FLOWER_ADDRESS="0.0.0.0")


@pytest.mark.parametrize("given", ["secret", ":secret", "me:", "me:gehéim"])
def test_flower_refuses_a_password_it_could_not_check(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="not of the form user:password"):
        flower_settings(monkeypatch, FIXLOOP_FLOWER_AUTH=given)


@pytest.mark.slow
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
        deadline = time.monotonic() + 60
        while not ping(socket).ready:
            assert server.poll() is None
            assert time.monotonic() < deadline

        with closing(redis.Redis(unix_socket_path=str(socket))) as client:
            assert client.config_get("appendfsync")["appendfsync"] == "always"
            assert client.info("memory")["maxmemory_policy"] == "noeviction"
            assert client.info("persistence")["aof_enabled"] == 1
    finally:
        server.terminate()
        server.wait()


def page(address: str, credentials: str = "") -> int:
    """The status of a page, 0 while nobody answers."""
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


@pytest.mark.slow
def test_a_real_flower_lets_nobody_in_without_the_password(tmp_path: Path) -> None:
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
            deadline = time.monotonic() + 60
            while page(tasks) == 0:
                assert flower.poll() is None
                assert time.monotonic() < deadline

            assert page(tasks) == 401
            assert page(tasks, "me:guess") == 401
            assert page(tasks, "me:secret") == 200
            assert page(f"http://127.0.0.1:{port}/api/tasks") == 401
            assert page(f"http://127.0.0.1:{port}/metrics") == 401
            assert page(f"http://127.0.0.1:{port}/metrics", "me:secret") == 200
        finally:
            flower.terminate()
            flower.wait(60)


def test_flower_asks_for_what_workers_answer_and_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inspector, "inspect_methods", Inspector.inspect_methods)

    flower_settings(monkeypatch)

    assert ALLOWED >= set(Inspector.inspect_methods) >= ALLOWED - {"ping", "heartbeat", "enable_events"}
