"""How flags, the file and the presets become one configuration."""

from pathlib import Path

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.errors import NotVerifiedError, UsageError
from tests.fixtures.configuration_project import check_of, commands_of, installed, written

PROJECT = {
    "src/shop/__init__.py": "",
    "tests/test_shop.py": "",
    "requirements.txt": "pytest-cov\nruff\nbandit\n",
}


def loaded_gate(directory: Path, text: str) -> float | None:
    configuration = load_configuration(written(directory, {**PROJECT, "fixloop.toml": text}))
    return check_of(configuration, "test-runner", "pytest").coverage_percent


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("", None),
        ("[specialist.test-runner]", None),
        ("[specialist.test-runner]\ncoverage_percent = 60", 60),
        ("[specialist.test-runner]\ncommand = 'pytest --to={coverage}'", 80),
        ("[specialist.test-runner]\ncommand = 'pytest --to={coverage}'\ncoverage_percent = 0", 0),
        ("[specialist.test-runner]\ncommand = 'pytest'", None),
        (
            "[specialist.test-runner]\ncoverage_percent = 60\n"
            "[[specialist.test-runner.check]]\ncommand = 'pytest {coverage}'\ncoverage_percent = 70",
            70,
        ),
    ],
)
@pytest.mark.proves("A29", "B68")
def test_the_nearest_coverage_gate_applies_and_the_default_is_80(
    tmp_path: Path, text: str, gate: float | None
) -> None:
    assert loaded_gate(tmp_path, text) == gate


@pytest.mark.proves("B68")
def test_a_gate_in_the_file_is_measured_or_blocks(tmp_path: Path) -> None:
    files = {"tests/test_x.py": "", "fixloop.toml": "[specialist.test-runner]\ncoverage_percent = 60"}
    written(tmp_path, files)
    complete, bare = (installed(tmp_path, modules=names) for names in (("pytest", "pytest_cov"), ("pytest",)))

    measured = load_configuration(tmp_path, installed=complete)

    assert "{coverage}" in commands_of(measured)["test-runner"]["pytest"]
    with pytest.raises(NotVerifiedError, match=r"pytest_cov is not installed in \.venv"):
        load_configuration(tmp_path, installed=bare)


def test_named_specialists_are_the_only_ones(tmp_path: Path) -> None:
    text = '[specialist.test-runner]\ncommand = "python -m pytest --junitxml={junit}"\n'

    configuration = load_configuration(written(tmp_path, {**PROJECT, "fixloop.toml": text}))

    assert list(commands_of(configuration)) == ["test-runner"]
    assert configuration.unverified == ()


@pytest.mark.parametrize(
    ("text", "blocks"), [("[specialist.security]\n", False), ("strict = true\n[specialist.security]\n", True)]
)
def test_tests_outside_the_named_specialists_are_reported(tmp_path: Path, text: str, blocks: bool) -> None:
    configuration = load_configuration(written(tmp_path, {**PROJECT, "fixloop.toml": text}))

    (entry,) = configuration.unverified
    assert (entry.name, entry.blocks) == ("pytest", blocks)
    assert entry.reason == "no check of fixloop.toml runs it"


@pytest.mark.proves("K28")
@pytest.mark.parametrize(
    ("frontend", "applies"), [("", True), ("frontend = true", True), ("frontend = false", False)]
)
def test_the_sixth_specialist_is_for_front_ends(tmp_path: Path, frontend: str, applies: bool) -> None:
    text = f"{frontend}\n[specialist.security]\n[specialist.e2e-accessibility]\ncommand = 'npx playwright test'\n"
    written(tmp_path, {**PROJECT, "fixloop.toml": text})

    names = [entry.name for entry in load_configuration(tmp_path).specialists]

    assert names == ["security", "e2e-accessibility"][: 1 + applies]


@pytest.mark.proves("A2")
@pytest.mark.parametrize("only", ["test-runner", "test-runner-specialist", "@test-runner-specialist"])
def test_only_leaves_one_specialist(tmp_path: Path, only: str) -> None:
    configuration = load_configuration(written(tmp_path, PROJECT), only=only)

    assert [entry.name for entry in configuration.specialists] == ["test-runner"]
    assert configuration.unverified == ()


@pytest.mark.proves("A2", "K38")
@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("test-runer", "--only: unknown specialist 'test-runer'; did you mean 'test-runner'?"),
        ("", "--only: unknown specialist ''; the six are unit-test, "),
        (
            "unit-test",
            "--only: unit-test does not apply here; those that do are test-runner, code-quality, security",
        ),
    ],
)
def test_only_refuses_what_would_check_nothing(tmp_path: Path, only: str, expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_configuration(written(tmp_path, PROJECT), only=only)

    assert str(raised.value).startswith(expected)


def test_the_flag_for_the_fixer_wins_over_the_file(tmp_path: Path) -> None:
    text = "[fixer]\ncommand = 'a'\ntimeout_minutes = 3\nenv = ['KEY']\n"
    written(tmp_path, {**PROJECT, "fixloop.toml": text})

    fixer = load_configuration(tmp_path, fixer="b 'c d'").fixer

    assert fixer is not None
    assert (fixer.command, fixer.timeout_minutes, fixer.env) == (("b", "c d"), 3, ("KEY",))


def test_without_a_command_there_is_no_fixer(tmp_path: Path) -> None:
    written(tmp_path, {**PROJECT, "fixloop.toml": "[fixer]\ntimeout_minutes = 3\n"})

    assert load_configuration(tmp_path).fixer is None


@pytest.mark.parametrize("fixer", ["", "a 'b", "a | b"])
def test_a_wrong_flag_for_the_fixer_is_one_sentence(tmp_path: Path, fixer: str) -> None:
    with pytest.raises(UsageError, match=r"^command line: --fixer "):
        load_configuration(written(tmp_path, PROJECT), fixer=fixer)


def test_the_given_project_is_used_where_the_file_names_none(tmp_path: Path) -> None:
    written(tmp_path, PROJECT)

    assert load_configuration(tmp_path, project="host/shop").project == "host/shop"


def test_environment_variables_set_no_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = load_configuration(written(tmp_path, PROJECT)).digest()
    for name in ("MAX_ITERATIONS", "COVERAGE_PERCENT", "SPECIALIST", "FIXER", "PROJECT", "ONLY"):
        monkeypatch.setenv(f"FIXLOOP_{name}", "1")

    assert load_configuration(tmp_path).digest() == before


@pytest.mark.proves("K38")
def test_a_file_without_specialists_where_none_applies_is_refused_with_the_reason(tmp_path: Path) -> None:
    written(tmp_path, {"fixloop.toml": "project = 'shop'\n"})

    with pytest.raises(UsageError) as raised:
        load_configuration(tmp_path)

    assert str(raised.value) == (
        f"nothing to check in {tmp_path}: it names no specialist and nothing was detected; "
        "name a specialist in fixloop.toml"
    )


def test_a_folder_with_a_strange_name_keeps_the_message_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "a\nb").mkdir()

    with pytest.raises(UsageError, match="nothing to check") as raised:
        load_configuration(tmp_path / "a\nb")

    assert "\n" not in str(raised.value)


def test_a_configuration_survives_its_own_json(tmp_path: Path) -> None:
    configuration = load_configuration(written(tmp_path, PROJECT), fixer="agent", project="shop")

    assert type(configuration).model_validate_json(configuration.to_json()) == configuration
