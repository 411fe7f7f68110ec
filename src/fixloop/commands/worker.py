"""The processes of a deployment: `worker`, `flower` and `runner`, each in the foreground; ends with its caller."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from typer import Argument, Exit, Option

from fixloop.commands.presenter import is_away
from fixloop.commands.screen import say
from fixloop.commands.session import Session, open_session
from fixloop.errors import ExitCode, UsageError
from fixloop.machine.health import healths, problems, well
from fixloop.machine.processes import browser, log_in, supervisor
from fixloop.profile_table import work_queues
from fixloop.servers.redis_url import shown_url

POLL_SECONDS: Final = 0.2


def worker(
    concurrency: Annotated[
        int, Option("--concurrency", "-c", min=1, help="How many checks and fixes run at once.")
    ] = 2,
    queue: Annotated[
        list[str] | None,
        Option(
            "--queue",
            "-Q",
            metavar="NAME",
            help="Serve only this kind of work: fix, cycle, handoff, prepare or a specialist's name; "
            "repeatable.",
        ),
    ] = None,
    check: Annotated[bool, Option("--check", help="Only check the workers on this host.")] = False,
) -> None:
    """
    Run a worker for submitted work.

    Runs until stopped; usually one per machine. FIXLOOP_STATE_URL and FIXLOOP_BROKER_URL name the Redis
    (default: the embedded one of this directory's project), FIXLOOP_CACHE_DIR the place for workspaces,
    FIXLOOP_ALLOW_ENV the variables that checks and fixers may see, FIXLOOP_LOG_LEVEL the log level
    (WARNING).
    """
    queues = queue or []
    for name in queues:
        if name not in work_queues():
            raise UsageError(f"there is no queue {name!r}; use one of {', '.join(work_queues())}")
    with open_session(create=not check) as session:
        if check:
            _check(session)
            return
        _ping_broker(session)
        with _stoppable() as stopping, working(session, concurrency, queues) as process:
            say(f"working for {shown_url(session.urls.state)} with {concurrency} at once; Ctrl-C stops it")
            say("next: `fixloop enqueue --issue N` submits work, `fixloop flower` shows the tasks")
            _wait(process, stopping)


def flower(port: Annotated[int, Option(min=1, max=65535, help="The port to listen on.")] = 5555) -> None:
    """
    Show the tasks in a browser.

    Starts Flower on this machine's loopback, with a password. FIXLOOP_FLOWER_AUTH is its user:password
    (default: generated), FIXLOOP_FLOWER_ADDRESS the address it listens on (127.0.0.1).
    """
    with open_session() as session:
        _ping_broker(session)
        address = os.environ.get("FIXLOOP_FLOWER_ADDRESS") or "127.0.0.1"
        user = os.environ.get("FIXLOOP_FLOWER_AUTH", "").partition(":")[0]
        login = f"as {user}, with the password in FIXLOOP_FLOWER_AUTH" if user else "as shown below"
        with _stoppable() as stopping, browser(session.urls, port) as process:
            say(f"Flower at http://{address}:{port}, log in {login}; Ctrl-C stops it")
            _wait(process, stopping)


def runner(socket_path: Annotated[Path, Argument(metavar="SOCKET", help="Where workers find it.")]) -> None:
    """
    Run checks and fixers for local workers, isolated from Redis.

    Run it in a separate container with the same image, on a network without Redis, with the workers' cache
    directories and the socket's directory mounted. Workers find it through FIXLOOP_RUNNER.
    """
    from fixloop.machine.runner import serve

    serve(socket_path)


class _Stopping:
    """What a signal does: the first shuts down in order, later ones are passed on to the process."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None

    def heed(self, *_: object) -> None:
        if self.asked.is_set() and self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.asked.set()


@contextmanager
def _stoppable() -> Iterator[_Stopping]:
    stopping = _Stopping()
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, stopping.heed) for number in numbers}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(process: "subprocess.Popen[bytes]", stopping: _Stopping) -> None:
    stopping.process = process
    while not stopping.asked.wait(POLL_SECONDS):
        code = process.poll()
        if code is not None:
            reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            say(f"it ended by itself ({reason}); see its output above")
            raise Exit(ExitCode.WRONG)


def _ping_broker(session: Session) -> None:
    if session.urls.broker != session.urls.state:
        from fixloop.servers.broker import ping

        ping(session.urls.broker)


class KnownWorker(NamedTuple):
    """What a worker of this machine says about itself."""

    pid: int
    queue: str
    """The only workflow it serves; empty: all."""
    problems: tuple[str, ...]
    well: str
    """What it says if there are no problems."""


def workers_here(session: Session) -> list[KnownWorker]:
    """The workers of this machine and this cache that serve this Redis."""
    redis, now = shown_url(session.urls.state), time.monotonic()
    found = (known for known in healths(session.settings.cache_dir) if known.redis == redis)
    return [KnownWorker(each.pid, each.queue, tuple(problems(each, now)), well(each)) for each in found]


def working(
    session: Session, concurrency: int, queues: Sequence[str] = (), log: str = ""
) -> AbstractContextManager["subprocess.Popen[bytes]"]:
    """A worker of this session's Redis as a child process, drained at the end of the block; writes the named log."""
    file = log_in(session.settings.cache_dir, log) if log else None
    return supervisor(session.urls, {"concurrency": concurrency, "queues": list(queues)}, log=file)


def _check(session: Session) -> None:
    """Whether Redis answers, somebody sweeps, and all parts of every worker of this machine work."""
    _ping_broker(session)
    cache = session.settings.cache_dir
    here = [known for known in workers_here(session) if not known.queue]
    wrong = [f"worker {known.pid}: {said}" for known in here for said in known.problems]
    if not here:
        wrong.append(
            f"no worker on {socket.gethostname()} with the cache {cache}; start one with `fixloop worker`"
        )
    # The engine's clock stops 5 s after the last sweep (K34).
    elif is_away(session.store.now(0), session.store.now(0)):
        wrong.append("no sweep for 5 s")
    if wrong:
        say("; ".join(wrong))
        raise Exit(ExitCode.WRONG)
    rejected = session.store.rejections()
    told = [f"rejected so far: {rejected.last}"] if rejected.total else []
    say("; ".join([*(known.well for known in here), *told]))
