"""The judges of runners: after a fix each check must report its canary, and must not run fewer tests.

A canary is added where the checks ran, after they ended, for one extra run whose report is used only for this. If tests
are rerun in a fresh workspace, the canary runs there first; if it is fully reported, the extra run is skipped. A runner
is blamed only if it reports the same canary on the trusted tree; otherwise the project is merely unusual.
"""

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from fixloop.configuration.model import Check
from fixloop.integrity.canary import canary_of, unseen
from fixloop.integrity.tool_call import Canary, Project
from fixloop.protocol.checks import CheckResult, Finding, RunOutcome
from fixloop.repository.tree import tree_id
from workers.commands.affected import project_on
from workers.commands.check_run import Run, run_check
from workers.commands.claim import Claim
from workers.workspaces.ground import Ground, Site, site_of

LIES: Final = "runner-lies"
SEEN: Final = "seen"
FEWER: Final = "fewer-tests"
MOST_NAMED: Final = 5
_MOST_KEPT: Final = 1000
_PASSES: Final = re.compile("a$")

_ON_TRUSTED: Final[dict[tuple[str, ...], "Shown"]] = {}
"""Canary results on the trusted tree, cached in this process; a fix could change a file."""


class Withdrawn(Exception):
    """The result is no longer wanted."""


class Shown(NamedTuple):
    """The result of a canary."""

    unseen: frozenset[str]
    """The names without the expected result, without the token."""
    reason: str


@dataclass(frozen=True)
class Trial:
    """A fix's tree, and the trusted commit that it is compared with."""

    site: Site
    ground: Ground
    """The fix's ground, where its checks passed."""
    trusted: str
    """The commit before it."""
    changed: tuple[str, ...]
    """Paths from the repository root."""
    run: Run
    grounds: ExitStack = field(default_factory=ExitStack)

    def liars(self, checks: Iterable[tuple[Check, CheckResult]], words: dict[str, str]) -> Iterator[Finding]:
        """The passed checks that do not report their canary. `words` gets the canary's result for each check."""
        with self.grounds:
            for check, result in checks:
                token = f"c{secrets.token_hex(4)}"
                canary = canary_of(check.command, self._project(result.passed_names), token)
                if result.outcome is not RunOutcome.PASSED or canary is None:
                    words[check.name] = "none"
                    continue
                shown = self._run_canary(check, self.ground, canary, token)
                before = self._on_trusted(check, canary, token) if shown.unseen else shown
                lies = shown.unseen - before.unseen
                if lies == _all_names(canary, token):
                    # Retry if nothing was reported: the run may have crashed.
                    shown = self._run_canary(check, self.ground, canary, token)
                    lies = shown.unseen - before.unseen
                is_blind = {name.removeprefix(token) for name in canary.fails} <= shown.unseen
                words[check.name] = "unseen" if lies else "none" if is_blind else SEEN
                if lies:
                    what = "pass what passes" if all(map(_PASSES.search, lies)) else "find what is wrong"
                    rest = ("…",) if len(self.changed) > MOST_NAMED else ()
                    named = ", ".join((*self.changed[:MOST_NAMED], *rest))
                    yield Finding(
                        rule=LIES,
                        text=f"{check.name} does not {what} where that is put there for it, and did before; "
                        f"changed: {named}",
                        check=check.name,
                        file=self.changed[0],
                        old=before.reason,
                        new=shown.reason,
                    )

    def _project(self, passed: Sequence[str]) -> Project:
        return project_on(self.ground, self.site.snapshot.subdirectory, self.changed, tuple(passed))

    def _on_trusted(self, check: Check, canary: Canary, token: str) -> Shown:
        """The same canary's result on the trusted tree."""
        paths = sorted(path.replace(token, "") for path in canary.files)
        key = (self.site.snapshot.source, self.trusted, check.model_dump_json(), *paths)
        if key not in _ON_TRUSTED:
            site = replace(self.site, name=f"{self.site.name}.canary")
            ground = self.grounds.enter_context(site.ground(self.trusted))
            nothing = Shown(_all_names(canary, token), ground.problem)
            _ON_TRUSTED[key] = nothing if ground.problem else self._run_canary(check, ground, canary, token)
        return _ON_TRUSTED[key]

    def shows(self, check: Check, passed: Sequence[str], ground: Ground, run: Run) -> bool:
        """Whether a canary is fully reported on a fresh ground, where `run` also does other work in the process."""
        token = f"c{secrets.token_hex(4)}"
        canary = canary_of(check.command, self._project(passed), token)
        return canary is not None and not self._run_canary(check, ground, canary, token, run).unseen

    def _run_canary(
        self, check: Check, ground: Ground, canary: Canary, token: str, run: Run | None = None
    ) -> Shown:
        """Run the check's tool on a canary. Raises Withdrawn if the result is no longer wanted."""
        what = {"command": canary.command, "output": canary.output, "coverage_percent": None, "paths": ()}
        try:
            with _temporary_files(ground, canary.files):
                ran = run_check(check.model_copy(update=what), ground, "", run or self.run)
        except OSError as error:
            return Shown(_all_names(canary, token), f"it cannot be put there: {error.strerror or error}")
        if ran is None:
            raise Withdrawn
        result = ran.result
        missing = unseen(
            canary,
            exit_code=result.evidence.exit_code,
            failed=[f"{failure.file} {failure.name}" for failure in result.failures],
            passed=result.passed_names,
            output=ran.output,
        )
        reason = f"{result.reason} (exit code {result.evidence.exit_code})".replace(token, "canary")
        return Shown(frozenset(name.removeprefix(token) for name in missing), reason[:_MOST_KEPT])


