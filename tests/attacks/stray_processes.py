"""Twenty ways to leave a process behind: a program that a guarded command runs as `stray_processes.py WAY TOKEN`.

Every process that it leaves has TOKEN in its command line, by which the test finds it.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

PTRACE_ATTACH = 16
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWUSER, CLONE_NEWPID = 0x10000000, 0x20000000
UNTIL = time.monotonic() + 120.0
"""If the tests are killed, these processes end by themselves and do not occupy the machine."""


def guard() -> int:
    """The guard above this process; signalling anything else could hit another user's process."""
    above = os.getppid()
    while b"guard_program" not in Path(f"/proc/{above}/cmdline").read_bytes():
        above = int(Path(f"/proc/{above}/stat").read_text().rpartition(")")[2].split()[1])
        if above <= 0:
            sys.exit("there is no guard above")
    return above


def survive() -> NoReturn:
    while time.monotonic() < UNTIL:
        time.sleep(0.05)
    sys.exit(0)


def child(then: Callable[[], object] = survive) -> int:
    """A child that does something and ends, by default never."""
    pid = os.fork()
    if not pid:
        with suppress(Exception):
            then()
        os._exit(0)
    return pid


def daemon(then: Callable[[], object] = survive) -> None:
    """A grandchild in its own session, whose parent has ended."""

    def between() -> None:
        os.setsid()
        child(then)

    os.waitpid(child(between), 0)


def in_background() -> None:
    child()


def in_a_session() -> None:
    def apart() -> None:
        os.setsid()
        survive()

    child(apart)


def without_descriptors() -> None:
    def close() -> None:
        os.closerange(0, 256)
        survive()

    daemon(close)


def that_ignores_signals() -> None:
    def deaf() -> None:
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with suppress(OSError):
                signal.signal(number, signal.SIG_IGN)
        survive()

    daemon(deaf)


def that_is_stopped() -> None:
    daemon(lambda: os.kill(os.getpid(), signal.SIGSTOP))
    time.sleep(0.1)


def without_an_environment() -> None:
    daemon(lambda: os.execve(sys.executable, [sys.executable, *sys.argv[:1], "survive", sys.argv[2]], {}))


def that_moves_on() -> None:
    """From process to process, each in its own session: a scan finds only the last one."""

    def hop() -> None:
        while time.monotonic() < UNTIL:
            os.setsid()
            if os.fork():
                os._exit(0)

    daemon(hop)


def of_many() -> None:
    def many() -> None:
        for _ in range(100):
            in_a_session()
        survive()

    daemon(many)
    time.sleep(0.2)


def that_come_back() -> None:
    """Two that restart each other."""

    def keep() -> None:
        while time.monotonic() < UNTIL:
            os.setsid()
            other = os.fork()
            if other:
                os.waitpid(other, 0)

    daemon(keep)


def below_a_reaper() -> None:
    """It adopts its orphans itself, instead of the guard."""

    def reap() -> None:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        daemon()
        survive()

    daemon(reap)


def in_a_namespace() -> None:
    def apart() -> None:
        ctypes.CDLL(None).unshare(CLONE_NEWPID | (CLONE_NEWUSER if os.getuid() else 0))
        child()
        survive()

    daemon(apart)
    time.sleep(0.1)


def that_prints() -> None:
    def chatter() -> None:
        while time.monotonic() < UNTIL:
            os.write(1, b"x" * 4096)

    daemon(chatter)


def after_killing_the_guard() -> None:
    above = guard()
    daemon()
    os.kill(above, signal.SIGKILL)
    survive()


def after_stopping_the_guard() -> None:
    above = guard()
    daemon()
    os.kill(above, signal.SIGSTOP)


def while_the_guard_is_stopped() -> None:
    os.kill(guard(), signal.SIGSTOP)
    daemon()
    survive()


def after_stopping_and_killing_the_guard() -> None:
    above = guard()

    def later() -> None:
        time.sleep(1.0)
        os.kill(above, signal.SIGKILL)
        survive()

    daemon(later)
    os.kill(above, signal.SIGSTOP)


def after_killing_the_guards_group() -> None:
    above = guard()
    daemon()
    os.killpg(os.getpgid(above), signal.SIGKILL)


def after_tracing_the_guard() -> None:
    above = guard()

    def trace() -> None:
        ctypes.CDLL(None).ptrace(PTRACE_ATTACH, above, 0, 0)
        survive()

    daemon(trace)
    time.sleep(0.1)


def after_limiting_the_guard() -> None:
    above = guard()
    daemon()
    resource.prlimit(above, resource.RLIMIT_CPU, (0, 0))
    survive()


def from_a_killer_of_guards() -> None:
    """A daemon that kills the guard only when the command has ended and the guard is at work."""
    above = guard()

    def kill() -> None:
        time.sleep(0.05)
        while time.monotonic() < UNTIL:
            with suppress(OSError):
                os.kill(above, signal.SIGKILL)

    daemon(kill)


def from_a_shell() -> None:
    script = '(setsid "$@" &) ; nohup "$@" >/dev/null 2>&1 &'
    again = [sys.executable, "-I", "-S", sys.argv[0], "survive", sys.argv[2]]
    subprocess.run(["sh", "-c", script, "sh", *again], check=True)
    time.sleep(0.2)


WAYS = {
    way.__name__: way
    for way in (
        in_background,
        in_a_session,
        daemon,
        without_descriptors,
        that_ignores_signals,
        that_is_stopped,
        without_an_environment,
        that_moves_on,
        of_many,
        that_come_back,
        below_a_reaper,
        in_a_namespace,
        that_prints,
        from_a_shell,
        after_killing_the_guard,
        after_stopping_the_guard,
        while_the_guard_is_stopped,
        after_stopping_and_killing_the_guard,
        after_killing_the_guards_group,
        after_tracing_the_guard,
        after_limiting_the_guard,
        from_a_killer_of_guards,
    )
}

if __name__ == "__main__":
    WAYS.get(sys.argv[1], survive)()
