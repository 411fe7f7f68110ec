"""The guard: runs one command and ensures that none of its processes outlives the worker.

A separate program, started as `python -I -S guard_program.py MODE LIFE STATUS RULES ARGV…`, standard library only.
MODE `namespace` runs the command in a PID namespace with a `/proc` to match: nothing in there can signal the guard,
and when the namespace's first process ends, the kernel kills all others. MODE `watched` needs nothing of the kernel:
the guard is a subreaper and kills what descends from it; a command that kills its guard is left to the worker.
RULES are those of `landlock.py`; they confine the command and not the guard, and none leave it all that the user may.
A line `tmp PATH` among them names a folder that a namespace lays over `/tmp`, and `closed PATH` one that it empties;
`overlay PLACE LOWER OWN`, separated by tabs, lays LOWER over PLACE, where what is written goes to OWN.

LIFE is a pipe from the worker: a byte is a question, its end means that the worker is gone or wants an end, and
everything the command started is killed. STATUS gets a line for each thing that happens: `unavailable REASON` (no
namespace; nothing was started), `unconfined REASON` (the rules do not hold here; nothing was started), `starting`,
`unstartable ERRNO`, `started PID` (0 in a namespace), `alive` for each question, `ending` when it begins to kill, and
last `exited N` or `signalled N`.
"""

# The module `signal` makes enums of all numbers, which takes a fourth of the time that the guard needs to start.
import _signal as signal  # type: ignore[import-not-found]
import ctypes
import errno
import os
import select
import sys
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_SLAVE = 0x2, 0x4, 0x8, 0x1000, 0x4000, 0x80000
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
OOM_SCORE = "500"
"""As if half of the machine's memory were used in addition; 1000 would mean always first."""
KILL_SECONDS = 5.0
"""A process in an uninterruptible wait does not die; it is not waited for any longer."""


def main() -> None:
    """Run the command, report its end, kill its leftovers."""
    mode, life, status, rules = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    os.set_inheritable(life, False)
    os.set_inheritable(status, False)
    _let_the_kernel_kill_it_first()
    is_first = mode == "namespace"
    if is_first:
        _become_first_process(life, status)
        _close(rules)
    else:
        set_subreaper(on=True)
    # From here on, no process of the same user can open the guard's pipes through /proc.
    prctl(PR_SET_DUMPABLE, 0)
    # Without a handler, a namespace's first process receives no signal from inside.
    wake = _wake_on(signal.SIGCHLD) if is_first else _wake_on(signal.SIGCHLD, *ENDING)
    try:
        rules = _with_overlays(rules, may_mount=is_first)
        confine = _confining(_with_own_tmp(rules) if is_first else rules)
    except OSError as told:
        _report(status, f"unconfined {told.strerror}")
        return
    _report(status, "starting")
    child, error = _start(sys.argv[5:], confine)
    _release_standard_streams()
    if child == 0:
        _report(status, f"unstartable {error}")
        return
    _report(status, f"started {0 if is_first else child}")
    code = _wait(child, life, status, wake)
    _report(status, "ending")
    if not is_first:
        end_all(lambda: descendants(os.getpid()), group=child, are_left=_has_children)
    if code is not None:
        _report(status, f"signalled {-code}" if code < 0 else f"exited {code}")


def _let_the_kernel_kill_it_first() -> None:
    """When memory runs out, the kernel shall choose the command, and not Redis or a worker."""
    try:
        with open("/proc/self/oom_score_adj", "w") as place:
            place.write(OOM_SCORE)
    except OSError:
        return  # not Linux, or it is already chosen earlier than this


def _report(status: int, word: str) -> None:
    try:
        os.write(status, f"{word}\n".encode())
    except BrokenPipeError:
        # The worker is gone, but the processes still have to be killed.
        return


