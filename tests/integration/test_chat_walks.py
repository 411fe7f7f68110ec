"""Three roles that do anything in any order: numbers without gaps, nothing edited, and no finding."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from fixloop.chat.events import ChatClosed, ChatEvent, ChatRead, MessageWritten
from fixloop.chat.message import read_name
from fixloop.chat.sections import Result, Verdict
from fixloop.chat.vocabulary import Role
from fixloop.errors import UsageError
from tests.fixtures.chat_stage import Stage, body

pytestmark = pytest.mark.slow

ROLES = st.sampled_from(Role)
TWIN, ARCHITECT, ENGINEER = Role.TWIN, Role.ARCHITECT, Role.ENGINEER
# Mostly what is allowed, or few walks would come far.
PAIRS = (
    [(ARCHITECT, ENGINEER)] * 4
    + [(ENGINEER, ARCHITECT)] * 4
    + [(TWIN, ARCHITECT), (ARCHITECT, TWIN), (TWIN, TWIN)]
)
LACKING: list[list[str]] = [[], [], ["ASKS"], ["PLAN"]]
RESULTS = st.sampled_from(
    [(), (Result(Verdict.PASS, "python -m pytest"), Result(Verdict.FAIL, "ruff check"))]
)


@st.composite
def messages(draw: st.DrawFn) -> MessageWritten:
    by, to = draw(st.sampled_from(PAIRS))
    text = body(by, without=draw(st.sampled_from(LACKING)))
    seq = draw(st.sampled_from([None] * 4 + [1, 2, 3]))
    branch = draw(st.sampled_from([None, None, "feat/dx-gh-sync-0005", "main"]))
    told = draw(RESULTS) if by is ENGINEER else ()
    return MessageWritten(by, to, draw(st.sampled_from(["Work", "More"])), text, seq, branch, told)


CLOSINGS = st.builds(
    ChatClosed, ROLES, st.sampled_from(["Completed", "Deferred"]), st.just("Done."), st.just("Ship it.")
)
EVENTS = st.one_of(
    st.builds(ChatRead, ROLES), st.just(ChatRead(ENGINEER)), messages(), messages(), messages(), CLOSINGS
)


@pytest.mark.proves("E27", "E29", "E30", "E31")
def test_every_walk_leaves_a_chat_without_a_finding() -> None:
    posted: list[int] = []

    @settings(max_examples=60, derandomize=True)
    @given(st.lists(EVENTS, min_size=6, max_size=14))
    def each(walk: list[ChatEvent]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            posted.append(walked(Stage(Path(folder)).open(), walk))

    each()

    assert max(posted) >= 3, "walks that come nowhere show nothing"


def walked(stage: Stage, walk: list[ChatEvent]) -> int:
    """All of `walk` happens, or is refused; how many messages were posted."""
    for role in (ARCHITECT, ENGINEER):
        stage.let(ChatRead(role))
    known: dict[str, bytes] = {}
    for event in walk:
        before = stage.files()
        try:
            stage.let(event)
        except UsageError:
            assert stage.files() == before
        there = {name: content for name, content in stage.files().items() if read_name(name)}

        assert known.items() <= there.items()
        assert [name[:3] for name in there] == [f"{number:03}" for number in range(1, len(there) + 1)]
        assert [finding for finding in stage.findings() if finding.rule != "ending"] == []
        known = there
    return len(known)
