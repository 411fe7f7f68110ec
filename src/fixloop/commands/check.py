"""`check`: the verdict on a checkout as it is, in this process and without a workflow."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fixloop.commands.dry_run import exit_code_of, verdict_of
from fixloop.commands.outcome import blocking, missing_lines
from fixloop.commands.run_options import All, BaseRevision, Only
from fixloop.commands.screen import note, print_json, print_lines, print_text, short
from fixloop.configuration.model import Configuration, SpecialistChecks
from fixloop.errors import UsageError
from fixloop.intake.feature import Feature
from fixloop.intake.frozen_configuration import interpreter_at
from fixloop.intake.last_check import Kept, LastCheck, circumstances, keep_check, last_check
from fixloop.intake.preparation import Prepared, prepare
from fixloop.intake.trial import Tried, try_checks
from fixloop.protocol.checks import RunOutcome
from fixloop.protocol.failures import Comparison, Failure, compare
from fixloop.protocol.grouping import groups
from fixloop.protocol.state import FailureRef
from fixloop.servers.settings import load_settings

MOST_CHARACTERS: Final = 4_000
"""Of what is said about failures: an agent reads it after each of its edits."""
MOST_IN_FULL: Final = 20
MESSAGE_CHARACTERS: Final = 600
_REUSED: Final = frozenset({RunOutcome.PASSED, RunOutcome.FAILED})


def check(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The project's folder.")] = Path("."),
    only: Only = None,
    base: BaseRevision = None,
    all_: All = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first check that fails.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Run also what ran already on the same tree, with the same tools.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    show: Annotated[
        str | None, typer.Option("--show", metavar="ID", help="One failure of the last check in full.")
    ] = None,
) -> None:
    """
    Check a project as it lies there: no Redis, no workflow; files and branches stay.

    The same checks, workspaces and gates as `fixloop run`. The first line is the verdict and what has changed since
    the last check; what failed last runs first; what ran on the same tree is not run again. Exit codes: 0 passed,
    1 failed, 3 could not check.
    """
    cache = load_settings().cache_dir
    if show is not None:
        _show(last_check(cache, path), show)
        return
    prepared = prepare(None, Feature(repo=str(path), only=only, base=base, gates_all=all_), cache)
    note(*prepared.snapshot.notes)
    last = last_check(cache, path)
    found = _found(prepared, LastCheck() if again else last, cache, is_hasty=fail_fast)
    kept = [each for each in found if each.result.outcome in _REUSED]
    if any(each is not last.of(*each.key) for each in kept):
        keep_check(cache, path, last.updated(kept))
    tried = [Tried(specialist=each.specialist, result=each.result) for each in found]
    unverified = prepared.configuration.unverified
    code, verdict = exit_code_of(tried, unverified), verdict_of(tried, unverified)
    difference = _difference(last, found)
    failures = in_order(found)
    if as_json:
        print_json(_document(verdict, code, prepared, last, found))
    else:
        print_lines("; ".join(filter(None, (verdict, difference))), *failure_rows(failures))
        errors = [each.result for each in found if each.result.outcome is RunOutcome.ERROR]
        print_lines(*(f"  {each.check} could not run: {short(each.reason, 400)}" for each in errors))
        print_lines(*missing_lines(blocking(unverified) or (() if found else unverified)))
    raise typer.Exit(code)


def _found(prepared: Prepared, last: LastCheck, cache: Path, *, is_hasty: bool) -> list[Kept]:
    """The result of each check, those that are known already first."""
    snapshot, configuration = prepared.snapshot, prepared.configuration
    interpreter = interpreter_at(Path(snapshot.source) / snapshot.subdirectory)
    digests = {
        (entry.name, check.name): circumstances(entry, check, snapshot, configuration, interpreter)
        for entry in configuration.specialists
        for check in entry.checks
    }
    known = [each for each in last.kept if digests.get(each.key) == each.circumstances]
    if is_hasty and any(each.result.outcome is RunOutcome.FAILED for each in known):
        return known
    rest = _without(configuration, {each.key for each in known}, last)
    found = list(known)
    for each in try_checks(snapshot, rest, cache) if rest.specialists else ():
        # The names of ten thousand tests that passed are of no use here.
        result = each.result.model_copy(update={"passed_names": ()})
        digest = digests.get((each.specialist, result.check), "")
        found.append(Kept(specialist=each.specialist, circumstances=digest, result=result))
        if is_hasty and result.outcome is RunOutcome.FAILED:
            break
    return found


def _without(configuration: Configuration, known: set[tuple[str, str]], last: LastCheck) -> Configuration:
    """Only what has to run: what failed last first, then what was quick, then what was slow or is new."""

    def rank(entry: SpecialistChecks) -> tuple[bool, float]:
        ranks = [each.rank for check in entry.checks if (each := last.of(entry.name, check.name))]
        return min(ranks, default=(True, float("inf")))

    entries = []
    for entry in configuration.specialists:
        checks = tuple(check for check in entry.checks if (entry.name, check.name) not in known)
        if checks:
            entries.append(entry.model_copy(update={"checks": checks}))
    return configuration.model_copy(update={"specialists": tuple(sorted(entries, key=rank))})


def _difference(last: LastCheck, found: Sequence[Kept]) -> str:
    """`2 fixed, 1 new, 3 left; was 5`, of the checks that ran before, too."""
    if found and all(each is last.of(*each.key) for each in found):
        return "nothing has changed since the last check"
    compared = _compared(last, found)
    counts = {"fixed": compared.resolved, "new": compared.new, "left": compared.persisting}
    told = ", ".join(f"{len(names)} {word}" for word, names in counts.items() if names)
    return f"{told}; was {compared.previous_count}" if told else ""


def _compared(last: LastCheck, found: Iterable[Kept]) -> Comparison:
    now = [each for each in found if last.of(*each.key) and each.result.outcome in _REUSED]
    before = [each for new in now if (each := last.of(*new.key))]
    keys = ([failure.key for each in kept for failure in each.result.failures] for kept in (before, now))
    return compare(*keys)


def in_order(found: Iterable[Kept]) -> list[list[tuple[str, Failure]]]:
    """The failures in groups of one cause, the largest first, each with its id; a group's first is its example."""
    failures = [failure for each in found for failure in each.result.failures]
    positions = groups([FailureRef.of(failure) for failure in failures])
    numbered, made = iter(range(1, len(failures) + 1)), []
    for group in positions:
        made.append([(f"F{next(numbered)}", failures[position]) for position in group])
    return made


