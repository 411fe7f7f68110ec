"""The parts of a chat that need no directory: sections, results, the journal, channels, listings."""

import json
from pathlib import Path

import pytest

from fixloop.chat.channels import Channel, log_findings, tagged, to_user
from fixloop.chat.conversation import Adopted, entry, read_journal
from fixloop.chat.message import file_name, loose_number, read_name
from fixloop.chat.meta import Meta
from fixloop.chat.sections import Result, Verdict, misplaced, missing, results, sections, with_results
from fixloop.chat.validation import Examined, as_json, as_sarif, as_text
from fixloop.chat.vocabulary import RULES, TEMPLATES, Finding, Level, Role
from fixloop.reports import read_report
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, START, TWIN, body
from tests.proofs import ROOT

GATES = """\
## GATES
- [pass] make test
* [FAIL] make lint: two lines
- [maybe] make nothing
- make more

## PLAN
- [pass] not a gate
"""


@pytest.mark.proves("U7", "E26")
@pytest.mark.parametrize(
    "line", ["STATUS", "STATUS: all green", "**STATUS**", "**Status:** x", "## Status", "STATUS —"]
)
def test_a_section_begins_with_a_plain_bold_or_heading_line(line: str) -> None:
    assert [section.title for section in sections([line])] == ["STATUS"]


@pytest.mark.parametrize(
    "line", ["- STATUS: x", "STATUS quo", "status: x", "the STATUS", "## Statuses", "STATUS-X"]
)
def test_a_line_that_only_mentions_a_section_starts_none(line: str) -> None:
    assert sections([line]) == []


@pytest.mark.parametrize("role", Role)
def test_a_complete_body_lacks_nothing_and_is_in_order(role: Role) -> None:
    found = sections(body(role).split("\n"))

    assert tuple(section.title for section in found) == TEMPLATES[role]
    assert missing(found, role) == []
    assert misplaced(found, role) is None


@pytest.mark.proves("E24")
def test_results_are_read_from_gates_alone_and_added_at_its_end() -> None:
    lines = GATES.splitlines()

    assert list(results(lines)) == [
        Result(Verdict.PASS, "make test"),
        Result(Verdict.FAIL, "make lint: two lines"),
    ]
    added = with_results(lines, [Result(Verdict.PASS, "make docs")])
    assert added[4:7] == ["- make more", "- [pass] make docs", ""]
    assert with_results(["## PLAN"], [Result(Verdict.PASS, "x")]) == ["## PLAN"]


@pytest.mark.proves("E6")
@pytest.mark.parametrize(
    ("name", "number"), [("001-to-engineer.md", 1), ("010-to-architect.md", 10), ("999-to-twin.md", 999)]
)
def test_a_message_s_name_has_three_digits_and_a_role(name: str, number: int) -> None:
    found = read_name(name)

    assert found is not None
    assert found.seq == number
    assert file_name(*found) == name


@pytest.mark.proves("E6")
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("4-to-engineer.md", 4),
        ("0004-to-engineer.md", 4),
        ("004-to-user.md", 4),
        ("004_to_engineer.md", 4),
        ("004-To-Engineer.md", 4),
        ("٠٠٤-to-engineer.md", None),
        ("to-engineer.md", 0),
        ("how-to.md", None),
        ("004-to-engineer.md\n", None),
        ("README.md", None),
    ],
)
def test_a_nearly_correct_message_name_is_recognised_but_not_accepted(name: str, meant: int | None) -> None:
    assert read_name(name) is None
    assert loose_number(name) == meant


def test_a_journal_consists_of_its_complete_lines() -> None:
    text = (
        entry("read", START, by=ARCHITECT, seq=0)
        + entry("posted", START, file="001-to-engineer.md", sha256="a")
        + entry("posted", START, file="001-to-engineer.md", sha256="b")
        + entry("adopted", START, files={"x": {"sha256": "c", "size": 3}, "y": {"sha256": 1}, "z": 2})
        + '[1]\nnull\n{"did": "read", "by": "user", "seq": 1}\n{"did": "read", "by": "twin"}\n'
        + entry("read", START, by=ENGINEER, seq=1)[:-9]
    )

    journal = read_journal(text)

    assert journal.read == {ARCHITECT: 0}
    assert journal.posted == {"001-to-engineer.md": "a"}
    assert journal.adopted == {"x": Adopted("c", 3)}


@pytest.mark.proves("E20", "K32")
def test_the_architect_s_block_passes_when_it_is_tagged() -> None:
    block = to_user("all green", "merge it", "theory_api/agents/chats/0005-dx-gh-sync/")

    assert block.splitlines() == [
        "TO USER:",
        "STATUS: all green",
        "ACTION NEEDED: merge it",
        "CONTEXT: theory_api/agents/chats/0005-dx-gh-sync/",
    ]
    assert log_findings("\n".join(tagged(ARCHITECT, Channel.TO_USER, block)), "log") == []


