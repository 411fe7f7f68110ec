"""The agents of a cycle and of handoffs in a configuration: what is read, frozen, and refused in which sentence."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.configuration.model import Configuration
from fixloop.configuration.settings import Role
from fixloop.engine.profile import profile_in, profile_named
from fixloop.errors import NewerVersion, UsageError
from fixloop.profile_table import names
from fixloop.profiles.cycle.decide import decide as decide_cycle
from fixloop.profiles.cycle.intake import cycle_started
from fixloop.profiles.handoff.decide import decide as decide_handoff
from fixloop.profiles.handoff.intake import handoffs_started
from fixloop.protocol.event import Moment
from tests.fixtures.configuration_project import written

NOW = Moment(datetime(2026, 1, 22, tzinfo=UTC), 0.0)
CYCLE = """
[cycle]
max_iterations = 2
timeout_minutes = false
[cycle.agent.RA]
command = "python agents/ra.py"
timeout_minutes = 5
env = ["KEY"]
[cycle.agent.vas]
command = "fixloop:validation"
[cycle.agent.docs]
outside = true
depends_on = ["EP"]
[specialist.test-runner]
command = "make test"
"""
HANDOFF = "[handoff]\n[handoff.agent.planner]\ncommand = ['plan', 'it']\n"


def loaded(folder: Path, text: str, profile: str) -> Configuration:
    return load_configuration(written(folder, {"fixloop.toml": text}), profile=profile)


def complaint(folder: Path, text: str, profile: str = "cycle") -> str:
    with pytest.raises(UsageError) as refused:
        loaded(folder, text, profile)
    return str(refused.value)


@pytest.mark.proves("C38", "K17", "C41")
def test_a_cycle_starts_with_its_configured_agents_limits_and_order(tmp_path: Path) -> None:
    configuration = loaded(tmp_path, CYCLE, "cycle")
    event = cycle_started(configuration, workflow="0a1b2c3d-7-1", issue=7, name="x", cycle_id="c")

    state = decide_cycle(None, event, NOW).state
    assert configuration.cycle is not None
    assert configuration.cycle.agent["ra"] == Role(
        command=("python", "agents/ra.py"), timeout_minutes=5, env=("KEY",)
    )
    assert {agent.key: (agent.command, agent.depends_on) for agent in state.agents} == {
        "ra": ("python agents/ra.py", ()),
        "ep": ("", ("ra",)),
        "cd": ("", ("ep",)),
        "vas": ("fixloop:validation", ("cd",)),
        "docs": ("", ("ep",)),
    }
    assert state.max_iterations == 2
    assert (state.limits.seconds_of("ra"), state.limits.seconds_of("ep")) == (300.0, None)


@pytest.mark.proves("D53")
def test_handoffs_need_nothing_to_check_and_an_agent_without_a_section_is_outside(tmp_path: Path) -> None:
    configuration = loaded(tmp_path, HANDOFF, "handoff")
    event = handoffs_started(configuration, workflow="0a1b2c3d-7-1", issue=7, name="x")

    outcome = decide_handoff(None, event, NOW)
    assert {agent.name: agent.command for agent in outcome.state.agents} == {
        "planner": "plan it",
        "builder": "",
        "reviewer": "",
        "fixer": "",
    }
    assert outcome.steps[0].limit_seconds == 1800.0


def test_agents_are_frozen_with_the_configuration(tmp_path: Path) -> None:
    plain = "[specialist.test-runner]\ncommand = 'make test'\n"
    before = loaded(tmp_path / "a", plain, "validation")
    with_agents = loaded(tmp_path / "b", HANDOFF + plain, "validation")

    assert "cycle" not in before.to_json()
    assert before.digest() != with_agents.digest()
    assert Configuration.model_validate_json(with_agents.to_json()) == with_agents


def test_a_cycle_that_ends_in_the_validation_loop_needs_something_to_check(tmp_path: Path) -> None:
    text = "[cycle.agent.VAS]\ncommand = 'fixloop:validation'\n"

    assert "nothing to check" in complaint(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[cycle.agent.RAA]\noutside = true", "unknown agent 'RAA' in [cycle.agent]; did you mean 'ra'?"),
        ("[handoff.agent.plannr]\noutside = true", "in [handoff.agent]; did you mean 'planner'?"),
        ("[handoff.agent.x]\noutside = true", "the four are planner, builder, reviewer, fixer"),
        (
            "[cycle]\nmax_iteration = 1",
            "unknown key 'max_iteration' in [cycle]; did you mean 'max_iterations'?",
        ),
        (
            "[cycle.agent.RA]\ncomand = 'x'",
            "unknown key 'comand' in [cycle.agent.RA]; did you mean 'command'?",
        ),
        (
            "[handoff.agent.fixer]",
            "[handoff.agent.fixer] has no command; give it one, or write outside = true",
        ),
        ("[cycle.agent.RA]\noutside = false", "has no command"),
        ("[cycle.agent.RA]\noutside = true\ncommand = 'x'", "has a command and is outside; keep one"),
        ("[cycle.agent.RA]\noutside = true\nenv = ['A']", "[cycle.agent.RA] env has no effect"),
        ("[cycle.agent.RA]\ncommand = 'fixloop:chat'", "only 'fixloop:validation' is built in"),
        ("[cycle.agent.RA]\ncommand = 'fixloop:validation -v'", "it takes none"),
        ("[cycle.agent.CD]\ncommand = 'fixloop:validation'", "it can be the command of vas"),
        ("[handoff.agent.fixer]\ncommand = 'fixloop:validation'", "it can be the command of the reviewer"),
        ("[fixer]\ncommand = 'fixloop:handoff'", "there is no [handoff] that says who its agents are"),
        ("[fixer]\ncommand = 'fixloop:handoff -v'\n[handoff]", "is built in"),
        ("[fixer]\ncommand = 'fixloop:cycle'", "only 'fixloop:handoff', without arguments, is built in"),
        ("[cycle.agent.RA]\noutside = true\n[cycle.agent.ra]\noutside = true", "has ra twice"),
        ("[handoff.agent.fixer]\noutside = true\ndepends_on = []", "handoffs have their routes"),
        ("[cycle.agent.user]\noutside = true\ndepends_on = []", "user is no agent's name"),
        ("[cycle.agent]\nenv = []", "env belongs to an agent; write it in [cycle.agent.NAME]"),
        ("[cycle]\nutc_offset_minutes = 841", "must be a whole number of minutes from -840 to 840"),
        (
            "[handoff]\ntimeout_minutes = false",
            "[handoff] timeout_minutes must be a number of minutes above 0",
        ),
        ("[cycle]\ncoverage_percent = 101", "[cycle] coverage_percent must be a number from 0 to 100"),
    ],
)
def test_an_invalid_role_is_refused_in_one_sentence(tmp_path: Path, text: str, expected: str) -> None:
    sentence = complaint(tmp_path, text)

    assert expected in sentence
    assert "\n" not in sentence


@pytest.mark.proves("R1", "K30")
def test_a_snapshot_selects_its_profile_and_an_unknown_one_is_not_touched() -> None:
    assert set(names()) == {"validation", "cycle", "handoff"}
    assert profile_in(b'{"profile":"handoff","schema_version":1}') is profile_named("handoff")
    assert profile_in(b'{"workflow":"x"}') is profile_named("validation")
    with pytest.raises(NewerVersion, match="'relay'"):
        profile_in(b'{"profile":"relay"}')
