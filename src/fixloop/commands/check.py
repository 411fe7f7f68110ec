"""`check`: the verdict on a checkout as it is, in this process, without a workflow."""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import inf
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from typer import Argument, Exit, Option

from fixloop.commands.check_files import FORMS, Report, annotations, summary, without_commands
from fixloop.commands.run_options import All, BaseRevision, Only
from fixloop.commands.screen import few, note, print_json, print_lines, print_text, short
from fixloop.commands.verdict import blocking, exit_code_of, missing_lines, verdict_of
from fixloop.configuration.model import Configuration
from fixloop.errors import ExitCode, UsageError
from fixloop.intake.feature import Feature
from fixloop.intake.hook_files import forget_let_go
from fixloop.intake.last_check import Kept, LastCheck, keep_check, last_check
from fixloop.intake.preparation import Prepared, prepare, with_gates_of_base
from fixloop.intake.recheck import Ran, recheck
from fixloop.intake.trial import Tried
from fixloop.protocol.checks import RunOutcome
from fixloop.protocol.failures import Comparison, Failure, FailureKey, FailureRef, compare, groups
from fixloop.repository.moves import Moves
from fixloop.repository.snapshot import checkout_tree, mirror_of
from fixloop.servers.settings import load_settings

WATCH_SECONDS: Final = 0.5
MOST_CHARACTERS: Final = 4_000
"""Of all text about failures: an agent reads it after each of its edits."""
MOST_IN_FULL: Final = 20
MESSAGE_CHARACTERS: Final = 600
_REUSED: Final = frozenset({RunOutcome.PASSED, RunOutcome.FAILED})


