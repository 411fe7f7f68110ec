"""The cost of `fixloop serve`: requests to the inbox compared with an empty FastAPI route, and idle streams.

It uses a Redis with the shipped configuration and `--workflows` workflows, of which `--open` wait for a decision. Both
servers run at once and get requests alternately at the same rate; each connection has a separate token. Exit code 1 if
a limit is not met.
"""

import argparse
import asyncio
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench import stage
from bench.pieces import cpu_seconds
from fixloop.engine.engine import Engine
from fixloop.protocol.events import RunFinished
from fixloop.serve.access import scopes_of
from fixloop.serve.tokens import Tokens
from fixloop.store.connection import Connection
from fixloop.store.redis_store import RedisStore
from fixloop.testing.crew import scripted_workflow

P99_MS: Final = 100.0
STREAMS_MB: Final = 300.0
IDLE_PERCENT: Final = 5.0
CONNECTIONS: Final = 20
IDLE_SECONDS: Final = 15.0
EMPTY: Final = (
    "import fastapi, uvicorn; app = fastapi.FastAPI(); app.get('/')(lambda: {}); "
    "uvicorn.run(app, port=%d, log_level='warning', access_log=False)"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workflows", type=int, default=10_000)
    parser.add_argument("--open", type=int, default=500)
    parser.add_argument("--rate", type=int, default=200, help="requests a second")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each turn")
    parser.add_argument("--streams", type=int, default=1000)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="serve-") as folder, stage.redis_server() as url:
        made(url, options.workflows, options.open)
        with tokens(url) as known, servers(url, Path(folder)) as (port, empty, process):
            return asyncio.run(measured(options, known, port, empty, process))


async def measured(options: argparse.Namespace, known: list[str], port: int, empty: int, process: int) -> int:
    """Measure and print every figure; returns the exit code."""
    headers = [f"Authorization: Bearer {token}\r\n" for token in known]
    began = time.perf_counter()
    await asked(port, "/v1/inbox?", headers, 1, 1.0)
    print(f"first answer with {options.workflows:,} workflows: {(time.perf_counter() - began) * 1000:.0f} ms")
    turns: dict[str, list[list[float]]] = {"empty": [], "inbox": [], "list": []}
    for _ in range(3):
        turns["empty"].append(await asked(empty, "/", [""] * CONNECTIONS, options.rate, options.seconds))
        turns["inbox"].append(await asked(port, "/v1/inbox", headers, options.rate, options.seconds))
        turns["list"].append(
            await asked(port, "/v1/workflows?state=waits", headers, options.rate, options.seconds)
        )

    def milliseconds(name: str, share: float) -> float:
        return statistics.median(stage.percentile(each, share) for each in turns[name]) * 1000

    p99 = {name: milliseconds(name, 0.99) for name in turns}
    for name in turns:
        middle = milliseconds(name, 0.5)
        ratio = f"{p99[name] / p99['empty']:.1f} of empty's"
        print(f"{name:<6} {options.rate} a second: p50 {middle:.1f} ms, p99 {p99[name]:.1f} ms, {ratio}")
    before = memory_mb(process)
    async with asyncio.TaskGroup() as tasks:
        ready = asyncio.Semaphore(0)
        streams = islice(cycle(headers), options.streams)
        listeners = [tasks.create_task(listening(port, known, ready)) for known in streams]
        for _ in listeners:
            await ready.acquire()
        began, used = time.perf_counter(), cpu_seconds([process])
        await asyncio.sleep(IDLE_SECONDS)
        percent = 100 * (cpu_seconds([process]) - used) / (time.perf_counter() - began)
        held = memory_mb(process)
        for each in listeners:
            each.cancel()
    print(
        f"{options.streams} streams: {held:.0f} MB, {held - before:.0f} of them theirs; {percent:.1f} % of a core idle"
    )
    is_met = p99["inbox"] <= P99_MS and held <= STREAMS_MB and percent <= IDLE_PERCENT
    print("every limit is met" if is_met else f"limits: p99 {P99_MS} ms, {STREAMS_MB} MB, {IDLE_PERCENT} %")
    return 0 if is_met else 1


def made(url: str, count: int, waiting: int) -> None:
    """Create workflows of one project; the first `waiting` wait for a decision, because their checks cannot run."""
    store = RedisStore(url)
    engine = Engine(store)
    for issue in range(1, count + 1):
        start = scripted_workflow("0a1b2c3d", issue, f"feature {issue}", project="bench", tip="c", tree="t")
        engine.start(start)
        for attempt in (1, 2) if issue <= waiting else ():
            facts = {"specialist": "test-runner", "iteration": 1, "attempt": attempt, "tree": "t"}
            told = {"step": "validate", "outcome": "error", "error": "no pytest", **facts}
            engine.apply(start.workflow, RunFinished.model_validate(told), operation=f"run-{attempt}")
    store.close()


@contextmanager
def tokens(url: str) -> Iterator[list[str]]:
    """One token for each connection, because requests per minute are limited for each token."""
    with closing(Connection(url)) as connection:
        known, scopes = Tokens(connection), scopes_of("viewer", "")
        yield [known.create("bench", scopes, (), days=1) for _ in range(CONNECTIONS)]


@contextmanager
def servers(url: str, folder: Path) -> Iterator[tuple[int, int, int]]:
    """Run `fixloop serve` and an empty application; yields their ports and the process id of the first."""
    port, empty = 18470, 18471
    environment = {"FIXLOOP_STATE_URL": url, "FIXLOOP_CACHE_DIR": str(folder)}
    command = [sys.executable, "-m", "fixloop.cli", "serve", "--port", str(port), "-c", "0"]
    with (
        stage.background(command, environment) as serving,
        stage.background([sys.executable, "-c", EMPTY % empty], {}),
    ):
        stage.wait_until(lambda: listens(port) and listens(empty), seconds=60)
        yield port, empty, serving.pid


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def asked(port: int, path: str, headers: list[str], rate: int, seconds: float) -> list[float]:
    """Send requests at a fixed rate over a few connections; returns the seconds of each from its due time."""
    count = max(1, round(rate * seconds))
    began = time.perf_counter()
    due = iter([began + number / rate for number in range(count)])
    took: list[float] = []

    async def one(known: str) -> None:
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{known}\r\n".encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for at in due:
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            took.append(time.perf_counter() - at)
        writer.close()

    await asyncio.gather(*map(one, headers[:count]))
    return took


async def listening(port: int, headers: str, ready: asyncio.Semaphore) -> None:
    """Read a stream until it is cancelled."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
    await reader.readuntil(b"event: reset")
    ready.release()
    try:
        while await reader.read(1024):
            pass
    finally:
        writer.close()


def memory_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [resident] = [line.split()[1] for line in lines if line.startswith("VmRSS")]
    return int(resident) / 1024


if __name__ == "__main__":
    sys.exit(main())
