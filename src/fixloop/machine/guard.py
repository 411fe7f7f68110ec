"""Runs a command under guard: a time limit, an output limit, cancellation, and no surviving processes.

This is the worker's side; `guard_program.py` is the other. There are two modes: a PID namespace for each command if the
kernel grants one, else a guard that this process watches.
"""

import contextlib
import logging
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final, NamedTuple

from fixloop.errors import InfrastructureError
from fixloop.machine import guard_program, remote_guard
from fixloop.machine.orphans import Ward, adopting
from fixloop.servers.settings import load_settings

log = logging.getLogger("fixloop.guard")

POLL_SECONDS: Final = 0.25
CHUNK_BYTES: Final = 65_536
ANSWER_SECONDS: Final = 2.0
"""A guard that does not respond for this long is killed, with all processes below it."""
END_SECONDS: Final = 10.0
"""How long the guard may take to end everything once it has started; it gives up by itself after five seconds."""
MOST_UNANSWERED: Final = round(ANSWER_SECONDS / POLL_SECONDS)
PROBE_SECONDS: Final = 30.0


class Mode(NamedTuple):
    """How commands are kept from leaving processes behind."""

    name: str
    """`namespace` or `watched`."""
    reason: str = ""
    """Why there is no namespace."""


class Confined(NamedTuple):
    """How a command is confined, see `sandbox`."""

    name: str = ""
    """The sandbox's name; empty if none was requested."""
    before: tuple[str, ...] = ()
    """The command line of a program that confines the command after it."""
    rules: str = ""
    """For the guard, see `landlock`."""
    variables: Mapping[str, str] = MappingProxyType({})


UNCONFINED: Final = Confined()
RUNNER: Final = "FIXLOOP_RUNNER"
"""The socket of a runner that starts guards away from the state; without it, guards are this process's children."""
_REFUSED: Final = re.compile("Read-only file system|Permission denied|EROFS|EACCES")
_PYTHON: Final = (sys.executable, "-I", "-S")
_refusals: Final[list[str]] = []
"""The kernel's reasons for refusing this process a namespace; it is not asked again."""


@dataclass(frozen=True)
class GuardedResult:
    """How a guarded command ended: exactly one of exit code, signal, `timed_out`, `cancelled`, `not_found` is set."""

    exit_code: int | None
    signal: int | None
    output: str
    """stdout and stderr in order, without the middle if they exceed the limit."""
    talk: str = ""
    """stderr alone, if requested separately."""
    timed_out: bool = False
    cancelled: bool = False
    not_found: bool = False
    """The command does not exist or cannot be executed."""
    duration_seconds: float = 0.0
    sandbox: str = ""
    """The sandbox's name."""

    @property
    def refusal(self) -> str:
        """What to do if the sandbox seems to have refused something, as the end of a sentence; usually empty. On a
        shared worker only its operator names places."""
        if self.sandbox in ("", "none") or not _REFUSED.search(f"{self.output}{self.talk}"):
            return ""
        keys = "`[sandbox] writable`, or FIXLOOP_SANDBOX_WRITABLE of a shared worker,"
        return f"; {self.sandbox} keeps it to its workspace, and {keys} names further places"

    @property
    def injured(self) -> bool:
        """Whether another process killed it: an injury, not an error of the tool (K40)."""
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
    confined: Confined = UNCONFINED,
) -> GuardedResult:
    """
    Run a command until its end, time limit or cancellation, whichever comes first.

    When this returns or raises, or this process is killed, the command and all processes it started are gone.
    `argv` is looked up on the PATH of `env`. The time counts from its start, or from what `since` says (as
    `time.monotonic`) where that is later; `cancelled` is asked four times a second; `apart` keeps stderr by itself,
    each with the limit; `confined` says what it may do (of the worker's user: everything).
    """
    while True:
        started = time.monotonic()

        def until(begun: float = started) -> float:
            return max(begun, since()) + timeout_seconds

        with contextlib.ExitStack() as held:
            mode = _mode()
            ward = held.enter_context(adopting()) if mode == "watched" else None
            guard = _started(mode, argv, cwd, env, apart=apart, confined=confined)
            watched = _Watched(guard, ward, stdin, output_limit_bytes)
            try:
                reason = watched.watch(until, cancelled)
            finally:
                watched.end()
        told, _, refusal = watched.word.partition(" ")
        if told == "unconfined":
            raise InfrastructureError(f"{argv[0]!r} was not started, {confined.name} refused: {refusal}")
        if told != "unavailable":
            return _unwrapped(watched.result(reason, time.monotonic() - started), confined)
        if load_settings().guard == "namespace":
            raise InfrastructureError(
                f"FIXLOOP_GUARD asks for a namespace and this machine refuses one ({refusal}); "
                "set it to auto or watched"
            )
        log.info("commands are watched by this process, without a PID namespace: %s", refusal)
        _refusals.append(refusal)


