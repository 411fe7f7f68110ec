"""Each specialist's part of the report: its runs, fixes, confirmations, times and evidence, and old failures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from fixloop.protocol import analysis, diagnosis
from fixloop.protocol.checks import OldFailures
from fixloop.protocol.failures import FailureRef
from fixloop.protocol.messages import Reason
from fixloop.protocol.specialists import Status, specialist as slot
from fixloop.protocol.state import SpecialistState, State
from fixloop.summary.history import Artifact, Recorded
from fixloop.summary.model import Confirmation, Finding, FixRow, OldRow, Phase, RunRow, Times, clean, one_line
from fixloop.summary.timeline import Activity, EndedRun, Interval, ended_runs

SHOWN: Final = 20
"""The number of failures listed that the base has too."""
_WORDS: Final = {"check": 300, "command": 500, "interpreter": 300}
"""The texts of a check's evidence, and how many characters of each are shown."""
_RESULTS: Final = {
    Status.PENDING: "not reached",
    Status.COMPLETED: "passed",
    Status.PASS: "passed",
    Status.ESCALATED: "escalated",
    Status.FAIL: "failed",
    Status.AWAITING_FIX: "failed, fix requested",
    Status.FIXING: "failed, being fixed",
    Status.IN_PROGRESS: "running",
    Status.RE_CHECKING: "running again",
}


def phases_of(
    state: State, entries: Sequence[Recorded], found: Sequence[Interval], artifact: Artifact
) -> Iterator[Phase]:
    """All six, in their fixed order; `artifact` loads the complete diffs of fixes."""
    ended = list(ended_runs(entries))
    by_end = {interval.last: interval for interval in found}
    for entry in state.specialists:
        own = [run for run in ended if run.specialist == entry.name]
        own_intervals = [interval for interval in found if interval.specialist == entry.name]
        last, pattern = entry.last_run, ""
        if last is not None and not last.passed:
            pattern = diagnosis.pattern(entry, Reason.MAX_ITERATIONS, state.limits.deadlock_window)
        result = "does not apply"
        if entry.applicable:
            result = "failed, skipped by a person" if entry.skipped else _RESULTS[entry.status]
        yield Phase(
            name=entry.name,
            title=slot(entry.name).phase,
            applicable=entry.applicable,
            status=entry.status.value,
            result=result,
            iterations=entry.iteration if entry.applicable else 0,
            max_iterations=entry.max_iterations,
            history=analysis.history(entry.runs),
            times=times_of(own_intervals, [entries[run.entry] for run in own]),
            runs=tuple(_rows(state, entry, own, by_end)),
            fixes=tuple(_fixes(entry.name, entries, artifact)),
            confirmations=tuple(
                Confirmation(
                    specialist=run.specialist,
                    result=run.result,
                    at=entries[run.entry].at,
                    seconds=by_end[run.entry].seconds if run.entry in by_end else 0.0,
                    tree=run.tree,
                )
                for run in own
                if run.is_confirmation
            ),
            evidence=tuple(
                each.model_copy(
                    update={key: one_line(getattr(each, key), most) for key, most in _WORDS.items()}
                )
                for each in entry.evidence
            ),
            coverage=one_line(last.coverage) if last is not None else "",
            known_issues=tuple(map(one_line, entry.known_issues)),
            skipped_checks=tuple(map(one_line, entry.skipped_checks)),
            pattern=one_line(pattern, 1000),
        )


def times_of(found: Iterable[Interval], ended: Iterable[Recorded]) -> Times:
    """The use of time in these stretches; the commands are those of the runs that `ended`."""
    spent = dict.fromkeys(Activity, 0.0)
    away = 0.0
    for interval in found:
        spent[interval.activity] += interval.seconds
        away += interval.away_seconds
    runs = [entry.run for entry in ended]
    evidence = [each for run in runs if run for each in run.evidence]
    commands = sum(each.duration_seconds for each in evidence if not each.beforehand)
    return Times(total=sum(spent.values()) + away, away=away, commands=commands, **spent)


