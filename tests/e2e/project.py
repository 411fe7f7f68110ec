"""A small project of a test's own, and the program `fixloop` as a user starts it: in a clean environment.

Owns every process and folder it makes, and ends and removes them. The project's one check takes a tenth of a second.
"""

import atexit
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from tests.redis_server import RedisServer

T = TypeVar("T")

FIXLOOP: Final = Path(sys.executable).with_name("fixloop")
LIMIT_SECONDS: Final = 120.0

CALC: Final = "def add(a, b):\n    return a - b\n"
"""Wrong; `MEND` makes it right."""
RIGHT: Final = CALC.replace("-", "+")
MEND: Final = "sed -i s/-/+/ calc.py"
TEST: Final = "import calc\n\n\ndef adds():\n    assert calc.add(1, 2) == 3, '1 + 2 is not 3'\n"
CHECK: Final = '''\
"""Runs the functions of test_calc.py and writes what a test runner would."""
import sys, test_calc
cases = ""
wrong = 0
for name, test in vars(test_calc).items():
    if callable(test):
        try:
            test()
            found = ""
        except AssertionError as error:
            wrong += 1
            found = '<failure type="AssertionError" message="%s">calc.py:2: %s</failure>' % (error, error)
        cases += '<testcase classname="test_calc" name="%s">%s</testcase>' % (name, found)
report = '<testsuite name="s" tests="%d" failures="%d">%s</testsuite>' % (cases.count("<testcase"), wrong, cases)
open(sys.argv[1], "w").write(report)
sys.exit(wrong > 0)
'''
SECRETS: Final = {
    "FIXLOOP_ALLOW_ENV": "SHOP_TOKEN, SHOP_URL",
    "SHOP_TOKEN": "tok-3141592653",
    "SHOP_URL": "https://me:hunter22@shop.example/",
    "OTHER_TOKEN": "tok-2718281828",
}
"""What the worker's operator has in the environment."""
TOML: Final = '[specialist.test-runner]\ncommand = "python check.py {junit}"\n'


