"""Limits, windows and numbers of attempts from the file to the workflow."""

from pathlib import Path
from typing import Any

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.configuration.settings import LimitSettings, keys_of, sections_in
from fixloop.errors import UsageError
from fixloop.profiles.validation.intake import limits_of
from fixloop.protocol.state import Limits
from tests.fixtures.configuration_project import written

CHECK = "[specialist.test-runner]\ncommand = 'make test'\n"


def limits(directory: Path, text: str) -> Limits:
    return limits_of(load_configuration(written(directory, {"fixloop.toml": text})))


@pytest.mark.proves("K6", "B61", "A56")
def test_without_settings_the_limits_are_those_of_the_protocol(tmp_path: Path) -> None:
    assert limits(tmp_path, CHECK) == Limits()


@pytest.mark.proves("K6", "K29", "K5", "B61")
def test_every_limit_can_be_set(tmp_path: Path) -> None:
    text = """\
[limits]
validation_minutes = 1
revalidation_minutes = 2
fix_minutes = 3
iteration_minutes = 4
reminder_minutes = 0.5
reminder_window_minutes = 6
deadlock_window = 7
specialist_attempts = 8
fix_attempts = 9
answer_attempts = 10
confirm_rounds = 11
extend_iterations = 12
extend_minutes = 13
"""

    assert limits(tmp_path, text + CHECK) == Limits(
        validation_seconds=60.0,
        revalidation_seconds=120.0,
        fix_seconds=180.0,
        iteration_seconds=240.0,
        reminder_seconds=30.0,
        reminder_window_seconds=360.0,
        deadlock_window=7,
        specialist_attempts=8,
        fix_attempts=9,
        answer_attempts=10,
        confirm_rounds=11,
        extra_iterations=12,
        extend_minutes=13.0,
    )


OFF = ("validation", "revalidation", "fix", "iteration", "reminder_window")


@pytest.mark.proves("K6", "B61")
@pytest.mark.parametrize("word", ["false", "0", "0.0"])
@pytest.mark.parametrize("name", OFF)
def test_every_time_can_be_switched_off(tmp_path: Path, name: str, word: str) -> None:
    found = limits(tmp_path, f"[limits]\n{name}_minutes = {word}\n{CHECK}")

    assert getattr(found, f"{name}_seconds") is None


@pytest.mark.proves("K7")
@pytest.mark.parametrize("word", ["false", "0"])
def test_the_deadlock_rule_can_be_switched_off(tmp_path: Path, word: str) -> None:
    assert limits(tmp_path, f"[limits]\ndeadlock_window = {word}\n{CHECK}").deadlock_window is None


@pytest.mark.proves("B61")
def test_a_limit_of_the_specialist_or_the_fixer_wins(tmp_path: Path) -> None:
    found = limits(
        tmp_path,
        "[limits]\nvalidation_minutes = 1\nfix_minutes = 2\n[fixer]\ncommand = 'true'\ntimeout_minutes = 3\n"
        "[specialist.test-runner]\ncommand = 'make test'\ntimeout_minutes = 4\n"
        "[specialist.security]\ncommand = 'make audit'\ntimeout_minutes = false\n",
    )

    assert found.specialist_seconds == {"test-runner": 240.0, "security": None}
    assert (found.validation_seconds, found.fix_seconds) == (60.0, 180.0)


@pytest.mark.proves("K6", "A57")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", 1800.0),
        ("fix_minutes = 90", 5400.0),
        ("revalidation_minutes = 45", 2700.0),
        ("fix_minutes = false", None),
        ("fix_minutes = 90\niteration_minutes = 10", 600.0),
    ],
)
def test_a_default_cap_is_never_below_a_step_s_limit(
    tmp_path: Path, text: str, seconds: float | None
) -> None:
    assert limits(tmp_path, f"[limits]\n{text}\n{CHECK}").iteration_seconds == seconds


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("fix_minute = 3", "unknown key 'fix_minute' in [limits]; did you mean 'fix_minutes'?"),
        ("max_iterations = 3", "unknown key 'max_iterations' in [limits]; it belongs at the top"),
        ("fix_minutes = true", "[limits] fix_minutes must be a number of minutes"),
        ("fix_minutes = -1", "[limits] fix_minutes must be a number of minutes"),
        ("fix_minutes = '30'", "[limits] fix_minutes must be a number of minutes"),
        ("fix_minutes = nan", "[limits] fix_minutes must be a number of minutes"),
        (f"fix_minutes = 1{'0' * 400}", "[limits] fix_minutes must be a number of minutes"),
        ("extend_minutes = false", "[limits] extend_minutes must be a number of minutes above 0"),
        ("fix_attempts = 0", "[limits] fix_attempts must be a whole number from 1"),
        ("fix_attempts = false", "[limits] fix_attempts must be a whole number from 1"),
        ("deadlock_window = 2.5", "[limits] deadlock_window must be a whole number"),
    ],
)
def test_a_wrong_limit_is_refused_with_the_nearest_key(tmp_path: Path, line: str, sentence: str) -> None:
    with pytest.raises(UsageError, match="limits") as refused:
        limits(tmp_path, f"[limits]\n{line}\n{CHECK}")

    assert sentence in str(refused.value)


@pytest.mark.proves("K9")
def test_the_fix_request_can_be_sent_separately(tmp_path: Path) -> None:
    text = f"bundle_fix_request = false\n{CHECK}"

    assert not load_configuration(written(tmp_path, {"fixloop.toml": text})).bundle_fix_request


def test_unset_limits_do_not_change_the_digest_of_a_configuration(tmp_path: Path) -> None:
    plain = load_configuration(written(tmp_path / "plain", {"fixloop.toml": CHECK}))
    said = load_configuration(
        written(tmp_path / "said", {"fixloop.toml": f"[limits]\nfix_minutes = 30\n{CHECK}"})
    )

    assert plain.digest() == said.digest()
    assert "limits" not in plain.to_json()


DEFAULTS: dict[str, Any] = {name: field.default for name, field in LimitSettings.model_fields.items()}


def test_the_settings_page_has_every_key_with_its_default() -> None:
    page = Path("docs/settings.md").read_text()
    rows = {
        line.split("|")[1].strip(" `"): line.split("|")[2].strip()
        for line in page.splitlines()
        if "|" in line
    }

    assert set(keys_of(LimitSettings)) == set(DEFAULTS)
    for name, default in DEFAULTS.items():
        if default:
            assert rows[name] == f"`{default:g}`"
        assert name in rows
    for name in {name for _, section in sections_in() for name in keys_of(section)} - {
        "fixer",
        "workspace",
        "integrity",
        "sandbox",
        "limits",
        "specialist",
        "cycle",
        "handoff",
    }:
        assert f"`{name}`" in page or f"] {name}`" in page or f".{name}]]`" in page, name
