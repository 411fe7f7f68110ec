"""SARIF 2.1.0: which results fail a check, and whether the analysis ran at all.

Owns levels, kinds and suppressions. Refuses a log that proves no analysis.
"""

from collections import Counter
from typing import Any, Final

from pydantic import ValidationError

from fixloop.configuration.values import FailOn
from fixloop.protocol.checks import Counts, RunOutcome
from fixloop.protocol.failures import Failure
from fixloop.reports.document import json_object
from fixloop.reports.limits import MAX_FAILURES, clean, one_line, short_name
from fixloop.reports.report import Report, Unusable
from fixloop.reports.sarif_model import LEVELS, Finding, Rule
from fixloop.reports.sarif_run import Locations, Rules, filled
from fixloop.reports.tree import SourceTree

_SUGGESTION_BYTES: Final = 300


def read_sarif(content: bytes, tree: SourceTree, fail_on: FailOn) -> Report:
    """
    What the SARIF log in `content` says; a result fails from level `fail_on` on.

    Raises Unusable: it is no SARIF 2 log, holds no run, or one of its runs did not succeed or lists no results.
    """
    log = json_object(content)
    if not str(log.get("version", "")).startswith("2."):
        raise Unusable(f"is not SARIF 2.1.0 but version {str(log.get('version'))[:20]!r}")
    runs = log.get("runs")
    if not isinstance(runs, list) or not runs:
        raise Unusable("is SARIF without a run, so nothing was analysed")
    tally = _Tally(fail_on)
    for number, run in enumerate(runs, start=1):
        _read_run(run, f"run {number}", tree, tally)
    return tally.report()


class _Tally:
    def __init__(self, fail_on: FailOn) -> None:
        self.threshold = LEVELS.index(fail_on.value)
        self.counts: Counter[str] = Counter()
        self.failures: list[Failure] = []
        self.findings = 0

    def is_failing(self, result: Finding, level: str) -> bool:
        self.counts["total"] += 1
        if result.is_suppressed:
            self.counts["skipped"] += 1
            return False
        self.findings += result.is_open
        fails = result.is_open and level != "none" and LEVELS.index(level) >= self.threshold
        self.counts["failed" if fails else "passed"] += 1
        return fails

    def add(self, failure: Failure) -> None:
        if len(self.failures) >= MAX_FAILURES:
            raise Unusable(f"lists more than {MAX_FAILURES} failing results; check less or raise the level")
        self.failures.append(failure)

    def report(self) -> Report:
        counts = Counts(**self.counts)
        suppressed = f", {counts.skipped} suppressed" if counts.skipped else ""
        reason = f"{counts.failed} of {counts.total} findings are at a level that fails{suppressed}"
        return Report(
            outcome=RunOutcome.FAILED if self.failures else RunOutcome.PASSED,
            reason=reason if counts.total else "no findings",
            counts=counts,
            failures=tuple(self.failures),
            findings=self.findings,
        )


def _read_run(run: Any, name: str, tree: SourceTree, tally: _Tally) -> None:
    described = run.get("tool") if isinstance(run, dict) else None
    driver = described.get("driver") if isinstance(described, dict) else None
    if not isinstance(driver, dict) or not isinstance(driver.get("name"), str):
        raise Unusable(f"is not SARIF: {name} does not name its tool")
    tool = one_line(clean(driver["name"]))
    for invocation in run.get("invocations") or []:
        if invocation.get("executionSuccessful", True) is not True:
            keys = ("toolConfigurationNotifications", "toolExecutionNotifications")
            told = (
                (each.get("message") or {}).get("text") for key in keys for each in invocation.get(key) or []
            )
            why = next((f": {one_line(clean(str(text)))}" for text in told if text), "")
            raise Unusable(f"proves nothing: {tool} says that it did not succeed{why}")
    if not isinstance(run.get("results"), list):
        raise Unusable(f"is not complete: {name}, by {tool}, has no list of results")
    if (run.get("externalPropertyFileReferences") or {}).get("results"):
        raise Unusable(
            f"is not complete: {name}, by {tool}, keeps its results in another file, which is not read"
        )
    rules, locations = Rules(run), Locations(run, tree)
    for number, raw in enumerate(run["results"], start=1):
        if not isinstance(raw, dict):
            raise Unusable(f"is not SARIF: result {number} of {name} is not an object")
        try:
            result = Finding.of(raw)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, fault["loc"]))
            said = f"result {number} of {name}: {place}: {fault['msg'].lower()}"
            raise Unusable(f"is not SARIF: {said}") from None
        rule = rules.rule(result)
        level = result.level or (rule and rule.level) or "warning"
        if level not in LEVELS:
            raise Unusable(f"is not SARIF: {level[:40]!r} is no level")
        if tally.is_failing(result, level):
            tally.add(_failure(result, rule, level, locations))


def _failure(result: Finding, rule: Rule | None, level: str, locations: Locations) -> Failure:
    place = result.place
    physical = place.physical_location
    target = physical.artifact_location if physical else result.analysis_target
    name = result.rule_id or (rule and rule.id) or (result.rule and result.rule.id) or "result"
    region = physical.region if physical else None
    line = region.start_line if region else None
    if region and (line, region.start_column, region.end_line, region.end_column) == (1, 1, 1, 1):
        line = None  # an empty region at the very start stands for the file as a whole
    help_text, help_uri = (rule.help_text, rule.help_uri or "") if rule else ("", "")
    told = (result.fix, help_text, help_uri)
    return Failure(
        name=short_name(name),
        file=locations.path(target),
        line=line if line and line > 0 else None,
        error_type=short_name((rule and rule.name) or level),
        message=clean(filled(result.message, rule) or help_text or name),
        severity=result.severity(rule),
        context=clean(place.shown),
        suggestion=next(filter(None, (one_line(clean(text), _SUGGESTION_BYTES) for text in told)), ""),
    )
