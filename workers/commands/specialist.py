"""A specialist's step: runs its checks on the workflow's tree and returns the resulting event."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from fixloop.configuration.model import Configuration
from fixloop.machine.guard import GuardedResult
from fixloop.protocol.checks import CheckResult, OldFailures, RunOutcome, worst
from fixloop.protocol.events import BaselineBegun, RunFinished
from fixloop.protocol.holds import ALL_RULES
from fixloop.protocol.limits import failures_json
from fixloop.protocol.roles import worker_of
from fixloop.protocol.tracing import VARIABLE, traceparent
from workers.commands.ahead import may_load_ahead
from workers.commands.baseline import Comparison
from workers.commands.check_run import Ran
from workers.commands.checked import taken_over
from workers.commands.claim import Claim
from workers.commands.flakes import RULE as FLAKY
from workers.commands.frozen import Frozen
from workers.commands.judging import by_chance, changed_since, findings
from workers.commands.proof import begun
from workers.commands.seen import noted
from workers.steps.step import Step, with_grace
from workers.steps.validation_steps import run_finished
from workers.workspaces.ground import Site, open_ground, site_of

FIRST_LISTED: Final = 200
"""Old failures that are listed; all are counted."""
MOST_LISTED: Final = 500
"""Files, and names, for which old failures are counted separately."""


def check(work: Step, configuration: Configuration, cache: Path) -> RunFinished | None:
    """Run the checks of the ticket's specialist on the workflow's tree; None if the ticket was withdrawn."""
    state, ticket = work.holding.state, work.holding.ticket
    checks = [entry.checks for entry in configuration.specialists if entry.name == ticket.specialist]
    if not checks:
        # A manual fix may reload a configuration that no longer has the specialist (K37).
        why = f"{ticket.specialist} is configured no more; name it again, or skip it"
        return run_finished(ticket, state.tree, RunOutcome.ERROR, error=why)
    with open_ground(work, configuration, cache) as ground:
        frozen = Frozen(work, configuration, ground)
        if ground.problem:
            return run_finished(ticket, state.tree, RunOutcome.ERROR, error=ground.problem)
        tree, changed, site = ground.tree, changed_since(work, ground), site_of(work, configuration, cache)
        ran = taken_over(work, site, ground, configuration.specialist(ticket.specialist))
        ran = [_with_old_stored(work, one) for one in ran]
        due = () if ran else checks[0]
        with _comparison(work, configuration, site) as comparison:
            claim = Claim(work, configuration, cache, ground, checks[0], ran, changed, comparison.run, {})
            with begun(claim):
                for entry in due:
                    one = comparison.checked(ticket.specialist, entry, ground, tree)
                    if one is None:
                        return None
                    ran.append(_with_old_stored(work, one))
                has_passed = worst([one.result.outcome for one in ran]) is RunOutcome.PASSED
                found = by_chance(claim) + (findings(claim) if has_passed and changed else ())
            if work.cancelled():
                return None
        # Compare at the end, because the checks may have changed the environment; this also finds earlier changes.
        if problem := frozen.problem():
            return run_finished(ticket, state.tree, RunOutcome.ERROR, error=problem)
        environments = frozen.kept()
        results = []
        for result in (one.result for one in ran):
            shown = {**claim.learned.get(result.check, {}), "environment": "".join(environments.values())}
            results.append(result.model_copy(update={"evidence": result.evidence.model_copy(update=shown)}))
        # Store artifacts before the commit that names them.
        reports = (ground.redaction.data(each) for one in ran for each in one.written() if each)
        put = partial(work.store.put_artifact, state.workflow)
        artifacts = [*work.keep(*(one.output for one in ran)), *map(put, reports), *environments.values()]
    event = _finished(work, results, tree, artifacts)
    seen = noted(work, ran, event, ground.workspace.mirror)
    return event.model_copy(update={"findings": found, "environments": environments, **seen})


def _comparison(work: Step, configuration: Configuration, site: Site) -> Comparison:
    state, ticket = work.holding.state, work.holding.ticket
    limit = with_grace(state.patience_seconds)
    network = configuration.specialist(ticket.specialist).network

    def begins(check: str, base: str) -> None:
        event = BaselineBegun(specialist=ticket.specialist, check=check, base=base, sender=worker_of(ticket))
        work.tell(event, f"baseline/{check}")

    def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> GuardedResult | None:
        given = {**env, "FIXLOOP_ROLE": worker_of(ticket), VARIABLE: traceparent(ticket)}
        variables, confined = site.started(argv, cwd, given, network=network)
        return work.run(argv, cwd=cwd, env=variables, unheard_seconds=limit, confined=confined)

    runs, off = state.active.runs, configuration.integrity.off
    loads = not runs and {FLAKY, ALL_RULES}.isdisjoint(off) and may_load_ahead(work)
    known = [ref.name for ref in runs[-1].failures] if runs else ()
    return Comparison(site, run, begins, known, loads)


def _with_old_stored(work: Step, ran: Ran) -> Ran:
    """Store the check's old failures as an artifact and name it in the evidence."""
    result, old = ran.result, ran.result.old_failures
    if not old:
        return ran
    listed = OldFailures(
        base=result.evidence.base,
        count=len(old),
        by_name=dict(Counter(failure.name for failure in old).most_common(MOST_LISTED)),
        by_file=dict(Counter(failure.file for failure in old).most_common(MOST_LISTED)),
        first=old[:FIRST_LISTED],
    )
    digest = work.store.put_artifact(work.holding.state.workflow, listed.model_dump_json().encode())
    evidence = result.evidence.model_copy(update={"old_failures": digest})
    return ran._replace(result=result.model_copy(update={"evidence": evidence}))


