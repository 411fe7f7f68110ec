"""What follows from an event in a chat, and refusals, which change nothing."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fixloop.chat.conversation import JOURNAL
from fixloop.chat.directory import apply, open_chat, open_with, read_chat
from fixloop.chat.events import Adopted, ChatClosed, ChatEvent, ChatRead, MessageWritten, Outcome
from fixloop.chat.sections import Result, Verdict
from fixloop.chat.vocabulary import Role
from fixloop.errors import RefusedError, UsageError
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, NAME, PLAN, START, TWIN, Stage, body, meta


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A chat whose contract the architect has read."""
    stage = Stage(tmp_path).open()
    stage.let(ChatRead(ARCHITECT))
    return stage


def written(by: Role = ARCHITECT, to: Role = ENGINEER, **other: Any) -> MessageWritten:
    return MessageWritten(by, to, "Work", body(by))._replace(**other)


def refuse(stage: Stage, event: ChatEvent, words: str) -> None:
    """`event` is refused in these words, and no file is touched."""
    before = stage.files()
    with pytest.raises(UsageError) as refused:
        stage.let(event)
    assert words in str(refused.value)
    assert stage.files() == before


@pytest.mark.proves("E1", "E13", "E7")
def test_a_message_is_a_file_with_front_matter_header_and_body(stage: Stage) -> None:
    stage.let(written())

    text = stage.files()["001-to-engineer.md"].decode()
    front, header, rest = text.split("\n\n", 2)
    assert [line.partition(":")[0] for line in front.splitlines()[1:-1]] == [
        *("from", "to", "chat", "seq", "ts", "purpose")
    ]
    assert header == "-- TO ENGINEER:"
    assert rest == f"{body(ARCHITECT)}\n"


@pytest.mark.proves("E14", "E3")
def test_only_the_twin_writes_a_contract(tmp_path: Path) -> None:
    for role in (ARCHITECT, ENGINEER):
        with pytest.raises(RefusedError, match="written by the twin"):
            open_chat(tmp_path, PLAN, role, START)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.proves("E14")
def test_a_chat_without_a_contract_takes_no_message(tmp_path: Path) -> None:
    stage = Stage(tmp_path).put(JOURNAL, "")

    refuse(stage, written(), "has no meta.yaml")
    refuse(stage, ChatRead(ARCHITECT), "has no meta.yaml")


@pytest.mark.proves("E39")
def test_a_chat_with_an_invalid_contract_takes_no_message_and_names_the_place(tmp_path: Path) -> None:
    stage = Stage(tmp_path).put("meta.yaml", meta(area="zz"))

    refuse(stage, written(), "meta.yaml:3: error: area is 'zz'; it has to be one of rt, ld")


@pytest.mark.proves("E18")
@pytest.mark.parametrize(("by", "to"), [(ENGINEER, ARCHITECT), (TWIN, ENGINEER), (ARCHITECT, TWIN)])
def test_the_first_message_is_from_the_architect_to_the_engineer(stage: Stage, by: Role, to: Role) -> None:
    refuse(stage, written(by, to, body=body(by)), "has to be 001-to-engineer.md from the architect")


@pytest.mark.proves("E17")
def test_the_architect_reads_the_contract_before_the_first_message(tmp_path: Path) -> None:
    stage = Stage(tmp_path).open()

    refuse(stage, written(), f"architect has not read {tmp_path}/{NAME}/meta.yaml yet")

    stage.let(ChatRead(ARCHITECT))
    assert stage.let(written()).seq == 1


@pytest.mark.proves("E22")
def test_the_engineer_reads_contract_and_latest_message_before_each_answer(stage: Stage) -> None:
    stage.let(written())
    refuse(stage, written(ENGINEER, ARCHITECT), "has not read")
    stage.post(ENGINEER, ARCHITECT)
    stage.post(ARCHITECT, ENGINEER)

    refuse(stage, written(ENGINEER, ARCHITECT), "003-to-engineer.md yet")

    assert stage.post(ENGINEER, ARCHITECT).seq == 4


