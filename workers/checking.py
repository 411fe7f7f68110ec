"""A specialist's run: each of its checks in one workspace, judged by its exit code and its reports.

A result names the tree it was computed on; the tree is hashed before and after each check, and a check that
changes tracked files is an error.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, NamedTuple, cast

from fixloop.configuration.model import Check, Configuration
from fixloop.protocol.checks import CheckResult, Evidence, RunOutcome, worst
from fixloop.protocol.events import RunFinished
from fixloop.protocol.roles import worker_of
from fixloop.protocol.state import SpecialistState, State
from fixloop.protocol.ticket import Ticket
from fixloop.reports.judging import judge
from workers.crew import Work
from workers.ground import Ground, open_ground
from workers.guard import GuardedResult

__all__ = ["check"]

GRACE_SECONDS: Final = 60.0
"""The state ends a late check by withdrawing its ticket; this is for a state that cannot be reached."""
REPORT_LIMIT_BYTES: Final = 16 * 1024 * 1024
COMMAND_NOT_FOUND: Final = 127


class _Ran(NamedTuple):
    result: CheckResult
    artifacts: tuple[str, ...] = ()


def check(work: Work, configuration: Configuration, cache: Path) -> RunFinished | None:
    """
    Run the checks of the ticket's specialist on the workflow's tree.

    Returns:
        None when the ticket was withdrawn meanwhile.

    Raises:
        Injured: a check was killed by somebody else.
    """
    state, ticket = work.holding.state, work.holding.ticket
    checks = [entry.checks for entry in configuration.specialists if entry.name == ticket.specialist]
    if not checks:
        # A manual fix may re-read a configuration that no longer has what passed before (K37).
        return _error(state, ticket, f"{ticket.specialist} is configured no more; name it again, or skip it")
    with open_ground(work, configuration, cache) as ground:
        if ground.problem:
            return _error(state, ticket, ground.problem)
        ran = []
        tree = ground.workspace.tree_hash()
        for entry in checks[0]:
            one = _run(work, entry, ground, tree)
            if one is None:
                return None
            ran.append(one)
    return _finished(work, ran, tree)


def _run(work: Work, entry: Check, ground: Ground, tree: str) -> _Ran | None:
    """One check on `tree`; None when the ticket was withdrawn meanwhile."""
    reports = {kind: ground.report_path(entry.name, kind) for kind in entry.report_kinds()}
    argv = [_filled(part, reports) for part in entry.command]
    result = work.run(
        argv,
        cwd=ground.workspace.directory,
        env=ground.environment(entry.env) | {"FIXLOOP_ROLE": worker_of(work.holding.ticket)},
        unheard_seconds=_limit_seconds(work),
    )
    if result is None:
        return None
    evidence = Evidence(
        check=entry.name,
        command=" ".join(entry.command),
        interpreter=ground.interpreter,
        tree=tree,
        duration_seconds=round(result.duration_seconds, 3),
    )
    # What an earlier check added is no part of the tree; all that was there at the start is.
    changed = ground.workspace.tracked_changes(tree)
    output = ground.redaction.text(result.output)
    if result.timed_out or changed:
        return _Ran(_unusable(entry, evidence, output, changed))
    judged = judge(
        entry,
        exit_code=_exit_code(result),
        output=output,
        reports=reports,
        workspace=ground.workspace.directory,
        evidence=evidence,
        hide=ground.redaction.text,
    )
    return _Ran(judged, tuple(_kept(work, ground, output, reports.values())))


def _unusable(entry: Check, evidence: Evidence, output: str, changed: tuple[str, ...]) -> CheckResult:
    reason = f"check {entry.name} did not end within its time limit and was stopped"
    if changed:
        shown = ", ".join(changed[:5])
        reason = f"check {entry.name} changed tracked files ({shown}); a check may only look"
    return CheckResult(
        check=entry.name,
        outcome=RunOutcome.ERROR,
        reason=reason,
        evidence=evidence,
        output_tail=output[-4000:],
    )


def _kept(work: Work, ground: Ground, output: str, reports: Iterable[Path]) -> Iterable[str]:
    """What the result rests on, before the commit that names it."""
    workflow = work.holding.state.workflow
    if output:
        yield work.store.put_artifact(workflow, output.encode(errors="replace"))
    for path in reports:
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= REPORT_LIMIT_BYTES:
            yield work.store.put_artifact(workflow, ground.redaction.data(path.read_bytes()))


def _finished(work: Work, ran: list[_Ran], tree: str) -> RunFinished:
    state, ticket = work.holding.state, work.holding.ticket
    results = [_not_skipped_now(state.active, one.result) for one in ran]
    outcome = worst([result.outcome for result in results])
    failed = [result for result in results if result.outcome is RunOutcome.FAILED]
    wrong = [result for result in results if result.outcome is RunOutcome.ERROR]
    owed = {ref.name for ref in state.active.owed}
    return RunFinished(
        step=cast(Literal["validate", "recheck", "confirm"], ticket.step),
        specialist=ticket.specialist,
        iteration=ticket.iteration,
        attempt=ticket.attempt,
        outcome=cast(Literal["passed", "failed", "error", "skipped"], outcome.value),
        tree=tree,
        failures=tuple(failure for result in failed for failure in result.failures),
        passed=tuple(sorted(owed & {name for result in results for name in result.passed_names})),
        lists_passes=tuple(result.check for result in results if result.passed_names or _names_tests(result)),
        evidence=tuple(result.evidence for result in results if result.outcome is not RunOutcome.SKIPPED),
        skipped_checks=tuple(r.check for r in results if r.outcome is RunOutcome.SKIPPED),
        coverage=_coverage(results),
        error="; ".join(result.reason for result in wrong),
        stack_trace="\n".join(result.output_tail for result in wrong),
        artifacts=tuple(dict.fromkeys(digest for one in ran for digest in one.artifacts)),
    )


def _not_skipped_now(active: SpecialistState, result: CheckResult) -> CheckResult:
    """An optional check that ran on an earlier tree and cannot on this one was broken by a fix (K36)."""
    ran_before = bool(active.runs) and result.check not in active.skipped_checks
    if result.outcome is not RunOutcome.SKIPPED or not ran_before:
        return result
    return result.model_copy(update={"outcome": RunOutcome.ERROR})


def _names_tests(result: CheckResult) -> bool:
    """A report that counts passes lists them."""
    return result.evidence.counts.passed > 0 or "{junit}" in result.evidence.command


def _coverage(results: list[CheckResult]) -> str:
    for result in results:
        evidence = result.evidence
        if evidence.coverage_percent is not None:
            gate = f" (target: ≥{evidence.coverage_gate:g}%)" if evidence.coverage_gate is not None else ""
            return f"{evidence.coverage_percent:.1f}%{gate}"
    return ""


def _error(state: State, ticket: Ticket, problem: str) -> RunFinished:
    return RunFinished(
        step=cast(Literal["validate", "recheck", "confirm"], ticket.step),
        specialist=ticket.specialist,
        iteration=ticket.iteration,
        attempt=ticket.attempt,
        outcome="error",
        tree=state.tree,
        error=problem,
    )


def _limit_seconds(work: Work) -> float:
    patience = work.holding.state.patience_seconds
    return (patience if patience is not None else 24 * 3600.0) + GRACE_SECONDS


def _exit_code(result: GuardedResult) -> int:
    if result.not_found:
        return COMMAND_NOT_FOUND
    if result.signal is not None:
        return -result.signal
    return result.exit_code if result.exit_code is not None else COMMAND_NOT_FOUND


def _filled(part: str, reports: dict[str, Path]) -> str:
    for kind, path in reports.items():
        part = part.replace("{" + kind + "}", str(path))
    return part