def _finished(work: Step, ran: list[CheckResult], tree: str, artifacts: list[str]) -> RunFinished:
    state, ticket = work.holding.state, work.holding.ticket
    active, results = state.active, ran
    if active.runs:
        # An optional check that ran on an earlier tree and cannot run on this one was broken by a fix (K36).
        error = {"outcome": RunOutcome.ERROR}
        results = [
            each.model_copy(update=error)
            if each.outcome is RunOutcome.SKIPPED and each.check not in active.skipped_checks
            else each
            for each in ran
        ]
    failed = [result for result in results if result.outcome is RunOutcome.FAILED]
    wrong = [result for result in results if result.outcome is RunOutcome.ERROR]
    owed = {ref.name for ref in active.owed}
    whole = tuple(failure for result in failed for failure in result.whole)
    # A test that fails as on the base is no longer owed: nobody has to fix it (K7).
    settled = {failure.name for result in results for failure in result.old_failures}
    listed = (each.evidence.old_failures for each in results if each.old_failures)
    return run_finished(
        ticket,
        tree,
        worst([result.outcome for result in results]),
        failures=tuple(failure for result in failed for failure in result.failures),
        failures_artifact=work.store.put_artifact(state.workflow, failures_json(whole)) if whole else "",
        passed=tuple(sorted(owed & {*settled, *(name for each in results for name in each.passed_names)})),
        lists_passes=tuple(result.check for result in results if result.passed_names or result.lists_tests),
        evidence=tuple(result.evidence for result in results if result.outcome is not RunOutcome.SKIPPED),
        skipped_checks=tuple(r.check for r in results if r.outcome is RunOutcome.SKIPPED),
        coverage=_coverage(results),
        error="; ".join(result.reason for result in wrong),
        stack_trace="\n".join(result.output_tail for result in wrong),
        # Another worker may have what this machine lacks, but a run with its own worker has only this one.
        is_final=bool(state.queue and wrong) and all(result.is_final for result in wrong),
        artifacts=tuple(dict.fromkeys((*artifacts, *listed))),
    )


def _coverage(results: list[CheckResult]) -> str:
    for evidence in (result.evidence for result in results):
        if evidence.coverage_percent is not None:
            gate = f" (target: ≥{evidence.coverage_gate:g}%)" if evidence.coverage_gate is not None else ""
            return f"{evidence.coverage_percent:.1f}%{gate}"
    return ""