def check(
    path: Annotated[Path, Argument(metavar="PATH", help="The project's folder.")] = Path("."),
    only: Only = None,
    base: BaseRevision = None,
    all_: All = False,
    fast: Annotated[
        bool, Option("--fast", help='Only checks with `speed = "fast"` in fixloop.toml.')
    ] = False,
    fail_fast: Annotated[bool, Option("--fail-fast", help="Stop at the first check that fails.")] = False,
    within: Annotated[
        float,
        Option(
            metavar="SECONDS",
            min=1,
            help="Time limit: skip longer checks, stop what still runs.",
            show_default="no limit",
        ),
    ] = inf,
    changed: Annotated[
        bool, Option("--changed", help="Run affected tests first; skip the others if these fail.")
    ] = False,
    again: Annotated[
        bool, Option("--again", help="Also repeat what ran on the same tree with the same tools.")
    ] = False,
    watch: Annotated[
        bool, Option("--watch", help="Check again whenever a file changes, until Ctrl-C.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    sarif: Annotated[Path | None, Option(metavar="FILE", help="Also write SARIF.")] = None,
    junit: Annotated[Path | None, Option(metavar="FILE", help="Also write JUnit.")] = None,
    code_quality: Annotated[
        Path | None, Option(metavar="FILE", help="Also write GitLab Code Quality.")
    ] = None,
    github: Annotated[
        bool, Option("--github", help="Also write GitHub annotations and a job summary.")
    ] = False,
    show: Annotated[
        str | None, Option(metavar="ID", help="Show one failure of the last check in full.")
    ] = None,
) -> None:
    """
    Check a project as it is, without Redis or a workflow. Changes no files or branches.

    Uses the checks, workspaces and gates of `fixloop run`. The first line gives the verdict and what changed since
    the last check. What failed last time runs first; what ran on the same tree is not repeated. Exit codes:
    0 passed, 1 failed, 3 could not check.
    """
    settings = load_settings()
    cache = settings.cache_dir
    if show is not None:
        _show(last_check(cache, path), show)
        return
    if watch and not checkout_tree(path):
        raise UsageError(f"{path} is not in a git repository, which --watch needs; leave --watch out")
    files = {"sarif": sarif, "junit": junit, "code_quality": code_quality}
    while True:
        until = time.monotonic() + within
        feature = Feature(repo=str(path), only=only, base=base, gates_all=all_, runs_here=True)
        prepared = with_gates_of_base(prepare(None, feature, cache), feature, cache)
        note(*prepared.snapshot.notes)
        kept = last_check(cache, path)
        last = LastCheck(cut_off=kept.cut_off) if again else kept
        chosen = prepared._replace(configuration=_fast(prepared.configuration)) if fast else prepared
        if changed and not prepared.snapshot.base:
            note("--changed has no effect: there is no base to compare with")
        at_once = settings.ahead > 0
        ran = recheck(chosen, last, cache, until=until, is_hasty=fail_fast, at_once=at_once, changed=changed)
        reusable = [each for each in ran.found if each.result.outcome in _REUSED]
        if ran.cut_off or any(each is not last.of(*each.key) for each in reusable):
            keep_check(cache, path, last.updated(reusable, ran.cut_off))
        told = _told(chosen, last, ran, within)
        if told.code == ExitCode.DONE and only is None and not fast:
            forget_let_go(cache, path)
        if as_json:
            print_json(_document(prepared, last, ran, told))
        else:
            print_lines(*(without_commands(told.rows) if github else told.rows))
        _write(Report(told.verdict, [each.result for each in ran.found]), prepared, cache, files, github)
        if not watch:
            raise Exit(told.code)
        while checkout_tree(path) == prepared.snapshot.tree:
            time.sleep(WATCH_SECONDS)


class _Told(NamedTuple):
    verdict: str
    code: ExitCode
    rows: list[str]


def _told(prepared: Prepared, last: LastCheck, ran: Ran, within: float) -> _Told:
    """What is printed about a check, starting with verdict and difference."""
    tried = [Tried(specialist=each.specialist, result=each.result) for each in ran.found]
    unverified = prepared.configuration.unverified
    code, verdict = exit_code_of(tried, unverified), verdict_of(tried, unverified)
    if ran.left_out:
        limit = "" if within == inf else f" within {within:.0f} s"
        verdict = f"{verdict}; not run{limit}: {few(ran.left_out)}"
        code = code or ExitCode.WAITS
    first, compared = [verdict], _compared(last, ran.found)
    if code is ExitCode.WRONG and prepared.snapshot.commit == (base := prepared.snapshot.base):
        first.append(f"nothing differs from {prepared.snapshot.base_name or base[:7]}, so none is new")
    counts = {"fixed": compared.resolved, "new": compared.new, "left": compared.persisting}
    if ran.found and all(each is last.of(*each.key) for each in ran.found):
        first.append("nothing has changed since the last check")
    elif any(counts.values()):
        # Only of checks that ran before as well.
        told = ", ".join(f"{len(names)} {word}" for word, names in counts.items() if names)
        known = (last.of(*each.key) for each in ran.found if each.result.outcome in _REUSED)
        first += [told, f"was {sum(len(old.result.failures) for old in known if old)}"]
    rows = ["; ".join(first)]
    rows += failure_rows(in_order(ran.found))
    errors = [each.result for each in ran.found if each.result.outcome is RunOutcome.ERROR]
    rows += [f"  {each.check} could not run: {short(each.reason, 400)}" for each in errors]
    rows += missing_lines(blocking(unverified) or (() if ran.found else unverified))
    return _Told(verdict, code, rows)


def _fast(configuration: Configuration) -> Configuration:
    chosen = []
    for entry in configuration.specialists:
        if checks := tuple(check for check in entry.checks if check.speed == "fast"):
            chosen.append(entry.model_copy(update={"checks": checks}))
    if not chosen:
        raise UsageError('no check has `speed = "fast"` in fixloop.toml; add it to those that --fast runs')
    return configuration.model_copy(update={"specialists": tuple(chosen)})


def _write(
    report: Report, prepared: Prepared, cache: Path, files: Mapping[str, Path | None], is_github: bool
) -> None:
    """Write the report in each requested format."""
    snapshot = prepared.snapshot
    report = report._replace(folder=snapshot.subdirectory)
    if is_github and snapshot.base:
        moves = Moves(mirror_of(snapshot, cache).git, snapshot.base, snapshot.commit)
        named = {report.path(failure) for failure in report.failures}
        report = report._replace(changed={path: frozenset(moves.lines(path).added) for path in named})
    texts = [(path, FORMS[name](report), "w") for name, path in files.items() if path is not None]
    if is_github:
        print_lines(*annotations(report))
        if place := os.environ.get("GITHUB_STEP_SUMMARY"):
            texts.append((Path(place), summary(report), "a"))
    for path, text, mode in texts:
        try:
            with path.open(mode, encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}; name a writable file") from None


def _compared(last: LastCheck, found: Iterable[Kept]) -> Comparison:
    before, now = list[FailureKey](), list[FailureKey]()
    for new in found:
        if (old := last.of(*new.key)) and new.result.outcome in _REUSED:
            had, has = ([failure.key for failure in each.result.failures] for each in (old, new))
            ran, runs = (each.result.evidence.counts.total for each in (old, new))
            if new.result.lists_tests and runs < ran and not set(has) <= set(had):
                # When a build breaks, for example: what did not run is not fixed.
                had = [key for key in had if key in has]
            before, now = before + had, now + has
    return compare(before, now)


def in_order(found: Iterable[Kept]) -> list[list[tuple[str, Failure]]]:
    """The failures with their ids, grouped by cause, largest group first; a group's first is its example."""
    failures = [failure for each in found for failure in each.result.failures]
    numbers, causes = count(1), groups(map(FailureRef.of, failures))
    return [[(f"F{next(numbers)}", failures[position]) for position in cause] for cause in causes]


def failure_rows(failures: Sequence[Sequence[tuple[str, Failure]]]) -> Iterator[str]:
    """As many ids as fit, by cause, with the first examples in full, and how to see the rest."""
    rest, left = MOST_CHARACTERS, sum(len(group) for group in failures)
    for number, group in enumerate(failures):
        (identity, example), *others = group
        place = f" ({example.location})" if example.location else ""
        rows = [f"{identity} {short(f'{example.name}{place}', 200)}"]
        message = example.message[:MESSAGE_CHARACTERS]
        told = message.splitlines() if number < MOST_IN_FULL else [short(message, 120)]
        told += ["…"] if message != example.message else []
        told += [example.suggestion] if example.suggestion else []
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
        known = f"F1 to F{len(shown)}" if shown else "none: run `fixloop check` first"
        raise UsageError(f"the last check has no failure {identity!r}; it has {known}")
    failure = shown[identity]
    parts = (failure.message, failure.context, failure.source, failure.suggestion, failure.rerun)
    heading = " ".join(filter(None, (identity, failure.name, failure.location, failure.error_type)))
    print_text("\n\n".join(filter(None, (heading, *parts))))


def _document(prepared: Prepared, last: LastCheck, ran: Ran, told: _Told) -> dict[str, Any]:
    found, compared = ran.found, _compared(last, ran.found)
    keys = sorted(str(failure.key) for each in found for failure in each.result.failures)
    return {
        "verdict": told.verdict,
        "exit_code": int(told.code),
        "text": told.rows,
        "signature": hashlib.sha256("\n".join(keys).encode()).hexdigest()[:16],
        "left_out": ran.left_out,
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
