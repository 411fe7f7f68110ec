"""Reruns formerly failing tests: unchanged, under other conditions, with changed expected values, and repeats their
calls of the product with perturbed values.

pytest starts once more in a fresh workspace, for at most `MOST_TESTS` tests, after the canary of the first check, and
again only if a test failed there. With other runners that list their tests, a quick check runs twice more, and one that
takes at most half a minute once, if its calls are to be recorded. If the tests cannot be rerun, nothing is found.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

from fixloop.configuration.model import Check
from fixloop.errors import RefusedError
from fixloop.files.atomic import File, place, read
from fixloop.integrity.flip import Flip, flipped
from fixloop.integrity.perturbed import REMEMBERED, RULE as PERTURBED
from fixloop.protocol.checks import Finding
from fixloop.protocol.holds import ALL_RULES
from fixloop.reports.document import bytes_if_any
from workers.commands.ahead import may_load_ahead
from workers.commands.canary import seen_beside
from workers.commands.check_run import Ran, run_check
from workers.commands.claim import Claim
from workers.commands.flakes import MOST_SECONDS, MOST_TESTS
from workers.commands.pytest_runs import Outcomes, Rerun, is_pytest, named, plain_run, played
from workers.commands.recorded_calls import Decisions, Recording
from workers.workspaces.ground import Ground, site_of

RULES: Final = frozenset({"flaky", "other-conditions", "flip", PERTURBED, REMEMBERED})
SHARE: Final = 0.25
"""The part of the check's duration that the rerun may take; at least `LEAST_SECONDS`."""
LEAST_SECONDS: Final = 3.0
MOST_RECORDED_SECONDS: Final = 30.0
"""The longest check that is rerun as a whole to record its calls."""
MOST_BEHIND_SECONDS: Final = 10.0
"""For a rerun in the process of a canary, which ends after a minute."""
_CASE: Final = re.compile(r'<testcase\b(?=[^>]*\bname="([^"]*)")[^>]*\btime="(\d+\.?\d*)"')
SHOWN: Final = "PYTEST_CURRENT_TEST"


def proof(claim: Claim) -> Iterator[Finding]:
    """Tests that failed before the fix and do not pass under all conditions, or pass with any expected value."""
    if RULES.issubset(claim.configuration.integrity.off):
        return
    is_python = any(delta.path.endswith(b".py") for delta in claim.changed)
    decisions = Decisions(claim)
    failed = set(claim.failed)
    for check, ran in zip(claim.checks, claim.ran, strict=True):
        # In report order, which is the usual order.
        tests = [name for name in dict.fromkeys(ran.result.passed_names) if name in failed & ran.result.cases]
        seconds = max(LEAST_SECONDS, SHARE * ran.result.evidence.duration_seconds)
        if not is_pytest(check):
            yield from _rerun(claim, check, ran, tests, decisions)
        elif is_python and (few := _sample(ran, tests, seconds)):
            yield from _rerun_tests(claim, check, ran, few, seconds, decisions)


def _rerun(claim: Claim, check: Check, ran: Ran, tests: list[str], decisions: Decisions) -> Iterator[Finding]:
    """Rerun a whole check whose tests cannot be run singly: a quick one twice, in fresh workspaces, so that a test that
    passes every second time fails once; another one, or one without known tests, once to record its calls."""
    seconds = ran.result.evidence.duration_seconds
    is_due = tests and seconds <= MOST_SECONDS
    failed: set[str] = set()
    for number in (2, 3) if is_due else (2,) if decisions and seconds <= MOST_RECORDED_SECONDS else ():
        with claim.fresh_ground(str(number)) as ground:
            if ground.problem:
                continue
            recording = Recording(claim, check, ground, decisions if number == 2 else None)
            again = run_check(check, ground, ran.result.evidence.tree, recording.run)
            if decisions and number == 2 and again is not None and again.result.failures:
                # Recording may have broken it.
                again = run_check(check, ground, ran.result.evidence.tree, claim.run)
            failed |= {failure.name for failure in again.result.failures} if again else set()
            yield from recording.findings()
    for name in (name for name in tests if name in failed):
        yield _finding("flaky", f"{name} passed, and failed when it ran again on the same tree", check, name)


