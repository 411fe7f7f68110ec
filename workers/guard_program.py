"""The guard: runs one command and sees to it that nothing of it outlives the worker.

A program of its own, started as `python -I -S guard_program.py LIFE STATUS ARGV…`, standard library only.
It reads the pipe LIFE, which its worker never writes to: the end of it means that the worker is gone or wants an end,
and everything the command started is killed. It writes to STATUS `started PID` and then how that ended: `exited N` or
`signalled N`; or only `unstartable ERRNO`.
"""

import ctypes
import errno
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 5.0
"""A process in an uninterruptible wait does not die; the guard does not wait longer for it."""


def main() -> None:
    """Run the command, report how it ended, kill what it left behind."""
    life, status = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(life, False)
    os.set_inheritable(status, False)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake = _wake_on_child()
    child, error = _start(sys.argv[3:])
    _let_go_of_standard_streams()
    if child == 0:
        os.write(status, f"unstartable {error}\n".encode())
        return
    os.write(status, f"started {child}\n".encode())
    code = _wait(child, life, wake)
    _kill_all(child)
    if code is not None:
        os.write(status, _described(code).encode())


def _described(code: int) -> str:
    return f"signalled {-code}\n" if code < 0 else f"exited {code}\n"


def _prctl(option: int, value: int) -> None:
    """Linux only; elsewhere what leaves the group is not caught."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _wake_on_child() -> int:
    """A pipe that becomes readable whenever a child ends or somebody asks the guard to stop."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return readable


def _start(argv: list[str]) -> tuple[int, int]:
    """The child's pid, or 0 and the errno that kept it from starting."""
    told, tell = os.pipe()
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        _become(argv, tell, guard)
    os.close(tell)
    said = os.read(told, 64)
    os.close(told)
    if not said:
        return child, 0
    os.waitpid(child, 0)
    return 0, int(said)


def _become(argv: list[str], tell: int, guard: int) -> None:
    try:
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(1)
        _reset_signals()
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(tell, str(error.errno or errno.ENOENT).encode())
    finally:
        os._exit(127)


def _reset_signals() -> None:
    """As in a fresh shell: Python ignores SIGPIPE, a pool worker SIGINT, and exec would hand that on."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue


def _let_go_of_standard_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _wait(child: int, life: int, wake: int) -> int | None:
    """The exit code, negative for a signal; None when the worker is gone or wants an end."""
    poll = select.poll()
    poll.register(life, select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if life in ready:
            return None
        if any(number != signal.SIGCHLD for number in os.read(wake, 4096)):
            return None
        code = _reap(child)
        if code is not None:
            return code


def _reap(child: int) -> int | None:
    """Collect all that ended, adopted orphans included; the child's code when it was among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = os.waitstatus_to_exitcode(status)


def _kill_all(child: int) -> None:
    """Kill the group and, again and again, whatever descends from the guard, until nothing does."""
    until = time.monotonic() + KILL_SECONDS
    while time.monotonic() < until:
        _signal_group(child)
        for pid in _descendants(os.getpid()):
            _signal(pid)
        _reap(child)
        if not _has_children():
            return
        time.sleep(0.002)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _signal_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _signal(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _descendants(root: int) -> list[int]:
    """All processes below `root`, from /proc; none where there is no /proc."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found, open_ends = [], [root]
    while open_ends:
        below = children.get(open_ends.pop(), [])
        found += below
        open_ends += below
    return found


def _parents() -> list[tuple[int, int]]:
    pairs = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The command's name may hold blanks and brackets; state and parent follow the last bracket.
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            pairs.append((int(name), int(fields[1])))
    return pairs


if __name__ == "__main__":
    main()
