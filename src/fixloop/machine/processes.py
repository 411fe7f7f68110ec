"""Starts the application's processes from the library: by path, never by import."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fixloop.errors import InfrastructureError
from fixloop.files.app_folder import app_folder
from fixloop.files.folders import make_cache
from fixloop.machine.attached import attached, launching, told
from fixloop.servers.settings import RedisUrls

# Flower's own program, with the pipe that ends it when this process is gone (see workers/processes/lifeline.py).
_FLOWER: Final = (
    "from workers.processes.lifeline import attach; attach(); from celery.__main__ import main; main()"
)


def variables_for(urls: RedisUrls) -> dict[str, str]:
    """The environment variables that tell a process of the application its servers."""
    key = {"FIXLOOP_SEAL_KEY_FILE": str(urls.seal_key_file)} if urls.seal_key_file is not None else {}
    return {"FIXLOOP_BROKER_URL": urls.broker, "FIXLOOP_STATE_URL": urls.state} | key


def log_in(cache: Path, name: str) -> Path:
    """The path of a worker's log. InfrastructureError: it cannot be written."""
    log = cache / "logs" / f"{name}.log"
    try:
        make_cache(cache)
        log.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"cannot make {log.parent} (FIXLOOP_CACHE_DIR): {error.strerror}") from None
    return log


@contextmanager
def supervisor(
    urls: RedisUrls,
    options: Mapping[str, Any],
    *,
    log: Path | None = None,
    environment: Mapping[str, str] | None = None,
    entering: Sequence[str] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker's supervisor as a child, drained at the end of the block; `entering`: a prefix of its command."""
    variables = variables_for(urls) | dict(environment or {})
    said = {"options": dict(options), "variables": variables}
    waiting = told(said, log) if log is not None and not entering else None
    command = [*entering, *launching("supervise", json.dumps(options))]
    with waiting.ending() if waiting else attached(command, os.environ | variables, log=log) as process:
        yield process


@contextmanager
def browser(urls: RedisUrls, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Flower as a child, listening on `port`."""
    folder = app_folder()
    command = [sys.executable, "-c", _FLOWER, "-A", "workers.app", "flower"]
    command += [f"--conf={folder / 'config' / 'flowerconfig.py'}", f"--port={port}"]
    environment = os.environ | variables_for(urls) | {"PYTHONPATH": str(folder)}
    # Celery puts the working directory first on its path: it must be fixloop's, not the user's project.
    with attached(command, environment, cwd=folder) as process:
        yield process
