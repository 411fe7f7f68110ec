"""`fixloop log` on workflows in a real Redis: lines, full texts, data, one specialist's flow, all events."""

import pytest

from fixloop.errors import ExitCode
from fixloop.protocol.events import Cancelled, DecisionMade, FixCompleted
from fixloop.protocol.messages import Decision
from fixloop.protocol.state import Completion
from tests.fixtures.command_stage import Agents, on_redis, said

pytestmark = pytest.mark.slow

ENTRY_KEYS = [
    *("entry_id", "timestamp", "sender", "recipient", "message_type", "message_id", "summary"),
    *("status_before", "status_after", "iteration", "max_iterations", "rendered"),
]


agents = pytest.fixture(on_redis)
Capsys = pytest.CaptureFixture[str]


@pytest.mark.proves("A82", "A83", "A85")
def test_the_json_log_has_every_field_the_stored_texts_and_the_statistics(
    agents: Agents, capsys: Capsys
) -> None:
    agents.run(agents.start(script="1 0"))

    document = said(capsys, "log", "47", "--json").document

    assert [list(entry) for entry in document["entries"]] == [ENTRY_KEYS] * 6
    assert document["statistics"]["total_messages"] == 6
    assert document["statistics"]["iterations"] == "2 (1 initial + 1 retry)"
    assert document["entries"][1]["message_id"] == "VFR-47-test-runner-1"
    assert "FIXREQ-47-1" in document["entries"][1]["rendered"]
    assert "history" not in document
    assert said(capsys, "log", "47", "--format", "json").document == document


def test_the_text_log_has_one_line_for_each_message_and_the_statistics(
    agents: Agents, capsys: Capsys
) -> None:
    agents.run(agents.start(script="1 0"))

    lines = said(capsys, "log", "47").out.splitlines()

    assert len(lines[: lines.index("")]) == 6
    assert "VFR-47-test-runner-1" in lines[1]
    assert "Total messages: 6" in lines


@pytest.mark.proves("A79", "A85")
def test_the_markdown_log_is_the_full_log_with_every_message_in_full(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(script="1 0"))

    text = said(capsys, "log", "47", "--format", "markdown").out
    entries = said(capsys, "log", "47", "--json").document["entries"]

    assert text.startswith("## Full Communication Log: Feature #47")
    assert all(entry["rendered"].strip() in text for entry in entries)


@pytest.mark.proves("K39")
def test_the_whole_log_includes_events_that_are_no_messages_in_order(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="1 0", fixer="outside")
    agents.run(workflow)
    agents.apply(workflow, Cancelled(by="ann", reason="no longer needed"))

    document = said(capsys, "log", "47", "--json", "--all").document
    text = said(capsys, "log", "47", "--all").out

    kinds = [each["kind"] for each in document["history"]]
    assert {"event", "status", "message"} <= set(kinds)
    assert [each["timestamp"] for each in document["history"]] == sorted(
        each["timestamp"] for each in document["history"]
    )
    assert kinds.count("message") == len(document["entries"]) == 2
    assert "test-runner: PENDING → IN_PROGRESS" in text


@pytest.mark.proves("A77", "A85")
def test_each_message_in_full_is_below_its_entry(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(script="1 0"))

    text = said(capsys, "log", "47", "--format", "markdown").out

    for number, run in enumerate((1, 1, 1, 2, 2, 2), 1):
        assert text.count(f"**Entry ID**: LOG-47-{run}-{number}\n") == 1
    entry = text.index("**Entry ID**: LOG-47-2-4")
    assert entry < text.index("## Re-validation Trigger") < text.index("**Entry ID**: LOG-47-2-5")


@pytest.mark.proves("A53", "A54", "B26", "B33")
def test_the_whole_markdown_log_includes_records_that_are_no_messages(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="2 1 0", fixer="outside")
    agents.run(workflow)

    text = said(capsys, "log", "47", "--all", "--format", "markdown").out

    order = [
        "## Full Communication Log: Feature #47",
        "## History",
        "**New Status**: IN_PROGRESS",
        "**New Status**: FAIL",
        "**New Status**: AWAITING_FIX",
        "### Sending Failure Report",
        "### Awaiting Main Agent Fix",
    ]
    assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)
    assert "### Main Agent Fix Completed" not in text
    agents.apply(workflow, _fixed())
    told = said(capsys, "log", "47", "--all", "--format", "markdown").out
    assert told.index("## Fix Completion") < told.index("### Main Agent Fix Completed")


@pytest.mark.proves("B53")
def test_one_specialist_s_loop_is_shown_as_its_flow(agents: Agents, capsys: Capsys) -> None:
    agents.run(agents.start(script="1 0"))

    flow = said(capsys, "log", "47", "--specialist", "test-runner").out
    full = said(capsys, "log", "47", "--specialist", "test-runner", "--format", "markdown").out
    document = said(capsys, "log", "47", "--specialist", "@test-runner-specialist", "--json").document

    assert flow.startswith("### Communication Log\n\n**Entry ID**: LOG-47-test-runner-2-")
    assert flow.endswith("**Outcome**: Success\n")
    assert full.startswith(flow)
    assert "## Validation Success" in full
    assert (document["flow"], len(document["entries"])) == (flow, 6)


def test_a_flow_shows_what_a_person_decided(agents: Agents, capsys: Capsys) -> None:
    workflow = agents.start(script="1 1 1")
    agents.run(workflow)
    paused = said(capsys, "log", "47", "--specialist", "test-runner").out
    agents.apply(workflow, DecisionMade(decision=Decision.SKIP, by="ann"))

    skipped = said(capsys, "log", "47", "--specialist", "test-runner").out

    assert paused.endswith("**Outcome**: Escalated (awaiting decision)\n")
    assert skipped.endswith("**Outcome**: Skipped (failed but proceeding)\n")
    other = agents.start(issue=48, script="1 1 1")
    agents.run(other)
    agents.apply(other, DecisionMade(decision=Decision.ABORT, by="ann"))
    aborted = said(capsys, "log", "48", "--specialist", "test-runner").out
    assert aborted.endswith("**Outcome**: Aborted (returned to design)\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--specialist", "linter"), "unknown specialist 'linter'; the six are unit-test, "),
        (("--specialist", "security"), "security has said nothing in #47 yet"),
        (("--specialist", "test-runner", "--all"), "--all and --specialist exclude each other"),
    ],
)
def test_a_specialist_without_a_flow_is_one_sentence(
    words: tuple[str, ...], sentence: str, agents: Agents, capsys: Capsys
) -> None:
    agents.run(agents.start(script="0"))

    told = said(capsys, "log", "47", *words)

    assert told.code == ExitCode.USAGE
    assert sentence in told.err
    assert told.err.count("\n") == 1


def _fixed() -> FixCompleted:
    completion = Completion(iteration=1, by="agent", summary="mended", fixes=("it",), tip="c1", tree="tree-1")
    return FixCompleted(specialist="test-runner", completion=completion)