@dataclass(frozen=True)
class Told:
    """What one call of the program said, and how long it took."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def document(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)

    @property
    def refusal(self) -> str:
        """The one sentence on stderr; fails the test where there is more, or less."""
        assert self.err.startswith("fixloop: "), self.err
        assert self.err.count("\n") == 1, self.err
        assert self.out == ""
        return self.err.removeprefix("fixloop: ").strip()


@dataclass
class Project:
    """A folder with a wrong `calc.py`, its check and a `fixloop.toml`; a git repository unless told otherwise."""

    folder: Path
    toml: str = TOML
    calc: str = CALC
    files: Mapping[str, str] = field(default_factory=dict)
    is_git: bool = True
    variables: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        given = {"calc.py": self.calc, "test_calc.py": TEST, "check.py": CHECK, "fixloop.toml": self.toml}
        for name, text in {**given, **self.files}.items():
            self.write(name, text)
        if self.is_git:
            self.git("init", "--quiet", "--initial-branch=main")
            self.commit()

    def write(self, name: str, text: str) -> None:
        """Write one file; an empty text removes it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text:
            path.write_text(text)
        else:
            path.unlink(missing_ok=True)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def git(self, *words: str) -> str:
        """Git in the project; returns what it printed."""
        person = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]
        done = subprocess.run(
            ["git", *person, *words],
            cwd=self.folder,
            env=environment(self.home),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def commit(self) -> str:
        """Commit all there is; returns the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=work")
        return self.git("rev-parse", "HEAD").strip()

    @property
    def home(self) -> Path:
        """The user's home, next to the project; the cache lies in it."""
        return self.folder.parent / "home"

    def fixloop(self, *words: str, at: Path | None = None, stdin: str = "", **variables: str) -> Told:
        """`fixloop WORDS` in the project's folder, to its end."""
        told = environment(self.home, {**self.variables, **variables})
        return _program().call(words, at or self.folder, told, stdin)

    def start(self, *words: str, at: Path | None = None, **variables: str) -> "subprocess.Popen[str]":
        """`fixloop WORDS` as a program of its own, left running."""
        return subprocess.Popen(
            [str(FIXLOOP), *words],
            cwd=at or self.folder,
            env=environment(self.home, {**self.variables, **variables}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, issue: int = 1, at: Path | None = None, **variables: str) -> Told:
        """`fixloop run . --issue N WORDS`."""
        return self.fixloop("run", ".", "--issue", str(issue), *words, at=at, **variables)

    def hand_in(self, *words: str, issue: int = 1) -> Told:
        """`fixloop enqueue --issue N WORDS`, then `fixloop watch N` to its end or first wait."""
        handed_in = self.fixloop("enqueue", "--issue", str(issue), *words)
        assert handed_in.code == 0, handed_in.err
        return self.fixloop("watch", str(issue))

    def status(self, issue: int = 1, *, at: Path | None = None) -> dict[str, Any]:
        """The document of `status --json`."""
        told = self.fixloop("status", str(issue), "--json", at=at)
        assert told.code == 0, told.err
        found: dict[str, Any] = told.document
        return found

    def log(self, issue: int = 1) -> str:
        """The whole history as text."""
        told = self.fixloop("log", str(issue), "--all")
        assert told.code == 0, told.err
        return told.out


class _Program:
    """The loaded program; see `forked_program`."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fixloop-"))
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forked_program.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(self._folder),
            start_new_session=True,
        )
        atexit.register(self.end)

    def call(self, words: Iterable[str], directory: Path, variables: Mapping[str, str], stdin: str) -> Told:
        """One call, to its end; one that does not end is killed, and the test fails."""
        assert self._server.stdin is not None
        files = [self._folder / name for name in ("stdin", "stdout", "stderr")]
        for file, text in zip(files, (stdin, "", ""), strict=True):
            file.unlink(missing_ok=True)
            file.write_text(text)
        asked = {"words": list(words), "directory": str(directory), "variables": dict(variables)}
        started = time.monotonic()
        self._server.stdin.write(json.dumps(asked | {"files": list(map(str, files))}).encode() + b"\n")
        self._server.stdin.flush()
        code = self._answer(files)
        return Told(code, files[1].read_text(), files[2].read_text(), time.monotonic() - started)

    def _answer(self, files: Sequence[Path]) -> int:
        assert self._server.stdout is not None
        if not select.select([self._server.stdout], [], [], LIMIT_SECONDS)[0]:
            _program.cache_clear()
            os.killpg(self._server.pid, signal.SIGKILL)
            said = [file.read_text()[-3000:] for file in files[1:]]
            pytest.fail(f"it did not end within {LIMIT_SECONDS:g} s; it said {said}")
        return int(self._server.stdout.readline())

    def end(self) -> None:
        """No more calls."""
        self._server.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)


@lru_cache(maxsize=1)
def _program() -> _Program:
    return _Program()


def environment(home: Path, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a new user's shell has with the environment activated: nothing of this test run's own settings."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": f"{FIXLOOP.parent}{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": str(FIXLOOP.parent.parent),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "LANG": "C.UTF-8",
        "FIXLOOP_KEEP": os.environ.get("FIXLOOP_KEEP", "0"),
        # The sources of a mutant are judged, not those that are installed.
        **({"PYTHONPATH": os.environ["MUTANT_SOURCES"]} if "MUTANT_SOURCES" in os.environ else {}),
        **(variables or {}),
    }


def completed(process: "subprocess.Popen[str]", stdin: str = "") -> tuple[str, str]:
    """What a program printed until its end; one that does not end is killed, and the test fails."""
    try:
        return process.communicate(stdin, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"it did not end within {LIMIT_SECONDS:g} s; it said {out[-3000:]} {err[-3000:]}")


def until(ask: Callable[[], T], *, seconds: float = 90.0, what: str = "it") -> T:
    """The first true answer of `ask`; the test fails when there is none in time."""
    give_up = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > give_up:
            pytest.fail(f"{what} did not come true within {seconds:g} s; the last answer was {answer!r}")
        time.sleep(0.05)


def processes_of(folder: Path) -> list[str]:
    """The command lines of all processes that have to do with `folder`: by environment, arguments or directory."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("only /proc tells whose a process is")
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            command = (each / "cmdline").read_bytes()
            traces = (each / "environ").read_bytes() + command + os.fsencode(os.readlink(each / "cwd"))
        except OSError:
            continue
        if os.fsencode(folder) in traces:
            found.append(f"{each.name}: {os.fsdecode(command).replace(chr(0), ' ')[:300]}")
    return found


@contextmanager
def started(
    *words: str, at: Path, variables: Mapping[str, str], log: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """`fixloop WORDS` in the background, told to end at the end of the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(FIXLOOP), *words],
            cwd=at,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def worker(
    home: Path, url: str, *words: str, log: Path, **further: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """`fixloop worker` against a Redis of the test's own."""
    variables = environment(home, {"FIXLOOP_STATE_URL": url, **further})
    with started("worker", *words, at=home, variables=variables, log=log) as process:
        yield process


@dataclass(frozen=True)
class Host:
    """A Redis of the tests' own and one worker for all projects in a folder."""

    folder: Path
    url: str

    def project(self, name: str, **further: Any) -> Project:
        """A project whose user knows this Redis; in a folder of its own, also when a fixture is made twice."""
        taken = len(list(self.folder.glob(f"{name}*")))
        folder = self.folder / (f"{name}-{taken + 1}" if taken else name)
        return Project(folder, variables={"FIXLOOP_STATE_URL": self.url}, **further)


@contextmanager
def hosted(folder: Path) -> Iterator[Host]:
    """Redis and a worker with two processes for work, until the end of the block."""
    server = RedisServer().start()
    try:
        with worker(folder / "home", server.url, "-c", "2", log=folder / "worker.log", **SECRETS):
            yield Host(folder, server.url)
    finally:
        server.end()