def _sample(ran: Ran, tests: Sequence[str], seconds: float) -> Sequence[str]:
    """At most `MOST_TESTS` of the tests, spread over the report, that took no more than these seconds by name."""
    reports = (bytes_if_any(path).decode("utf-8", "replace") for path in ran.reports if path.suffix == ".xml")
    took = [(name.partition("[")[0], float(time)) for name, time in _CASE.findall("".join(reports))]
    few = tests[:: -(-len(tests) // MOST_TESTS) or 1]
    names = [test.partition("[")[0].rpartition("::")[2] for test in few]
    while few and sum(each for name, each in took if name in names) > seconds:
        few, names = few[1::2], names[1::2]
    return few


def _rerun_tests(
    claim: Claim, check: Check, ran: Ran, tests: Sequence[str], seconds: float, decisions: Decisions
) -> Iterator[Finding]:
    # Files that an earlier check left exist only where it ran.
    is_behind = check == claim.checks[0] and seconds < MOST_BEHIND_SECONDS
    if is_behind and claim.begun:
        ground, recording, rerun = claim.begun[0].result()
    else:
        in_place = ran.result.passed_names if is_behind else ()
        ground, recording, rerun = _prepared(claim, check, decisions, in_place)
    if ground.problem:
        return
    plain = plain_run(tests)
    flips = _write_flips(ground.workspace.directory, plain["args"], _failed_at(claim))
    varied = plain | {"name": "varied", "varied": True}
    runs = [varied, plain, plain | {"name": "flipped", "args": sorted(flips), "only": []}]
    found = rerun.played(runs, seconds)
    if not found and is_behind:
        found = played(recording.run, check, ground, runs, seconds, elsewhere=True)
    if (decisions or is_behind) and named(found, "varied", "failed"):
        # The recording, or the canary in the same process, may have caused the failure.
        found = {**found, **played(claim.run, check, ground, [varied, plain], seconds, elsewhere=True)}
    is_red = named(found, "plain", "failed") or named(found, "varied", "failed")
    again = played(claim.run, check, ground, [plain], seconds) if is_red else {}
    if named(found, "varied", "failed"):
        again = {**again, **played(claim.run, check, ground, [varied], seconds, elsewhere=True)}
    yield from recording.findings()
    has_failed = "failed" in again.get("plain", {}).values()
    on_ground = played(claim.run, check, claim.ground, [plain], seconds) if has_failed else {}
    flaky, depends = told_apart(found, again, on_ground)
    for name in flaky:
        yield _finding("flaky", f"{name} passed, and failed when it ran again on the same tree", check, name)
    # A project that already read the variable may continue to.
    is_read = depends and claim.git.found("grep", "-l", "-F", "-e", SHOWN, claim.trusted)
    for name in depends if not is_read else []:
        text = f"{name} fails in another order, with another hash seed or where no variable tells of a test"
        yield _finding("other-conditions", text, check, name)
    ended = (named(found, "flipped", outcome) for outcome in ("passed", "failed"))
    passed, failed = ({name.partition("[")[0] for name in names} & flips.keys() for names in ended)
    equal = [copy for copy in passed if flips[copy][1].is_always_run or copy not in failed]
    for base, changed in sorted(dict(flips[copy] for copy in sorted(equal, reverse=True)).items()):
        text = f"{base} passes with another expected value, too: what it looks at equals more than itself"
        yield _finding("flip", text, check, base, changed)


@contextmanager
def begun(claim: Claim) -> Iterator[None]:
    """Prepare the rerun while the first check of a fix runs: a workspace and, in it, pytest, which has loaded nothing
    of the project. Only if there is a second processor and a sandbox isolates the check from it (docs/decisions/0061).
    Closes `claim.held` at the end."""
    off, failed = claim.configuration.integrity.off, claim.failed if claim.changed else []
    is_due = any("::" in name for name in failed) and is_pytest(claim.checks[0])
    is_due = is_due and ALL_RULES not in off and not RULES.issubset(off)
    site = site_of(claim.work, claim.configuration, claim.cache)
    with claim.held, ThreadPoolExecutor(1, "fixloop-proof") as thread:
        if is_due and site.is_confined and may_load_ahead(claim.work):
            claim.begun.append(thread.submit(_prepared, claim, claim.checks[0], Decisions(claim), failed))
        yield


def _prepared(
    claim: Claim, check: Check, decisions: Decisions, passed: Sequence[str]
) -> tuple[Ground, Recording, Rerun]:
    """A fresh workspace, the recording of calls there, and the rerun. With `passed` tests, it starts at once: it runs a
    canary next to them, then waits for its tests."""
    ground = claim.held.enter_context(claim.fresh_ground("2"))
    recording = Recording(claim, check, ground, decisions)
    rerun = claim.held.enter_context(closing(Rerun(recording.run, check, ground, elsewhere=True)))
    if passed and not ground.problem:
        rerun.begin(partial(seen_beside, claim, check, passed, ground))
    return ground, recording, rerun


def told_apart(found: Outcomes, again: Outcomes, in_place: Outcomes) -> tuple[list[str], list[str]]:
    """The tests that are flaky, and those that depend on conditions.

    `found`: under other conditions, then under the usual ones; `again`: the same, each in a separate process;
    `in_place`: where the check ran, with its untracked files. A test that fails only without these is neither.
    """
    varied, plain = named(found, "varied", "failed"), named(found, "plain", "failed")
    usually = named(again, "plain", "passed")
    seldom = (varied | plain) & named(again, "plain", "failed") & named(in_place, "plain", "failed")
    flaky = seldom | (varied & usually & named(again, "varied", "passed"))
    return sorted(flaky), sorted(varied & usually & named(again, "varied", "failed"))


def _finding(rule: str, text: str, check: Check, test: str, flip: Flip | None = None) -> Finding:
    more: dict[str, Any] = {"line": flip.line, "old": flip.old[:1000], "new": flip.new[:1000]} if flip else {}
    return Finding(rule=rule, text=text, check=check.name, file=test.partition("::")[0], **more)


def _failed_at(claim: Claim) -> dict[str, int]:
    """The line in its own file at which each test failed, if the fix did not change that file."""
    changed = {os.fsdecode(delta.path) for delta in claim.changed}
    found = {}
    for ref in claim.failures:
        file, _, line = ref.frame.rpartition(":")
        if ref.name.startswith(f"{file}::") and file not in changed:
            found[ref.name.partition("[")[0]] = int(line)
    return found


def _write_flips(
    directory: Path, bases: Collection[str], lines: Mapping[str, int]
) -> dict[str, tuple[str, Flip]]:
    """Write copies of the test files with one constant of each test changed far, and others with it changed a little.
    Returns the original test and its change by the name of the copied test."""
    found: dict[str, tuple[str, Flip]] = {}
    for file, way in product(sorted({base.partition("::")[0] for base in bases}), ("flipped", "nearly")):
        copy = f"{file.removesuffix('.py')}_{way}.py"
        try:
            text = (read(directory, file) or b"").decode()
            own = [base for base in bases if base.startswith(f"{file}::")]
            within = {base.partition("::")[2]: lines.get(base, 0) for base in own}
            changed = flipped(text, within, is_near=way == "nearly")
            if not changed.flips or os.path.lexists(directory / copy):
                continue
            # Code of the project may run by now, and lead both elsewhere.
            place(directory, [File.of(copy, changed.text.encode())])
        except (OSError, UnicodeError, RefusedError):
            continue
        found |= {f"{copy}::{test}": (f"{file}::{test}", flip) for test, flip in changed.flips.items()}
    return found
