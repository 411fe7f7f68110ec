"""Every test that passed before must pass again after a fix, which may have renamed it.

Owns the stored lists of test names, one for each check whose report lists tests.
"""

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

from fixloop.integrity.cases import READ, brought_forward, is_seen
from fixloop.outside.transfer import snapshot_in
from fixloop.protocol.checks import Finding, RunOutcome
from fixloop.protocol.events import RunFinished
from fixloop.repository.mirror import Mirror
from fixloop.repository.tree import ABSENT, contents, deltas
from workers.commands.check_run import Ran
from workers.commands.claim import Claim
from workers.steps.step import Step

MOST_NAMES: Final = 20_000
LISTED: Final = 10
MOST_TOLD: Final = 100
MOST_BYTES: Final = 1_000_000
"""How much of a file is read for its tests."""


def renamed(work: Step, ran: Sequence[Ran], mirror: Mirror) -> dict[str, str]:
    """The new names of tests that were owed or passed before, are in no report now, and passed under another name."""
    state = work.holding.state
    listed = {name for one in ran for name in one.result.cases}
    listed |= {failure.name for one in ran for failure in (*one.result.failures, *one.result.old_failures)}
    expected = {name for one in ran for name in _expected(work, one.result.check)}
    missing = sorted((expected | {ref.name for ref in state.active.owed}) - listed)
    if not missing or not state.trusted or state.trusted == state.tip:
        return {}
    before, after = _texts(work, mirror)
    passed = {name for one in ran for name in one.result.cases}
    return brought_forward(missing, passed, before, after)


def noted(work: Step, ran: Sequence[Ran], event: RunFinished, mirror: Mirror) -> dict[str, Any]:
    """The event's fields about test names: owed tests that passed, renamed tests, and stored lists."""
    state = work.holding.state
    owed, now = {ref.name for ref in state.active.owed}, renamed(work, ran, mirror)
    passed = tuple(sorted({*event.passed, *(owed & now.keys())}))
    # Later runs are compared with a tree that has no fix yet or that a person accepted.
    is_first = not state.active.runs or state.trusted == state.tip or state.tree in state.accepted
    lists = {}
    for one in ran:
        check, known = one.result.check, _expected(work, one.result.check)
        if one.result.outcome not in (RunOutcome.PASSED, RunOutcome.FAILED) or not state.trusted:
            continue
        names = one.result.cases if is_first else known | (owed & one.result.cases)
        if names and names != known:
            text = json.dumps(sorted(names)[:MOST_NAMES])
            lists[check] = work.store.put_artifact(state.workflow, text.encode())
    renames = dict(list(now.items())[:MOST_TOLD])
    kept = (*event.artifacts, *lists.values())
    return {"passed": passed, "renamed": renames, "cases": lists, "artifacts": tuple(dict.fromkeys(kept))}


def not_seen_again(claim: Claim) -> Iterator[Finding]:
    """For each check, the tests that passed before and now pass under no name."""
    workspace = claim.ground.workspace
    top = workspace.directory.relative_to(workspace.path)
    changed = {os.path.relpath(os.fsdecode(delta.path), top) for delta in claim.changed}
    now = renamed(claim.work, claim.ran, workspace.mirror)
    for one in claim.ran:
        check, passed = one.result.check, one.result.cases
        expected = _expected(claim.work, check)
        gone = sorted(
            name for name in expected - passed - now.keys() if not is_seen(name, expected, passed, changed)
        )
        if gone:
            first, rest = gone[:LISTED], len(gone) - LISTED
            names = "\n".join(first) + (f"\nand {rest} more" if rest > 0 else "")
            file = gone[0].partition("::")[0] if "::" in gone[0] else ""
            what = (
                "a test that passed before was"
                if len(gone) == 1
                else f"{len(gone)} tests that passed before were"
            )
            text = f"{what} not seen to pass again"
            yield Finding(rule="not-seen-again", text=text, check=check, file=file, old=names[:1000])


def _expected(work: Step, check: str) -> frozenset[str]:
    state = work.holding.state
    digest = state.active.cases.get(check, "")
    kept = work.store.get_artifact(state.workflow, digest) if digest else None
    return frozenset(json.loads(kept)) if kept else frozenset()


def _texts(work: Step, mirror: Mirror) -> tuple[dict[str, str], dict[str, str]]:
    """The old and new texts of changed files whose tests can be matched, by path from where checks run."""
    state, folder = work.holding.state, snapshot_in(work.holding.state).subdirectory
    prefix = f"{folder}/" if folder else ""
    sides: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for delta in deltas(mirror.git, state.trusted, state.tip):
        path = os.fsdecode(delta.path)
        if path.rpartition(".")[2] in READ and path.startswith(prefix) and not delta.is_submodule:
            for side, entry in zip(sides, (delta.old, delta.new), strict=True):
                if entry.mode != ABSENT:
                    side[path.removeprefix(prefix)] = entry.blob
    read = contents(mirror.git, (blob for side in sides for blob in side.values()))
    texts = {blob: data[:MOST_BYTES].decode("utf-8", "replace") for blob, data in read.items()}
    before, after = ({path: texts.get(blob, "") for path, blob in side.items()} for side in sides)
    return before, after