def runner_lies(claim: Claim) -> Iterator[Finding]:
    """The checks whose runner can no longer fail."""
    if LIES in claim.configuration.integrity.off:
        return
    words: dict[str, str] = {}
    asked = [
        (check, ran.result)
        for check, ran in zip(claim.checks, claim.ran, strict=True)
        if claim.learned.get(check.name, {}).get("canary") != SEEN
    ]
    with suppress(Withdrawn):
        yield from _trial(claim).liars(asked, words)
    for check, word in words.items():
        claim.learned.setdefault(check, {})["canary"] = word


def seen_beside(claim: Claim, check: Check, passed: Sequence[str], ground: Ground, run: Run) -> None:
    """Run the canary of a check on another ground with `run`, next to tests that pass or passed before. If it is fully
    reported, `runner_lies` skips the check."""
    is_asked = LIES not in claim.configuration.integrity.off
    with suppress(Withdrawn):
        if is_asked and _trial(claim).shows(check, passed, ground, run):
            claim.learned.setdefault(check.name, {})["canary"] = SEEN


def _trial(claim: Claim) -> Trial:
    changed = tuple(delta.path.decode(errors="replace") for delta in claim.changed)
    site = site_of(claim.work, claim.configuration, claim.cache)
    return Trial(site, claim.ground, claim.trusted, changed, claim.run)


def fewer_tests(claim: Claim) -> Iterator[Finding]:
    """The checks without a report file that print a lower number of tests than on the trusted tree (or in the
    specialist's first run), or no number any more."""
    silent = {check.name for check in claim.checks if not check.report_kinds()}
    if not silent:
        return
    work, specialist = claim.work, claim.work.holding.ticket.specialist
    tree = tree_id(claim.git, claim.trusted)
    events = (entry.body["event"] for entry in work.store.history(work.holding.ticket.workflow))
    runs = [each for each in events if each["kind"] == "run-finished" and each["specialist"] == specialist]
    chosen = [each for each in runs if each["tree"] == tree][-1:] or runs[:1]
    before = {each["check"]: each.get("tests") for event in chosen for each in event.get("evidence", ())}
    for evidence in (ran.result.evidence for ran in claim.ran if ran.result.check in silent):
        had, has = before.get(evidence.check), evidence.tests
        if had and (has is None or has < had):
            now = "does not say how many tests it ran" if has is None else f"ran {has} tests"
            text = f"{evidence.check} {now}, and before the fix it ran {had}"
            yield Finding(rule=FEWER, text=text, check=evidence.check, old=f"{had} tests", new=now)


@contextmanager
def _temporary_files(ground: Ground, files: Mapping[str, str]) -> Iterator[None]:
    """Add files temporarily. Raises OSError if one exists already or would be outside the workspace."""
    top, made = ground.workspace.path.resolve(), []
    try:
        for path, text in files.items():
            place = ground.workspace.directory / path
            if not place.parent.resolve().is_relative_to(top):
                raise OSError(f"{path} would be outside of the workspace")
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("x", encoding="utf-8") as file:
                made.append(place)
                file.write(text)
        yield
    finally:
        for place in made:
            with suppress(OSError):
                place.unlink()


def _all_names(canary: Canary, token: str) -> frozenset[str]:
    return frozenset(name.removeprefix(token) for name in (*canary.fails, *canary.passes))
