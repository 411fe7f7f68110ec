"""The text of a first fixloop.toml: what is detected today, written out, with the reason beside it.

Returns the text and writes nothing; what it returns loads to the same checks that the presets gave.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fixloop.configuration.commands import braces_doubled, is_plain, program_name
from fixloop.configuration.detection import detect
from fixloop.configuration.document import read_document
from fixloop.configuration.model import Check
from fixloop.configuration.presets import TARGET_COVERAGE_PERCENT, all_tools, not_configured, preset_checks
from fixloop.errors import UsageError
from fixloop.protocol.specialists import NAMES, specialist

__all__ = ["init"]

HEAD: Final = """\
# What must hold before a feature of this project is finished.
# Only the specialists named here run, in the order of their phases. Flags of a command win over this file;
# a fix cannot change its own gates, because they are read once, when a workflow starts.

max_iterations = 5                   # runs of one specialist before a person has to decide

# The main agent: gets each failure report on its standard input and edits the files in its working directory.
# Without one, fixloop waits for you. `fixloop run --fixer COMMAND` names it for one run.
# [fixer]
# command = "claude -p --permission-mode acceptEdits"
# timeout_minutes = 30
# env = ["ANTHROPIC_API_KEY"]        # names of variables it may see
# Or it works elsewhere and reads a mailbox (`fixloop mailbox coder --wait`): declare it as [agent.coder], and
# write agent = "coder" here instead of a command.

# [limits]                           # minutes, attempts and windows; false switches one off (docs/settings.md)
# fix_minutes = 30                   # then a reminder; five minutes after it a person is asked

# [workspace]
# setup = "uv sync"                  # makes the environment of a fresh workspace
# copy = ["src/**/_version.py"]      # ignored files that are needed
"""

NOTHING_DETECTED: Final = """
# Nothing that fixloop has a preset for was found here, so name the first command that has to succeed:
# [specialist.test-runner]
# command = "make test"              # without a placeholder the exit code decides
# command = "python -m pytest --junitxml={junit}"      # {junit}, {sarif}, {coverage}, {jest}, {eslint}: reports
"""


def init(
    directory: Path,
    *,
    measured_coverage: float | None,
    importable: Callable[[str], bool] | None = None,
) -> str:
    """
    A commented fixloop.toml for the project at `directory`.

    Args:
        directory: The top folder of the project.
        measured_coverage: Today's coverage in percent, None when it was not measured. Below 80 it becomes the
            gate, rounded down: a gate that fails on the first day is switched off on the second.
        importable: Whether the project's interpreter can import a module; None when nobody can say.

    Raises:
        UsageError: fixloop is configured here already, or a file cannot be read.
    """
    document = read_document(directory)
    if document.is_written:
        raise UsageError(f"{document.place.file} configures fixloop already; edit it, or remove it first")
    if measured_coverage is not None and not 0 <= measured_coverage <= 100:
        raise UsageError(f"measured coverage must be from 0 to 100 percent, not {measured_coverage}")
    found = detect(directory, document.pyproject, all_tools(), importable)
    chosen = {name: preset_checks(name, found) for name in NAMES}
    parts = [HEAD, *(_section(name, checks, measured_coverage) for name, checks in chosen.items() if checks)]
    if not any(chosen.values()):
        parts.append(NOTHING_DETECTED)
    parts.append(_left_out(not_configured(found, tuple(c for checks in chosen.values() for c in checks))))
    return "".join(parts)


def _section(name: str, checks: tuple[Check, ...], measured: float | None) -> str:
    text = f"\n# {specialist(name).phase}\n"
    if len(checks) == 1 and checks[0].name == program_name(checks[0].command):
        return f"{text}[specialist.{name}]\n{_keys(checks[0], measured)}"
    return text + "".join(
        f"[[specialist.{name}.check]]\nname = {_quoted(check.name)}\n{_keys(check, measured)}"
        for check in checks
    )


def _keys(check: Check, measured: float | None) -> str:
    text = f"command = {_command(check.command)}\n"
    if check.coverage_percent is None:
        return text
    gate, reason = check.coverage_percent, "percent of the lines"
    if measured is not None and measured < min(gate, TARGET_COVERAGE_PERCENT):
        gate, reason = math.floor(measured), f"today's; raise it towards {gate:g}"
    return f"{text}coverage_percent = {f'{gate:g}':<18}# {reason}\n"


def _command(words: tuple[str, ...]) -> str:
    doubled = tuple(braces_doubled(word) for word in words)
    if is_plain(doubled):
        return _quoted(" ".join(doubled))
    return f"[{', '.join(_quoted(word) for word in doubled)}]"


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are a part of TOML's, apart from DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _left_out(entries: tuple[str, ...]) -> str:
    if not entries:
        return ""
    return "\n# Found here, and not checked:\n" + "".join(f"#   {entry}\n" for entry in entries)
