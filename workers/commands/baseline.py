"""Which failures of a check are older than the feature: a failing check also runs on the base.

The base is that of the workflow's snapshot; no fix moves it. If the comparison fails, all failures count as new.
Owns `{cache}/baselines/`: the failures on the base, a file for each tree, check and set of tools.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from fixloop.configuration.model import Check
from fixloop.configuration.values import Policy
from fixloop.errors import FixloopError
from fixloop.files.atomic import write_whole
from fixloop.machine.interpreters import stamps
from fixloop.protocol.checks import CheckResult, RunOutcome
from fixloop.protocol.failures import Failure
from fixloop.protocol.limits import one_line
from fixloop.reports.baseline import comparable, tell_apart
from fixloop.repository.feature_base import bring_base
from fixloop.repository.moves import Moves
from fixloop.repository.tree import tree_id
from workers.commands.check_run import Ran, Run, run_check, with_told_failures
from workers.commands.flakes import told_flaky
from workers.commands.pytest_runs import Rerun, is_pytest
from workers.workspaces.ground import Ground, Site

FOLDER: Final = "baselines"
FORMAT: Final = 3
"""Increased when checks' failures are parsed or compared differently."""
MOST: Final = 200
"""Files that are kept: a few megabytes, enough for years of one project's branches."""


class _Withdrawn(Exception):
    """The result is no longer wanted."""


class _Unusable(Exception):
    """There is nothing to compare with; the argument says why."""


class Baseline(BaseModel):
    """The failures of one check on one tree."""

    model_config = ConfigDict(frozen=True)

    failures: tuple[Failure, ...] = ()


def key_of(*parts: str) -> str:
    """The key of a baseline; all parts matter, in this order."""
    return hashlib.sha256(json.dumps([FORMAT, *parts]).encode()).hexdigest()[:32]


def kept_baseline(cache: Path, key: str) -> Baseline | None:
    """The baseline with this key; None if there is none or it is invalid."""
    file = cache / FOLDER / f"{key}.json"
    try:
        found = Baseline.model_validate_json(file.read_bytes())
        os.utime(file)
    except (OSError, ValidationError):
        return None
    return found


def keep_baseline(cache: Path, key: str, baseline: Baseline) -> None:
    """Store a baseline; errors are ignored, because it can be computed again."""
    folder = cache / FOLDER
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        text = baseline.model_dump_json(exclude_defaults=True)
        write_whole(folder / f"{key}.json", text.encode(), mode=0o600)
        for file in sorted(folder.iterdir(), key=_age)[MOST:]:
            file.unlink(missing_ok=True)


def _age(file: Path) -> float:
    """Sort key: older files come last; deleted ones come first."""
    try:
        return -file.stat().st_mtime
    except OSError:
        return float("-inf")


