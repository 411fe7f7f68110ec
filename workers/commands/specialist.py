"""A specialist's step: runs its checks on the workflow's tree and returns the resulting event.

A run that passed after a fix is only a claim: judges examine it before it becomes a verdict. Each judge examines one
aspect that the fix cannot control, and yields findings for a person to decide.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from fixloop.configuration.model import Configuration
from fixloop.intake.redaction_scope import without_secrets
from fixloop.machine.guard import GuardedResult
from fixloop.protocol.checks import CheckResult, Finding, OldFailures, RunOutcome, worst
from fixloop.protocol.events import BaselineBegun, RunFinished
from fixloop.protocol.holds import ALL_RULES
from fixloop.protocol.limits import failures_json
from fixloop.protocol.roles import worker_of
from fixloop.protocol.tracing import VARIABLE, traceparent
from fixloop.repository.tree import Delta, deltas
from workers.commands.ahead import may_load_ahead
from workers.commands.apart import apart
from workers.commands.baseline import Comparison
from workers.commands.canary import fewer_tests, runner_lies
from workers.commands.check_run import Ran
from workers.commands.checked import taken_over
from workers.commands.claim import Claim
from workers.commands.difference import difference
from workers.commands.flakes import RULE as FLAKY
from workers.commands.frozen import Frozen
from workers.commands.moved import started_by_others, work_moved_away
from workers.commands.new_tests import new_tests
from workers.commands.proof import begun, proof
from workers.commands.seen import not_seen_again, noted
from workers.steps.step import Step, with_grace
from workers.steps.validation_steps import run_finished
from workers.workspaces.ground import Ground, Site, open_ground, site_of

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


Judge = Callable[[Claim], Iterator[Finding]]
JUDGES: Final[tuple[Judge, ...]] = (
    difference,
    work_moved_away,
    started_by_others,
    apart,
    not_seen_again,
    fewer_tests,
    # May also run the canary.
    proof,
    runner_lies,
    new_tests,
)
MOST_FINDINGS: Final = 20
"""Findings that are listed; the rest are counted by rule."""
TEXT_CHARACTERS: Final = 500
SIDE_CHARACTERS: Final = 1000


def findings(claim: Claim) -> tuple[Finding, ...]:
    """The findings of all judges, redacted, at most `MOST_FINDINGS` and a count for each rule of the rest."""
    off = claim.configuration.integrity.off
    if ALL_RULES in off:
        return ()
    found = [found for judge in JUDGES for found in judge(claim) if found.rule not in off]
    further = Counter(each.rule for each in found[MOST_FINDINGS:])
    listed = found[:MOST_FINDINGS] + [
        Finding(rule=rule, text=f"{count} more of this rule, not listed here")
        for rule, count in further.items()
    ]
    hide, side = claim.ground.redaction.text, SIDE_CHARACTERS
    # Redacted before they are truncated to the limits of a state: a truncated secret would not be recognised.
    wholes = [without_secrets(each, hide) for each in listed]
    return tuple(
        whole.with_(text=whole.text[:TEXT_CHARACTERS], old=whole.old[:side], new=whole.new[:side])
        for whole in wholes
    )


def by_chance(claim: Claim) -> tuple[Finding, ...]:
    """The tests that failed and then passed on the same tree, with or without a fix."""
    text = "{} failed, and passed when it ran again on the same tree"
    flaky = [(ran.result.check, name) for ran in claim.ran for name in ran.result.flaky]
    return tuple(
        Finding(rule=FLAKY, text=text.format(name), check=check, file=name.partition("::")[0])
        for check, name in flaky
    )


def changed_since(work: Step, ground: Ground) -> tuple[Delta, ...]:
    state = work.holding.state
    if not state.trusted or state.trusted == state.tip or state.tree in state.accepted:
        return ()
    return tuple(deltas(ground.workspace.mirror.git, state.trusted, state.tip))
