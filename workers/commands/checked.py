"""Results of `fixloop check` that the first validation of a `fixloop run` takes over (docs/decisions/0049).

Owns `{cache}/checks/sealed/`: a file for each specialist and the inputs of its results, sealed with the key of the
project's histories, which no confined command can read. Unconfined results are not sealed.
"""

import hashlib
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ConfigDict, ValidationError

from fixloop import __version__
from fixloop.configuration.model import SpecialistChecks
from fixloop.files.atomic import write_whole
from fixloop.intake.last_check import circumstances
from fixloop.machine.variables import allowed_variables
from fixloop.protocol.checks import CheckResult, RunOutcome
from fixloop.protocol.event import Value
from fixloop.protocol.failures import Failure
from fixloop.servers.settings import load_settings
from fixloop.store.seal import Sealing
from workers.commands.check_run import Ran
from workers.workspaces.frozen_environment import environment_of
from workers.workspaces.ground import Ground, Site

if TYPE_CHECKING:
    from workers.steps.step import Step

PURPOSE: Final = "check"


class _Kept(Value):
    """One check with everything that a run needs of it."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    result: CheckResult
    whole: tuple[Failure, ...]
    cases: frozenset[str]
    output: str
    reports: tuple[bytes, ...]


class _Sealed(Value):
    """A specialist's checks, which ran one after another on one ground."""

    at: datetime
    rests_on: str
    environment: str
    ran: tuple[_Kept, ...]


def seal(site: Site, ground: Ground, entry: SpecialistChecks, ran: Sequence[Ran], sealing: Sealing) -> None:
    """Store the results of all checks of a specialist for a `run`. Raises OSError if the cache cannot be written."""
    ended = (RunOutcome.PASSED, RunOutcome.FAILED)
    # Confined, and no test was flaky.
    if not all(
        result.outcome in ended and result.evidence.sandbox != "none" and not result.evidence.flaky
        for result in (one.result for one in ran)
    ):
        return
    results = []
    for one in ran:
        reports, found = tuple(map(ground.redaction.data, one.written())), one.result
        kept = _Kept(result=found, whole=found.whole, cases=found.cases, output=one.output, reports=reports)
        results.append(kept)
    rests_on, environment = _input_digest(site, ground, entry), _environment(ground, entry)
    record = _Sealed(at=datetime.now(UTC), rests_on=rests_on, environment=environment, ran=tuple(results))
    text = record.model_dump_json().encode()
    place = _path(site.cache, rests_on)
    place.parent.mkdir(parents=True, exist_ok=True)
    for older in place.parent.iterdir():
        with suppress(OSError):
            if time.time() - older.stat().st_mtime > load_settings().take_over_seconds:
                older.unlink()
    write_whole(place, b"%s\n%s" % (sealing.of(PURPOSE, text), text), mode=0o600)


def taken_over(work: "Step", site: Site, ground: Ground, entry: SpecialistChecks) -> list[Ran]:
    """The recent results of `fixloop check` on the same tree, configuration and environment, for a workflow's first
    validation; restores the reports on the ground and notes the origin in the evidence. Empty if any of these differs,
    the seal is invalid, or a fix was requested: results that judge a fix are always computed again."""
    limit, sealing = load_settings().take_over_seconds, work.store.sealing
    if not limit or sealing is None or not _is_first(work, site):
        return []
    rests_on, kept = _input_digest(site, ground, entry), None
    with suppress(OSError, ValidationError):
        seal_of_it, _, text = _path(site.cache, rests_on).read_bytes().partition(b"\n")
        if sealing.is_of(PURPOSE, text, seal_of_it):
            kept = _Sealed.model_validate_json(text)
    if kept is None or kept.rests_on != rests_on:
        return []
    age = (datetime.now(UTC) - kept.at).total_seconds()
    if not 0 <= age <= limit or kept.environment != _environment(ground, entry):
        return []
    named = {one.result.check: one for one in kept.ran}
    kinds = {check.name: check.report_kinds() for check in entry.checks}
    checked_at = kept.at.isoformat(timespec="seconds")
    return [_restored(named[name], ground, kinds[name], checked_at) for name in kinds]


def _is_first(work: "Step", site: Site) -> bool:
    """Whether nothing was requested yet: no fix, no decision, no second attempt."""
    state, ticket = work.holding.state, work.holding.ticket
    is_first = (ticket.step, ticket.attempt, site.shared) == ("validate", 1, False)
    is_untouched = state.tip == state.trusted == site.snapshot.commit and not state.decided
    return is_first and is_untouched and all(run.passed for each in state.specialists for run in each.runs)


def _input_digest(site: Site, ground: Ground, entry: SpecialistChecks) -> str:
    """The digest of everything that the results depend on, except the environment."""
    snapshot, configuration = site.snapshot, site.configuration
    names = [name for check in entry.checks for name in check.env]
    inputs = [
        __version__,
        [os.path.realpath(snapshot.source), snapshot.subdirectory, ground.tree, ground.setup],
        sorted(
            circumstances(entry, check, snapshot, configuration, ground.interpreter) for check in entry.checks
        ),
        [configuration.integrity.model_dump_json(), configuration.sandbox.model_dump_json()],
        sorted(allowed_variables(os.environ, names).items()),
    ]
    return hashlib.sha256(json.dumps([entry.name, *inputs]).encode()).hexdigest()


def _environment(ground: Ground, entry: SpecialistChecks) -> str:
    return hashlib.sha256(json.dumps(environment_of(ground, entry.checks)).encode()).hexdigest()


def _path(cache: Path, rests_on: str) -> Path:
    return cache / "checks" / "sealed" / f"{rests_on[:32]}.json"


def _restored(kept: _Kept, ground: Ground, kinds: Sequence[str], checked_at: str) -> Ran:
    """The check as if it had run on this ground, with its reports written there."""
    places = [ground.report_path(kept.result.check, kind) for kind in kinds]
    for place, data in zip(places, kept.reports, strict=True):
        if data:
            place.write_bytes(data)
    fields: dict[str, object] = {"whole": kept.whole, "cases": kept.cases}
    fields["evidence"] = kept.result.evidence.model_copy(update={"checked_at": checked_at})
    return Ran(kept.result.model_copy(update=fields), kept.output, tuple(places))
