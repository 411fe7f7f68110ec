"""The text of a first fixloop.toml: what is detected today, written out, with the reason beside it.

Returns the text and writes nothing; what it returns loads to the same checks that the presets gave.
"""

import json
import math
from pathlib import Path
from typing import Final

from fixloop.configuration.commands import braces_doubled, is_plain, program_name
from fixloop.configuration.coverage import TARGET_COVERAGE_PERCENT
from fixloop.configuration.detecting import found_in
from fixloop.configuration.document import read_document
from fixloop.configuration.installed import Installed
from fixloop.configuration.model import Check, Unverified
from fixloop.configuration.settling import settle
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
    installed: Installed | None = None,
) -> str:
    """
    A commented fixloop.toml for the project at `directory`.

    Args:
        directory: The top folder of the project.
        measured_coverage: Today's coverage in percent, None when it was not measured. Below 80 it becomes the
            gate, rounded down: a gate that fails on the first day is switched off on the second.
        installed: What can be started here; None when nobody can say.

    Raises:
        UsageError: fixloop is configured here already, or a file cannot be read.
    """
    document = read_document(directory)
    if document.is_written:
        raise UsageError(f"{document.place.file} configures fixloop already; edit it, or remove it first")
    if measured_coverage is not None and not 0 <= measured_coverage <= 100:
        raise UsageError(f"measured coverage must be from 0 to 100 percent, not {measured_coverage}")
    found = found_in(directory, document.pyproject, installed)
    gated = measured_coverage is not None and (installed is None or installed.has_module("pytest_cov"))
    chosen = {name: settle(found.of(name, gated=gated), installed) for name in NAMES}
    parts = [
        HEAD,
        *(_section(name, each.checks, measured_coverage) for name, each in chosen.items() if each.checks),
    ]
    if not any(each.checks for each in chosen.values()):
        parts.append(NOTHING_DETECTED)
    parts.append(_left_out([entry for each in chosen.values() for entry in each.unverified]))
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
    output = f"output = {_quoted(check.output)}\n" if check.output else ""
    if measured is None and check.coverage_percent is None:
        return f"command = {_command(_unmeasured(check.command))}\n{output}"
    text = f"command = {_command(check.command)}\n{output}"
    if "coverage" not in check.report_kinds():
        return text
    gate, reason = check.coverage_percent or TARGET_COVERAGE_PERCENT, "percent of the lines"
    if measured is not None and measured < gate:
        gate, reason = math.floor(measured), f"today's; raise it towards {gate:g}"
    return f"{text}coverage_percent = {f'{gate:g}':<18}# {reason}\n"


def _unmeasured(words: tuple[str, ...]) -> tuple[str, ...]:
    """Without the report that would be gated once it is written."""
    if not any("{coverage}" in word for word in words):
        return words
    return tuple(word for word in words if "{coverage}" not in word and word != "--cov-fail-under=0")


def _command(words: tuple[str, ...]) -> str:
    doubled = tuple(braces_doubled(word) for word in words)
    if is_plain(doubled):
        return _quoted(" ".join(doubled))
    return f"[{', '.join(_quoted(word) for word in doubled)}]"


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are a part of TOML's, apart from DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _left_out(entries: list[Unverified]) -> str:
    if not entries:
        return ""
    return "\n# Found here, and not checked:\n" + "".join(
        f"#   {entry.name} ({entry.specialist}): {entry.reason}; {entry.remedy}\n" for entry in entries
    )
