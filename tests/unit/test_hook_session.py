"""How often an agent's hook tells it to go on, and when it lets go."""

from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from fixloop.intake.hook_session import Found, Limits, Outcome, Reply, Session, answered

NOW: Final = datetime(2026, 11, 24, 9, 0, tzinfo=UTC)
NEW: Final = Session(agent="claude", folder="/home/me/shop", tree="t0")
USUAL: Final = Limits(3, 6, 30.0)
PASSED: Final = Found(Outcome.PASSED, "passed (3 checks)")


def failed(signature: str) -> Found:
    return Found(Outcome.FAILED, "1 failure in 1 of 3 checks\nF1 test_add", signature)


def replies(*found: Found, minutes: float = 1.0, limits: Limits = USUAL) -> list[Reply]:
    session, told = NEW, []
    for number, each in enumerate(found):
        session, reply = answered(session, each, NOW + number * timedelta(minutes=minutes), limits)
        told.append(reply)
    return told


def test_failures_tell_the_agent_to_go_on_and_a_pass_lets_it_stop() -> None:
    first, second = replies(failed("a"), PASSED)

    assert first == Reply(block="1 failure in 1 of 3 checks\nF1 test_add")
    assert second == Reply(message="fixloop: passed (3 checks)")


def test_the_same_failures_three_times_let_go_and_say_why() -> None:
    told = replies(*[failed("a")] * 4)

    assert [bool(reply.block) for reply in told] == [True, True, False, False]
    assert "the same failures were found 3 times in a row: 1 failure in 1 of 3 checks" in told[2].message
    assert told[3].message == told[2].message


def test_other_failures_each_time_let_go_after_six() -> None:
    told = replies(*map(failed, "abcdefgh"))

    assert [bool(reply.block) for reply in told] == [True] * 6 + [False] * 2
    assert "it was told to go on 6 times" in told[6].message


def test_the_minutes_let_go() -> None:
    told = replies(*map(failed, "abc"), minutes=20)

    assert [bool(reply.block) for reply in told] == [True, True, False]
    assert "it has tried for 40 minutes" in told[2].message


def test_a_pass_begins_the_count_again() -> None:
    told = replies(failed("a"), failed("a"), failed("a"), PASSED, failed("a"))

    assert [bool(reply.block) for reply in told] == [True, True, False, False, True]


def test_what_could_not_be_checked_never_tells_it_to_go_on_and_counts_nothing() -> None:
    unknown = Found(Outcome.UNKNOWN, "pytest is not installed")
    first, _ = answered(NEW, failed("a"), NOW, USUAL)
    session, reply = answered(first, unknown, NOW, USUAL)

    assert reply == Reply(message="fixloop could not check: pytest is not installed")
    assert session == first


@given(
    st.lists(st.sampled_from("abc") | st.none(), max_size=60),
    st.builds(Limits, st.integers(1, 5), st.integers(0, 9), st.floats(0, 100)),
    st.floats(0, 30),
)
def test_an_agent_is_never_told_to_go_on_more_often_than_it_may(
    found: list[str | None], limits: Limits, minutes: float
) -> None:
    told = replies(*(failed(each) if each else PASSED for each in found), minutes=minutes, limits=limits)

    in_a_row = 0
    for each, reply in zip(found, told, strict=True):
        assert not (reply.block and reply.message)
        in_a_row = 0 if each is None else in_a_row + bool(reply.block)
        assert in_a_row <= limits.blocks
