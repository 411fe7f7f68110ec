"""Runs the checks of a snapshot, except those with a result under the same circumstances."""

import time
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from fixloop.configuration.model import Configuration, SpecialistChecks
from fixloop.intake.frozen_configuration import interpreter_at
from fixloop.intake.last_check import Kept, LastCheck, circumstances
from fixloop.intake.preparation import Prepared
from fixloop.intake.trial import CHANGED, Asked, try_checks
from fixloop.protocol.checks import RunOutcome

READING: Final = frozenset({"code-quality", "security"})


class Ran(NamedTuple):
    """The results of the checks."""

    found: list[Kept]
    """The result of each check, known ones first."""
    left_out: Sequence[str] = ()
    """Checks for which there was no time."""
    cut_off: Mapping[str, float] = MappingProxyType({})
    """Checks that were ended, see `LastCheck`."""


def recheck(
    prepared: Prepared,
    last: LastCheck,
    cache: Path,
    *,
    until: float = inf,
    is_hasty: bool = False,
    at_once: bool = False,
    changed: bool = False,
) -> Ran:
    """
    Run the checks without a known result; those that failed last run first.

    Ends at `until`, by the monotonic clock; if hasty, at the first failure. `at_once`: checks that only read the code
    run in parallel with those that run it. `changed`: see `Asked`.
    """
    snapshot, configuration = prepared.snapshot, prepared.configuration
    interpreter = interpreter_at(Path(snapshot.source) / snapshot.subdirectory)
    digests = {
        (entry.name, check.name): circumstances(entry, check, snapshot, configuration, interpreter)
        for entry in configuration.specialists
        for check in entry.checks
    }
    known = [each for each in last.kept if digests.get(each.key) == each.circumstances]
    if is_hasty and any(each.result.outcome is RunOutcome.FAILED for each in known):
        return Ran(known)
    taken, seconds = {each.key for each in known}, until - time.monotonic()
    # Checks that run the code and checks that only read it do not interfere.
    reads = [entry for entry in configuration.specialists if entry.name in READING]
    runs = [entry for entry in configuration.specialists if entry.name not in READING]
    halves = (runs, reads) if at_once and not is_hasty else (configuration.specialists,)
    halved = [configuration.model_copy(update={"specialists": tuple(half)}) for half in halves]
    parts = [due for half in halved if (due := _due(half, taken, last, seconds)).specialists]
    found, last_at = list(known), dict.fromkeys(range(len(parts)), time.monotonic())
    begun = {
        (entry.name, check.name): number
        for number, part in enumerate(parts)
        for entry in part.specialists
        for check in entry.checks
    }
    first, other = (*parts, None, None)[:2]
    asked = first and Asked(
        snapshot=snapshot, configuration=first, other=other, cache=cache, seals=not changed, changed=changed
    )
    for each in try_checks(asked, until) if asked else ():
        # The names of ten thousand passed tests are not needed here.
        result = each.result.model_copy(update={"passed_names": ()})
        key = each.specialist, result.check
        found.append(Kept(specialist=each.specialist, circumstances=digests.get(key, ""), result=result))
        last_at[begun.get(key, 0)] = time.monotonic()
        if is_hasty and result.outcome is RunOutcome.FAILED:
            return Ran(found)
    came, now = {each.key for each in found}, time.monotonic()
    ended = [key for key in begun if key not in came] if now >= until else []
    missing = (key for key in digests if key not in came)
    left_out = [
        "/".join(key)
        for key in missing
        if key not in begun or key in ended or (key[0], f"{key[1]}{CHANGED}") in came
    ]
    # In each part, the first unfinished check was running.
    cut_off = {begun[key]: ("/".join(key), now - last_at[begun[key]]) for key in reversed(ended)}
    return Ran(found, left_out, dict(cut_off.values()))


def _due(
    configuration: Configuration, known: set[tuple[str, str]], last: LastCheck, seconds: float
) -> Configuration:
    """
    The checks to run: failed ones first, then fast ones, then slow and new ones.

    Only those that fit into the time, by their last durations; new ones are always tried.
    """

    def rank(entry: SpecialistChecks) -> tuple[bool, float]:
        ranks = [each.rank for check in entry.checks if (each := last.of(entry.name, check.name))]
        return min(ranks, default=(True, inf))

    entries = []
    for entry in sorted(configuration.specialists, key=rank):
        checks = []
        for check in entry.checks:
            needed = last.seconds(entry.name, check.name)
            if (entry.name, check.name) not in known and needed <= seconds:
                seconds -= needed
                checks.append(check)
        if checks:
            entries.append(entry.model_copy(update={"checks": tuple(checks)}))
    return configuration.model_copy(update={"specialists": tuple(entries)})
