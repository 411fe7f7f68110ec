"""How often an agent's hook makes it continue, and when it lets it stop."""

from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import given, strategies as st

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


def test_failures_make_the_agent_continue_and_a_pass_lets_it_stop() -> None:
    first, second = replies(failed("a"), PASSED)

    assert first == Reply(block="1 failure in 1 of 3 checks\nF1 test_add")
    assert second == Reply(message="fixloop: passed (3 checks)")


def test_the_same_failures_three_times_let_the_agent_stop_with_the_reason() -> None:
    told = replies(*[failed("a")] * 4)

    assert [bool(reply.block) for reply in told] == [True, True, False, False]
    assert "the same failures were found 3 times in a row: 1 failure in 1 of 3 checks" in told[2].message
    assert told[3].message == told[2].message


def test_changing_failures_let_the_agent_stop_after_six_rounds() -> None:
    told = replies(*map(failed, "abcdefgh"))

    assert [bool(reply.block) for reply in told] == [True] * 6 + [False] * 2
    assert "it was told to go on 6 times" in told[6].message


def test_the_time_limit_lets_the_agent_stop() -> None:
    told = replies(*map(failed, "abc"), minutes=20)

    assert [bool(reply.block) for reply in told] == [True, True, False]
    assert "it has tried for 40 minutes" in told[2].message


def test_a_pass_restarts_the_count() -> None:
    told = replies(failed("a"), failed("a"), failed("a"), PASSED, failed("a"))

    assert [bool(reply.block) for reply in told] == [True, True, False, False, True]


def test_a_check_that_could_not_run_never_makes_the_agent_continue() -> None:
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
def test_an_agent_is_never_made_to_continue_beyond_its_limit(
    found: list[str | None], limits: Limits, minutes: float
) -> None:
    told = replies(*(failed(each) if each else PASSED for each in found), minutes=minutes, limits=limits)

    in_a_row = 0
    for each, reply in zip(found, told, strict=True):
        assert not (reply.block and reply.message)
        in_a_row = 0 if each is None else in_a_row + bool(reply.block)
        assert in_a_row <= limits.blocks
