"""Running a command under guard: a time limit, an output limit, a way to cancel, and no survivors.

Owns the worker's end of the guard (`guard_program.py` is the other one). Never judges what the command did.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Final

from fixloop.errors import InfrastructureError

__all__ = ["GuardedResult", "run_guarded"]

PROGRAM: Final = Path(__file__).with_name("guard_program.py")
POLL_SECONDS: Final = 0.25
CHUNK_BYTES: Final = 65_536
END_SECONDS: Final = 10.0
"""How long the guard may take to end everything; it gives up by itself after five."""


@dataclass(frozen=True)
class GuardedResult:
    """How a guarded command ended; exactly one of exit code, signal, `timed_out`, `cancelled`, `not_found` says so."""

    exit_code: int | None
    signal: int | None
    output: str
    """stdout and stderr as they came, the middle left out where they exceed the limit."""
    talk: str = ""
    """stderr by itself, where it was asked for apart."""
    output_bytes: int = 0
    """All that was printed, also what was left out."""
    timed_out: bool = False
    cancelled: bool = False
    not_found: bool = False
    """The command does not exist or cannot be executed."""
    duration_seconds: float = 0.0

    @property
    def injured(self) -> bool:
        """True when somebody outside killed it: an injury, not an error of the tool (K40)."""
        return self.signal in (signal.SIGKILL, signal.SIGTERM)


def run_guarded(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout_seconds: float,
    output_limit_bytes: int = 1_000_000,
    cancelled: Callable[[], bool] = lambda: False,
    since: Callable[[], float] = lambda: 0.0,
    apart: bool = False,
) -> GuardedResult:
    """
    Run a command to its end, its time limit or its cancellation, whichever comes first.

    When this returns or raises, and also when this process is killed, the command and everything it started is gone.

    Args:
        argv: looked up on the PATH of `env`.
        timeout_seconds: from its start, or from what `since` says (as `time.monotonic`) where that is later.
        cancelled: asked four times a second.
        apart: keep stderr by itself; each has the limit.

    Raises:
        InfrastructureError: the guard itself cannot be started.
    """
    started = time.monotonic()
    watched = _Watched(_start(argv, cwd, env, apart), stdin, output_limit_bytes)
    try:
        reason = watched.watch(lambda: max(started, since()) + timeout_seconds, cancelled)
    finally:
        status = watched.end()
    return _result(status, reason, watched, time.monotonic() - started)


def _result(status: str, reason: str, watched: "_Watched", seconds: float) -> GuardedResult:
    how, _, number = status.partition(" ")
    if reason:
        how = reason
    elif how in ("", "started"):
        # The guard itself was killed, and the command with it.
        how, number = "signalled", str(int(signal.SIGKILL))
    return GuardedResult(
        exit_code=int(number) if how == "exited" else None,
        signal=int(number) if how == "signalled" else None,
        output=watched.excerpt.text(),
        talk=watched.talk.text(),
        output_bytes=watched.excerpt.total + watched.talk.total,
        timed_out=how == "timed out",
        cancelled=how == "cancelled",
        not_found=how == "unstartable",
        duration_seconds=seconds,
    )


@dataclass(frozen=True)
class _Started:
    """A guard with the worker's ends of its pipes."""

    process: subprocess.Popen[bytes]
    life: int
    status: int

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout


def _start(argv: Sequence[str], cwd: Path, env: Mapping[str, str], apart: bool) -> _Started:
    # The worker keeps the writing end of `life` open and never writes: when it is gone, however it went, the pipe ends.
    life_read, life_write = os.pipe()
    status_read, status_write = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", PROGRAM, str(life_read), str(status_write), *argv],
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if apart else subprocess.STDOUT,
            bufsize=0,
            pass_fds=(life_read, status_write),
            # Not in the worker's group: who kills that group must not kill the guard with it.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        os.close(life_write)
        os.close(status_read)
        raise InfrastructureError(f"cannot start {argv[0]!r} in {cwd}: {error}") from error
    finally:
        os.close(life_read)
        os.close(status_write)
    return _Started(process, life_write, status_read)