@pytest.mark.proves("E19", "E23")
def test_architect_and_engineer_work_on_the_contract_s_branch(stage: Stage) -> None:
    refuse(stage, written(branch="main"), "the branch is 'main', but meta.yaml names 'feat/dx-gh-sync-0005'")

    stage.let(written(branch="feat/dx-gh-sync-0005"))
    stage.let(ChatRead(ENGINEER))
    refuse(stage, written(ENGINEER, ARCHITECT, branch="x"), "the branch is 'x'")

    assert b'"branch": "feat/dx-gh-sync-0005"' in stage.files()[JOURNAL]


@pytest.mark.proves("E28", "E30")
@pytest.mark.parametrize(("seq", "words"), [(1, "is taken by"), (3, "would skip 002")])
def test_a_number_is_neither_taken_twice_nor_skipped(stage: Stage, seq: int, words: str) -> None:
    stage.let(written())

    refuse(stage, written(seq=seq, purpose="Other work"), words)


@pytest.mark.proves("R8")
def test_a_message_with_its_number_is_posted_once_however_often_it_is_sent(stage: Stage) -> None:
    first = stage.let(written(seq=1))
    before = stage.files()

    assert stage.let(written(seq=1)) == Outcome(seq=1, file=first.file)
    assert stage.files() == before


@pytest.mark.proves("E8", "E12")
@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"to": ARCHITECT}, "from and to are both architect"),
        ({"purpose": " "}, "purpose is ''"),
        ({"purpose": "two\nlines"}, "one line"),
        ({"purpose": "x" * 201}, "1 to 200"),
        ({"body": body(ARCHITECT) + "\x1b[2J"}, "control character '\\x1b'"),
        ({"body": "---\nfrom: architect\n---\n" + body(ARCHITECT)}, "begins with ---"),
    ],
)
def test_an_invalid_chat_message_is_refused(stage: Stage, other: dict[str, Any], words: str) -> None:
    refuse(stage, written(**other), words)


@pytest.mark.proves("E16", "E21", "E26")
@pytest.mark.parametrize(
    ("role", "order"),
    [
        (TWIN, "STATUS, PLAN, CHANGESETS, SMOKE, RISKS"),
        (ARCHITECT, "STATUS, PLAN, CHANGESETS, SMOKE, RISKS, ASKS"),
        (ENGINEER, "STATUS, OBSERVATIONS, ANALYSIS, GATES, PLAN, CHANGESETS, DOCS, SMOKE, RISKS, ASKS"),
    ],
)
def test_a_body_has_the_sections_of_its_sender_in_order(stage: Stage, role: Role, order: str) -> None:
    stage.let(written())
    stage.let(ChatRead(ENGINEER))
    to = ENGINEER if role is not ENGINEER else ARCHITECT
    whole = body(role)
    swapped = whole.replace("## RISKS", "## X").replace("## SMOKE", "## RISKS").replace("## X", "## SMOKE")

    refuse(stage, written(role, to, body=body(role, without=["SMOKE", "PLAN"])), f"of {role} are {order}")
    line = swapped.splitlines().index("## SMOKE") + 1
    refuse(stage, written(role, to, body=swapped), f"SMOKE (line {line}) has to come before RISKS")


@pytest.mark.proves("U7")
def test_asks_are_optional_and_a_header_is_accepted(stage: Stage) -> None:
    text = "\n-- TO ENGINEER:\n\n" + body(ARCHITECT, without=["ASKS"])

    stage.let(written(body=text))

    assert stage.files()["001-to-engineer.md"].count(b"-- TO ENGINEER:") == 1


@pytest.mark.proves("E24")
def test_acceptance_results_are_under_gates_and_in_the_summary(stage: Stage) -> None:
    stage.let(written())
    told = (Result(Verdict.PASS, "python -m pytest"), Result(Verdict.FAIL, "ruff check: E501"))
    stage.post(ENGINEER, ARCHITECT, results=told)

    stage.close()

    files = stage.files()
    assert (
        b"\n- [pass] python -m pytest (declared by engineer)\n"
        b"- [fail] ruff check: E501 (declared by engineer)\n\n## PLAN"
    ) in files["002-to-architect.md"]
    assert (
        b"\n- [pass] python -m pytest (declared by engineer in 002-to-architect.md)\n"
        b"- [fail] ruff check: E501 (declared by engineer in 002-to-architect.md)\n"
    ) in files["SUMMARY.md"]


