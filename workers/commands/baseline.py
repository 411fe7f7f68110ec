"""Which failures of a check are older than the feature: the same check, run on the base where it fails here.

The base is that of the workflow's snapshot; no fix moves it. What cannot be found out counts as the feature's.
What checks found there is kept in `{cache}/baselines/`, a file for each tree, check and set of tools.
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
FORMAT: Final = 2
"""Raised when checks' failures are read or compared differently."""
MOST: Final = 200
"""Files that are kept: some megabytes, and years of one project's branches."""


class _Withdrawn(Exception):
    """Nobody wants the result any more."""


class _Unusable(Exception):
    """There is nothing to compare with; the one argument says why."""


class Baseline(BaseModel):
    """What one check found on one tree."""

    model_config = ConfigDict(frozen=True)

    failures: tuple[Failure, ...] = ()


def key_of(*parts: str) -> str:
    """The name of what was found under these circumstances; each of them counts."""
    return hashlib.sha256(json.dumps([FORMAT, *parts]).encode()).hexdigest()[:32]


def kept_baseline(cache: Path, key: str) -> Baseline | None:
    """What is kept under this key; None where nothing is, or nothing that can be read."""
    file = cache / FOLDER / f"{key}.json"
    try:
        found = Baseline.model_validate_json(file.read_bytes())
        os.utime(file)
    except (OSError, ValidationError):
        return None
    return found


def keep_baseline(cache: Path, key: str, baseline: Baseline) -> None:
    """Keep it: without effect where the cache cannot be written, as it can be found out again."""
    folder = cache / FOLDER
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        text = baseline.model_dump_json(exclude_defaults=True)
        write_whole(folder / f"{key}.json", text.encode(), mode=0o600)
        for file in sorted(folder.iterdir(), key=_age)[MOST:]:
            file.unlink(missing_ok=True)


def _age(file: Path) -> float:
    """Older ones come last; what is gone meanwhile comes first."""
    try:
        return -file.stat().st_mtime
    except OSError:
        return float("-inf")


@dataclass
class Comparison(contextlib.AbstractContextManager["Comparison"]):
    """One run of a specialist compared with the base; a context manager, whose ground on the base is for all checks."""

    site: Site
    """Whose ground it is; the base gets another."""
    run: Run
    begins: Callable[[str, str], None] = lambda check, base: None
    """Told that a check is run on the base, before it is."""
    known: Collection[str] = ()
    """What failed on an earlier tree: it is not by chance that it fails on this one."""
    loads: bool = False
    """While pytest runs, another one is loaded for what may fail: that runs once more."""
    _grounds: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, init=False)
    _base_ground: Ground | None = field(default=None, init=False)

    def __exit__(self, *_: object) -> None:
        self._grounds.close()

    def checked(self, specialist: str, check: Check, ground: Ground, tree: str) -> Ran | None:
        """A check that was run on `tree`, bounded (K41), and without the failures that the base has too or that came by
        chance; passed, where there are no others. None when nobody wants it any more."""
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
                result = self._told_apart(check, result, ground)
            except _Withdrawn:
                return None
            except (_Unusable, FixloopError) as error:
                reason = ground.redaction.text(one_line(str(error)))
                evidence = result.evidence.model_copy(update={"no_baseline": reason})
                result = result.model_copy(update={"evidence": evidence})
        told = told_flaky(ran._replace(result=result), check, ground, self.site, self.run, self.known, rerun)
        return told and told._replace(result=with_told_failures(told.result, check, ground))

    def _told_apart(self, check: Check, result: CheckResult, ground: Ground) -> CheckResult:
        snapshot, cache = self.site.snapshot, self.site.cache
        mirror = bring_base(snapshot, issue=self.site.issue, cache=cache)
        base_tree = tree_id(mirror.git, snapshot.base)
        key = self._key(check, ground, base_tree)
        baseline = kept_baseline(cache, key)
        if baseline is None:
            on_base = result if result.evidence.tree == base_tree else self._on_base(check)
            folder = (ground if on_base is result else self._opened()).workspace.directory
            failures = comparable(on_base.failures, str(folder))
            # Of a failure that stands for a whole output, all of it is compared.
            baseline = Baseline(failures=tuple(one if one.measure else _in_a_line(one) for one in failures))
            keep_baseline(cache, key, baseline)
        moves, here = Moves(mirror.git, base_tree, result.evidence.tree), str(ground.workspace.directory)
        told = tell_apart(
            baseline.failures, result.failures, moves, subdirectory=snapshot.subdirectory, workspace=here
        )
        evidence = result.evidence.model_copy(update={"base": snapshot.base, "old": len(told.old)})
        return result.model_copy(
            update={
                "outcome": RunOutcome.FAILED if told.new else RunOutcome.PASSED,
                "reason": evidence.compared(len(told.new)),
                "failures": told.new,
                "old_failures": tuple(map(_in_a_line, told.old)),
                "evidence": evidence,
            }
        )

    def _on_base(self, check: Check) -> CheckResult:
        ground, base = self._opened(), self.site.snapshot.base
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

    def _opened(self) -> Ground:
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


def _in_a_line(failure: Failure) -> Failure:
    return failure.model_copy(update={"message": one_line(failure.message), "context": "", "suggestion": ""})
