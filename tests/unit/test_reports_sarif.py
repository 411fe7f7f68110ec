"""SARIF as real analysers and the standard's own samples write it."""

import json
from pathlib import Path
from typing import Any

import pytest

from fixloop.configuration.values import FailOn
from fixloop.protocol.failures import Severity
from fixloop.reports import read_report
from tests.fixtures.reports.samples import SARIF, read, sarif, sarif_failures, seen

# With `fail_on` warning, which is what most of the samples have: counted by eye.
REAL = {
    "Baseline.sarif": ("failed", 4, 1, 3, 0, 0),
    "DefaultRuleConfiguration.sarif": ("failed", 2, 0, 2, 0, 0),
    "EmbeddedTextContent.sarif": ("failed", 2, 0, 2, 0, 0),
    "One run empty results.sarif": ("passed", 0, 0, 0, 0, 0),
    "One run with results.sarif": ("failed", 1, 0, 1, 0, 0),
    "OriginalUriBaseIds.sarif": ("failed", 3, 0, 3, 0, 0),
    "RuleMetadata.sarif": ("failed", 1, 0, 1, 0, 0),
    "Suppressions.sarif": ("failed", 9, 0, 4, 0, 5),
    "automation-details.sarif": ("passed", 0, 0, 0, 0, 0),
    "bad-eval-with-code-flow.sarif": ("failed", 1, 0, 1, 0, 0),
    "message-from-metadata.sarif": ("failed", 1, 0, 1, 0, 0),
    "message-with-arguments.sarif": ("failed", 1, 0, 1, 0, 0),
    "simple-example.sarif": ("failed", 1, 0, 1, 0, 0),
    "standard-taxonomy.sarif": ("failed", 1, 0, 1, 0, 0),
}


def at(uri: str, line: int = 1, **location: Any) -> dict[str, Any]:
    """A result at one place."""
    physical = {"artifactLocation": {"uri": uri, **location}, "region": {"startLine": line}}
    return {"ruleId": "R1", "message": {"text": "m"}, "locations": [{"physicalLocation": physical}]}


@pytest.mark.parametrize("name", REAL)
def test_a_real_log_gives_its_visible_counts(name: str) -> None:
    report = read_report(SARIF / name, "sarif", fail_on=FailOn.WARNING)

    assert seen(report) == REAL[name]
    assert len(report.failures) == report.counts.failed
    assert all(failure.message for failure in report.failures)


@pytest.mark.parametrize(("fail_on", "failed"), [(FailOn.ERROR, 1), (FailOn.WARNING, 2), (FailOn.NOTE, 2)])
def test_a_result_without_a_level_has_its_rules(fail_on: FailOn, failed: int) -> None:
    report = read_report(SARIF / "DefaultRuleConfiguration.sarif", "sarif", fail_on=fail_on)

    assert len(report.failures) == failed
    assert report.findings == 2


@pytest.mark.parametrize(
    ("level", "fail_on", "outcome"),
    [
        (None, "error", "passed"),
        (None, "warning", "failed"),
        ("error", "error", "failed"),
        ("warning", "error", "passed"),
        ("note", "warning", "passed"),
        ("note", "note", "failed"),
        ("none", "note", "passed"),
    ],
)
def test_fail_on_says_from_which_level_a_result_fails(
    tmp_path: Path, level: str | None, fail_on: str, outcome: str
) -> None:
    result = {"message": {"text": "m"}, "level": level}

    assert read(tmp_path, "sarif", sarif(result), fail_on=FailOn(fail_on)).outcome == outcome


@pytest.mark.parametrize("reference", [{"ruleId": "X1"}, {"ruleIndex": 0}, {"ruleId": "X1/finer"}])
def test_the_rule_of_an_extension_gives_the_level(tmp_path: Path, reference: dict[str, Any]) -> None:
    rules = [{"id": "X1", "defaultConfiguration": {"level": "error"}}]
    place = {"rule": {"toolComponent": {"index": 0}}} if "ruleIndex" in reference else {}
    log = sarif(
        {"message": {"text": "m"}, **reference, **place},
        tool={"extensions": [{"name": "plugin", "rules": rules}]},
    )

    assert read(tmp_path, "sarif", log).outcome == "failed"


@pytest.mark.parametrize(
    ("suppressions", "outcome"),
    [
        ([{"kind": "inSource"}], "passed"),
        ([{"kind": "external", "status": "accepted"}], "passed"),
        ([{"kind": "external", "status": "accepted"}, {"kind": "external", "status": "rejected"}], "passed"),
        ([{"kind": "external", "status": "rejected"}], "failed"),
        ([{"kind": "external", "status": "underReview"}], "failed"),
        ([], "failed"),
    ],
)
def test_a_suppressed_result_never_fails(tmp_path: Path, suppressions: list[object], outcome: str) -> None:
    result = {"message": {"text": "m"}, "level": "error", "suppressions": suppressions}

    report = read(tmp_path, "sarif", sarif(result))

    assert report.outcome == outcome
    assert report.findings == (outcome == "failed")


@pytest.mark.parametrize("kind", ["pass", "review", "open", "notApplicable", "informational"])
def test_a_result_that_is_no_finding_never_fails(tmp_path: Path, kind: str) -> None:
    report = sarif_failures(tmp_path, {"message": {"text": "m"}, "kind": kind, "level": "error"})

    assert seen(report) == ("passed", 1, 1, 0, 0, 0)


def test_a_message_comes_from_the_rule_with_its_arguments() -> None:
    def message(name: str) -> str:
        return read_report(SARIF / name, "sarif", fail_on=FailOn.NOTE).failures[0].message

    assert message("message-with-arguments.sarif") == "Variable 'x' was used without being initialized."
    assert message("message-from-metadata.sarif") == "This is the message text. It might be very long."
    assert message("RuleMetadata.sarif") == "The URI '//C:/code/dev' is invalid."