@pytest.mark.proves("E24")
def test_a_handwritten_result_is_attributed_to_its_message_in_the_summary(stage: Stage) -> None:
    stage.let(written())
    results = ["[pass] python -m pytest", "[pass] ruff check"]
    stage.post(ENGINEER, ARCHITECT, text=body(ENGINEER, results=results))

    stage.close()

    assert (
        b"\n- [pass] ruff check (declared by engineer in 002-to-architect.md)\n"
        in stage.files()["SUMMARY.md"]
    )


@pytest.mark.proves("E24")
def test_only_the_engineer_reports_results_of_criteria(stage: Stage) -> None:
    told = (Result(Verdict.PASS, "python -m pytest"),)

    refuse(stage, written(results=told), "architect has no section GATES; results are the engineer's to give")


@pytest.mark.proves("E29")
@pytest.mark.parametrize("change", ["edited", "gone"])
def test_a_chat_with_an_edited_message_takes_no_post_until_it_is_restored(stage: Stage, change: str) -> None:
    first = stage.path / stage.let(written()).file
    before = first.read_bytes()
    stage.let(ChatRead(ENGINEER))
    first.write_bytes(before + b"More.\n") if change == "edited" else first.rename(stage.parent / "kept")

    refuse(stage, written(ENGINEER, ARCHITECT, body=body(ENGINEER)), f"`fixloop chat validate {stage.path}`")

    first.write_bytes(before)
    assert stage.let(written(ENGINEER, ARCHITECT, body=body(ENGINEER))).seq == 2


@pytest.mark.proves("E24")
def test_a_chat_with_an_unrun_criterion_is_not_completed(stage: Stage) -> None:
    stage.let(written())
    stage.post(ENGINEER, ARCHITECT, results=(Result(Verdict.PASS, "python -m pytest"),))

    refuse(stage, ChatClosed(ARCHITECT, "Completed", "Done.", "Ship."), "says whether 'ruff check' holds")

    stage.close(status="Deferred")
    assert b"- [not run] ruff check\n" in stage.files()["SUMMARY.md"]


@pytest.mark.proves("G13", "U8")
def test_the_engineer_does_not_close(stage: Stage) -> None:
    refuse(stage, ChatClosed(ENGINEER, "Deferred", "Done.", "Later."), "engineer cannot close")
    refuse(stage, ChatClosed(TWIN, "Done", "Done.", "Later."), "the status of a decision is 'Done'")

    stage.close(TWIN, "Rejected")

    assert stage.files()["DECISION.md"] == (
        b"# Decision\n\n- **Status**: Rejected\n- **Date**: 2025-09-06\n- **Decided by**: twin\n\nShip it.\n"
    )


@pytest.mark.proves("E48")
def test_a_chat_that_lacks_a_document_is_not_closed(stage: Stage) -> None:
    refuse(stage, ChatClosed(ARCHITECT, "Deferred", "Done.", ""), "has no DECISION.md")
    refuse(stage, ChatClosed(ARCHITECT, "Deferred", " ", "Later."), "has no SUMMARY.md")


@pytest.mark.proves("E3")
def test_existing_documents_are_kept_and_others_are_refused(stage: Stage) -> None:
    stage.put("SUMMARY.md", "# Mine\n").put("DECISION.md", "Deferred by me.\n")

    refuse(stage, ChatClosed(ARCHITECT, "Deferred", "Other.", ""), "is there already with another text")
    stage.close(status="Deferred", summary="", decision="")

    assert (stage.files()["SUMMARY.md"], stage.files()["DECISION.md"]) == (b"# Mine\n", b"Deferred by me.\n")


