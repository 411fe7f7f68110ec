"""SARIF 2.1.0: which results fail a check, and whether the analysis ran at all.

Owns levels, kinds and suppressions, and resolves references to rules, and to files by URI, base or artifact index.
Refuses a log that proves no analysis; follows no base in circles and no URI out of the workspace.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from pydantic import ValidationError

from fixloop.configuration.values import FailOn
from fixloop.protocol.checks import Counts, RunOutcome
from fixloop.protocol.failures import Failure
from fixloop.protocol.limits import MAX_FAILURES, clean, one_line, short_name
from fixloop.reports.document import json_object
from fixloop.reports.report import Report, SourceTree, Unusable
from fixloop.reports.sarif_model import LEVELS, ArtifactLocation, Finding, Rule

_SUGGESTION_BYTES: Final = 300
_PLACEHOLDER: Final = re.compile(r"\{(\d{1,3})\}")
# At least two letters: `C:` is a drive.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_MOST_BASES: Final = 10


def read_sarif(content: bytes, tree: SourceTree, fail_on: FailOn) -> Report:
    """The report of the SARIF log in `content`; a result fails at level `fail_on` or above. Raises Unusable."""
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
        if self.counts["failed"] > MAX_FAILURES:
            raise Unusable(f"lists more than {MAX_FAILURES} failing results; check less or raise the level")
        return fails

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
    for tried in run.get("invocations") or []:
        if tried.get("executionSuccessful", True) is not True:
            keys = ("toolConfigurationNotifications", "toolExecutionNotifications")
            told = ((one.get("message") or {}).get("text") for key in keys for one in tried.get(key) or [])
            why = next((f": {one_line(clean(str(text)))}" for text in told if text), "")
            raise Unusable(f"proves nothing: {tool} says that it did not succeed{why}")
    if not isinstance(run.get("results"), list):
        raise Unusable(f"is not complete: {name}, by {tool}, has no list of results")
    if (run.get("externalPropertyFileReferences") or {}).get("results"):
        elsewhere = "keeps its results in another file, which is not read"
        raise Unusable(f"is not complete: {name}, by {tool}, {elsewhere}")
    own = _Run(run, tree)
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
        rule = own.rule(result)
        level = result.level or (rule and rule.level) or "warning"
        if level not in LEVELS:
            raise Unusable(f"is not SARIF: {level[:40]!r} is no level")
        if tally.is_failing(result, level):
            tally.failures.append(own.failure(result, rule, level))


class _Run:
    """What the results of a run refer to: its rules and its files."""

    def __init__(self, run: dict[str, Any], tree: SourceTree) -> None:
        self._driver = _listed(run["tool"]["driver"])
        self._extensions = [_listed(component) for component in run["tool"].get("extensions") or []]
        self._by_id: dict[str, Mapping[str, Any]] = {}
        for rule in [*self._driver, *(rule for rules in self._extensions for rule in rules)]:
            self._by_id.setdefault(str(rule.get("id")), rule)
        self._read: dict[int, Rule] = {}
        bases, artifacts = run.get("originalUriBaseIds"), run.get("artifacts")
        self._bases: dict[str, Any] = bases if isinstance(bases, dict) else {}
        self._artifacts: list[Any] = artifacts if isinstance(artifacts, list) else []
        self._tree = tree

    def rule(self, result: Finding) -> Rule | None:
        """By index if there is one, as it is unambiguous; else by id."""
        reference = result.rule
        index = reference.index if result.rule_index is None and reference else result.rule_index
        component = reference.tool_component.index if reference and reference.tool_component else None
        rules = self._driver
        if component is not None and component >= 0:
            rules = self._extensions[component] if component < len(self._extensions) else []
        found = rules[index] if index is not None and 0 <= index < len(rules) else None
        if not found:
            # `CA1000/1` is a finer `CA1000`.
            name = result.rule_id or (reference and reference.id) or ""
            found = self._by_id.get(name) or self._by_id.get(name.rpartition("/")[0])
        if found is None:
            return None
        if id(found) not in self._read:
            self._read[id(found)] = Rule.model_validate(found)
        return self._read[id(found)]

    def path(self, location: ArtifactLocation | None) -> str:
        """The path relative to the workspace; a bare name if outside it, empty if no file is named."""
        if location is None:
            return ""
        if location.uri is None and (index := location.index) is not None:
            found = self._artifacts[index] if 0 <= index < len(self._artifacts) else None
            listed = found.get("location") if isinstance(found, dict) else None
            location = ArtifactLocation.model_validate(listed or {})
        uri, base_id = location.uri or "", location.uri_base_id
        # An unknown base is the workspace itself.
        for _ in range(_MOST_BASES):
            if base_id not in self._bases or _SCHEME.match(uri) or uri.startswith("/"):
                break
            base = ArtifactLocation.model_validate(self._bases[base_id])
            uri = f"{base.uri.rstrip('/')}/{uri}" if base.uri else uri
            base_id = base.uri_base_id
        scheme = _SCHEME.match(uri)
        path = unquote(uri[scheme.end() :] if scheme is not None else uri)
        if scheme is not None and scheme[1].lower() != "file":
            path = path.rstrip("/").rsplit("/", 1)[-1]
        elif scheme is not None and path.startswith("//"):
            host, slash, path = path[2:].partition("/")
            # For a file on another machine, only the name is kept.
            path = slash + path if host in {"", "localhost"} else path.rsplit("/", 1)[-1]
        return self._tree.relative(path)

    def failure(self, result: Finding, rule: Rule | None, level: str) -> Failure:
        place = result.place
        physical = place.physical_location
        target = physical.artifact_location if physical else result.analysis_target
        name = result.rule_id or (rule and rule.id) or (result.rule and result.rule.id) or "result"
        region = physical.region if physical else None
        line = region.start_line if region else None
        if region and (line, region.start_column, region.end_line, region.end_column) == (1, 1, 1, 1):
            line = None  # an empty region at the very start means the whole file
        help_text, help_uri = (rule.help_text, rule.help_uri or "") if rule else ("", "")
        told = (result.fix, help_text, help_uri)
        # The message's own text, or that of the rule if it only names one, with its arguments filled in.
        message, strings = result.message, (rule and rule.message_strings) or {}
        source = message if message.text or message.markdown else strings.get(message.id or "", message)
        arguments = dict(enumerate(message.arguments or ()))
        text = source.text or source.markdown or ""
        filled = _PLACEHOLDER.sub(lambda match: arguments.get(int(match[1]), match[0]), text)
        return Failure(
            name=short_name(name),
            file=self.path(target),
            line=line if line and line > 0 else None,
            error_type=short_name((rule and rule.name) or level),
            message=clean(filled or help_text or name),
            severity=result.severity(rule),
            context=clean(place.shown),
            suggestion=next(filter(None, (one_line(clean(text), _SUGGESTION_BYTES) for text in told)), ""),
        )


def _listed(component: object) -> list[Mapping[str, Any]]:
    rules = component.get("rules") if isinstance(component, Mapping) else None
    return [rule if isinstance(rule, Mapping) else {} for rule in rules] if isinstance(rules, list) else []
