"""`fixloop serve` while its Redis is away, frozen, and back."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fixloop.testing.processes import comes
from tests.fixtures.patience import slack
from tests.fixtures.redis_server import RedisServer
from tests.fixtures.serve_process import client_of, serving

pytestmark = pytest.mark.slow

MOST_SECONDS = 3.0
BACK_SECONDS = 20.0
PATHS = ("/v1/inbox", "/v1/workflows", "/v1/workflows/0a1b2c3d-47-1", "/v1/tokens")


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    server = RedisServer()
    try:
        yield server.start()
    finally:
        server.end()


def assert_away(client: httpx.Client, path: str) -> None:
    began = time.monotonic()
    answer = client.get(path)
    took = time.monotonic() - began

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2"), path
    assert answer.json()["type"] == "/problems/away"
    assert "Redis" in answer.json()["detail"]
    assert took <= slack(MOST_SECONDS), (path, took)


def assert_back(client: httpx.Client) -> None:
    assert comes(lambda: client.get("/v1/inbox").status_code == 200, slack(BACK_SECONDS)), (
        "it does not come back"
    )


def test_an_unreachable_redis_is_reported_within_3_s_and_its_return_needs_no_restart(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    with serving(own_redis.url, tmp_path) as server, client_of(server, own_redis.url) as client:
        assert_back(client)

        own_redis.signal(signal.SIGKILL)
        for path in PATHS:
            assert_away(client, path)
        own_redis.start()

        assert_back(client)


def test_a_frozen_redis_is_reported_within_3_s_and_its_return_needs_no_restart(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    with serving(own_redis.url, tmp_path) as server, client_of(server, own_redis.url) as client:
        assert_back(client)

        own_redis.signal(signal.SIGSTOP)
        for path in PATHS:
            assert_away(client, path)
        own_redis.signal(signal.SIGCONT)

        assert_back(client)
