"""A file system that an error makes read-only in mid-run, under project, cache and the embedded Redis."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.project import FIXLOOP, RIGHT, Project, environment, until

pytestmark = pytest.mark.slow

# In a separate mount namespace: whatever ends the test, its mounts end with this shell.
HOLD = 'mkdir -p "$1" && mount -o loop,errors=remount-ro "$0" "$1" && findmnt -no SOURCE "$1" && read -r _'


class Disk:
    """An ext4 in a file, mounted for those that `within` runs."""

    def __init__(self, folder: Path) -> None:
        self._image, self.place = folder / "image", folder / "disk"
        with self._image.open("wb") as file:
            file.truncate(300_000_000)
        subprocess.run(["mkfs.ext4", "-q", "-F", self._image], check=True)
        self._holder: subprocess.Popen[str] | None = None
        self.mount()

    def mount(self) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", HOLD, self._image, self.place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        self._device = Path(self._holder.stdout.readline().strip()).name
        if not self._device:
            self.unmount()
            pytest.skip("nothing can be mounted here")

    def within(self, *words: str | Path) -> list[str]:
        """A command as run in the namespace with the disk."""
        assert self._holder is not None
        return ["nsenter", "-t", str(self._holder.pid), "-m", "--", *map(str, words)]

    def fail(self) -> None:
        """What the kernel does with a disk on which it finds an error."""
        Path(f"/sys/fs/ext4/{self._device}/trigger_fs_error").write_text("1")

    def unmount(self) -> None:
        """Return when it is no longer in use."""
        if self._holder is not None:
            self._holder.communicate()
            self._holder = None
            until(lambda: not Path(f"/sys/fs/ext4/{self._device}").exists(), what="the end of all who use it")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if os.getuid() or not all(map(shutil.which, ("mkfs.ext4", "nsenter", "unshare", "findmnt"))):
        pytest.skip("needs root, mkfs.ext4 and util-linux")
    own = Disk(tmp_path)
    try:
        yield own
    finally:
        own.unmount()


@pytest.mark.proves("S30")
def test_a_run_on_a_disk_that_becomes_read_only_ends_in_a_sentence_and_continues_later(
    disk: Disk, tmp_path: Path
) -> None:
    begun, go_on = tmp_path / "begun", tmp_path / "go on"
    wait = f"touch '{begun}'; while [ ! -e '{go_on}' ]; do sleep 0.05; done; python check.py $0"
    toml = f'[specialist.test-runner]\ncommand = ["sh", "-c", "{wait}", "{{junit}}"]\n'
    Project(tmp_path / "shop", toml=toml, calc=RIGHT)
    subprocess.run(disk.within("mv", tmp_path / "shop", disk.place), check=True)
    # The project itself is on the disk; fixloop has to handle its own writes.
    subprocess.run(disk.within("sync", "-f", disk.place), check=True)

    def fixloop(*words: str) -> subprocess.Popen[str]:
        own = {"FIXLOOP_KEEP": "0", "FIXLOOP_SANDBOX_WRITABLE": str(tmp_path)}
        variables = environment(disk.place / "home") | own
        entered = disk.within("env", "-C", disk.place / "shop", FIXLOOP, *words)
        return subprocess.Popen(
            entered, env=variables, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    running = fixloop("run", ".", "--issue", "1")
    until(begun.exists)
    disk.fail()
    go_on.touch()
    _, said = running.communicate(timeout=400)
    disk.unmount()
    disk.mount()
    resumed = fixloop("resume", "1")
    out, err = resumed.communicate(timeout=400)

    assert running.returncode == 4
    assert "Read-only file system; mount it writable, then run `fixloop resume`" in said.splitlines()[-1]
    assert "Traceback" not in said
    assert resumed.returncode == 0, out + err
    assert "passed (1 specialist, 1 run" in out
