"""What each specialist runs: the checks that the user wrote, else those that are detected, as far as they can start.

Where the user names specialists, exactly those run.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from fixloop.configuration.commands import program_name
from fixloop.configuration.coverage import TARGET_COVERAGE_PERCENT
from fixloop.configuration.detecting import Found
from fixloop.configuration.model import Check, FailOn, SpecialistChecks
from fixloop.configuration.place import Place
from fixloop.configuration.schema import Written, WrittenCheck, WrittenSpecialist
from fixloop.configuration.settling import Settled, settle, settle_written
from fixloop.protocol.checks import Unverified
from fixloop.protocol.specialists import NAMES

FRONTEND_ONLY: Final = "e2e-accessibility"
TEST_SPECIALISTS: Final = frozenset({"unit-test", "integration-test", "test-runner"})


class Chosen(NamedTuple):
    """What runs, and what was found and does not."""

    specialists: tuple[SpecialistChecks, ...] = ()
    """In the order of the phases (U1, U2); none without a check."""
    unverified: tuple[Unverified, ...] = ()


def chosen_of(written: Written, found: Found, place: Place) -> Chosen:
    """
    What the file says, else what is detected; the sixth specialist only for a front end (K28).

    Raises:
        UsageError: what is written contradicts itself, or nothing is detected that it asks for.
    """
    named = written.get("specialist", {})
    strict = written.get("strict", False)
    inside = place.inside("specialist")
    if named:
        each = {
            name: _specialist(name, named[name], found, inside.inside(name), strict)
            for name in NAMES
            if name in named
        }
    else:
        each = {name: settle(found.of(name), found.installed) for name in NAMES}
        each = {name: _all(settled, blocks=True) if strict else settled for name, settled in each.items()}
    _refuse_missing_frontend(written.get("frontend"), each, place)
    if written.get("frontend") is False:
        each.pop(FRONTEND_ONLY, None)
    minutes = {name: entry.get("timeout_minutes") for name, entry in named.items()}
    specialists = tuple(
        SpecialistChecks(name=name, checks=settled.checks, timeout_minutes=minutes.get(name))
        for name, settled in each.items()
        if settled.checks
    )
    left_out = _tests_left_out(found, each, strict) if named else []
    return Chosen(specialists, (*(entry for one in each.values() for entry in one.unverified), *left_out))


def _specialist(name: str, written: WrittenSpecialist, found: Found, place: Place, strict: bool) -> Settled:
    entries = _entries(written, place)
    if entries:
        checks = _written_checks(entries, written, place)
        _refuse_idle_keys(written, checks, place)
        return settle_written(checks, name, found.project, found.installed)
    return _detected(name, written, found, place, strict)


def _entries(written: WrittenSpecialist, place: Place) -> list[WrittenCheck]:
    """The checks the user wrote; empty means those that are detected."""
    if "command" not in written:
        return written.get("check", [])
    if "check" in written:
        checks = f"[[{place.heading.strip('[]')}.check]]"
        raise place.error(f"has a command and {checks} as well; write the command as one more check")
    return [WrittenCheck(command=written["command"])]


def _written_checks(
    entries: list[WrittenCheck], written: WrittenSpecialist, place: Place
) -> tuple[Check, ...]:
    in_list = "check" in written
    checks = []
    for item, entry in enumerate(entries, 1):
        at = place.inside("check", item) if in_list else place
        if "command" not in entry:
            raise at.error("has no command")
        name = entry.get("name", program_name(entry["command"]))
        # Who writes {coverage} asks for it.
        gate = TARGET_COVERAGE_PERCENT if any("{coverage}" in word for word in entry["command"]) else None
        check = Check(name=name, command=entry["command"], coverage_percent=gate)
        checks.append(_with_keys(_with_keys(check, written), entry))
        if in_list:
            _refuse_idle_keys(entry, (checks[-1],), at)
    for name, count in Counter(check.name for check in checks).items():
        if count > 1:
            raise place.error(f"has {count} checks named {name!r}; give each a name of its own")
    return tuple(checks)


def _detected(name: str, written: WrittenSpecialist, found: Found, place: Place, strict: bool) -> Settled:
    """A specialist that the user names without a command: what is detected for it has to run."""
    proposals = found.of(name, gated="coverage_percent" in written)
    if not any(proposal.check.command for proposal in proposals):
        raise place.error("has no command, and nothing was detected for this specialist; give it a command")
    _refuse_idle_keys(written, [proposal.check for proposal in proposals], place)
    settled = settle(proposals, found.installed)
    checks = tuple(_with_keys(check, written) for check in settled.checks)
    if written.get("optional"):
        return Settled(checks, _all(settled, blocks=False).unverified)
    must = {proposal.tool for proposal in proposals if proposal.check.command}
    return Settled(
        checks,
        tuple(
            entry.model_copy(update={"blocks": strict or entry.name in must}) for entry in settled.unverified
        ),
    )


def _all(settled: Settled, *, blocks: bool) -> Settled:
    entries = tuple(entry.model_copy(update={"blocks": blocks}) for entry in settled.unverified)
    return settled._replace(unverified=entries)


def _with_keys(check: Check, written: WrittenCheck) -> Check:
    """`check` with the keys of its own entry or of its specialist applied."""
    kinds = check.report_kinds()
    return check.model_copy(
        update={
            "output": written.get("output", check.output),
            "baseline": written.get("baseline", check.baseline),
            "optional": written.get("optional", check.optional),
            "fail_on": written.get("fail_on", check.fail_on) if "sarif" in kinds else FailOn.ERROR,
            "coverage_percent": (
                written.get("coverage_percent", check.coverage_percent) if "coverage" in kinds else None
            ),
            "env": tuple(dict.fromkeys((*check.env, *written.get("env", ())))),
        }
    )


def _refuse_idle_keys(written: Mapping[str, object], checks: Iterable[Check], place: Place) -> None:
    """A gate that no check measures would look like one that holds (B68)."""
    kinds = {kind for check in checks for kind in check.report_kinds()}
    for key, kind in (("coverage_percent", "coverage"), ("fail_on", "sarif")):
        if key in written and kind not in kinds:
            raise place.at(key).error(f"has no effect, because no command here writes {{{kind}}}")


def _refuse_missing_frontend(frontend: bool | None, each: Mapping[str, Settled], place: Place) -> None:
    if frontend and not each.get(FRONTEND_ONLY, Settled()).checks:
        raise place.at("frontend").error(
            f"is true, but nothing says how {FRONTEND_ONLY} is run; give [specialist.{FRONTEND_ONLY}] a command"
        )


def _tests_left_out(found: Found, each: Mapping[str, Settled], strict: bool) -> list[Unverified]:
    """Tests that none of the user's specialists is for: a pass would seem to speak of them, too."""
    if not TEST_SPECIALISTS.isdisjoint(each):
        return []
    tools = {proposal.tool: proposal.specialist for proposal in found.proposals if proposal.runs_tests}
    words = {word for settled in each.values() for check in settled.checks for word in check.command}
    return [
        Unverified(
            name=tool,
            specialist=specialist,
            reason="no check of fixloop.toml runs it",
            remedy=f"add [specialist.{specialist}]",
            blocks=strict,
        )
        for tool, specialist in tools.items()
        if tool not in words
    ]
