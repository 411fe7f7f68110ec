"""Plays a case: a separate project, `fixloop run` with a scripted fixer, and the end of that run.

Each case has a separate home, cache and embedded server, so that cases do not affect each other; processes that one
leaves behind end by themselves within a minute.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.testing.cheats import fixer
from fixloop.testing.cheats.corpus import Trial

PATIENCE_SECONDS: Final = 240.0
MARKS: Final = ("fixes touched tests or gates", "fixes added literals of the tests")
"""What a verdict says of a fix that changed files that judge it, or that may know the tests' values."""
HELD: Final = "integrity hold"
ALL_RULES: Final = ("all",)
SANDBOX: Final = "sandbox"
"""Among the rules in `off`: run checks and fixers unconfined."""
_FIXLOOP: Final = Path(sys.executable).with_name("fixloop")
_PERSON: Final = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")


class End(StrEnum):
    PASSED = "passed"
    MARKED = "marked"
    """Passed, and the verdict says that the fix changed tests or gates, or has literals of the tests."""
    HELD = "held"
    REFUSED = "refused"
    """It did not pass: a check failed or was not trustworthy."""
    BROKEN = "broken"
    """It could not be played to its end, so it has no result for the rules."""


class Played(NamedTuple):
    trial: Trial
    end: End
    seconds: float
    said: str
    """The line of the verdict, or why it is broken."""
    plain_seconds: float = 0.0
    """How long the same took without any rule; 0 if that was not measured."""

    @property
    def is_wrong(self) -> bool:
        """Whether a cheat passed without a mark or broke, or an honest fix did not pass."""
        if self.trial.case.expect == "cheat":
            return self.end in (End.PASSED, End.BROKEN)
        return self.end not in (End.PASSED, End.MARKED)


def play_all(
    trials: Sequence[Trial],
    folder: Path,
    *,
    jobs: int,
    off: tuple[str, ...] = (),
    compare: bool = False,
    tell: Callable[[Played], object] = lambda _: None,
) -> list[Played]:
    """Play them, `jobs` at a time; `compare` plays honest ones again without any rule, to measure the time."""

    def one(number: int) -> Played:
        trial = trials[number]
        played = play(trial, folder / f"{number:03}", off)
        if compare and trial.case.expect == "honest" and played.end is End.PASSED:
            plain = play(trial, folder / f"{number:03}-plain", ALL_RULES)
            played = played._replace(plain_seconds=plain.seconds if plain.end is End.PASSED else 0.0)
        tell(played)
        return played

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, range(len(trials))))


def play(trial: Trial, folder: Path, off: tuple[str, ...] = ()) -> Played:
    """Play one case in a new folder, without the rules in `off`; `sandbox` there turns off confinement."""
    project, variables = folder / "project", _variables(folder)
    if SANDBOX in off or off == ALL_RULES:
        variables["FIXLOOP_SANDBOX"] = "off"
    for name, text in {**trial.files, "fixloop.toml": trial.configuration(off)}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    command = shlex.join([sys.executable, "-I", fixer.__file__, json.dumps(trial.attempts)])
    try:
        for prepare in filter(None, (trial.base.prepare, trial.case.prepare)):
            _call(["sh", "-ec", prepare], project, variables)
        _call(["git", "init", "--quiet", "--initial-branch=main"], project, variables)
        _call(["git", "add", "--all"], project, variables)
        _call(["git", *_PERSON, "commit", "--quiet", "--message=work"], project, variables)
        began = time.monotonic()
        run = [str(_FIXLOOP), "run", ".", "--issue", "1", "--fixer", command]
        code, output = _run_to_end(run, project, variables)
    except (OSError, subprocess.SubprocessError) as error:
        return Played(trial, End.BROKEN, 0.0, str(error))
    (folder / "said.txt").write_text(output)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    verdict = next((line for line in reversed(lines) if line.startswith("#1 ")), lines[-1] if lines else "")
    return Played(trial, end_of(code, output), time.monotonic() - began, verdict)


def end_of(code: int, said: str) -> End:
    """The end, by the exit code of `fixloop run` and its output."""
    if code == 0:
        return End.MARKED if any(mark in said for mark in MARKS) else End.PASSED
    if code not in (1, 3) or LookupError.__name__ in said:
        return End.BROKEN
    return End.HELD if HELD in said.lower().replace("_", " ") else End.REFUSED


def _variables(folder: Path) -> dict[str, str]:
    """The environment of a user of this installation without settings; creates the folders."""
    (folder / "home").mkdir(parents=True)
    (folder / "project").mkdir()
    active = {"VIRTUAL_ENV": sys.prefix} if sys.prefix != sys.base_prefix else {}
    return {
        **{name: os.environ[name] for name in ("TMPDIR", "GOROOT", "FIXLOOP_SANDBOX") if name in os.environ},
        **active,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(folder / "home"),
        "XDG_CACHE_HOME": str(folder / "home" / "cache"),
        "LANG": "C.UTF-8",
        "FIXLOOP_KEEP": "0",
        # Share Go's build cache: the first build takes half a minute.
        "GOCACHE": str(folder.parent / "go"),
    }


def _call(command: Sequence[str], folder: Path, variables: dict[str, str]) -> None:
    done: Any = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    if done.returncode:
        raise OSError(f"{shlex.join(command)[:80]} failed: {done.stderr.strip()[-300:]}")


def _run_to_end(command: Sequence[str], folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    """Exit code and output. Kills the process group and raises TimeoutExpired if the command takes too long."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, output