def _become_first_process(life: int, status: int) -> None:
    """Return as the first process of a PID namespace; the original process waits for it and ends with it."""
    try:
        try:
            _call("unshare", CLONE_NEWPID | CLONE_NEWNS)
        except PermissionError:
            # Without root this requires a user namespace, in which users keep their ids.
            user, group = os.geteuid(), os.getegid()
            _call("unshare", CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUSER)
            maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
            for file, text in maps.items():
                with open(f"/proc/self/{file}", "w") as place:
                    place.write(text)
        _call("mount", b"none", b"/", None, MS_REC | MS_SLAVE, None)
    except OSError as error:
        _exit_unavailable(status, f"unshare: {error.strerror}")
    tie, held = os.pipe()
    first = os.fork()
    if first:
        os.close(status)
        os.close(tie)
        _release_standard_streams()
        _follow(first, life)
    os.close(held)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A parent that has already died has closed the other end.
    if select.select([tie], [], [], 0)[0]:
        os._exit(1)
    try:
        _call("mount", b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)
    except OSError as error:
        _exit_unavailable(status, f"mount /proc: {error.strerror}")


def _close(rules: str) -> None:
    """Lay nothing over the places of sockets, and new terminals over others': rules do not keep these apart."""
    for path in [os.fsencode(line[7:]) for line in rules.splitlines() if line.startswith("closed ")]:
        _lay(path, b"tmpfs" if os.path.isdir(path) else None)
    if rules:
        _lay(b"/dev/pts", b"devpts", b"ptmxmode=0666")


def _lay(path: bytes, kind: bytes | None, data: bytes | None = None) -> None:
    try:
        _call("mount", b"/dev/null", path, kind, MS_NOSUID if kind else MS_BIND, data)
    except OSError:
        return


def _with_overlays(rules: str, *, may_mount: bool) -> str:
    """Mount the overlays that the rules name; returns the remaining rules. OSError: one cannot be mounted."""
    lines = rules.splitlines()
    for line in [line for line in lines if line.startswith("overlay ")]:
        if not may_mount:
            raise OSError(errno.EPERM, "an overlay needs a namespace")
        place, lower, own = map(os.fsencode, line.partition(" ")[2].split("\t"))
        data = b"userxattr,index=off,lowerdir=%b,upperdir=%b/upper,workdir=%b/work" % (lower, own, own)
        _call("mount", b"overlay", place, b"overlay", MS_NOSUID | MS_NODEV, data)
        lines.remove(line)
    return "\n".join(lines)


def _with_own_tmp(rules: str) -> str:
    """Mount the folder that the rules name over `/tmp`; returns the remaining rules."""
    named = [line for line in rules.splitlines() if line.startswith("tmp ")]
    for line in named:
        try:
            _call("mount", os.fsencode(line[4:]), b"/tmp", None, MS_BIND, None)
        except OSError:
            return rules
        os.environ["TMPDIR"] = "/tmp"
        # Paths hidden below it are no longer there.
        left = [each for each in rules.splitlines() if " /tmp/" not in each]
        rules = "\n".join((*left, "writable /tmp"))
    return rules


def _call(name: str, *arguments: object) -> None:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _exit_unavailable(status: int, reason: str) -> None:
    _report(status, f"unavailable {reason}")
    os._exit(0)