def test_bases_are_followed_to_a_path() -> None:
    report = read_report(SARIF / "OriginalUriBaseIds.sarif", "sarif", fail_on=FailOn.NOTE)

    assert [failure.file for failure in report.failures] == ["README.md", "src/io/kb.c", ""]


def test_paths_become_relative_to_the_workspace(tmp_path: Path) -> None:
    root = tmp_path / "a b"
    bases = {"ROOT": {"uri": f"file://{tmp_path}/a%20b/"}, "LOOP": {"uri": "x/", "uriBaseId": "LOOP"}}
    indexed = {**at(""), "locations": [{"physicalLocation": {"artifactLocation": {"index": 0}}}]}
    log = sarif(
        at(f"file://{tmp_path}/a%20b/src/m.py"),
        at("src/m.py", uriBaseId="ROOT"),
        at("./src/../src/m%2Epy", uriBaseId="%SRCROOT%"),
        indexed,
        originalUriBaseIds=bases,
        artifacts=[{"location": {"uri": "src/m.py"}}],
    )

    report = read(tmp_path, "sarif", log, root=root, fail_on=FailOn.NOTE)

    assert [failure.file for failure in report.failures] == ["src/m.py"] * 4


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "../../etc/passwd",
        "%2e%2e/%2e%2e/etc/passwd",
        "/etc/passwd",
        "file://host/etc/passwd",
        "file:///C:/etc/passwd",
        "https://example.com/etc/passwd",
        "src/../../passwd",
    ],
)
@pytest.mark.proves("K41")
def test_a_path_outside_the_workspace_is_kept_as_a_bare_name(tmp_path: Path, uri: str) -> None:
    report = read(tmp_path, "sarif", sarif(at(uri)), root=tmp_path / "project", fail_on=FailOn.NOTE)

    assert report.failures[0].file == "passwd"


def test_a_base_that_refers_to_itself_causes_no_endless_loop(tmp_path: Path) -> None:
    log = sarif(at("m.py", uriBaseId="LOOP"), originalUriBaseIds={"LOOP": {"uri": "x/", "uriBaseId": "LOOP"}})

    assert read(tmp_path, "sarif", log, fail_on=FailOn.NOTE).failures[0].file.endswith("x/m.py")


@pytest.mark.proves("B20")
@pytest.mark.parametrize(
    ("properties", "severity"),
    [
        ({"security-severity": "9.8"}, Severity.CRITICAL),
        ({"security-severity": "9.0"}, Severity.CRITICAL),
        ({"security-severity": "7.0"}, Severity.HIGH),
        ({"security-severity": 4}, Severity.MEDIUM),
        ({"security-severity": "3.9"}, Severity.LOW),
        ({"security-severity": "high"}, Severity.MEDIUM),
        ({"issue_severity": "LOW"}, Severity.LOW),
        ({}, Severity.MEDIUM),
    ],
)
@pytest.mark.parametrize("place", ["rule", "result"])
def test_a_score_gives_the_severity(
    tmp_path: Path, properties: dict[str, object], severity: Severity, place: str
) -> None:
    rule = {"id": "R1", "properties": properties if place == "rule" else {}}
    result = {**at("m.py"), "properties": properties if place == "result" else {}}

    report = sarif_failures(tmp_path, result, driver={"rules": [rule]})

    assert report.failures[0].severity is severity


@pytest.mark.proves("A25")
def test_the_suggestion_is_the_tools_fix_or_else_the_rules_help(tmp_path: Path) -> None:
    rules = [{"id": "R1", "name": "unused", "help": {"text": "Remove it.\nMore."}}]
    fix = {"fixes": [{"description": {"text": "Remove `os`"}, "artifactChanges": []}]}

    report = sarif_failures(
        tmp_path,
        {**at("m.py"), **fix},
        at("m.py"),
        {**at("n.py", 3), "ruleId": "R2"},
        driver={"rules": rules},
    )

    assert [failure.suggestion for failure in report.failures] == ["Remove `os`", "Remove it.", ""]
    assert [failure.error_type for failure in report.failures] == ["unused", "unused", "warning"]


@pytest.mark.proves("K7", "S32")
def test_three_findings_of_one_rule_in_one_file_are_three(tmp_path: Path) -> None:
    report = sarif_failures(tmp_path, at("m.py", 1), at("m.py", 2), at("m.py", 9))

    assert len(report.failures) == 3
    assert len({failure.key for failure in report.failures}) == 1


def test_unused_fields_need_not_conform_to_the_standard(tmp_path: Path) -> None:
    odd = {**at("m.py"), "codeFlows": "none", "graphs": 3, "partialFingerprints": {"a": 1}}

    assert len(sarif_failures(tmp_path, odd).failures) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_accepted(tmp_path: Path, encoding: str) -> None:
    assert read(tmp_path, "sarif", sarif(at("ü.py")).encode(encoding)).findings == 1


def test_a_lone_surrogate_becomes_text_that_can_be_stored(tmp_path: Path) -> None:
    log = sarif({"message": {"text": "a\ud800\x00\x1b[31mb"}, "ruleId": "R\ud800"})

    (failure,) = read(tmp_path, "sarif", log, fail_on=FailOn.NOTE).failures

    assert (failure.name, failure.message) == ("R\ufffd", "a\ufffdb")
    assert json.loads(failure.model_dump_json())["message"] == "a\ufffdb"


def test_the_shown_code_is_the_context(tmp_path: Path) -> None:
    result = at("m.py")
    result["locations"][0]["physicalLocation"]["region"]["snippet"] = {"text": "eval(x)"}

    assert sarif_failures(tmp_path, result).failures[0].context == "eval(x)"
