"""Writes the text of a first fixloop.toml: the detected checks, each with the reason before it.

Returns the text and writes no file; the text loads to the same checks that were detected.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from fixloop.configuration.coding_agents import CODING_AGENTS
from fixloop.configuration.commands import braces_doubled, is_plain, program_name
from fixloop.configuration.detection import found_in, settle
from fixloop.configuration.document import read_document
from fixloop.configuration.installed import Installed
from fixloop.configuration.model import TARGET_COVERAGE_PERCENT, Check, Configuration, SpecialistChecks
from fixloop.configuration.settings import FileSettings, LimitSettings
from fixloop.errors import UsageError
from fixloop.protocol.specialists import NAMES, specialist

REASON_CHARACTERS: Final = 200

# The beginning of the file, and what it says instead of checks if none were detected.
HEAD: Final = (Path(__file__).with_name("head.txt").read_text("utf-8")).format(
    iterations=FileSettings.model_fields["max_iterations"], minutes=LimitSettings().fix_minutes
)
NOTHING_DETECTED: Final = Path(__file__).with_name("nothing_detected.txt").read_text("utf-8")


class Outcome(NamedTuple):
    """The result of trying a check."""

    passed: bool
    could_run: bool
    reason: str
    """One sentence; not used if it passed."""


Outcomes = Mapping[tuple[str, str], Outcome]
"""By the names of specialist and check; empty if nothing was tried."""


def first_configuration(directory: Path, installed: Installed | None) -> Configuration:
    """The content of a first fixloop.toml: the detected checks, with coverage measured if possible."""
    document = read_document(directory)
    if document.is_written:
        raise UsageError(f"{document.place.file} configures fixloop already; edit it, or remove it first")
    found = found_in(directory, document.pyproject, installed)
    measures = installed is not None and installed.has_module("pytest_cov")
    chosen = {
        name: settle(found.of(name, gated=measures and name == "test-runner"), installed, portable=True)
        for name in NAMES
    }
    return Configuration(
        specialists=tuple(
            SpecialistChecks(name=name, checks=each.checks) for name, each in chosen.items() if each.checks
        ),
        unverified=tuple(entry for each in chosen.values() for entry in each.unverified),
    )


def init(
    configuration: Configuration,
    *,
    measured_coverage: float | None = None,
    outcomes: Outcomes = MappingProxyType({}),
    agent: str = "",
) -> str:
    """
    The text of a commented fixloop.toml, from the result of `first_configuration`.

    Below 80 a `measured_coverage` becomes the gate, rounded down: a gate that fails on the first day is soon switched
    off. `outcomes`: the checks' results; one that could not run is written as a comment. `agent`: the fixer, one of
    CODING_AGENTS; without it, a fixer is written as a comment.
    """
    if measured_coverage is not None and not 0 <= measured_coverage <= 100:
        raise UsageError(f"measured coverage must be from 0 to 100 percent, not {measured_coverage}")
    known = CODING_AGENTS[agent or "claude"]
    names = f'env = ["{known.key}"]'
    fixer = [
        "[fixer]",
        f"command = {known.command}",
        "timeout_minutes = 30",
        f"{names:<32}# names of variables it may see; it may have a login of its own",
    ]
    parts = [HEAD.replace("@FIXER@", "\n".join(line if agent else f"# {line}" for line in fixer))]
    for entry in configuration.specialists:
        parts += [f"\n# {specialist(entry.name).phase}\n"]
        parts += [_check(entry, check, measured_coverage, outcomes) for check in entry.checks]
    if not configuration.specialists:
        parts.append(NOTHING_DETECTED)
    if configuration.unverified:
        parts.append("\n# Found here, and not checked:\n")
    for left_out in configuration.unverified:
        what = f"{left_out.name} ({left_out.specialist})"
        parts.append(f"#   {what}: {left_out.reason}; {left_out.remedy}\n")
    return "".join(parts)


def _check(entry: SpecialistChecks, check: Check, measured: float | None, outcomes: Outcomes) -> str:
    outcome = outcomes.get((entry.name, check.name))
    heading = f"[[specialist.{entry.name}.check]]\nname = {_quoted(check.name)}\n"
    if len(entry.checks) == 1 and check.name == program_name(check.command):
        heading = f"[specialist.{entry.name}]\n"
    output = f"output = {_quoted(check.output)}\n" if check.output else ""
    if "coverage" not in check.report_kinds() or (measured is None and check.coverage_percent is None):
        keys = f"command = {_command(unmeasured(check.command))}\n{output}"
    else:
        gate, meaning = check.coverage_percent or TARGET_COVERAGE_PERCENT, "percent of the lines"
        if measured is not None and measured < gate:
            gate, meaning = math.floor(measured), f"today's; raise it towards {gate:g}"
        percent = f"coverage_percent = {f'{gate:g}':<18}# {meaning}\n"
        keys = f"command = {_command(check.command)}\n{output}{percent}"
    text = heading + keys
    why = f"# because of {check.why}\n" if check.why else ""
    if outcome is None or outcome.passed:
        return why + text
    reason = " ".join(outcome.reason.split())[:REASON_CHARACTERS]
    if outcome.could_run:
        return f"{why}# does not pass today: {reason}\n{text}"
    commented = "".join(f"# {line}\n" for line in text.splitlines())
    return f"{why}# could not run when it was tried: {reason}\n{commented}"


def unmeasured(words: tuple[str, ...]) -> tuple[str, ...]:
    """A command without its coverage options; unchanged if it has no `{coverage}`."""
    if not any("{coverage}" in word for word in words):
        return words
    return tuple(word for word in words if not word.startswith("--cov"))


def _command(words: tuple[str, ...]) -> str:
    doubled = tuple(braces_doubled(word) for word in words)
    if is_plain(doubled):
        return _quoted(" ".join(doubled))
    return f"[{', '.join(_quoted(word) for word in doubled)}]"


def _quoted(text: str) -> str:
    """A TOML basic string: TOML has all of JSON's escapes, but also requires one for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
