"""The judge of work that was moved away: out of what a check looks at, or under a gate that counts lines."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fixloop.configuration.model import NEW_BY_DEFAULT, Check
from fixloop.integrity.moved import MOVED, PADDED, looked_at, moved_away, percent_of_old_lines
from fixloop.integrity.paths import Kind
from fixloop.protocol.checks import Finding
from fixloop.repository.tree import SYMLINK, contents, tracked_in_tree
from workers.commands.check_run import Ran
from workers.commands.claim import Claim
from workers.commands.sides import inside, sides

RULES: Final = frozenset({MOVED, PADDED})
_COVERAGE: Final = "coverage"


def work_moved_away(claim: Claim) -> Iterator[Finding]:
    """Of checks that look at code as it lies there, of gates of coverage that were missed before, and of links."""
    if RULES.issubset(claim.configuration.integrity.off):
        return
    yield from led_out(claim)
    is_static = claim.work.holding.ticket.specialist in NEW_BY_DEFAULT
    if not is_static and not claim.was_uncovered:
        return
    old, new = sides(claim, Kind.PRODUCT)
    tracked = tracked_in_tree(claim.git, claim.trusted)
    paths = [seen for path in tracked if (seen := inside(claim, os.fsdecode(path)))]
    for check, ran in zip(claim.checks, claim.ran, strict=True):
        if places := looked_at(check.command, paths):
            yield from left(check, places, old, new)
        if claim.was_uncovered:
            yield from padded(check, ran, old, new)


def led_out(claim: Claim) -> Iterator[Finding]:
    """New links to what is no part of the project, and so of no snapshot."""
    links = [delta for delta in claim.changed if delta.new.mode == SYMLINK]
    targets = contents(claim.git, (delta.new.blob for delta in links))
    for delta in links:
        path, target = os.fsdecode(delta.path), os.fsdecode(targets[delta.new.blob])
        # An absolute one leads out, too.
        if os.path.normpath(os.path.join(os.path.dirname(path), target)).startswith(("/", "../")):
            yield Finding(rule=MOVED, text=f"{path} leads out of the project, to {target}", file=path)


def left(
    check: Check, places: tuple[str, ...], old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[Finding]:
    """The code that has left the places at which a check looks."""
    found = list(moved_away(places, old, new))
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


def padded(check: Check, ran: Ran, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Finding]:
    """A gate of coverage that is only met with the lines that a fix has added."""
    gate = ran.result.evidence.coverage_gate
    report = dict(zip(check.report_kinds(), ran.reports, strict=False)).get(_COVERAGE)
    if gate is None or report is None:
        return
    try:
        files: dict[str, Any] = json.loads(report.read_bytes())["files"]
        covered = {
            os.path.normpath(path): (each["executed_lines"], each["missing_lines"])
            for path, each in files.items()
        }
        percent = percent_of_old_lines(covered, old, new)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    if percent is not None and percent < gate:
        text = f"of the lines that were there before {percent:.1f}% are covered, and the gate is {gate:g}%"
        yield Finding(rule=PADDED, text=text, check=check.name, file=min(new, default=""))
