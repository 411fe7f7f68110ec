"""A real `fixloop serve`, as a client on a connection that it keeps sees it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from fixloop.errors import ExitCode
from fixloop.testing.processes import comes
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


def test_ctrl_c_pressed_again_and_again_ends_the_server_without_a_traceback(
    redis_url: str, tmp_path: Path
) -> None:
    environment = os.environ | {"FIXLOOP_STATE_URL": redis_url, "FIXLOOP_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "fixloop.cli", "serve", "--port", "0", "-c", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        # A client that connects now waits for the start.
        httpx.get(process.stderr.readline().split("serving at ")[1].split(";")[0], timeout=60)

        def has_ended() -> bool:
            process.send_signal(signal.SIGINT)
            return process.poll() is not None

        assert comes(has_ended, 60, step_seconds=0.02)
        assert "Traceback" not in process.stderr.read()
    assert process.returncode == ExitCode.INTERRUPTED