def _unwrapped(result: GuardedResult, confined: Confined) -> GuardedResult:
    """The result of the command itself, derived from the exit code of the program that confines it."""
    code = result.exit_code or 0
    if confined.before and code - 128 in signal.valid_signals():
        result = replace(result, exit_code=None, signal=code - 128)
    elif confined.before and code == 1 and (result.talk or result.output).startswith("bwrap: execvp "):
        result = replace(result, exit_code=None, not_found=True)
    return replace(result, sandbox=confined.name)


def mode_in_use() -> Mode:
    """The mode of this process's commands, found out by running one."""
    run_guarded(["true"], cwd=Path("/"), env={"PATH": os.defpath}, timeout_seconds=PROBE_SECONDS)
    name = _mode()
    return Mode(name, _refusals[0] if _refusals and name == "watched" else "")


def _mode() -> str:
    wanted = load_settings().guard
    return "watched" if wanted == "watched" or (wanted == "auto" and _refusals) else "namespace"


_Guard = tuple[subprocess.Popen[bytes], int, int]
"""The guard with the worker's ends of its pipes for life and status."""


def _started(
    mode: str, argv: Sequence[str], cwd: Path, env: Mapping[str, str], *, apart: bool, confined: Confined
) -> _Guard:
    # The worker keeps the writing end of `life` open, so the pipe ends when the worker is gone, for any reason.
    life_read, life_write = os.pipe()
    status_read, status_write = os.pipe()
    runner = os.environ.get(RUNNER, "")
    program = (remote_guard.__file__, runner) if runner else (guard_program.__file__,)
    options = (mode, str(life_read), str(status_write), confined.rules)
    try:
        process = subprocess.Popen(
            [*_PYTHON, *program, *options, *confined.before, *argv],
            cwd=cwd,
            env={**env, **confined.variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if apart else subprocess.STDOUT,
            bufsize=0,
            pass_fds=(life_read, status_write),
            # Not in the worker's group, so that killing the group does not kill the guard.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        os.close(life_write)
        os.close(status_read)
        raise InfrastructureError(f"cannot start {argv[0]!r} in {cwd}: {error}") from error
    finally:
        os.close(life_read)
        os.close(status_write)
    return process, life_write, status_read


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
        # Cut only occasionally, so that a byte is moved once on average.
        if len(self.tail) > self.limit + CHUNK_BYTES:
            self._cut()

    def text(self) -> str:
        self._cut()
        left_out = self.total - len(self.head) - len(self.tail)
        marker = f"\n[… {left_out:,} bytes left out …]\n" if left_out else ""
        return (self.head + marker.encode() + self.tail).decode("utf-8", "replace")

    def _cut(self) -> None:
        surplus = len(self.tail) - (self.limit - self.limit // 2)
        if surplus > 0:
            del self.tail[:surplus]


class _Watched:
    """A running command: writes its input, reads its output, and decides when to end it."""

    def __init__(self, guard: _Guard, ward: Ward | None, stdin: bytes, limit_bytes: int) -> None:
        self.process, self.life, self.status = guard
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin = process.stdin
        self.ward = ward
        if ward is not None:
            ward.guard = process.pid
        self.excerpt, self.talk = _Excerpt(limit_bytes), _Excerpt(limit_bytes)
        self.unsent = memoryview(stdin)
        self.word = ""
        """The guard's last report on the command."""
        self.is_asked = False
        self.unanswered_polls = 0
        self.group = 0
        self._rest = b""
        self.selector = selectors.DefaultSelector()
        self.outputs = {process.stdout: self.excerpt}
        if process.stderr is not None:
            self.outputs[process.stderr] = self.talk
        for pipe in (self.stdin, *self.outputs):
            os.set_blocking(pipe.fileno(), False)
        for pipe, into in self.outputs.items():
            self.selector.register(pipe, selectors.EVENT_READ, partial(self._read, pipe, into))
        self.selector.register(self.status, selectors.EVENT_READ, self._read_status)
        self.selector.register(self.stdin, selectors.EVENT_WRITE, self._feed)
        self.ended = False

    def watch(self, until: Callable[[], float], cancelled: Callable[[], bool]) -> str:
        """Wait for the guard's end; returns why the command was ended before, or an empty text."""
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
                if not self.word:
                    continue
                # Polls are counted, so that a stall of this process is not blamed on the guard.
                if self.is_asked:
                    self.unanswered_polls += 1
                    if self.unanswered_polls >= MOST_UNANSWERED:
                        break
                    continue
                self.is_asked, self.unanswered_polls = True, 0
                with contextlib.suppress(BrokenPipeError):
                    os.write(self.life, b"?")
        return ""

    def end(self) -> None:
        """Let the guard kill what is left, or do it instead, and read the rest of the output and its last report."""
        os.close(self.life)
        if not self.ended and self.unanswered_polls < MOST_UNANSWERED:
            self._serve_until(ANSWER_SECONDS, lambda: self.ended or self.word == "ending")
            if self.word == "ending":
                self._serve_until(END_SECONDS, lambda: self.ended)
        if not self.ended:
            log.warning("a guard did not answer for %.0f s; it is killed, with its command", ANSWER_SECONDS)
            self.process.kill()
        if self.ward is not None:
            self._serve_until(ANSWER_SECONDS, lambda: self.ended)
            self.ward.end(self.group if self.word.partition(" ")[0] in ("started", "ending") else 0)
        unread = self.selector.get_map()
        self._serve_until(END_SECONDS, lambda: self.ended and not any(one in unread for one in self.outputs))
        self.selector.close()
        os.close(self.status)
        for pipe in (self.stdin, *self.outputs):
            pipe.close()
        try:
            self.process.wait(timeout=ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=ANSWER_SECONDS)

    def result(self, reason: str, seconds: float) -> GuardedResult:
        """The result; `reason` is why the command was ended early."""
        how, _, number = self.word.partition(" ")
        if reason:
            how = reason
        elif how in ("", "starting", "started", "ending"):
            # The guard itself was killed, and the command with it.
            how, number = "signalled", str(int(signal.SIGKILL))
        return GuardedResult(
            exit_code=int(number) if how == "exited" else None,
            signal=int(number) if how == "signalled" else None,
            output=self.excerpt.text(),
            talk=self.talk.text(),
            timed_out=how == "timed out",
            cancelled=how == "cancelled",
            not_found=how == "unstartable",
            duration_seconds=seconds,
        )

    def _serve_until(self, seconds: float, is_over: Callable[[], bool]) -> None:
        until = time.monotonic() + seconds
        while not is_over() and time.monotonic() < until:
            self._serve(0.05)

    def _serve(self, seconds: float) -> None:
        for key, _ in self.selector.select(seconds):
            key.data()

    def _read(self, pipe: IO[bytes], into: _Excerpt) -> None:
        data = os.read(pipe.fileno(), CHUNK_BYTES)
        into.add(data)
        if not data:
            self.selector.unregister(pipe)

    def _read_status(self) -> None:
        data = os.read(self.status, 4096)
        *words, self._rest = (self._rest + data).split(b"\n")
        for word in map(bytes.decode, words):
            if word == "alive":
                self.is_asked, self.unanswered_polls = False, 0
                continue
            self.word = word
            if word.startswith("started"):
                self.group = int(word.partition(" ")[2])
        if not data:
            self.selector.unregister(self.status)
            self.ended = True

    def _feed(self) -> None:
        try:
            sent = os.write(self.stdin.fileno(), self.unsent[:CHUNK_BYTES]) if self.unsent else 0
        except BrokenPipeError:
            sent = len(self.unsent)
        self.unsent = self.unsent[sent:]
        if not self.unsent:
            self.selector.unregister(self.stdin)
            self.stdin.close()
