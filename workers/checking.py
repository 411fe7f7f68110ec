"""A specialist's step: the checks of its run on the workflow's tree, and the event that comes of them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, cast

from fixloop.configuration.model import Configuration
from fixloop.protocol.checks import CheckResult, RunOutcome, worst
from fixloop.protocol.events import RunFinished
from fixloop.protocol.roles import worker_of
from fixloop.protocol.state import SpecialistState, State
from fixloop.protocol.ticket import Ticket
from workers.check_run import Ran, run_check
from workers.crew import Work
from workers.ground import Ground, open_ground
from workers.guard import GuardedResult

__all__ = ["check"]

GRACE_SECONDS: Final = 60.0
"""The state ends a late check by withdrawing its ticket; this is for a state that cannot be reached."""
REPORT_LIMIT_BYTES: Final = 16 * 1024 * 1024


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
        tree, ran = ground.workspace.tree_hash(), []
        for entry in checks[0]:
            one = run_check(entry, ground, tree, partial(_guarded, work))
            if one is None:
                return None
            ran.append(one)
        kept = [digest for one in ran for digest in _kept(work, ground, one)]
    return _finished(work, [one.result for one in ran], tree, kept)


def _guarded(work: Work, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult | None:
    variables = {**env, "FIXLOOP_ROLE": worker_of(work.holding.ticket)}
    return work.run(argv, cwd=cwd, env=variables, unheard_seconds=_limit_seconds(work))


def _kept(work: Work, ground: Ground, ran: Ran) -> Iterator[str]:
    """What the result rests on, before the commit that names it."""
    workflow = work.holding.state.workflow
    if ran.output:
        yield work.store.put_artifact(workflow, ran.output.encode(errors="replace"))
    for path in ran.reports:
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= REPORT_LIMIT_BYTES:
            yield work.store.put_artifact(workflow, ground.redaction.data(path.read_bytes()))


def _finished(work: Work, ran: list[CheckResult], tree: str, artifacts: list[str]) -> RunFinished:
    state, ticket = work.holding.state, work.holding.ticket
    results = [_not_skipped_now(state.active, result) for result in ran]
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
        lists_passes=tuple(result.check for result in results if result.passed_names or result.lists_tests),
        evidence=tuple(result.evidence for result in results if result.outcome is not RunOutcome.SKIPPED),
        skipped_checks=tuple(r.check for r in results if r.outcome is RunOutcome.SKIPPED),
        coverage=_coverage(results),
        error="; ".join(result.reason for result in wrong),
        stack_trace="\n".join(result.output_tail for result in wrong),
        artifacts=tuple(dict.fromkeys(artifacts)),
    )


def _not_skipped_now(active: SpecialistState, result: CheckResult) -> CheckResult:
    """An optional check that ran on an earlier tree and cannot on this one was broken by a fix (K36)."""
    ran_before = bool(active.runs) and result.check not in active.skipped_checks
    if result.outcome is not RunOutcome.SKIPPED or not ran_before:
        return result
    return result.model_copy(update={"outcome": RunOutcome.ERROR})


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
