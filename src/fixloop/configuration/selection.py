"""Selects each specialist's checks: those that the user wrote, else the detected ones, if they can start.

If the user names specialists, exactly those run.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from fixloop.configuration.commands import program_name
from fixloop.configuration.detection import Found, Settled, settle, settle_written
from fixloop.configuration.model import TARGET_COVERAGE_PERCENT, Check, SpecialistChecks
from fixloop.configuration.place import Place
from fixloop.configuration.settings import CheckKeys, CheckSettings, FileSettings, SpecialistSettings
from fixloop.configuration.values import FailOn
from fixloop.protocol.checks import Unverified
from fixloop.protocol.specialists import NAMES

FRONTEND_ONLY: Final = "e2e-accessibility"
TEST_SPECIALISTS: Final = frozenset({"unit-test", "integration-test", "test-runner"})


class Selection(NamedTuple):
    """The checks that run, and those found that do not."""

    specialists: tuple[SpecialistChecks, ...] = ()
    """In the order of the phases (U1, U2); none without a check."""
    unverified: tuple[Unverified, ...] = ()


def select_checks(written: FileSettings, found: Found, place: Place) -> Selection:
    """The file's checks, else the detected ones; the sixth specialist only for a front end (K28)."""
    named, strict, inside = written.specialist, written.strict, place.inside("specialist")
    each: dict[str, Settled] = {}
    for name in named or NAMES:
        if not named:
            settled = settle(found.of(name), found.project.installed)
            each[name] = _blocking(settled, lambda entry: entry.blocks or strict)
        elif checks := _written_checks(named[name], inside.inside(name)):
            each[name] = settle_written(checks, name, found.project)
        else:
            each[name] = _detected(name, named[name], found, inside.inside(name), strict)
    if written.frontend and not each.get(FRONTEND_ONLY, Settled()).checks:
        raise place.at("frontend").error(
            f"is true, but nothing says how {FRONTEND_ONLY} is run; give [specialist.{FRONTEND_ONLY}] a command"
        )
    if written.frontend is False:
        each.pop(FRONTEND_ONLY, None)
    specialists = tuple(
        SpecialistChecks(
            name=name,
            checks=settled.checks,
            timeout_minutes=named[name].timeout_minutes if name in named else None,
            network=named[name].network if name in named else True,
        )
        for name, settled in each.items()
        if settled.checks
    )
    left_out = _tests_left_out(found, each, strict) if named else []
    return Selection(specialists, (*(entry for one in each.values() for entry in one.unverified), *left_out))


def _written_checks(written: SpecialistSettings, place: Place) -> tuple[Check, ...]:
    entries = written.check
    if written.command:
        if entries:
            checks = f"[[{place.heading.strip('[]')}.check]]"
            raise place.error(f"has a command and {checks} as well; write the command as one more check")
        entries = (CheckSettings(command=written.command),)
    found = []
    for item, entry in enumerate(entries, 1):
        at = place if written.command else place.inside("check", item)
        if not entry.command:
            raise at.error("has no command")
        # Writing {coverage} asks for a gate.
        gate = TARGET_COVERAGE_PERCENT if any("{coverage}" in word for word in entry.command) else None
        name = entry.name or program_name(entry.command)
        check = Check(name=name, command=entry.command, coverage_percent=gate)
        found.append(_with_keys(_with_keys(check, written), entry))
        _refuse_idle_keys(entry, found[-1:], at)
    for name, count in Counter(check.name for check in found).items():
        if count > 1:
            raise place.error(f"has {count} checks named {name!r}; give each a name of its own")
    if found:
        _refuse_idle_keys(written, found, place)
    return tuple(found)


def _detected(name: str, written: SpecialistSettings, found: Found, place: Place, strict: bool) -> Settled:
    """A specialist that the user names without a command: the detected checks must run."""
    proposals = found.of(name, gated=written.coverage_percent is not None)
    if not any(proposal.check.command for proposal in proposals):
        raise place.error("has no command, and nothing was detected for this specialist; give it a command")
    _refuse_idle_keys(written, [proposal.check for proposal in proposals], place)
    settled = settle(proposals, found.project.installed)
    checks = tuple(_with_keys(check, written) for check in settled.checks)
    must = {proposal.tool for proposal in proposals if proposal.check.command}
    settled = settled._replace(checks=checks)
    return _blocking(settled, lambda entry: not written.optional and (strict or entry.name in must))


def _blocking(settled: Settled, blocks: Callable[[Unverified], bool]) -> Settled:
    entries = tuple(entry.model_copy(update={"blocks": blocks(entry)}) for entry in settled.unverified)
    return settled._replace(unverified=entries)


def _with_keys(check: Check, written: CheckKeys) -> Check:
    kinds = check.report_kinds()
    keys = written.model_fields_set & CheckKeys.model_fields.keys() - {"command"}
    update = {key: getattr(written, key) for key in keys}
    update["env"] = tuple(dict.fromkeys((*check.env, *written.env)))
    if "sarif" not in kinds:
        update["fail_on"] = FailOn.ERROR
    if "coverage" not in kinds:
        update["coverage_percent"] = None
    return check.model_copy(update=update)


def _refuse_idle_keys(written: CheckKeys, checks: Iterable[Check], place: Place) -> None:
    """Refuse a gate that no check measures: it would look effective (B68)."""
    kinds = {kind for check in checks for kind in check.report_kinds()}
    for key, kind in (("coverage_percent", "coverage"), ("fail_on", "sarif")):
        if key in written.model_fields_set and kind not in kinds:
            raise place.at(key).error(f"has no effect, because no command here writes {{{kind}}}")


def _tests_left_out(found: Found, each: Mapping[str, Settled], strict: bool) -> list[Unverified]:
    """Tests that none of the user's specialists runs: a pass would seem to cover them."""
    if not TEST_SPECIALISTS.isdisjoint(each):
        return []
    tools = {proposal.tool: proposal.specialist for proposal in found.proposals if proposal.runs_tests}
    words = {word for settled in each.values() for check in settled.checks for word in check.command}
    reason = "no check of fixloop.toml runs it"
    return [
        Unverified(name=tool, specialist=of, reason=reason, remedy=f"add [specialist.{of}]", blocks=strict)
        for tool, of in tools.items()
        if tool not in words
    ]