def failure_rows(failures: Sequence[Sequence[tuple[str, Failure]]]) -> Iterator[str]:
    """All ids by cause as far as there is room, with the first examples in full, and how to see the rest."""
    rest, left = MOST_CHARACTERS, sum(len(group) for group in failures)
    for number, group in enumerate(failures):
        (identity, example), *others = group
        place = f" ({example.location})" if example.location else ""
        rows = [f"{identity} {short(f'{example.name}{place}', 200)}"]
        message = example.message[:MESSAGE_CHARACTERS]
        told = message.splitlines() if number < MOST_IN_FULL else [short(message, 120)]
        told += ["…"] if message != example.message else []
        told += [f"again: {example.rerun}"] if example.rerun and number < MOST_IN_FULL else []
        rows += [f"    {line}" for line in told]
        rows += [f"    the same: {_named(others)}"] if others else []
        if (rest := rest - sum(len(row) + 1 for row in rows)) < 0:
            yield f"{left} more are not shown; `fixloop check --show ID` shows one, --json all"
            return
        left -= len(group)
        yield from rows


def _named(others: Sequence[tuple[str, Failure]]) -> str:
    named, length = list[str](), 0
    for identity, failure in others:
        length += len(word := f"{identity} {short(failure.name, 80)}")
        if length > MESSAGE_CHARACTERS:
            return f"{', '.join(named)} and {len(others) - len(named)} more"
        named.append(word)
    return ", ".join(named)


def _show(last: LastCheck, identity: str) -> None:
    shown = {name: failure for group in in_order(last.kept) for name, failure in group}
    if identity not in shown:
        known = f"F1 to F{len(shown)}" if shown else "nothing: `fixloop check` first"
        raise UsageError(f"the last check has no failure {identity!r}; it has {known}")
    failure = shown[identity]
    parts = (failure.message, failure.context, failure.source, failure.suggestion, failure.rerun)
    heading = " ".join(filter(None, (identity, failure.name, failure.location, failure.error_type)))
    print_text("\n\n".join(filter(None, (heading, *parts))))


def _document(
    verdict: str, code: int, prepared: Prepared, last: LastCheck, found: Sequence[Kept]
) -> dict[str, Any]:
    compared = _compared(last, found)
    return {
        "verdict": verdict,
        "exit_code": int(code),
        "tree": prepared.snapshot.tree,
        "base": prepared.snapshot.base,
        "difference": {"fixed": compared.resolved, "new": compared.new, "left": compared.persisting},
        "checks": [
            {
                "specialist": each.specialist,
                "check": each.result.check,
                "outcome": each.result.outcome.value,
                "reason": each.result.reason,
                "reused": each is last.of(*each.key),
                "evidence": each.result.evidence.model_dump(mode="json", exclude_defaults=True),
            }
            for each in found
        ],
        "failures": [
            {"id": identity, **failure.model_dump(mode="json", exclude_defaults=True, exclude={"id"})}
            for group in in_order(found)
            for identity, failure in group
        ],
    }
