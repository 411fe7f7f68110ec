"""A worker's health: one small file on its machine, written by its supervisor and read by `fixloop worker --check`.

Owns the file's place and format, and the definition of health. Queries no process and no broker: loading Celery every
few seconds for a health check would cost more than some of the work. Times are from the machine's monotonic clock.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from fixloop.files.atomic import write_whole
from fixloop.files.folders import make_cache
from fixloop.machine.owner import is_dead_here, machine

SILENT_SECONDS: Final = 10.0
"""A serving process reports every second; a Redis that is away for longer than this has another exit code."""
_LONGEST_BYTES: Final = 100_000
_NAMES: Final = {"work": "the work processes", "control": "control", "sweep": "the sweeper"}


@dataclass(frozen=True)
class Part:
    """A supervised process and its forks."""

    role: str
    """`work`, `control` or `sweep`."""
    wanted: int = 1
    """The required number of processes."""
    serving: int = 0
    """The number of processes in its last report."""
    heard_at: float | None = None
    """The time of its last report; None: none since its start."""
    deaths: int = 0
    """How often it ended since the worker started."""
    last_death: str = ""
    """Why it last ended."""


@dataclass(frozen=True)
class Health:
    """What a supervisor knows about itself and its processes."""

    owner: str
    """The supervisor's identity, see `fixloop.machine.owner`."""
    redis: str
    """The place of its state, without the password."""
    queue: str = ""
    """The workflow that it serves exclusively; empty: it serves all."""
    at: float = 0.0
    """When this was written."""
    stopping: bool = False
    parts: tuple[Part, ...] = ()

    @property
    def pid(self) -> int:
        return int(self.owner.split("/")[-2])


def health_file(cache: Path, owner: str) -> Path:
    """The file of the supervisor `owner`; each container that shares a cache has its own file."""
    return cache / "workers" / f"{sha256(owner.encode()).hexdigest()[:16]}.json"


def note(cache: Path, health: Health) -> None:
    """Write `health` atomically."""
    target = health_file(cache, health.owner)
    make_cache(cache)
    target.parent.mkdir(mode=0o700, exist_ok=True)
    write_whole(target, json.dumps(asdict(health)).encode(), mode=0o600)


def forget(cache: Path, owner: str) -> None:
    with suppress(OSError):
        health_file(cache, owner).unlink()


def healths(cache: Path) -> Iterator[Health]:
    """The healths of the supervisors that run on this machine; the files of dead ones are removed."""
    for file in sorted((cache / "workers").glob("*.json")):
        try:
            with file.open("rb") as opened:
                told = json.loads(opened.read(_LONGEST_BYTES))
            parts: Sequence[dict[str, object]] = told.pop("parts")
            known = Health(**told, parts=tuple(Part(**part) for part in parts))  # type: ignore[arg-type]
            is_its_own = known.pid and os.fspath(file) == os.fspath(health_file(cache, known.owner))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
            # Not written by a supervisor of this version.
            continue
        if not is_its_own or not known.owner.startswith(f"{machine()}/"):
            continue
        if is_dead_here(known.owner):
            forget(cache, known.owner)
        else:
            yield known


def problems(health: Health, now: float) -> list[str]:
    """A worker's problems at `now`, each as a clause; empty if it is healthy."""
    silent = now - health.at
    if silent > SILENT_SECONDS:
        return [f"its supervisor has said nothing for {silent:.0f} s"]
    if health.stopping:
        return ["it is ending"]
    found = []
    for part in health.parts:
        times = "once" if part.deaths == 1 else f"{part.deaths} times"
        died = f" (it ended {times}, at last {part.last_death})" if part.deaths else ""
        who = f"{_NAMES.get(part.role, part.role)} {'have' if part.role == 'work' else 'has'}"
        if part.heard_at is None:
            found.append(f"{who} not begun to serve{died}")
        elif now - part.heard_at > SILENT_SECONDS:
            found.append(f"{who} said nothing for {now - part.heard_at:.0f} s{died}")
        elif part.serving < part.wanted:
            found.append(f"only {part.serving} of {part.wanted} {part.role} processes run{died}")
    return found


def well(health: Health) -> str:
    """`worker 4711 is well: supervisor, 4 of 4 work processes, control and sweeper serve`."""
    work = next((part for part in health.parts if part.role == "work"), Part("work", 0))
    parts = f"supervisor, {work.serving} of {work.wanted} work processes, control and sweeper serve"
    return f"worker {health.pid} is well: {parts}"