@dataclass
class Comparison(contextlib.AbstractContextManager["Comparison"]):
    """One run of a specialist, compared with the base; a context manager that owns the ground on the base."""

    site: Site
    """The site of the run's ground; the base gets another one."""
    run: Run
    begins: Callable[[str, str], None] = lambda check, base: None
    """Called before a check runs on the base."""
    known: Collection[str] = ()
    """Failures on an earlier tree, which are not flaky on this one."""
    loads: bool = False
    """Whether to load a second pytest while the first runs, to rerun failed tests."""
    _grounds: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, init=False)
    _base_ground: Ground | None = field(default=None, init=False)

    def __exit__(self, *_: object) -> None:
        self._grounds.close()

    def checked(self, specialist: str, check: Check, ground: Ground, tree: str) -> Ran | None:
        """The check run on `tree`, with a limited number of failures (K41), without flaky failures and those on the
        base; passed if there are no others. None if the result is no longer wanted."""
        with contextlib.ExitStack() as held:
            rerun = Rerun(self.run, check, ground) if is_pytest(check) else None
            if rerun is not None:
                held.callback(rerun.close)
                if self.loads:
                    rerun.begin()
            ran = run_check(check, ground, tree, self.run)
            return self._judged(specialist, check, ground, ran, rerun) if ran else None

    def _judged(
        self, specialist: str, check: Check, ground: Ground, ran: Ran, rerun: Rerun | None
    ) -> Ran | None:
        result, policy = ran.result, self.site.configuration.policy(specialist, check)
        if result.outcome is RunOutcome.FAILED and policy is not Policy.ALL and self.site.snapshot.base:
            try:
                result = self._without_old(check, result, ground)
            except _Withdrawn:
                return None
            except (_Unusable, FixloopError) as error:
                reason = ground.redaction.text(one_line(str(error)))
                evidence = result.evidence.model_copy(update={"no_baseline": reason})
                result = result.model_copy(update={"evidence": evidence})
        final = told_flaky(ran._replace(result=result), check, ground, self.site, self.run, self.known, rerun)
        return final and final._replace(result=with_told_failures(final.result, check, ground))

    def _without_old(self, check: Check, result: CheckResult, ground: Ground) -> CheckResult:
        snapshot, cache = self.site.snapshot, self.site.cache
        mirror = bring_base(snapshot, issue=self.site.issue, cache=cache)
        base_tree = tree_id(mirror.git, snapshot.base)
        key = self._key(check, ground, base_tree)
        baseline = kept_baseline(cache, key)
        if baseline is None:
            on_base = result if result.evidence.tree == base_tree else self._run_on_base(check)
            folder = (ground if on_base is result else self._open_base()).workspace.directory
            failures = comparable(on_base.failures, str(folder))
            # A failure that represents a whole output is compared in full.
            baseline = Baseline(failures=tuple(one if one.measure else _shortened(one) for one in failures))
            keep_baseline(cache, key, baseline)
        moves, here = Moves(mirror.git, base_tree, result.evidence.tree), str(ground.workspace.directory)
        compared = tell_apart(
            baseline.failures, result.failures, moves, subdirectory=snapshot.subdirectory, workspace=here
        )
        evidence = result.evidence.model_copy(update={"base": snapshot.base, "old": len(compared.old)})
        return result.model_copy(
            update={
                "outcome": RunOutcome.FAILED if compared.new else RunOutcome.PASSED,
                "reason": evidence.compared(len(compared.new)),
                "failures": compared.new,
                "old_failures": tuple(map(_shortened, compared.old)),
                "evidence": evidence,
            }
        )

    def _run_on_base(self, check: Check) -> CheckResult:
        ground, base = self._open_base(), self.site.snapshot.base
        shown = base[:7]
        if ground.problem:
            raise _Unusable(f"the base {shown} cannot be checked: {ground.problem}")
        self.begins(check.name, base)
        ran = run_check(check, ground, ground.workspace.tree_hash(), self.run)
        if ran is None:
            raise _Withdrawn
        if ran.result.outcome not in (RunOutcome.PASSED, RunOutcome.FAILED):
            raise _Unusable(f"{check.name} has no result on the base {shown}: {ran.result.reason}")
        return ran.result

    def _open_base(self) -> Ground:
        if self._base_ground is None:
            site = replace(self.site, name=f"{self.site.name}.base")
            self._base_ground = self._grounds.enter_context(site.ground(site.snapshot.base))
        return self._base_ground

    def _key(self, check: Check, ground: Ground, base_tree: str) -> str:
        snapshot, environment = self.site.snapshot, ground.environment(check.env)
        return key_of(
            snapshot.source,
            snapshot.subdirectory,
            snapshot.copied,
            base_tree,
            check.model_dump_json(),
            " ".join(self.site.configuration.workspace.setup),
            *(f"{name}={environment.get(name, '')}" for name in check.env),
            *stamps(ground.interpreter, check.command, environment["PATH"]),
        )


def _shortened(failure: Failure) -> Failure:
    return failure.model_copy(update={"message": one_line(failure.message), "context": "", "suggestion": ""})
