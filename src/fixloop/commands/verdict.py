"""The verdict on checks that ran once, and what is printed about those that could not run."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from fixloop.commands.screen import few, short
from fixloop.errors import ExitCode
from fixloop.protocol.checks import Evidence, RunOutcome, Unverified
from fixloop.protocol.failures import count_of

if TYPE_CHECKING:
    from fixloop.intake.trial import Tried


def exit_code_of(found: Sequence["Tried"], unverified: Sequence[Unverified]) -> ExitCode:
    if _of(found, RunOutcome.FAILED):
        return ExitCode.WRONG
    is_whole = _of(found, RunOutcome.PASSED) and not _of(found, RunOutcome.ERROR)
    is_sure = not blocking(unverified) and not any(each.result.flaky for each in found)
    return ExitCode.DONE if is_whole and is_sure else ExitCode.WAITS


def verdict_of(found: Sequence["Tried"], unverified: Sequence[Unverified]) -> str:
    """The result of all checks, in one line."""
    failed, stopped = _of(found, RunOutcome.FAILED), _of(found, RunOutcome.ERROR)
    count = f"{len(found)} check{'s' * (len(found) > 1)}"
    if failed:
        failures = sum(len(each.result.failures) for each in failed)
        verdict = f"{count_of(failures)} in {len(failed)} of {len(found)} checks"
    elif stopped:
        verdict = f"not verified: {', '.join(each.result.check for each in stopped)} could not run"
    elif not _of(found, RunOutcome.PASSED):
        verdict = "not verified: nothing could run here"
    elif exit_code_of(found, unverified):
        verdict = f"not verified (what ran has passed: {count})"
    else:
        verdict = f"passed ({count})"
    evidence = [each.result.evidence for each in found]
    older = [old_findings(each.check, each.old, each.base[:7]) for each in evidence if each.old]
    parts = [verdict, *flakes(evidence), *older, *passed_over(unverified)]
    optional = [f"{one.result.check} ({short(one.result.reason)})" for one in _of(found, RunOutcome.SKIPPED)]
    if optional:
        parts.append(f"optional, left out: {', '.join(optional)}")
    return "; ".join(parts)


def _of(found: Iterable["Tried"], outcome: RunOutcome) -> list["Tried"]:
    return [each for each in found if each.result.outcome is outcome]


def blocking(found: Iterable[Unverified]) -> list[Unverified]:
    """The missing checks without which nothing counts as verified."""
    return [each for each in found if each.blocks]


def passed_over(found: Sequence[Unverified]) -> Iterator[str]:
    """`not verified here: ruff (not installed in .venv)` for those that do not block; nothing if there are none."""
    named = [f"{each.name} ({short(each.reason)})" for each in found if not each.blocks]
    if named:
        yield f"not verified here: {', '.join(named)}"


def old_findings(check: str, count: int, base: str) -> str:
    return f"{count} old {check} finding{'s' * (count != 1)} (already on {base or 'the base'})"


def flakes(found: Iterable[Evidence]) -> Iterator[str]:
    """The tests that failed and passed on one tree; nothing if there are none."""
    if names := tuple(name for each in found for name in each.flaky):
        yield f"failed and then passed on the same tree: {few(names)}"


def missing_lines(found: Iterable[Unverified]) -> Iterator[str]:
    """What each one lacks, and how to add it or leave it out."""
    for each in found:
        yield f"  {each.name} of {each.specialist} does not run here: {short(each.reason, 300)}"
        if each.remedy:
            yield f"    {short(each.remedy, 300)}"
        optional = f"optional = true in its [specialist.{each.specialist}]"
        yield f"    or leave it out: list the checks in fixloop.toml (`fixloop init` does), with {optional}"
