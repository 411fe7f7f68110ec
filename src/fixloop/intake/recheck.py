"""The checks of a snapshot, of which only those run that did not run under the same circumstances before."""

import time
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from fixloop.configuration.model import Configuration, SpecialistChecks
from fixloop.intake.frozen_configuration import interpreter_at
from fixloop.intake.last_check import Kept, LastCheck, circumstances
from fixloop.intake.preparation import Prepared
from fixloop.intake.trial import try_checks
from fixloop.protocol.checks import RunOutcome


class Ran(NamedTuple):
    """What came of a check."""

    found: list[Kept]
    """The result of each, those that are known already first."""
    left_out: Sequence[str] = ()
    """What there was no time for."""
    cut_off: Mapping[str, float] = MappingProxyType({})
    """What was ended, see `LastCheck`."""


def recheck(
    prepared: Prepared, last: LastCheck, cache: Path, *, until: float = inf, is_hasty: bool = False
) -> Ran:
    """
    Find out what is not known of a snapshot; what failed last runs first.

    Ends at `until`, by the monotonic clock; where hasty, with the first check that fails.
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
    due = _due(configuration, {each.key for each in known}, last, until - time.monotonic())
    found, started = list(known), time.monotonic()
    for each in try_checks(snapshot, due, cache, until) if due.specialists else ():
        # The names of ten thousand tests that passed are of no use here.
        result = each.result.model_copy(update={"passed_names": ()})
        digest = digests.get((each.specialist, result.check), "")
        found.append(Kept(specialist=each.specialist, circumstances=digest, result=result))
        started = time.monotonic()
        if is_hasty and result.outcome is RunOutcome.FAILED:
            return Ran(found)
    came = {each.key for each in found}
    begun = [(entry.name, check.name) for entry in due.specialists for check in entry.checks]
    ended = [key for key in begun if key not in came] if time.monotonic() >= until else []
    left_out = ["/".join(key) for key in digests if key not in came and (key not in begun or key in ended)]
    return Ran(found, left_out, {"/".join(key): time.monotonic() - started for key in ended[:1]})


def _due(
    configuration: Configuration, known: set[tuple[str, str]], last: LastCheck, seconds: float
) -> Configuration:
    """
    What has to run: what failed last first, then what was quick, then what was slow or is new.

    Only what there is time for, by how long each took last; what is new is always tried.
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
