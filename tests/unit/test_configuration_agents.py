"""Declaring an outside agent (G1): what is read, and the sentence for each error."""

from pathlib import Path

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.configuration.model import OutsideAgent
from fixloop.errors import UsageError
from fixloop.profiles.validation.intake import limits_of
from tests.fixtures.configuration_project import written

CHECK = "\n[specialist.test-runner]\ncommand = 'make test'\n"
DECLARED = "[fixer]\nagent = 'coder'\n[agent.coder]\n"


def complaint(folder: Path, text: str) -> str:
    written(folder, {"fixloop.toml": text + CHECK})
    with pytest.raises(UsageError) as raised:
        load_configuration(folder)
    return str(raised.value)


@pytest.mark.proves("G1")
@pytest.mark.parametrize(("keys", "acks"), [("", False), ("acks = true\n", True), ("acks = false\n", False)])
def test_a_declared_agent_is_the_fixer(tmp_path: Path, keys: str, acks: bool) -> None:
    configuration = load_configuration(written(tmp_path, {"fixloop.toml": DECLARED + keys + CHECK}))

    assert configuration.agent == OutsideAgent(name="coder", acks=acks)
    assert configuration.fixer is None


@pytest.mark.proves("G1", "A56")
def test_its_limits_are_those_of_the_fixer_and_of_deliveries(tmp_path: Path) -> None:
    text = "[limits]\nreceipt_minutes = 2\ndelivery_attempts = 5\n" + DECLARED.replace(
        "'coder'", "'coder'\ntimeout_minutes = 45"
    )

    limits = limits_of(load_configuration(written(tmp_path, {"fixloop.toml": text + CHECK})))

    assert (limits.fix_seconds, limits.receipt_seconds, limits.delivery_attempts) == (2700.0, 120.0, 5)


@pytest.mark.proves("G1", "K5")
def test_the_defaults_are_a_minute_for_a_receipt_and_three_delivery_attempts(tmp_path: Path) -> None:
    limits = limits_of(load_configuration(written(tmp_path, {"fixloop.toml": DECLARED + CHECK})))

    assert (limits.receipt_seconds, limits.delivery_attempts) == (60.0, 3)


def test_without_a_declared_agent_nothing_changes(tmp_path: Path) -> None:
    plain = load_configuration(written(tmp_path, {"fixloop.toml": CHECK}))

    assert plain.agent is None
    assert "agent" not in plain.to_json()


def test_a_caller_s_command_replaces_the_agent(tmp_path: Path) -> None:
    configuration = load_configuration(
        written(tmp_path, {"fixloop.toml": DECLARED + CHECK}), fixer="claude -p"
    )

    assert configuration.agent is None
    assert configuration.fixer is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[fixer]\nagent = 'codr'\n[agent.coder]",
            "fixloop.toml: [fixer] agent is 'codr', and no such agent is declared; did you mean 'coder'?",
        ),
        (
            "[fixer]\nagent = 'coder'",
            "fixloop.toml: [fixer] agent is 'coder', and no such agent is declared; "
            "declare it with [agent.coder]",
        ),
        (
            "[agent.coder]",
            "fixloop.toml: [agent.coder] has no effect, because [fixer] does not name it; "
            'write agent = "coder" there',
        ),
        (
            "[fixer]\nagent = 'coder'\ncommand = 'x'\n[agent.coder]",
            "fixloop.toml: [fixer] has a command and an agent; keep one of them",
        ),
        (
            "[fixer]\nagent = 'coder'\nenv = ['A']\n[agent.coder]",
            "fixloop.toml: [fixer] env has no effect, because an outside agent has an environment of its own",
        ),
        (DECLARED + "ack = true", "fixloop.toml: unknown key 'ack' in [agent.coder]; did you mean 'acks'?"),
        (DECLARED + "acks = 1", "fixloop.toml: [agent.coder] acks must be true or false, not 1"),
        (
            "[fixer]\nagent = 'a.b'",
            "fixloop.toml: [fixer] agent must be a name of letters, digits, - and _, not 'a.b'",
        ),
        ("[agent.'a b']", "fixloop.toml: agent must be a name of letters, digits, - and _, not 'a b'"),
        ("[agent]\nacks = true", "fixloop.toml: [agent] acks belongs to an agent; write it in [agent.NAME]"),
        ("agent = 'coder'", "fixloop.toml: agent must be a table, not 'coder'"),
        ("[agent]\ncoder = 'x'", "fixloop.toml: [agent.coder] must be a table, not 'x'"),
    ],
)
def test_an_invalid_declaration_is_refused_in_one_sentence(tmp_path: Path, text: str, expected: str) -> None:
    assert complaint(tmp_path, text) == expected
