"""Compares the results of a project's own commands with fixloop's verdicts."""

import re
import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from bench.checkout import Edit, Project, developer_environment, restore, timed

_FIXLOOP = Path(sys.executable).with_name("fixloop")
_MOST_SECONDS = 600
_WAITS = 3
"""The exit code of a run that found failures and has no fixer, or that could not run."""
_COUNTED = re.compile(r"\d+ failures? in ")
_VERDICT = re.compile(r"^#\d+ .*?\b((?:passed|waits for|not verified)\b.*)$", re.MULTILINE)
CHECK = ("check", "--again", "--base", "none")


class Answer(BaseModel):
    """The result of one command, or of several in sequence."""

    exit_code: int
    seconds: float
    verdict: str
    """fixloop's verdict on the workflow or check; otherwise the last line."""

    @property
    def green(self) -> bool:
        return self.exit_code == 0

    @property
    def found_failures(self) -> bool:
        """Whether a run waits for a fix (not for a person because a check cannot run), or a check counts failures."""
        is_waiting = self.exit_code == _WAITS and "waits for a fix" in self.verdict
        return is_waiting or (self.exit_code == 1 and _COUNTED.match(self.verdict) is not None)


class Configured(BaseModel):
    answers: list[Answer] = Field(default_factory=list)
    bugs: list[Answer] = Field(default_factory=list)

    @property
    def true(self) -> bool:
        """Whether it is green each time without a bug, and finds failures with each bug."""
        return all(each.green for each in self.answers) and all(each.found_failures for each in self.bugs)

    @property
    def seconds(self) -> float:
        return statistics.median(each.seconds for each in self.answers)


class Trial(BaseModel):
    """The results of everything tried on one project with one commit of fixloop."""

    commit: str
    day: str
    dry: Answer
    init: Answer
    raw: list[Answer] = Field(default_factory=list)
    raw_bugs: list[Answer] = Field(default_factory=list)
    unconfigured: Configured = Field(default_factory=Configured)
    configured: Configured = Field(default_factory=Configured)
    checked: Configured = Field(default_factory=Configured)
    """With `fixloop check`, without a configuration."""

    @property
    def raw_seconds(self) -> float:
        """The median of all of the project's own commands together."""
        return statistics.median(each.seconds for each in self.raw)

    @property
    def fair(self) -> bool:
        """Whether the project's own commands are green without a bug and red with each bug."""
        return all(each.green for each in self.raw) and not any(each.green for each in self.raw_bugs)

    @property
    def true(self) -> bool:
        ran = self.unconfigured.true and self.configured.true and self.checked.true
        return self.fair and ran and self.dry.green and self.init.green


def tried(
    project: Project, checkout: Path, *, runs: int, stamp: tuple[str, str], tell: Callable[[str], None]
) -> Trial:
    """Try everything, interleaved `runs` times, then each bug; `stamp` is fixloop's commit and the day.

    The checkout is restored afterwards. Each command's output is in `checkout`/../logs.
    """
    bench = Bench(project, checkout, tell)
    try:
        dry = bench.fixloop("dry", "run", ".", "--dry")
        trial = Trial(commit=stamp[0], day=stamp[1], dry=dry, init=bench.fixloop("init", "init"))
        written = bench.take_configuration()
        for turn in range(runs):
            trial.raw.append(bench.raw(f"raw-{turn}"))
            trial.unconfigured.answers.append(bench.run(f"run-{turn}", None))
            trial.configured.answers.append(bench.run(f"init-run-{turn}", written))
            trial.checked.answers.append(bench.run(f"check-{turn}", None, how=CHECK))
        for number, bug in enumerate(project.bugs, 1):
            bug.apply(checkout)
            trial.raw_bugs.append(bench.raw(f"raw-bug-{number}"))
            trial.unconfigured.bugs.append(bench.run(f"run-bug-{number}", None, bug))
            trial.configured.bugs.append(bench.run(f"init-run-bug-{number}", written, bug))
            trial.checked.bugs.append(bench.run(f"check-bug-{number}", None, bug, CHECK))
            restore(checkout)
    finally:
        restore(checkout)
    return trial


class Bench:
    """Runs commands in one checkout, with a new cache."""

    def __init__(self, project: Project, checkout: Path, tell: Callable[[str], None]) -> None:
        self._project, self._checkout, self._tell = project, checkout, tell
        self._logs = checkout.parent / "logs"
        self._cache = checkout.parent / "cache"
        for folder in (self._logs, self._cache):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()

    def raw(self, name: str) -> Answer:
        command = " && ".join(f"({each})" for each in self._project.commands)
        return self._run(name, ["sh", "-c", command], developer_environment(self._checkout))

    def run(
        self, name: str, configuration: str | None, bug: Edit | None = None, how: Sequence[str] = ("run", ".")
    ) -> Answer:
        """`fixloop run`, or `how`, with this fixloop.toml or without any, in a checkout changed only by `bug`."""
        restore(self._checkout)
        if bug:
            bug.apply(self._checkout)
        if configuration is not None:
            (self._checkout / "fixloop.toml").write_text(configuration)
        return self.fixloop(name, *how)

    def fixloop(self, name: str, *arguments: str) -> Answer:
        environment = developer_environment() | {"FIXLOOP_CACHE_DIR": str(self._cache)}
        return self._run(name, [str(_FIXLOOP), *arguments], environment)

    def take_configuration(self) -> str | None:
        """Return the file that `init` wrote, and remove it."""
        file = self._checkout / "fixloop.toml"
        text = file.read_text() if file.exists() else None
        restore(self._checkout)
        return text

    def _run(self, name: str, command: Sequence[str], environment: dict[str, str]) -> Answer:
        self._tell(name)
        seconds, ended = timed(command, self._checkout, environment, _MOST_SECONDS)
        output = ended.stdout.decode(errors="replace")
        log = f"{output}\nexit code {ended.returncode}, {seconds:.1f} s\n"
        (self._logs / f"{name}.txt").write_text(log)
        # The verdict from a workflow's line (without number, name and brackets) or a check's, or the last line.
        printed = output.strip().splitlines() or [""]
        lines = _VERDICT.findall(output) or [line for line in printed if _COUNTED.match(line)] or printed[-1:]
        verdict = re.sub(r" \([^)]*\)", "", lines[-1].strip())
        return Answer(exit_code=ended.returncode, seconds=seconds, verdict=verdict)
