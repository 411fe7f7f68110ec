"""A separate machine for a worker: a network namespace, a home, a cache, and folders of others that it cannot see.

What it needs (root, `ip`, the right to make namespaces) is not everywhere: `needs_namespaces` skips the test then.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.fixtures.project import FIXLOOP, environment

HIDING: Final = 'while [ "$1" != -- ]; do mount -t tmpfs none "$1" || exit 1; shift; done; shift; exec "$@"'


@dataclass
class Machine:
    """One network namespace, linked to the host by its own cable."""

    name: str
    folder: Path
    hidden: tuple[Path, ...]
    """Folders that appear empty from here."""
    own_host: bool = False
    """Its own host name and process ids, too: no other machine can see that its processes are gone."""

    _started: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def worker(self, url: str, *words: str) -> None:
        """`fixloop worker WORDS`, until the machine is killed."""
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        variables = {
            "FIXLOOP_STATE_URL": url,
            "FIXLOOP_LOG_LEVEL": "INFO",
            "TMPDIR": str(self.folder / "tmp"),
        }
        with (self.folder / "log").open("ab") as output:
            process = subprocess.Popen(
                [
                    *self._inside(),
                    "sh",
                    "-c",
                    HIDING,
                    "sh",
                    *map(str, self.hidden),
                    "--",
                    FIXLOOP,
                    "worker",
                    *words,
                ],
                env=environment(self.home, variables),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self._started.append(process)

    def kill(self) -> None:
        """Every process on it ends at once."""
        for pid in _said("ip", "netns", "pids", self.name).split():
            # What the ones before held with it is gone already: a guard takes its namespace along.
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        for process in self._started:
            process.wait(60)

    def _inside(self) -> Sequence[str]:
        entered = ("ip", "netns", "exec", self.name)
        if not self.own_host:
            return entered
        return (*entered, "unshare", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child")


def needs_namespaces() -> None:
    """Skip the test where no network namespace can be made."""
    if os.geteuid() != 0:
        pytest.skip("only root may make network namespaces")
    for program in ("ip", "unshare"):
        if shutil.which(program) is None:
            pytest.skip(f"`{program}` is not on the PATH")


@contextmanager
def machines(
    folder: Path, hidden: Path, *, own_hosts: bool = False
) -> Iterator[tuple[str, Machine, Machine]]:
    """
    The host's address and two machines that reach it, and whose files neither sees of the other.

    Args:
        hidden: a folder of the host that neither sees.
    """
    tag, network = f"fx{os.getpid()}", f"10.213.{os.getpid() % 250}"
    places = [folder / "first", folder / "second"]
    made = [
        Machine(f"{tag}{letter}", place, (hidden, other), own_hosts)
        for letter, place, other in zip("ab", places, reversed(places), strict=True)
    ]
    try:
        for number, machine in enumerate(made):
            machine.home.mkdir(parents=True)
            _connect(machine, f"{network}.{4 * number + 1}", f"{network}.{4 * number + 2}")
        yield f"{network}.1", made[0], made[1]
    finally:
        for machine in made:
            _remove(machine)


def _connect(machine: Machine, here: str, there: str) -> None:
    created = subprocess.run(
        ["ip", "netns", "add", machine.name], capture_output=True, text=True, check=False
    )
    if created.returncode:
        pytest.skip(f"no network namespace can be made here: {created.stderr.strip()}")
    outer, inner = f"{machine.name}0", f"{machine.name}1"
    _said("ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", machine.name)
    _said("ip", "address", "add", f"{here}/30", "dev", outer)
    _said("ip", "link", "set", outer, "up")
    for words in (
        ("address", "add", f"{there}/30", "dev", inner),
        ("link", "set", inner, "up"),
        ("link", "set", "lo", "up"),
        ("route", "add", "default", "via", here),
    ):
        _said("ip", "-n", machine.name, *words)


def _remove(machine: Machine) -> None:
    exists = (
        subprocess.run(["ip", "netns", "pids", machine.name], capture_output=True, check=False).returncode
        == 0
    )
    if exists:
        machine.kill()
        _said("ip", "netns", "delete", machine.name)


def _said(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