@pytest.mark.proves("E15", "E25")
@pytest.mark.parametrize("role", [TWIN, ENGINEER])
def test_twin_and_engineer_print_nothing_themselves(role: Role) -> None:
    spoken = "\n".join(tagged(role, Channel.AGENT, "I am done\nreally"))
    worked = "\n".join(tagged(role, Channel.TOOL, "$ ls") + tagged(role, Channel.ERROR, "ls: no such file"))

    assert [found.line for found in log_findings(spoken, "log")] == [1, 2]
    assert log_findings(worked, "log") == []


@pytest.mark.proves("E44")
@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["Hello"], "outside a TO USER block"),
        (["TO USER:", "STATUS: a", "CONTEXT: 0005-dx-x", "ACTION NEEDED: b"], "in this order"),
        (["TO USER:", "STATUS:", "ACTION NEEDED: b", "CONTEXT: 0005-dx-x"], "STATUS: says nothing"),
        (["TO USER:", "STATUS: a", "ACTION NEEDED: b", "CONTEXT: see above"], "has to be the path"),
        (
            ["Hello", "TO USER:", "STATUS: a", "ACTION NEEDED: b", "CONTEXT: 0005-dx-x"],
            "outside a TO USER block",
        ),
        (
            ["TO USER:", "STATUS: a", "and so on", "ACTION NEEDED: b", "CONTEXT: 0005-dx-x"],
            "no line of a TO USER",
        ),
    ],
)
def test_a_block_that_is_not_exactly_the_template_is_a_violation(lines: list[str], words: str) -> None:
    (found,) = log_findings("\n".join(f"architect/to_user: {line}" for line in lines), "log")

    assert words in found.message


def test_a_log_without_a_tagged_line_is_reported_as_proving_nothing() -> None:
    (found,) = log_findings("all is well\n", "log")

    assert found.level is Level.WARNING


FOUND = Examined(
    2,
    3,
    [
        Finding("timestamp", "chats/a b/002-to-architect.md", "ts is 'soon'", 6, field="ts", value="soon"),
        Finding("legacy", "chats/a b/001-to-engineer.md", "it is old", level=Level.WARNING),
    ],
)


@pytest.mark.proves("E38")
def test_a_listing_has_file_line_level_and_rule_of_each_finding() -> None:
    assert as_text(FOUND).splitlines() == [
        "chats/a b/002-to-architect.md:6: error: ts is 'soon' [timestamp]",
        "chats/a b/001-to-engineer.md: warning: it is old [legacy]",
        "2 chats, 3 messages: 1 error, 1 warning",
    ]
    document = json.loads(json.dumps(as_json(FOUND)))
    assert (document["errors"], document["warnings"], document["findings"][1]["line"]) == (1, 1, None)
    assert document["findings"][0]["value"] == "soon"


@pytest.mark.proves("E38")
def test_a_sarif_log_has_every_rule_and_is_one_that_fixloop_reads(tmp_path: Path) -> None:
    path = tmp_path / "chats.sarif"
    path.write_text(json.dumps(as_sarif(FOUND)))

    (run,) = as_sarif(FOUND)["runs"]
    report = read_report(path, "sarif", root=tmp_path)

    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == set(RULES)
    assert run["results"][0]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "chats/a%20b/002-to-architect.md"},
        "region": {"startLine": 6},
    }
    assert [(failure.name, failure.line) for failure in report.failures] == [("timestamp", 6)]


@pytest.mark.proves("U5")
def test_the_schema_in_the_documentation_is_that_of_the_code() -> None:
    published = json.loads((ROOT / "docs" / "chat-meta.schema.json").read_text(encoding="utf-8"))

    assert published == Meta.model_json_schema()


def test_the_documentation_names_every_rule_in_the_words_of_the_code() -> None:
    rows = (ROOT / "docs" / "chat.md").read_text(encoding="utf-8").splitlines()

    told = dict(row.strip("| ").split(" | ") for row in rows if row.startswith("| `"))
    assert {
        name.strip("`"): text.replace("[schema](chat-meta.schema.json)", "schema")
        for name, text in told.items()
    } == RULES


@pytest.mark.parametrize("role", Role)
def test_the_documentation_has_the_template_of_every_role(role: Role) -> None:
    assert f"| {role} | {', '.join(TEMPLATES[role])} |" in (ROOT / "docs" / "chat.md").read_text(
        encoding="utf-8"
    )