@pytest.mark.proves("E45", "E46")
def test_a_chat_with_old_messages_is_adopted_before_the_next_message(tmp_path: Path) -> None:
    stage = Stage(tmp_path).put("meta.yaml", meta()).put("001-to-engineer.md", "Hello.\n")
    stage.let(ChatRead(ARCHITECT))
    refuse(stage, written(), "001-to-engineer.md has no front matter; if it is older than the protocol")

    stage.let(Adopted())

    assert stage.let(written()).seq == 2
    assert stage.let(Adopted()) == Outcome()
    stage.put("003-to-engineer.md", "Hello again.\n")
    refuse(stage, Adopted(), "was adopted already, and 003-to-engineer.md came later")


@pytest.mark.proves("K34")
def test_times_in_a_chat_never_decrease(stage: Stage) -> None:
    stage.let(written())

    earlier = apply(stage.path, written(purpose="More"), START - timedelta(days=1))

    first, second = (posted.message and posted.message.front for posted in read_chat(stage.path).messages)
    assert earlier.seq == 2
    assert first is not None
    assert second is not None
    assert second.ts == first.ts


@pytest.mark.proves("E2", "E9")
def test_a_directory_is_named_by_id_area_and_slug_and_numbers_are_not_used_twice(tmp_path: Path) -> None:
    first = open_chat(tmp_path, PLAN._replace(id=""), TWIN, START)
    second = open_chat(tmp_path, PLAN._replace(id="", area="ui", slug="colours"), TWIN, START)

    assert [first.name, second.name] == ["0001-dx-gh-sync", "0002-ui-colours"]
    with pytest.raises(RefusedError, match="number 0001 is taken by 0001-dx-gh-sync"):
        open_chat(tmp_path, PLAN._replace(id="0001", slug="other"), TWIN, START)


@pytest.mark.proves("E2", "E32")
def test_chats_opened_simultaneously_get_different_numbers(tmp_path: Path) -> None:
    def opened(slug: str) -> str:
        return open_chat(tmp_path, PLAN._replace(id="", slug=slug), TWIN, START).name

    with ThreadPoolExecutor(8) as threads:
        names = list(threads.map(opened, (f"chat-{number}" for number in range(16))))

    assert sorted(name[:4] for name in names) == [f"{number:04}" for number in range(1, 17)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


@pytest.mark.proves("E4", "U5")
@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"slug": "../../etc"}, "slug is '../../etc'"),
        ({"area": "zz"}, "area is 'zz'"),
        ({"id": "5"}, "id is '5'; it has to be four digits"),
        ({"title": "ab"}, "at least three characters"),
        ({"kind": "feature"}, "branch is 'feature/dx-gh-sync-0005'"),
        ({"acceptance": ()}, "acceptance is"),
        ({"scope": ("",)}, "scope.0 is ''"),
    ],
)
def test_a_contract_that_does_not_fit_the_schema_opens_nothing(
    tmp_path: Path, other: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError) as refused:
        open_chat(tmp_path, PLAN._replace(**other), TWIN, START)

    assert words in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.proves("E14", "E4")
def test_the_twin_may_write_the_contract_itself_and_every_byte_is_kept(tmp_path: Path) -> None:
    text = "# ours\r\n" + meta(notes="'a # b'").replace("\n", "\r\n")

    path = open_with(tmp_path, text, "given.yaml", TWIN, START)

    assert (path / "meta.yaml").read_bytes() == text.encode()


@pytest.mark.proves("E31")
@pytest.mark.parametrize(
    "text",
    [
        "# why\r\n" + meta(owner="twin   # whose turn").replace("\n", "\r\n"),
        "{" + ", ".join(meta(owner='"twin"').splitlines()) + "}\n",
        "\ufeff" + meta(owner="'twin'"),
    ],
)
def test_handover_changes_only_the_owner(tmp_path: Path, text: str) -> None:
    stage = Stage(tmp_path).put("meta.yaml", text)

    stage.post(ARCHITECT, ENGINEER)

    expected = text.removeprefix("\ufeff").replace('"twin"', "engineer").replace("'twin'", "engineer")
    assert stage.files()["meta.yaml"].decode() == expected.replace("owner: twin ", "owner: engineer ")
    stage.close(status="Deferred")
    found = read_chat(stage.path).meta
    assert found is not None
    assert (found.state, found.closed) == ("closed", "2025-09-06T00:03:00Z")
