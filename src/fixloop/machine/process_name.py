"""Names a worker's process after its role, for `ps` and `top`, however the process was started."""

from contextlib import suppress
from pathlib import Path
from typing import Final

_NAMES: Final = {
    "supervise": "fixloop-worker",
    "work": "fixloop-work",
    "control": "fixloop-control",
    "sweep": "fixloop-sweep",
    "try": "fixloop-try",
    "keep": "fixloop-clock",
    "remind": "fixloop-remind",
}
"""By role; Linux keeps 15 bytes of a name."""
_ROLES: Final = {name: role for role, name in _NAMES.items()}


def name_after(role: str) -> None:
    """Name this process after its role, if the system supports names; forks inherit the name, programs do not."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(_NAMES[role])


def role_of(pid: int) -> str:
    """The role of a process of the application, such as `control`; empty for other and missing processes."""
    try:
        return _ROLES.get(Path(f"/proc/{pid}/comm").read_text().rstrip("\n"), "")
    except OSError:
        return ""
