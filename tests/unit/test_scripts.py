"""The scripts that tests and users write into a feature's name."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixloop.errors import UsageError
from fixloop.protocol.events import (
    AnswerRejected,
    BlockerSignalled,
    Cancelled,
    FixCompleted,
    FixFailed,
    RunFinished,
    WorkflowStarted,
)
from fixloop.testing import AGENTS, Answer, ScriptedCrew, ScriptedError, Word, rehearse, script_of
from fixloop.testing.crew import scripted_workflow


def work(
    name: str, *, step: str = "validate", iteration: int = 1, attempt: int = 1, cancelled: bool = False
) -> Any:
    """A claimed step of a workflow called `name`."""
    ticket = SimpleNamespace(
        workflow="t",
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


def test_each_word_is_a_run_and_the_last_repeats() -> None:
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


def test_a_slow_step_takes_its_scripted_time_or_is_cancelled() -> None:
    passed: list[float] = []
    crew = ScriptedCrew(pause=passed.append)

    assert crew.check(work("a~2")) is not None
    assert sum(passed) == pytest.approx(2.0)
    assert crew.check(work("a~2", cancelled=True)) is None
    assert sum(passed) == pytest.approx(2.0)


def test_a_configured_command_takes_the_time_and_its_files_are_kept() -> None:
    kept: dict[str, bytes] = {}
    claimed = work("$a~0.2 -; fix: $ok~3")
    claimed.store = SimpleNamespace(
        put_artifact=lambda workflow, data: kept.setdefault("digest", data) and "digest"
    )
    claimed.run = lambda argv, **_: SimpleNamespace(exit_code=0, output=" ".join(argv))
    found = ScriptedCrew().check(claimed)

    assert found is not None
    assert (found.outcome, found.artifacts) == ("failed", ("digest",))
    assert kept == {"digest": b"t.validate.1.1 ended with 0\nsleep 0.2"}


def test_a_command_that_is_cancelled_has_no_result() -> None:
    claimed = work("$a~0.2")
    claimed.run = lambda argv, **_: None

    assert ScriptedCrew().check(claimed) is None


def test_steps_are_done_by_commands_where_every_word_says_so() -> None:
    apart, mixed = script_of("$a $-; fix: $ok"), script_of("$a -; fix: ok")

    assert [apart.runs_command(step) for step in ("validate", "recheck", "fix", "report")] == [
        True,
        True,
        True,
        False,
    ]
    assert not any(mixed.runs_command(step) for step in ("validate", "fix"))


def test_executions_are_recorded(tmp_path: Any) -> None:
    crew = ScriptedCrew(str(tmp_path / "executions"))

    crew.check(work("-"))
    crew.fix(work("-", step="fix"))

    lines = [line.split() for line in (tmp_path / "executions").read_text().splitlines()]
    assert [line[:5] for line in lines] == [
        ["t.validate.1.1", "7", "validate", "tree-0", str(os.getpid())],
        ["t.fix.1.1", "7", "fix", "tree-0", str(os.getpid())],
    ]
    assert all(0 < float(line[5]) <= time.monotonic() and abs(float(line[6])) < 1 for line in lines)


def test_a_blocked_fixer_says_so_and_a_silent_one_waits_for_ever() -> None:
    blocked = ScriptedCrew().fix(work("a -; fix: blocked", step="fix"))
    silent = ScriptedCrew().fix(work("a -; fix: silent", step="fix", cancelled=True))

    assert isinstance(blocked, BlockerSignalled)
    assert silent is None


ENDS = {
    "good": "SUCCESS",
    "apart": "SUCCESS",
    "thorough": "SUCCESS",
    "late": "ESC",
    "lazy": "ESC",
    "silent": "ESC",
    "slow": "SUCCESS",
    "lying": "SUCCESS",
    "garbled": "SUCCESS",
    "oscillating": "ESC",
    "blocked": "ESC",
    "failing": "SUCCESS",
    "raising": "SUCCESS",
}


@pytest.mark.parametrize("name", AGENTS)
def test_each_named_agent_finishes(name: str) -> None:
    agent = AGENTS[name]
    started = scripted_workflow("0a1b2c3d", 47, agent.script, specialists=tuple(agent.specialists))

    story = rehearse(started).story

    assert story.lines[-1].message_id.startswith(f"{ENDS[name]}-47")
    assert story.paused == (ENDS[name] == "ESC")


def test_an_unused_answer_is_an_error() -> None:
    started = WorkflowStarted(workflow="0a1b2c3d-47-1", issue=47, name="-", specialists=("test-runner",))

    with pytest.raises(UsageError, match="nobody ever asked"):
        rehearse(started, [Answer("ESC", Cancelled())])


def test_a_word_combines_its_marks() -> None:
    assert script_of("!##ab~1.5").run("test-runner", 1) == Word("ab", raises=1, dies=2, seconds=1.5)


@pytest.mark.parametrize("name", ["a+b", "nobody: a", "fix: maybe", "a~", "~x"])
def test_a_meaningless_script_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        script_of(name)


def test_the_operations_page_lists_every_agent() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")

    missing = [
        name for name, one in AGENTS.items() if f"| {name} | `{one.script}` | {one.what} |" not in page
    ]

    assert missing == []
