"""Shared by the benchmarks: a separate Redis, worker processes, and waiting."""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import redis
from redis import Redis

from fixloop.engine.engine import Engine
from fixloop.engine.hints import producer, send_hint
from fixloop.servers.redis_binary import server_binary
from fixloop.store.redis_store import RedisStore
from fixloop.testing.processes import comes

ROOT = Path(__file__).resolve().parent.parent
BARE_WORKER = (
    *(sys.executable, "-m", "celery", "-A", "bench.bare", "worker", "-c", "2", "-Q", "bare"),
    *("--without-gossip", "--without-mingle", "-l", "WARNING"),
)


def fixloop_worker(concurrency: int = 2) -> list[str]:
    launch = str(ROOT / "workers" / "launch.py")
    return [sys.executable, launch, "supervise", f'{{"concurrency": {concurrency}}}']


def hinting_engine(url: str, store: RedisStore) -> Engine:
    """An engine whose hints go to the workers at the Redis of `url`."""
    app = producer(url)
    return Engine(store, lambda ticket, state: send_hint(app, ticket, state.profile))


def scripted_environment(url: str, **more: str) -> dict[str, str]:
    """The environment of workers with scripted agents at the Redis of `url`; also sets it in this process."""
    environment = {
        "FIXLOOP_BROKER_URL": url,
        "FIXLOOP_STATE_URL": url,
        "FIXLOOP_TASK_EVENTS": "0",
        "FIXLOOP_CREW": "fixloop.testing:scripted_crew",
        **more,
    }
    os.environ.update(environment)
    return environment


@contextmanager
def redis_server(binary: str = "") -> Iterator[str]:
    """Run a Redis with the shipped configuration and `appendfsync everysec` on a Unix socket; yields its URL."""
    with tempfile.TemporaryDirectory(prefix="fixloop-bench-") as folder:
        socket = f"{folder}/redis.sock"
        command = [binary or str(server_binary()[0]), str(ROOT / "config" / "redis.conf")]
        command += ["--port", "0", "--unixsocket", socket, "--dir", folder]
        command += ["--appendfsync", "everysec", "--loglevel", "warning"]
        with background(command, {}):
            client = Redis.from_url(f"unix://{socket}")
            wait_until(lambda: _answers(client), seconds=10)
            client.close()
            yield f"unix://{socket}"


def _answers(client: Redis) -> bool:
    # The socket exists before the server listens.
    with suppress(redis.ConnectionError):
        return bool(client.ping())
    return False


@contextmanager
def background(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    env = os.environ | dict(environment)
    process = subprocess.Popen(command, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(condition: Callable[[], bool], *, seconds: float, step_seconds: float = 0.01) -> None:
    """Poll until `condition` holds; raises TimeoutError after `seconds`."""
    if not comes(condition, seconds, step_seconds):
        raise TimeoutError(f"waited {seconds} s in vain")


def percentile(found: Sequence[float], share: float) -> float:
    """The median for 0.5; otherwise the value that a fraction `share` of `found` is below."""
    if share == 0.5:
        return statistics.median(found)
    return sorted(found)[min(len(found) - 1, int(len(found) * share))]
