"""A run of the ledger project as a user starts it, and its result; with a death at a named point or moment."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from fixloop.cli import main
from fixloop.servers.embedded import embedded_redis
from tests.crash.ledger import ISSUE, make_ledger
from tests.fixtures.repositories import git

LONGEST_SECONDS: Final = 120.0

_STAMPS: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
_DURATIONS: Final = re.compile(
    r"\b\d+(\.\d+)? ?(ms|s|m|h|min|seconds?|minutes?|hours?)\b|\b\d\d:\d\d(:\d\d)?\b"
)


class Ended(NamedTuple):
    """A program that has ended."""

    code: int
    out: str
    err: str
    seconds: float


class Ending(NamedTuple):
    """A workflow's result without times: equal for equivalent runs."""

    messages: list[dict[str, Any]]
    statistics: dict[str, Any]
    status: dict[str, Any]
    commits: list[str]
    tree: str
    audited: int


class Scene:
    """One project with its cache, its journal and its processes, all below one folder."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        """`settings` are lines of its configuration that apply to all of it."""
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.cache = folder / "cache"
        # A separate folder: next to what is hidden from commands, Landlock lets them create no file.
        self.journal = folder / "journal/lines"
        self.journal.parent.mkdir(exist_ok=True)
        self.project = self._made(settings)
        self.reached = folder / "reached"
        self._files: dict[int, tuple[Path, Path]] = {}
        self.temporary = folder / "temporary"
        self.temporary.mkdir()

    def _made(self, settings: str) -> Path:
        return make_ledger(self.folder / "ledger", settings)

    def start(self, *words: str, crash_at: str = "") -> "subprocess.Popen[bytes]":
        """`fixloop WORDS` as the leader of its own session and group."""
        with self._said_to(words) as (out, err):
            process = subprocess.Popen(
                [sys.executable, "-m", "fixloop.cli", *words],
                cwd=self.project,
                env=self._environment() | (self._deadly(crash_at) if crash_at else {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            self._files[process.pid] = Path(out.name), Path(err.name)
            return process

    def call(self, *words: str, crash_at: str = "") -> Ended:
        """`fixloop WORDS`, to its end."""
        return self.ended(self.start(*words, crash_at=crash_at))

    def ended(self, process: "subprocess.Popen[bytes]") -> Ended:
        """Wait for a program that was started here."""
        since = time.monotonic()
        try:
            code = process.wait(LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise AssertionError(f"no end after {LONGEST_SECONDS:g} s: {self.said()}") from None
        out, err = (file.read_text() for file in self._files[process.pid])
        return Ended(code, out, err, time.monotonic() - since)

    def die_at(self, point: str, *words: str) -> None:
        """Run until the whole group is killed at `point`."""
        self.reached.unlink(missing_ok=True)
        ended = self.call(*words, crash_at=point)
        assert self.reached.exists(), f"{point} was never reached: {self.said()}"
        assert ended.code == -signal.SIGKILL

    def die_after(self, seconds: float, *words: str) -> bool:
        """Run and kill the whole group after a while; False when it had ended by then."""
        process = self.start(*words)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True
        return False

    def go_on(self) -> Ended:
        """`resume`, or `run` if nothing had been stored."""
        resumed = self.call(*self.resume_words)
        if resumed.code == 2 and "no workflow" in resumed.err:
            return self.call(*self.run_words)
        return resumed

    @property
    def resume_words(self) -> tuple[str, ...]:
        """How it continues."""
        return ("resume", str(ISSUE))

    @property
    def run_words(self) -> tuple[str, ...]:
        """How the project is run."""
        return ("run", ".", "--issue", str(ISSUE))

    def executions(self) -> list[str]:
        """Which checks and fixes began, in order."""
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [line for line in lines if not line.startswith("edited")]

    def survivors(self) -> list[str]:
        """Every process, in any session, that has this scene's folder in its command or its environment."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                command, state = (process / "cmdline").read_bytes(), (process / "stat").read_text()
                is_ours = os.fsencode(self.folder) in command + (process / "environ").read_bytes()
                if is_ours and state.rpartition(")")[2].split()[0] not in "ZX":
                    found.append(
                        f"{process.name}: {command.replace(bytes(1), b' ').decode(errors='replace')}"
                    )
        return found

    def said(self) -> str:
        """What was printed and logged, for a test that fails."""
        files = [*sorted(self.folder.glob("*.out")), *sorted(self.folder.glob("*.err"))]
        files += self.cache.glob("logs/*.log")
        return "\n".join(f"== {file.name}\n{file.read_text()[-3000:]}" for file in files)

    def ending(self) -> Ending:
        """The workflow's result, as the commands show it."""
        with self._one_redis():
            log = json.loads(self._said_by("log", str(ISSUE), "--json"))
            status = json.loads(self._said_by("status", str(ISSUE), "--json"))
            audited = main(["audit", "verify"])
        return Ending(
            messages=[timeless(entry) for entry in log["entries"]],
            statistics=timeless(log["statistics"]),
            status=timeless(status),
            commits=git(self.project, "log", "--format=%s", f"HEAD..fixloop/{ISSUE}").splitlines(),
            tree=git(self.project, "rev-parse", f"fixloop/{ISSUE}^{{tree}}"),
            audited=audited,
        )

    @contextlib.contextmanager
    def _said_to(self, words: Sequence[str]) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        name = f"{len(self._files)}-{words[0]}"
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        with out.open("wb") as out_file, err.open("wb") as err_file:
            yield out_file, err_file

    @contextlib.contextmanager
    def _one_redis(self) -> Iterator[None]:
        """One embedded Redis for several commands in this process, which costs a third of as many programs."""
        before = dict(os.environ)
        os.environ["FIXLOOP_CACHE_DIR"] = str(self.cache)
        try:
            with embedded_redis(self.project), chdir(self.project):
                yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def _said_by(self, *words: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert main(words) == 0
        return out.getvalue()

    def _environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        places = {
            "FIXLOOP_CACHE_DIR": self.cache,
            "LEDGER_JOURNAL": self.journal,
            "TMPDIR": self.temporary,
            "VIRTUAL_ENV": sys.prefix,
        }
        # Each execution is counted: none ahead of its phase, which a fix would make void.
        told = {"PATH": path, "FIXLOOP_AHEAD": "0"}
        return os.environ | told | {name: str(place) for name, place in places.items()}

    def _deadly(self, point: str) -> dict[str, str]:
        place = self.folder / "deadly"
        place.mkdir(exist_ok=True)
        shutil.copy(Path(__file__).with_name("deaths.py"), place / "sitecustomize.py")
        # A process that continues with the next step sends no hint of it.
        goes_on = {"FIXLOOP_GO_ON": "0"} if " hint/" in point else {}
        return goes_on | {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")])),
            "CRASH_AT": point,
            "CRASH_REACHED": str(self.reached),
            "CRASH_SPARES": str(os.getsid(0)),
        }


def timeless(found: Any) -> Any:
    """`found` without what differs between two equal runs: times, durations, and where they ran."""
    dropped = {"timestamp", "updated_at", "deadline", "duration_seconds"}
    if isinstance(found, dict):
        return {name: timeless(value) for name, value in found.items() if name not in dropped}
    if isinstance(found, list):
        return [timeless(value) for value in found]
    return _DURATIONS.sub("#", _STAMPS.sub("#", found)) if isinstance(found, str) else found
