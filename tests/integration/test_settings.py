"""Celery and redis-py reach the same Redis by the same URL."""

from contextlib import closing
from pathlib import Path

import pytest
import redis
from celery import Celery

from fixloop.servers.broker_url import celery_url
from fixloop.servers.embedded import embedded_redis

pytestmark = pytest.mark.slow


def test_celery_reaches_the_same_socket_and_database_as_redis_py(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "a %b ü"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))

    with embedded_redis(tmp_path) as url:
        broker = celery_url(f"{url}?db=3")
        with Celery(broker=broker).connection_for_write() as connection:
            connection.default_channel.client.set("who", "celery")
        with closing(redis.Redis.from_url(f"{url}?db=3")) as client:
            assert client.get("who") == b"celery"
        with closing(redis.Redis.from_url(url)) as client:
            assert client.get("who") is None
