"""A real `fixloop serve`, as a client on a connection that it keeps sees it."""

import time
from pathlib import Path

import pytest

from tests.fixtures.serve_process import client_of, serving

pytestmark = pytest.mark.slow

ACKNOWLEDGED_SECONDS = 0.04
"""How long Linux waits before it acknowledges data."""


def test_an_answer_does_not_wait_until_the_client_has_acknowledged_its_first_part(
    redis_url: str, tmp_path: Path
) -> None:
    with serving(redis_url, tmp_path) as server, client_of(server, redis_url) as client:
        took = []
        for _ in range(100):
            began = time.monotonic()
            assert client.get("/v1/inbox").status_code == 200
            took.append(time.monotonic() - began)

    # The first of a connection is acknowledged at once, and others may have the processor.
    assert sorted(took)[3] < ACKNOWLEDGED_SECONDS
