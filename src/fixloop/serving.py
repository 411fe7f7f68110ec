"""Starting the application's processes from the library: by path, never by import (DESIGN, Layout)."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from fixloop.app_folder import app_folder
from fixloop.settings import RedisUrls

__all__ = ["STOP_SECONDS", "environment_for", "supervisor"]

STOP_SECONDS: Final = 12.0
"""How long a supervisor may take to drain before it is killed."""


def environment_for(urls: RedisUrls) -> dict[str, str]:
    """The environment of a process of the application."""
    return os.environ | {"FIXLOOP_BROKER_URL": urls.broker, "FIXLOOP_STATE_URL": urls.state}


@contextmanager
def supervisor(
    urls: RedisUrls, options: Mapping[str, Any], *, further: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """
    A worker's supervisor as a child, drained at the end of the block.

    It holds the reading end of a pipe: when this process dies, however it dies, the supervisor and all it started end.
    """
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, str(app_folder() / "workers" / "launch.py"), "supervise", json.dumps(options)],
            env=environment_for(urls) | {"FIXLOOP_LIFELINE": str(reading)} | dict(further or {}),
            pass_fds=(reading,),
            stdin=subprocess.DEVNULL,
            # Ctrl-C reaches the whole foreground group; the supervisor is told by us.
            start_new_session=False,
        )
        os.close(reading)
        try:
            yield process
        finally:
            _stop(process)
    finally:
        os.close(writing)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
