"""The judge of moved code: out of a check's scope, out of the project, or to raise coverage without tests."""

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fixloop.configuration.model import NEW_BY_DEFAULT, Check
from fixloop.integrity.bought import Coverage, Measured, called_at_import, dead_lines, percent_earned, reached
from fixloop.integrity.moved import MOVED, PADDED, gone, left_out, looked_at, moved_away, percent_of_old_lines
from fixloop.integrity.paths import Kind, matches, shipped
from fixloop.protocol.checks import Finding, RunOutcome
from fixloop.reports.coverage import is_too_low
from fixloop.reports.document import bytes_if_any
from fixloop.repository.tree import SYMLINK, contents, texts, tracked_in_tree
from workers.commands.check_run import Ran, run_check
from workers.commands.claim import MOST_BYTES, Claim

RULES: Final = frozenset({MOVED, PADDED})
_COVERAGE: Final = "coverage"
_Code = Mapping[str, str]


def work_moved_away(claim: Claim) -> Iterator[Finding]:
    """Findings for static checks, for coverage gates that were missed before, and for links."""
    if RULES.issubset(claim.configuration.integrity.off):
        return
    yield from led_out(claim)
    is_static = claim.work.holding.ticket.specialist in NEW_BY_DEFAULT
    if not is_static and not claim.was_uncovered:
        return
    old, new = claim.sides(Kind.PRODUCT)
    for failure, name in gone(old, new, claim.failures if is_static else ()):
        text = f"`{name}` is gone, of which was said: {failure.error or failure.name}"
        yield Finding(rule=MOVED, text=text, file=failure.file)
    tracked = map(os.fsdecode, tracked_in_tree(claim.git, claim.trusted))
    names = {f"{claim.trusted}:{path}": seen for path in tracked if (seen := claim.inside(path))}
    at_top = [name for name, path in names.items() if "/" not in path]
    settings = {names[name]: text for name, text in texts(claim.git, at_top, MOST_BYTES).items()}
    for check, ran in zip(claim.checks, claim.ran, strict=True):
        places, hidden = looked_at(check.command, names.values()), left_out(check.command, settings)
        yield from left(check, places, old, new, hidden)
        if claim.was_uncovered:
            now = measured(check, ran, claim.ground.workspace.directory)
            found = [*padded(check, ran, now, old, new)]
            yield from found or bought(claim, check, ran, now, old, new)


def led_out(claim: Claim) -> Iterator[Finding]:
    """New or changed links to targets outside the project, which no snapshot contains."""
    links = [delta for delta in claim.changed if delta.new.mode == SYMLINK]
    targets = contents(claim.git, (delta.new.blob for delta in links))
    for delta in links:
        path, target = os.fsdecode(delta.path), os.fsdecode(targets[delta.new.blob])
        # An absolute target is outside, too.
        if os.path.normpath(os.path.join(os.path.dirname(path), target)).startswith(("/", "../")):
            yield Finding(rule=MOVED, text=f"{path} leads out of the project, to {target}", file=path)


def started_by_others(claim: Claim) -> Iterator[Finding]:
    """New or changed files that editors, agents, shells, git and CI run when somebody opens or pushes the fix."""
    started, product = shipped()["started"], claim.configuration.integrity.product
    for path in (os.fsdecode(delta.path) for delta in claim.changed if not delta.is_deletion):
        if matches(path.casefold(), started) and not matches(path, product):
            yield Finding(rule="started-by-others", text=f"{path} is run without a check", file=path)


def left(
    check: Check, places: Sequence[str], old: _Code, new: _Code, hidden: Collection[str] = ()
) -> Iterator[Finding]:
    """Code that left the scope of a check."""
    found = list(moved_away(places, old, new, hidden))
    if found:
        first = found[0]
        yield Finding(
            rule=MOVED,
            text=f"{len(found)} {'line' if len(found) == 1 else 'lines'} left what `{check.name}` looks at, the first"
            f" from {first.old}:{first.old_line}",
            check=check.name,
            file=first.new,
            line=first.new_line,
            old=old[first.old].split("\n")[first.old_line - 1],
            new=new[first.new].split("\n")[first.new_line - 1],
        )


def padded(check: Check, ran: Ran, now: Coverage, old: _Code, new: _Code) -> Iterator[Finding]:
    """A coverage gate that is met only with the lines that a fix added."""
    covered = {path: (each.executed, each.missing) for path, each in now.items()}
    percent = percent_of_old_lines(covered, old, new)
    text = "of the lines that were there before {:.1f}% are covered"
    yield from _below_gate(check, ran, percent, text, new)


def bought(claim: Claim, check: Check, ran: Ran, now: Coverage, old: _Code, new: _Code) -> Iterator[Finding]:
    """A coverage gate that is met because uncovered code was deleted and no test is new, or because modules newly run
    it at import. The check runs once more on the trusted commit to find the lines that were not covered."""
    called = {name for path, text in new.items() for name in called_at_import(old.get(path, ""), text)}
    is_tested = bool(claim.changed_of(Kind.TEST))
    if not now or ran.result.evidence.coverage_gate is None or (is_tested and not called):
        return
    with claim.fresh_ground("snapshot", claim.trusted) as ground:
        once = None if ground.problem else run_check(check, ground, ground.workspace.tree_hash(), claim.run)
        before = measured(check, once, ground.workspace.directory) if once else {}
    if once is None or not before or once.result.outcome is RunOutcome.ERROR:
        return
    if is_tested or not all(map(is_too_low, once.result.failures)):
        lines = reached({path: each.text for path, each in now.items()}, called)
        percent = percent_earned(now, before, only=lines)
        text = "without what modules newly call when they are imported {:.1f}% are covered"
    else:

        def mentions(name: str) -> int:
            """How often this word occurs at the trusted commit."""
            found = claim.git.run("grep", "-owhIF", "-e", name, claim.trusted, accept=(0, 1))
            return len(found.stdout.splitlines())

        percent = percent_earned(now, before, dead=dead_lines(old, new, mentions))
        text = "no test is new, and if what was missed before counts as missed {:.1f}% are covered"
    yield from _below_gate(check, ran, percent, text, new)


def measured(check: Check, ran: Ran, directory: Path) -> dict[str, Measured]:
    """The coverage of each file in the check's report; empty if the report does not list lines."""
    report = dict(zip(check.report_kinds(), ran.reports, strict=False)).get(_COVERAGE)
    try:
        files: dict[str, Any] = json.loads(bytes_if_any(report))["files"] if report else {}
        return {
            os.path.normpath(path): Measured(
                (directory / path).read_text(errors="replace") if (directory / path).is_file() else "",
                each["executed_lines"],
                each["missing_lines"],
            )
            for path, each in files.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _below_gate(
    check: Check, ran: Ran, percent: float | None, text: str, new: Mapping[str, str]
) -> Iterator[Finding]:
    gate = ran.result.evidence.coverage_gate
    if gate is not None and percent is not None and percent < gate:
        text = f"{text.format(percent)}, and the gate is {gate:g}%"
        yield Finding(rule=PADDED, text=text, check=check.name, file=min(new, default=""))
