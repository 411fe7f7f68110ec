"""What doctor finds, on directories made wrong on purpose and on a real Redis."""

import os
import re
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from fixloop.commands.doctor import Finding, examine, redis_findings
from fixloop.servers.embedded import embedded_redis
from fixloop.servers.redis_place import Place
from fixloop.servers.settings import Settings
from fixloop.store.records import RejectedMessage
from fixloop.store.redis_store import RedisStore

pytestmark = pytest.mark.slow


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


@pytest.fixture
def away(tmp_path: Path) -> Settings:
    """Settings that name a Redis that does not run."""
    return Settings(state_url=f"unix://{tmp_path}/no.sock", cache_dir=tmp_path / "cache")


def test_a_finding_is_one_line_and_shows_its_remedy_only_when_needed() -> None:
    assert str(Finding("git", True, "2.39.5", "install it")) == "ok     git: 2.39.5"
    assert (
        str(Finding("git", False, "it does not run", "install it"))
        == "wrong  git: it does not run; install it"
    )
    assert str(Finding("tools", None, "no ruff", "install it")) == "note   tools: no ruff; install it"


def test_an_unreachable_redis_is_wrong_and_the_remedy_starts_one(away: Settings, tmp_path: Path) -> None:
    found = by_name(examine(away, tmp_path))["redis"]

    assert found.ok is False
    assert "no.sock" in found.detail
    assert "docker compose up" in found.remedy
    assert "\n" not in str(found)


def test_a_developer_s_python_git_and_venv_are_accepted(away: Settings, tmp_path: Path) -> None:
    found = by_name(examine(away, tmp_path))

    assert [found[name].ok for name in ("python", "git", "venv", "project", "cache", "guard")] == [True] * 6


def test_a_machine_without_git_or_python_is_reported(
    away: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)

    found = by_name(examine(away, tmp_path))

    assert found["git"].ok is False
    assert found["git"].remedy == "install git 2.38 or newer"


def test_a_git_too_old_is_wrong(away: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\necho git version 2.37.9\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    found = by_name(examine(away, tmp_path))["git"]

    assert (found.ok, found.detail) == (False, "2.37.9")


def test_a_cache_inside_a_checkout_is_wrong(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    settings = Settings(state_url=f"unix://{tmp_path}/no.sock", cache_dir=tmp_path / "deep" / "cache")

    found = by_name(examine(settings, tmp_path))["cache"]

    assert found.ok is False
    assert f"is inside the checkout {tmp_path}" in found.detail


def test_an_archive_that_cannot_be_written_is_wrong(away: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = {
        name: by_name(examine(away.model_copy(update={"archive_dir": tmp_path / name}), tmp_path))["archive"]
        for name in ("new/archive", "file/archive")
    }

    assert (found["new/archive"].ok, found["file/archive"].ok) == (True, False)
    assert "set FIXLOOP_ARCHIVE_DIR to a directory you can write to" in str(found["file/archive"])
    assert "archive" not in by_name(examine(away, tmp_path))


def test_a_project_that_is_a_file_is_wrong(away: Settings, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()

    assert by_name(examine(away, path))["project"].ok is False


def test_data_too_new_for_the_server_is_reported_without_starting_it(tmp_path: Path) -> None:
    data = Place.prepare(tmp_path).data
    (data / "written-by").write_text("redis 99.0.0\n")

    found = examine(Settings(cache_dir=tmp_path / "cache"), tmp_path)

    assert found[-1].name == "server"
    assert found[-1].ok is False
    assert not (data / "keeper.pid").exists()


def test_the_embedded_redis_passes_every_check_and_is_gone_afterwards(tmp_path: Path) -> None:
    found = by_name(examine(Settings(cache_dir=tmp_path / "cache"), tmp_path))

    names = ("server", "redis", "redis log", "redis writes", "redis memory")
    assert [found[name].ok for name in names] == [True] * 5


def test_a_redis_without_persistence_is_wrong_with_the_setting_to_change(tmp_path: Path) -> None:
    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        client.config_set("appendonly", "no")
        client.config_set("maxmemory-policy", "allkeys-lru")

        found = by_name(redis_findings("redis", url, Settings()))

    assert found["redis"].ok is True
    assert (found["redis log"].ok, found["redis log"].remedy) == (False, "set `appendonly yes`")
    assert (found["redis memory"].ok, found["redis memory"].detail) == (False, "policy allkeys-lru")


def test_a_default_user_without_rights_is_noted(tmp_path: Path) -> None:
    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        client.execute_command("ACL", "SETUSER", "me", "on", ">word", "~*", "&*", "+@all")  # type: ignore[no-untyped-call]
        mine = f"unix://me:word@{urlsplit(url).path}"
        before = by_name(redis_findings("redis", mine, Settings()))
        with closing(redis.Redis.from_url(mine)) as me:
            me.execute_command("ACL", "SETUSER", "default", "-@all")  # type: ignore[no-untyped-call]

            found = by_name(redis_findings("redis", mine, Settings()))["redis user default"]

            me.execute_command("ACL", "SETUSER", "default", "+@all")  # type: ignore[no-untyped-call]
    assert "redis user default" not in before
    assert (found.ok, found.remedy) == (None, "make it `user default off ~* &* +@all`")


def test_a_redis_that_is_nearly_full_is_wrong(tmp_path: Path) -> None:
    with embedded_redis(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        client.setrange("much", 3_000_000, "x")
        client.config_set("maxmemory", int(client.info("memory")["used_memory"] * 1.05))

        found = by_name(redis_findings("redis", url, Settings()))

    assert found["redis space"].ok is False
    assert re.fullmatch(r"9\d % of \d MB used", found["redis space"].detail)


def test_messages_that_workers_rejected_are_reported_and_where_to_see_them(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with embedded_redis(tmp_path / "project") as url, closing(RedisStore(url)) as store:
        settings = Settings(state_url=url, cache_dir=tmp_path / "cache")
        before = by_name(examine(settings, tmp_path))
        store.reject([RejectedMessage(datetime.now(UTC), "celery", "its id is a list", "{}")], 7)

        found = by_name(examine(settings, tmp_path))["messages"]

    assert "messages" not in before
    assert found.ok is None
    assert found.detail.startswith("workers have rejected 7 messages, the last at ")
    assert "doctor --rejected" in found.remedy