@dataclass
class _Excerpt:
    """The first and the last half of at most `limit` bytes."""

    limit: int
    total: int = 0
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self.limit // 2 - len(self.head)
        self.head += data[: max(room, 0)]
        self.tail += data[max(room, 0) :]
        # Cut only now and then, so that a byte is moved once on average.
        if len(self.tail) > self.limit + CHUNK_BYTES:
            self._cut()

    def text(self) -> str:
        self._cut()
        left_out = self.total - len(self.head) - len(self.tail)
        marker = f"\n[… {left_out:,} bytes left out …]\n" if left_out else ""
        return (
            _decoded(self.head) + marker + _decoded(self.tail) if marker else _decoded(self.head + self.tail)
        )

    def _cut(self) -> None:
        surplus = len(self.tail) - (self.limit - self.limit // 2)
        if surplus > 0:
            del self.tail[:surplus]


def _decoded(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "replace")


class _Watched:
    """One running command: feeds it, reads it, and decides when it has had enough."""

    def __init__(self, started: _Started, stdin: bytes, limit_bytes: int) -> None:
        self.started = started
        self.excerpt, self.talk = _Excerpt(limit_bytes), _Excerpt(limit_bytes)
        self.unsent = memoryview(stdin)
        self.status = b""
        self.selector = selectors.DefaultSelector()
        self.outputs = {pipe: into for pipe, into in self._pipes() if pipe is not None}
        for pipe in (started.stdin, *self.outputs):
            os.set_blocking(pipe.fileno(), False)
        for pipe, into in self.outputs.items():
            self.selector.register(pipe, selectors.EVENT_READ, partial(self._read, pipe, into))
        self.selector.register(started.status, selectors.EVENT_READ, self._read_status)
        self.selector.register(started.stdin, selectors.EVENT_WRITE, self._feed)
        self.ended = False

    def watch(self, until: Callable[[], float], cancelled: Callable[[], bool]) -> str:
        """Wait for the guard's word; returns why it was ended before that, or nothing."""
        asked = time.monotonic()
        while not self.ended:
            self._serve(POLL_SECONDS)
            now = time.monotonic()
            if self.ended:
                break
            if now >= until():
                return "timed out"
            if now - asked >= POLL_SECONDS:
                asked = now
                if cancelled():
                    return "cancelled"
        return ""

    def end(self) -> str:
        """Let the guard kill what is left, read the last output, and return the guard's last word."""
        os.close(self.started.life)
        if self.ended and self._last_word().startswith("started"):
            self._kill_group()
        until = time.monotonic() + END_SECONDS
        while time.monotonic() < until and not (self.ended and self._is_read_out()):
            self._serve(0.05)
        self._release()
        return self._last_word()

    def _serve(self, seconds: float) -> None:
        for key, _ in self.selector.select(seconds):
            key.data()

    def _last_word(self) -> str:
        return self.status.decode().strip().rpartition("\n")[2]

    def _kill_group(self) -> None:
        """The guard was killed and its child with it; what that had started is still there."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(int(self._last_word().partition(" ")[2]), signal.SIGKILL)

    def _is_read_out(self) -> bool:
        return self.outputs.keys().isdisjoint(key.fileobj for key in self.selector.get_map().values())

    def _pipes(self) -> list[tuple[IO[bytes] | None, _Excerpt]]:
        return [(self.started.stdout, self.excerpt), (self.started.process.stderr, self.talk)]

    def _read(self, pipe: IO[bytes], into: _Excerpt) -> None:
        data = os.read(pipe.fileno(), CHUNK_BYTES)
        into.add(data)
        if not data:
            self.selector.unregister(pipe)

    def _read_status(self) -> None:
        data = os.read(self.started.status, 256)
        self.status += data
        if not data:
            self.selector.unregister(self.started.status)
            self.ended = True

    def _feed(self) -> None:
        try:
            sent = os.write(self.started.stdin.fileno(), self.unsent[:CHUNK_BYTES]) if self.unsent else 0
        except BrokenPipeError:
            sent = len(self.unsent)
        self.unsent = self.unsent[sent:]
        if not self.unsent:
            self.selector.unregister(self.started.stdin)
            self.started.stdin.close()

    def _release(self) -> None:
        self.selector.close()
        os.close(self.started.status)
        for pipe in (self.started.stdin, *self.outputs):
            pipe.close()
        try:
            self.started.process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self.started.process.kill()
            self.started.process.wait()
