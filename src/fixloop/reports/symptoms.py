"""Recognizes a command that proved nothing: it could not start, it died, or it checked no file or counts no test.

Owns the tools' messages for this. Every match leads to an error or a skip, never to a pass or a failure.
"""

import re
import shlex
import signal
import tomllib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from fixloop.configuration.commands import program_of

_NOT_EXECUTABLE: Final = 126
_NOT_FOUND: Final = 127

# CPython's message for `-m`; its path may contain anything but a newline.
_NO_MODULE: Final = re.compile(
    r"^(?P<python>[^\n:]*python[^\n/:]*): No module named '?(?P<module>\w[\w.]*)", re.MULTILINE
)
_NOT_FOUND_BY_SHELL: Final = re.compile(
    r"^\S*sh: (?:(?:line )?\d+: )?([^\s:]+): (?:command )?not found$", re.MULTILINE
)
_MISSING: Final = re.compile(
    r"(?m)^(?:error: Failed to spawn: .*|Command not found: \S+|npm (?:ERR!|error) Missing script:? .*)"
)

# pytest's exit codes for an internal error, a wrong command line, and no tests at all.
_PYTEST: Final = {3: "had an internal error", 4: "was called wrongly", 5: "collected no tests"}

_CONFTEST: Final = re.compile(r"^ImportError while loading conftest ", re.MULTILINE)

# The exception at the end of pytest's own traceback; its message may have further lines.
_INTERNAL: Final = re.compile(r"^INTERNALERROR> (?=[A-Za-z_][\w.]*: )")

_PYTEST_USAGE: Final = 4
_NO_TESTS: Final = 5
_USAGE: Final = 2
_REFUSED: Final = re.compile(
    r"^usage: |^Usage: |unrecognized arguments?:|unexpected argument|unknown option|[Nn]o such option",
    re.MULTILINE,
)
_LEAVE_OUT: Final = "or leave the check out (`optional = true`)"

_MESSAGES: Final = tomllib.loads(Path(__file__).with_name("symptoms.toml").read_text("utf-8"))

# Summaries of runners. A longer number is no count, and would be read again from each of its digits.
_UNITTEST: Final = re.compile(
    r"^Ran (\d{1,9}) tests? in .*(?:\n+(?:OK|FAILED) \((?:.*, )?skipped=(\d{1,9}))?", re.MULTILINE
)
_GO: Final = re.compile(r"^=== RUN\s", re.MULTILINE)
"""Printed once per test, only with -v; a package's `ok` gives no number of tests."""


def cannot_run(command: Sequence[str], exit_code: int, output: str) -> str:
    """Why the command could not run here at all, or empty."""
    name = program_of(command)[0] or "the command"
    if exit_code == _NOT_FOUND:
        # A shell that the command starts, as a package manager does, says which of its programs is missing.
        name = inner[1] if (inner := _NOT_FOUND_BY_SHELL.search(output)) else name
        install = f"install it, correct the command, {_LEAVE_OUT}"
        return f"`{name}` was not found (exit code {exit_code}); {install}"
    if exit_code == _NOT_EXECUTABLE:
        return f"`{name}` cannot be executed (exit code {exit_code}); correct its permissions or the command"
    if exit_code != 0 and (found := _NO_MODULE.search(output)):
        python, module = found["python"].strip(), found["module"].split(".")[0]
        install = shlex.join([python, "-m", "pip", "install", module])
        return f"the module {module} is missing from {python}; install it (`{install}`), {_LEAVE_OUT}"
    if exit_code != 0 and (missing := _MISSING.search(output)):
        return f"`{name}` could not start: {missing[0].strip()[:200]}"
    return ""


def is_wrong_call(command: Sequence[str], exit_code: int, output: str) -> bool:
    """Whether the tool refused its arguments: it would refuse them again."""
    is_pytests = exit_code == _PYTEST_USAGE and "pytest" in _tools(command)
    return is_pytests or (exit_code == _USAGE and bool(_REFUSED.search(output)))


def died(command: Sequence[str], exit_code: int, output: str) -> str:
    """How the command died, or empty."""
    if exit_code < 0:
        number = -exit_code
        name = next((each.name for each in signal.Signals if each == number), f"signal {number}")
        return f"`{command[0] if command else ''}` was ended by {name}"
    tools = _tools(command) if exit_code != 0 else set()
    for names, pattern in _MESSAGES["missing"].items():
        if tools.intersection(names.split()) and (missing := re.search(pattern, output, re.MULTILINE)):
            return f"{names.split()[0]} could not get what the project needs: {missing[0].strip()[:300]}"
    if exit_code not in _PYTEST or "pytest" not in _tools(command):
        return ""
    # The exception, or the last line that says error, since pytest then names its folders; else the last line.
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    raised = [_INTERNAL.sub("", line) for line in lines if _INTERNAL.match(line)]
    errors = [line for line in lines if "error: " in line.lower()]
    # That no tests were collected is all that pytest says of it.
    said = raised or errors or (lines if exit_code != _NO_TESTS else [])
    reason = f": {said[-1][:200]}" if said else ""
    how = "could not load a conftest.py" if _CONFTEST.search(output) else _PYTEST[exit_code]
    return f"pytest {how} (exit code {exit_code}){reason}"


def checked_nothing(command: Sequence[str], output: str) -> str:
    """The tool's message that it had nothing to check, or empty."""
    tools = _tools(command)
    for names, pattern in _MESSAGES["nothing"].items():
        if tools.intersection(names.split()) and (found := re.search(pattern, output, re.MULTILINE)):
            return f"{names.split()[0]} was given nothing to check: {found[0].strip()[:200]}"
    return ""


def _tools(command: Sequence[str]) -> set[str]:
    """The names of programs a command may run, also through `python -m`, `npx` or a shell's `-c`."""
    return {PurePosixPath(word).name for part in command for word in part.replace("$(", " ").split()}


def counted(output: str) -> int | None:
    """The number of tests that ran, by every summary that a known runner printed, without skipped tests; None if
    `output` gives none. For checks that write no report; nothing is guessed."""
    found: list[int] = []
    for each in _MESSAGES["listed"].values():
        lists = re.findall(each["list"], output, re.MULTILINE)
        found += [sum(map(int, re.findall(each["number"], summary))) for summary in lists]
    found += [int(ran) - int(skipped or 0) for ran, skipped in _UNITTEST.findall(output)]
    for pattern in _MESSAGES["summary"].values():
        found += [int(one or 0) + int(two or 0) for one, two in re.findall(pattern, output, re.MULTILINE)]
    found += [started] if (started := len(_GO.findall(output))) else []
    return sum(found) if found else None