def _follow(first: int, life: int) -> None:
    """Outside the namespace: end it when the worker is gone or requests it, and end with it."""
    wake = _wake_on(signal.SIGCHLD, *ENDING)
    poll = select.poll()
    poll.register(life, 0)  # its end is always told; the questions are for the one inside
    poll.register(wake, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        asked = wake in ready and any(number != signal.SIGCHLD for number in os.read(wake, 4096))
        if life in ready or asked:
            os.kill(first, signal.SIGKILL)
            os.waitpid(first, 0)
            os._exit(0)
        if os.waitpid(first, os.WNOHANG)[0]:
            os._exit(0)


def prctl(option: int, value: int) -> None:
    """`prctl(2)`, on Linux only: on other systems, processes that leave the group are not caught."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def set_subreaper(*, on: bool) -> None:
    """Whether this process becomes the parent of its descendants' orphans."""
    prctl(PR_SET_CHILD_SUBREAPER, int(on))


def _wake_on(*numbers: int) -> int:
    """A pipe that becomes readable with each of these signals."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return readable


def _confining(rules: str) -> Callable[[], None]:
    """A step that confines the command's process before exec; everything that can fail is done here."""
    if not rules:
        return lambda: None
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    landlock = __import__("landlock")
    made = landlock.ruleset(rules)
    return lambda: landlock.enforce(made, rules)


def _start(argv: list[str], confine: Callable[[], None]) -> tuple[int, int]:
    """The child's pid, or 0 and the errno of the failed start."""
    told, tell = os.pipe()
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:
                os._exit(1)
            # As in a new shell: Python ignores SIGPIPE, a pool worker SIGINT, and exec would inherit that.
            signal.set_wakeup_fd(-1)
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                try:
                    signal.signal(number, signal.SIG_DFL)
                except (OSError, ValueError):
                    continue
            confine()
            os.execvp(argv[0], argv)
        except OSError as error:
            os.write(tell, str(error.errno or errno.ENOENT).encode())
        finally:
            os._exit(127)
    os.close(tell)
    said = os.read(told, 64)
    os.close(told)
    if not said:
        return child, 0
    os.waitpid(child, 0)
    return 0, int(said)


def _release_standard_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _wait(child: int, life: int, status: int, wake: int) -> int | None:
    """The exit code, negative for a signal; None if the worker is gone or requests an end."""
    poll = select.poll()
    poll.register(life, select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        if life in ready:
            if not os.read(life, 4096):
                return None
            _report(status, "alive")
        if wake in ready:
            if any(number != signal.SIGCHLD for number in os.read(wake, 4096)):
                return None
            # All ended children are collected, including adopted orphans.
            code = None
            while True:
                try:
                    pid, ended = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    break
                if pid == 0:
                    break
                if pid == child:
                    code = os.waitstatus_to_exitcode(ended)
            if code is not None:
                return code


def end_all(
    alive: Callable[[], list[int]], *, group: int = 0, are_left: Callable[[], object] = lambda: False
) -> None:
    """
    Kill the processes that `alive` returns, and a group, repeatedly until none is left, for at most five seconds.

    `are_left` is called when `alive` returns none, because it may miss processes that fork while it looks.
    """
    before: list[int] = []
    until = time.monotonic() + KILL_SECONDS
    while time.monotonic() < until:
        if group:
            _signal(os.killpg, group)
        found = alive()
        # Newest first, because a process that keeps forking is there.
        for pid in reversed(found):
            _signal(os.kill, pid)
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
        if not found and not are_left():
            return
        if found == before:
            time.sleep(0.002)
        before = found


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _signal(send: Callable[[int, int], None], target: int) -> None:
    try:
        send(target, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def descendants(root: int) -> list[int]:
    """All processes below `root` in /proc, zombies included; none without /proc."""
    found, open_ends = [], [root]
    while open_ends:
        below = children(open_ends.pop())
        found += below
        open_ends += below
    return found


def children(pid: int) -> list[int]:
    """
    The processes that `pid` started or inherited, zombies included; none without /proc.

    The kernel keeps this list for each thread. Reading all of /proc takes too long if there are thousands of zombies: a
    process that keeps forking would stay ahead.
    """
    found: list[int] = []
    for thread in _entries(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
        except FileNotFoundError:
            if not os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children"):
                # A kernel without these lists (CONFIG_PROC_CHILDREN).
                return [int(name) for name in _entries("/proc") if stat_fields(name)[1:2] == [b"%d" % pid]]
        except OSError:
            continue
    return found


def _entries(directory: str) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if name.isdigit()]
    except OSError:
        return []


def is_running(pid: int) -> bool:
    """Whether the process exists and has not ended; a zombie has ended, and its children have a new parent."""
    fields = stat_fields(str(pid))
    return bool(fields) and fields[0] not in (b"Z", b"X")


def stat_fields(pid: str) -> list[bytes]:
    """State, parent and the following fields; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command's name may contain spaces and brackets; state and parent follow the last bracket.
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


if __name__ == "__main__":
    main()
