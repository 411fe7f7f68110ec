"""A supervisor of two forked processes, for tests that must not fork themselves.

Started as `python -m tests.integration.forked_processes NAME`. Each process does what NAME says. The last line is what
the supervisor tells of the second one's end.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from workers.processes.child import Child
from workers.processes.start import Main, heeded


def _fails(role: str, options: Mapping[str, Any]) -> int:
    # A fork that fails raises the same.
    raise OSError("its own")


def _dies(role: str, options: Mapping[str, Any]) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def _leaves(role: str, options: Mapping[str, Any]) -> int:
    sys.exit(3)


def _tells(role: str, options: Mapping[str, Any]) -> int:
    """The state in which a process starts."""
    given = {name: value for name, value in os.environ.items() if name.startswith("FIXLOOP_")}
    signals = [str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    blocked = list(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    found = {"words": sys.argv[1:], "given": given, "signals": signals, "blocked": blocked, "open": opened()}
    # In one piece: its sibling writes to the same pipe.
    os.write(1, f"{json.dumps(found)}\n".encode())
    return 0


def opened() -> dict[str, str]:
    """The descriptors of this process, and what each of them is."""
    links = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    # Not the one that listed them.
    return {link.name: os.readlink(link) for link in links if link.is_symlink()}


MAINS: Final[dict[str, Main]] = {"fails": _fails, "dies": _dies, "leaves": _leaves, "tells": _tells}


def supervise(main: Main) -> str:
    """Why the second of two processes ended."""
    heeded()
    children = [Child(role, {"queues": ["own"]}) for role in ("first", "second")]
    for child in children:
        child.begin(main)
    for child in children:
        child.pass_on()
    give_up = time.monotonic() + 60
    while not all([child.part.deaths or child.tend() for child in children]):
        assert time.monotonic() < give_up, "it did not end"
        time.sleep(0.01)
    for child in children:
        child.cut()
    return children[1].part.last_death


if __name__ == "__main__":
    print(supervise(MAINS[sys.argv[1]]))
