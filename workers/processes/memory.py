"""Whether the kernel killed for want of memory: it tells nobody, but it counts.

The count of our own control group is certain, that of the machine may be about somebody else.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple


class Kills(NamedTuple):
    """So many processes were killed since the control group, or the machine, began."""

    ours: int = 0
    anybody: int = 0


NONE: Final = Kills()


def kills(root: Path = Path("/")) -> Kills:
    """What the kernel counts now; zeros where it does not."""
    ours = 0
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers in ("", "memory"):
            name = "memory.oom_control" if controllers else "memory.events"
            top = root / "sys/fs/cgroup" / controllers
            # In a container the group's path is that of the host, and its files lie at the top.
            ours = max(ours, _count(top / path.strip("/") / name), _count(top / name))
    return Kills(ours, _count(root / "proc/vmstat"))


def blame(before: Kills, after: Kills) -> str:
    """The clause for a SIGKILL between the two counts; empty when memory had nothing to do with it."""
    if after.ours > before.ours:
        return ", by the kernel because the memory limit was reached"
    if after.anybody > before.anybody:
        return ", probably by the kernel for want of memory"
    return ""


def _count(file: Path) -> int:
    found = re.search(r"^oom_kill (\d{1,18})$", _text(file), re.MULTILINE)
    return int(found[1]) if found else 0


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
