"""The scripts that tests and users write into a feature's name."""

from types import SimpleNamespace
from typing import Any

import pytest

from fixloop.errors import UsageError
from fixloop.protocol.events import AnswerRejected, FixCompleted, FixFailed, RunFinished
from fixloop.testing import ScriptedCrew, ScriptedError, Word, script_of


def work(
    name: str, *, step: str = "validate", iteration: int = 1, attempt: int = 1, cancelled: bool = False
) -> Any:
    """A claimed step of a workflow called `name`."""
    ticket = SimpleNamespace(
        id=f"t.{step}.{iteration}.{attempt}",
        step=step,
        specialist="test-runner",
        iteration=iteration,
        attempt=attempt,
    )
    state = SimpleNamespace(name=name, tip="commit-0", tree="tree-0")
    holding = SimpleNamespace(ticket=ticket, state=state, fence=7, deaths=0)
    return SimpleNamespace(holding=holding, cancelled=lambda: cancelled)


def failures(name: str, iteration: int, **more: Any) -> str:
    found = ScriptedCrew().check(work(name, iteration=iteration, **more))
    assert isinstance(found, RunFinished)
    return "".join(failure.name[-1] for failure in found.failures)


def test_each_word_is_a_run_and_the_last_goes_on() -> None:
    assert [failures("ab c -", number) for number in (1, 2, 3, 4)] == ["ab", "c", "", ""]
    assert [failures("scripted 3 1 0", number) for number in (1, 2, 3, 9)] == ["123", "1", "", ""]


def test_a_specialist_that_no_clause_names_passes() -> None:
    script = script_of("security: a -; unit-test: - b -")

    assert script.run("security", 1).what == "a"
    assert script.run("unit-test", 2).what == "b"
    assert script.run("code-quality", 1).what == "-"


def test_a_confirmation_reads_the_word_of_the_run_it_would_become() -> None:
    assert failures("- b -", 1, step="confirm") == "b"


def test_attempts_raise_as_often_as_the_word_says() -> None:
    for attempt in (1, 2):
        with pytest.raises(ScriptedError):
            ScriptedCrew().check(work("!!a", attempt=attempt))
    assert failures("!!a", 1, attempt=3) == "a"
    with pytest.raises(ScriptedError):
        ScriptedCrew().check(work("!", attempt=99))


def test_the_fixer_has_a_word_for_each_attempt() -> None:
    crew = ScriptedCrew()

    answers = [
        crew.fix(work("a -; fix: fail gone bad lie same ok", step="fix", attempt=attempt))
        for attempt in range(1, 7)
    ]

    kinds = [type(answer) for answer in answers]
    assert kinds == [FixFailed, FixFailed, AnswerRejected, FixCompleted, FixCompleted, FixCompleted]
    done = [answer.completion for answer in answers if isinstance(answer, FixCompleted)]
    assert [(bool(one.files), one.tree != "tree-0") for one in done] == [
        (True, False),
        (False, False),
        (True, True),
    ]


def test_a_slow_step_passes_the_time_it_is_told_to_or_is_cancelled() -> None:
    passed: list[float] = []
    crew = ScriptedCrew(pause=passed.append)

    assert crew.check(work("a~2")) is not None
    assert sum(passed) == pytest.approx(2.0)
    assert crew.check(work("a~2", cancelled=True)) is None
    assert sum(passed) == pytest.approx(2.0)


def test_executions_are_written_down(tmp_path: Any) -> None:
    crew = ScriptedCrew(str(tmp_path / "executions"))

    crew.check(work("-"))
    crew.fix(work("-", step="fix"))

    assert (tmp_path / "executions").read_text() == "t.validate.1.1 7 validate\nt.fix.1.1 7 fix\n"


def test_a_word_takes_its_marks_together() -> None:
    assert script_of("!##ab~1.5").run("test-runner", 1) == Word("ab", raises=1, dies=2, seconds=1.5)


@pytest.mark.parametrize("name", ["a+b", "nobody: a", "fix: maybe", "a~", "~x"])
def test_what_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        script_of(name)
