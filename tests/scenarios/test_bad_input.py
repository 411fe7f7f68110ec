"""Wrong input of agents, people and files to a cycle, handoffs or a chat is named and changes nothing.

Each sentence has what it is about (a file where there is one), the field and the value.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixloop.chat.directory import read_chat
from fixloop.chat.rules import examine
from fixloop.configuration.loader import load_configuration
from fixloop.configuration.settings import CycleSettings
from fixloop.errors import UsageError
from fixloop.profiles.cycle.events import StateWritten as CycleStateWritten
from fixloop.profiles.cycle.plan import PlanTask
from fixloop.profiles.handoff.events import LockExtended, LockReleased, StateWritten
from tests.fixtures.chat_stage import ARCHITECT, ENGINEER, PLAN, Stage
from tests.fixtures.cycle_stage import CycleStage, reported
from tests.fixtures.handoff_stage import HandoffStage

AUTH = "src/auth.ts"
FIRST = "001-to-engineer.md"


def defects(tmp_path: Path, break_it: Callable[[str], str], file: str = FIRST) -> list[str]:
    """What is found in a chat of one message after a change to one file, without that it was changed."""
    stage = Stage(tmp_path).open(PLAN)
    stage.post(ARCHITECT, ENGINEER)
    path = stage.path / file
    path.write_text(break_it(path.read_text()))
    found = examine(read_chat(stage.path))
    return [f"{Path(defect.file).name}:{defect.line}: {defect.message}" for defect in found if defect.line]


@pytest.mark.proves("K18", "E7", "E21")
@pytest.mark.parametrize("written", ["010", "0o1", "0x1", "1e0", "1_0", "+1", "1.0"])
def test_a_number_that_another_reader_would_take_for_one_is_named(tmp_path: Path, written: str) -> None:
    (found,) = defects(tmp_path, lambda text: text.replace("seq: 001", f"seq: {written}"))

    assert found == f"{FIRST}:5: seq is '{written}', but the file's name says 001"


@pytest.mark.proves("K18", "U5")
@pytest.mark.parametrize("written", ["12", "0x10", "0o12", "1e3", "null", "00005"])
def test_an_id_that_is_not_four_digits_is_named(tmp_path: Path, written: str) -> None:
    found = defects(tmp_path, lambda text: text.replace('id: "0005"', f"id: {written}"), "meta.yaml")

    assert found == [f"meta.yaml:1: id is '{written}'; it has to be four digits, such as '0005'"]


@pytest.mark.proves("E7", "E20")
def test_a_message_without_front_matter_is_named_with_its_first_line(tmp_path: Path) -> None:
    found = defects(tmp_path, lambda text: text.split("---\n\n", 1)[1])

    assert found == [
        f"{FIRST}:1: it has no front matter: the first line has to be ---, and is '-- TO ENGINEER:'"
    ]


@pytest.mark.proves("E7", "E20")
def test_a_message_with_two_front_matters_is_named_where_the_second_begins(tmp_path: Path) -> None:
    def twice(text: str) -> str:
        front, fence, body = text.partition("---\n\n")
        return f"{front}{fence}{front}{fence}{body}"

    found = defects(tmp_path, twice)

    assert found == [
        f"{FIRST}:10: a second front matter begins here; a message has one, and then its header -- TO ENGINEER:"
    ]


@pytest.mark.proves("E7", "K18")
def test_a_field_that_occurs_twice_in_a_front_matter_is_named(tmp_path: Path) -> None:
    found = defects(tmp_path, lambda text: text.replace("seq: 001", "seq: 001\nseq: 002"))

    assert found == [f"{FIRST}:6: the front matter cannot be read: the key 'seq' stands here twice"]


def refused(stage: CycleStage | HandoffStage, event: Any) -> str:
    """The sentence; the state is unchanged, and nothing followed."""
    before, outcomes = stage.state, len(stage.outcomes)
    with pytest.raises(UsageError) as found:
        stage.apply(event)
    assert (stage.state, len(stage.outcomes)) == (before, outcomes)
    return str(found.value)


@pytest.mark.proves("C36", "S20")
def test_a_result_for_another_phase_is_refused_with_both_names() -> None:
    stage = CycleStage()

    assert refused(stage, reported("vas", sender="ra")) == (
        "ra reports for phase 'vas'; an agent reports its own phase only"
    )


@pytest.mark.proves("C61", "S20", "K17")
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("plan", "mine", "ra reports plan 'mine', which only ep writes"),
        ("changes", "[a.py, b.py]", """ra reports changes '["a.py", "b.py"]', which only cd writes"""),
        ("test_results", "x" * 90, f"ra reports test_results '{'x' * 80}…', which only vas writes"),
        ("fe", "done", "ra reports fe 'done', which only fe writes"),
    ],
)
def test_a_field_of_another_owner_is_refused_with_field_value_and_owner(
    field: str, value: str, said: str
) -> None:
    stage = CycleStage(graph={"ra": (), "fe": (), "ep": ("ra",), "cd": ("ep",), "vas": ("cd", "fe")})

    assert refused(stage, reported("ra", **{field: value})) == said


@pytest.mark.proves("C5")
def test_a_write_to_the_state_of_a_cycle_is_refused_with_its_field() -> None:
    stage = CycleStage()

    said = refused(stage, CycleStateWritten(sender="cd", field="status"))

    assert said == "only the orchestrator writes the state of a cycle; cd may read it (it changed status)"


@pytest.mark.proves("D13", "D19")
@pytest.mark.parametrize(
    ("sender", "field", "said"),
    [
        ("tester", "notes", "'tester' is no agent"),
        ("builder", "current_agent", "current_agent is written by the orchestrator only"),
        ("fixer", "notes", "fixer writes notes without the lock of state.json; take it with `fixloop lock"),
    ],
)
def test_a_write_by_no_agent_or_to_the_engine_s_fields_is_refused(sender: str, field: str, said: str) -> None:
    stage = HandoffStage()
    stage.lock("builder", "state.json")

    assert said in refused(stage, StateWritten(sender=sender, field=field, value=1))


@pytest.mark.proves("C44", "S20", "K17")
def test_a_circle_of_agents_is_refused_before_a_cycle_begins() -> None:
    with pytest.raises(UsageError) as found:
        CycleStage(graph={"ra": ("cd",), "ep": ("ra",), "cd": ("ep",), "vas": ("cd",)})

    assert str(found.value) in {
        f"these agents wait for each other: {circle}; take one dependency out"
        for circle in ("ra → cd → ep → ra", "cd → ep → ra → cd", "ep → ra → cd → ep")
    }


@pytest.mark.proves("C44", "K17")
@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            '[cycle.agent.RA]\noutside = true\ndepends_on = ["cd"]\n',
            r"fixloop.toml: \[cycle.agent.RA\] depends_on is 'cd': these agents wait for each other: ",
        ),
        (
            '[cycle.agent.fe]\noutside = true\ndepends_on = ["nobody"]\n',
            r"fixloop.toml: \[cycle.agent.fe\] depends_on is 'nobody': fe depends on nobody, which is no agent",
        ),
    ],
)
def test_a_circle_in_a_configuration_is_refused_where_it_is_written(
    tmp_path: Path, written: str, said: str
) -> None:
    (tmp_path / "fixloop.toml").write_text(written)

    with pytest.raises(UsageError, match=said):
        load_configuration(tmp_path, profile="cycle")


def test_an_order_without_a_circle_is_accepted(tmp_path: Path) -> None:
    text = '[cycle.agent.fe]\noutside = true\ndepends_on = ["ra"]\n[cycle.agent.vas]\noutside = true\n'
    (tmp_path / "fixloop.toml").write_text(f'{text}depends_on = ["cd", "fe"]\n')

    settings = load_configuration(tmp_path, profile="cycle").cycle

    assert isinstance(settings, CycleSettings)
    assert settings.agent["vas"].depends_on == ("cd", "fe")


@pytest.mark.proves("C54", "S19")
def test_a_circle_of_tasks_is_refused_with_its_members() -> None:
    stage = CycleStage()
    stage.work("ra", "success", "requirements.md")
    plan = (
        PlanTask(id="TASK-001", depends_on=("TASK-002",)),
        PlanTask(id="TASK-002", depends_on=("TASK-001",)),
    )

    said = refused(stage, reported("ep", "success", "plan.json", tasks=plan))

    assert "wait for each other: TASK-00" in said
    assert "TASK-001" in said
    assert "TASK-002" in said


@pytest.mark.proves("D27", "S25", "K10")
@pytest.mark.parametrize("event", [LockReleased, LockExtended])
def test_a_lock_is_released_only_by_its_owner(event: Any) -> None:
    stage = HandoffStage()

    assert refused(stage, event(sender="fixer", resource=AUTH)) == (
        f"fixer does not hold the lock of {AUTH}; nobody has it"
    )
    stage.lock("builder", AUTH)
    assert refused(stage, event(sender="fixer", resource=AUTH)) == (
        f"fixer does not hold the lock of {AUTH}; it is builder's"
    )
    assert "'stranger' is no agent" in refused(stage, event(sender="stranger", resource=AUTH))
    assert stage.state.locks[AUTH].agent == "builder"
