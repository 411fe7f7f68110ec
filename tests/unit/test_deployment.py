"""The files that a deployment consists of: compose, image, Redis and Flower settings, lock."""

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from flower.inspector import Inspector
from packaging.requirements import Requirement
from ruamel.yaml import YAML

from workers.celery_fast.consumer import ALLOWED

ROOT = Path(__file__).parents[2]


def compose() -> dict[str, Any]:
    return dict(YAML(typ="safe").load(ROOT / "docker-compose.yml"))


def flower_settings(monkeypatch: pytest.MonkeyPatch, **environment: str) -> dict[str, Any]:
    for name in ("FIXLOOP_FLOWER_AUTH", "FIXLOOP_FLOWER_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return runpy.run_path(str(ROOT / "config" / "flowerconfig.py"))


def test_every_service_restarts_and_has_a_health_check() -> None:
    services = compose()["services"]

    assert set(services) == {"redis", "worker", "runner", "flower", "serve"}
    assert {service["restart"] for service in services.values()} == {"always"}
    assert all(service["healthcheck"]["test"] for service in services.values())
    assert all(
        services[name]["depends_on"]["redis"]["condition"] == "service_healthy"
        for name in ("worker", "flower", "serve")
    )


def test_the_worker_service_can_be_scaled() -> None:
    worker = compose()["services"]["worker"]

    assert "container_name" not in worker
    assert "ports" not in worker


def test_flower_and_the_server_need_a_login_and_are_published_on_loopback_only() -> None:
    services = compose()["services"]

    assert {name: service["ports"] for name, service in services.items() if "ports" in service} == {
        "flower": ["127.0.0.1:5555:5555"],
        "serve": ["127.0.0.1:8470:8470"],
    }
    assert services["flower"]["environment"]["FIXLOOP_FLOWER_AUTH"].startswith("${FIXLOOP_FLOWER_AUTH:?")


def test_redis_is_only_on_an_internal_network() -> None:
    definition = compose()

    assert definition["services"]["redis"]["networks"] == ["state"]
    assert definition["networks"]["state"]["internal"] is True


def test_runners_share_no_network_with_redis_and_have_no_password() -> None:
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


def test_redis_and_its_clients_require_a_password() -> None:
    services = compose()["services"]

    assert services["redis"]["environment"]["REDISCLI_AUTH"].startswith("${FIXLOOP_REDIS_PASSWORD:?")
    for name in ("worker", "flower"):
        assert "fixloop:${FIXLOOP_REDIS_PASSWORD:?" in services[name]["environment"]["FIXLOOP_STATE_URL"]


def test_the_image_has_its_own_user_git_and_a_health_check() -> None:
    image = (ROOT / "Dockerfile").read_text()
    final = image[image.rindex("FROM ") :]

    assert image.count("FROM ${PYTHON_IMAGE}") == 2
    assert re.search(r"^USER fixloop$", final, re.MULTILINE)
    assert "useradd" in final
    assert re.search(r"apt-get install .*\bgit\b", final)
    assert re.search(r'^HEALTHCHECK .* CMD \["fixloop", "worker", "--check"\]$', final, re.MULTILINE)


def test_the_image_is_built_from_the_wheel_s_sources() -> None:
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
def test_redis_is_persistent_and_protected(line: str) -> None:
    assert line in (ROOT / "config" / "redis.conf").read_text().splitlines()


def test_flower_listens_on_loopback_is_read_only_and_generates_a_password(
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


def test_flower_on_an_external_address_needs_a_given_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"would listen on 0\.0\.0\.0 without your password"):
        flower_settings(monkeypatch, FIXLOOP_FLOWER_ADDRESS="0.0.0.0")


@pytest.mark.parametrize("given", ["secret", ":secret", "me:", "me:gehéim"])
def test_flower_refuses_a_password_it_could_not_check(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="not of the form user:password"):
        flower_settings(monkeypatch, FIXLOOP_FLOWER_AUTH=given)


def test_flower_sends_only_commands_that_workers_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inspector, "inspect_methods", Inspector.inspect_methods)

    flower_settings(monkeypatch)

    assert ALLOWED >= set(Inspector.inspect_methods) >= ALLOWED - {"ping", "heartbeat", "enable_events"}


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile"])
def test_locked_packages_are_installed_without_resolving(name: str) -> None:
    installs = [line for line in (ROOT / name).read_text().splitlines() if "--require-hashes" in line]

    assert installs
    assert all("--no-deps" in line for line in installs)