def _rows(
    state: State, entry: SpecialistState, own: Sequence[EndedRun], by_end: Mapping[int, Interval]
) -> Iterator[RunRow]:
    # A held and then rejected run is the run with its number.
    ended = {run.number: run for run in own if run.result in ("passed", "failed", "could not run", "held")}
    # A passed confirmation has its run's number and is not that run.
    ended |= {run.number: run for run in own if run.result == "passed" and not run.is_confirmation}
    last, texts = entry.last_run, dict[str, str]()
    if last is not None and not last.passed and entry.name == state.active.name:
        # The last run's failures have their whole messages while they are current.
        texts = {one_line(failure.name, 160): clean(failure.message) for failure in state.failures}
    for previous, run in zip((None, *entry.runs), entry.runs, strict=False):
        known = ended.get(run.number)
        interval = by_end.get(known.entry) if known is not None else None
        change = analysis.comparison(previous, run)
        findings = tuple(map(finding_of, run.failures))
        if texts and run is last:
            findings = tuple(each.model_copy(update={"text": texts.get(each.name, "")}) for each in findings)
        yield RunRow(
            specialist=entry.name,
            number=run.number,
            max_iterations=entry.max_iterations,
            result="passed" if run.passed else "could not run" if run.could_not_run else "failed",
            at=run.at,
            seconds=interval.seconds if interval is not None else 0.0,
            count=run.count,
            findings=findings,
            resolved=len(change.resolved),
            persisting=len(change.persisting),
            new=len(change.new),
            coverage=one_line(run.coverage),
            tree=run.tree,
            fixes=tuple(one_line(fix, 500) for fix in run.fixes),
            from_confirmation=known is not None and known.is_confirmation,
        )


def finding_of(ref: FailureRef) -> Finding:
    error_type, headline = one_line(ref.error_type, 80), one_line(ref.headline, 160)
    return Finding(
        name=one_line(ref.name, 160),
        location=one_line(f"{ref.file}:{ref.line}" if ref.file and ref.line is not None else ref.file, 200),
        # Most tools begin their message with the type.
        error_type="" if headline.startswith(error_type) else error_type,
        headline=headline,
    )


def _fixes(name: str, entries: Sequence[Recorded], artifact: Artifact) -> Iterator[FixRow]:
    """The main agent's fixes from its messages; a person's from the event, because there is no message."""
    escalated = None
    for entry in entries:
        said = entry.says("fix-completion")
        body = said.message.body if said is not None and said.message.specialist == name else None
        if said is not None and body is not None and body.kind == "fix-completion":
            yield FixRow(
                iteration=said.message.iteration,
                by="",
                seconds=body.duration_seconds,
                fixes=tuple(one_line(fix, 500) for fix in body.fixes),
                **_fix_facts(name, entry, body.model_dump(include={"summary", "files", "marks"})),
                **_fix_artifacts(entry.event.get("completion", {}), artifact),
            )
        if entry.says("escalation") is not None:
            escalated = entry
        if entry.kind == "manual-fix-done" and entry.changes and entry.changes[-1].specialist == name:
            trigger, told = entry.says("revalidation-trigger"), _fix_facts(name, entry, entry.event)
            yield FixRow(
                iteration=trigger.message.iteration - 1 if trigger is not None else 0,
                by=one_line(str(entry.event.get("by", "User"))),
                seconds=(entry.at - escalated.at).total_seconds() if escalated is not None else 0.0,
                fixes=(told["summary"],) if told["summary"] else (),
                **told,
                **_fix_artifacts(entry.event, artifact),
            )


def _fix_facts(name: str, entry: Recorded, fix: Mapping[str, Any]) -> dict[str, Any]:
    """The facts about a fix that messages and events share."""
    lists = {key: tuple(one_line(str(each)) for each in fix.get(key, ())) for key in ("files", "marks")}
    summary = one_line(str(fix.get("summary", "")), 500)
    return {"specialist": name, "at": entry.at, "summary": summary, **lists}


def _fix_artifacts(event: Mapping[str, Any], artifact: Artifact) -> dict[str, Any]:
    """The stored artifacts of a fix."""
    digest = str(event.get("diff_artifact", ""))
    whole = artifact(digest) if digest else None
    text = whole.decode("utf-8", "replace") if whole is not None else str(event.get("diff", ""))
    return {"diff": clean(text), "said": clean(str(event.get("said", ""))).strip()}


def old_rows(entries: Iterable[Recorded], artifact: Artifact) -> Iterator[OldRow]:
    """A row for each check whose last run found failures that the base has too."""
    last = {run.specialist: run for entry in entries if (run := entry.run) is not None and run.evidence}
    for specialist, run in last.items():
        for evidence in run.evidence:
            if not evidence.old:
                continue
            try:
                listed = OldFailures.model_validate_json(artifact(evidence.old_failures) or b"")
            except ValidationError:
                # The list is gone: show only the figures.
                listed = OldFailures(base=evidence.base, count=evidence.old)
            yield OldRow(
                specialist=specialist,
                check=one_line(evidence.check),
                base=evidence.base,
                count=evidence.old,
                by_name=_largest(listed.by_name),
                by_file=_largest(listed.by_file),
                first=tuple(map(finding_of, map(FailureRef.of, listed.first[:SHOWN]))),
            )


def _largest(counts: dict[str, int]) -> tuple[tuple[str, int], ...]:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple((one_line(name) or "no file", count) for name, count in ranked[:SHOWN])
