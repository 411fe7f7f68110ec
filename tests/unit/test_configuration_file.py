"""What a configuration file may say, and how anything else in it is reported."""

from pathlib import Path

import pytest

from fixloop.configuration.loader import load_configuration
from fixloop.configuration.values import FailOn
from fixloop.errors import UsageError
from tests.fixtures.configuration_project import check_of, written

RUNNER = '[specialist.test-runner]\ncommand = "make test"\n'
COVERED = '[specialist.test-runner]\ncommand = "pytest {junit} {coverage}"\n'

WHOLE = """
project = "shop"
max_iterations = 7
notify = "notify-send 'a feature waits'"
frontend = true

[workspace]
setup = ["uv", "sync"]
copy = ["src/**/_version.py"]

[fixer]
command = "claude -p --permission-mode acceptEdits"
timeout_minutes = 12.5
env = ["ANTHROPIC_API_KEY"]

[specialist.e2e-accessibility]
command = "npx playwright test"

[specialist.code-quality]
timeout_minutes = 5
env = ["A"]
fail_on = "warning"

[[specialist.code-quality.check]]
name = "ruff"
command = "ruff check --output-format sarif --output-file {sarif}"
env = ["B", "A"]

[[specialist.code-quality.check]]
name = "strict"
command = "other --to {sarif}"
fail_on = "note"

[[specialist.code-quality.check]]
command = ["prettier", "--check", "a b"]
optional = true

[specialist.test-runner]
command = "python -m pytest --junitxml={junit} --cov --cov-report=json:{coverage}"
coverage_percent = 91
"""


def complaint(directory: Path, text: str) -> str:
    """The one line of error for a fixloop.toml of `text`."""
    written(directory, {"fixloop.toml": text})
    with pytest.raises(UsageError) as raised:
        load_configuration(directory)
    message = str(raised.value)
    assert "\n" not in message
    return message


@pytest.mark.proves("U1", "U2", "K28")
def test_every_key_of_the_file_reaches_the_configuration(tmp_path: Path) -> None:
    written(tmp_path, {"fixloop.toml": WHOLE})

    configuration = load_configuration(tmp_path, project="ignored, the file names one")

    assert configuration.project == "shop"
    assert configuration.max_iterations == 7
    assert configuration.notify == ("notify-send", "a feature waits")
    assert configuration.workspace.setup == ("uv", "sync")
    assert configuration.workspace.copy_globs == ("src/**/_version.py",)
    assert configuration.fixer is not None
    assert configuration.fixer.command == ("claude", "-p", "--permission-mode", "acceptEdits")
    assert (configuration.fixer.timeout_minutes, configuration.fixer.env) == (12.5, ("ANTHROPIC_API_KEY",))
    assert [entry.name for entry in configuration.specialists] == [
        "test-runner",
        "code-quality",
        "e2e-accessibility",
    ]
    assert configuration.specialist("code-quality").timeout_minutes == 5
    assert check_of(configuration, "test-runner", "pytest").coverage_percent == 91
    ruff = check_of(configuration, "code-quality", "ruff")
    assert (ruff.env, ruff.fail_on, ruff.optional, ruff.why) == (("A", "B"), FailOn.WARNING, False, "")
    assert check_of(configuration, "code-quality", "strict").fail_on is FailOn.NOTE
    prettier = check_of(configuration, "code-quality", "prettier")
    assert (prettier.command, prettier.optional) == (("prettier", "--check", "a b"), True)


def test_the_table_in_pyproject_equals_a_separate_file(tmp_path: Path) -> None:
    alone = written(tmp_path / "alone", {"fixloop.toml": WHOLE})
    inside = WHOLE.replace("[[spec", "[[tool.fixloop.spec").replace("\n[spec", "\n[tool.fixloop.spec")
    inside = inside.replace("[workspace]", "[tool.fixloop.workspace]").replace(
        "[fixer]", "[tool.fixloop.fixer]"
    )
    shared = written(tmp_path / "shared", {"pyproject.toml": f"[tool.fixloop]\n{inside}"})

    assert load_configuration(shared).digest() == load_configuration(alone).digest()


def test_two_configuration_files_are_refused(tmp_path: Path) -> None:
    written(tmp_path, {"pyproject.toml": "[tool.fixloop]\nmax_iterations = 3\n"})

    assert complaint(tmp_path, RUNNER) == (
        "both fixloop.toml and [tool.fixloop] of pyproject.toml configure fixloop; keep one of them"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            COVERED + "coverage_precent = 80",
            "fixloop.toml: unknown key 'coverage_precent' in [specialist.test-runner]; "
            "did you mean 'coverage_percent'?",
        ),
        (
            "max_iteration = 3",
            "fixloop.toml: unknown key 'max_iteration' at the top; did you mean 'max_iterations'?",
        ),
        ("setup = 'x'", "fixloop.toml: unknown key 'setup' at the top; it belongs in [workspace]"),
        (
            "[security]",
            "fixloop.toml: unknown key 'security' at the top; did you mean [specialist.security]?",
        ),
        (
            "[fixer]\nzzz = 1",
            "fixloop.toml: unknown key 'zzz' in [fixer]; known are command, agent, timeout_minutes, env, "
            "writable, network",
        ),
        (
            "[[specialist.security.check]]\ncommand='a'\n[[specialist.security.check]]\nnam='b'\ncommand='b'",
            "fixloop.toml: unknown key 'nam' in [[specialist.security.check]] number 2; did you mean 'name'?",
        ),
        (
            "[specialist.test-runer]",
            "fixloop.toml: unknown specialist 'test-runer' in [specialist]; did you mean 'test-runner'?",
        ),
        (
            "[specialist.x]",
            "fixloop.toml: unknown specialist 'x' in [specialist]; the six are unit-test, integration-test, "
            "test-runner, code-quality, security, e2e-accessibility",
        ),
    ],
)
@pytest.mark.proves("A2")
def test_an_unknown_key_is_named_with_the_nearest_known_one(tmp_path: Path, text: str, expected: str) -> None:
    assert complaint(tmp_path, text) == expected


def test_an_unknown_key_in_pyproject_is_reported_there(tmp_path: Path) -> None:
    written(tmp_path, {"pyproject.toml": "[tool.fixloop.fixer]\ncomand = 'x'\n"})

    with pytest.raises(UsageError) as raised:
        load_configuration(tmp_path)

    expected = "pyproject.toml: unknown key 'comand' in [tool.fixloop.fixer]; did you mean 'command'?"
    assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max_iterations = 0", "max_iterations must be a whole number from 1 to 1000, not 0"),
        ("max_iterations = true", "max_iterations must be a whole number from 1 to 1000, not true"),
        ("max_iterations = '5'", "max_iterations must be a whole number from 1 to 1000, not '5'"),
        ("max_iterations = 0x" + "f" * 9000, "not a number of more than 64 bits"),
        ("frontend = 1", "frontend must be true or false, not 1"),
        ("project = 'a\\nb'".replace("'", '"'), "project must be one line of text, not 'a\\nb'"),
        ("project = ' '", "project must be one line of text, not ' '"),
        ("workspace = 3", "[workspace] must be a table, not 3"),
        ("specialist = []", "specialist must be a table, not a list"),
        ("[specialist]\nsecurity = 1979-05-27", "[specialist.security] must be a table, not 1979-05-27"),
        ("[fixer]\ncommand='x'\ntimeout_minutes = -1", "[fixer] timeout_minutes must be a number of minutes"),
        ("[fixer]\ncommand='x'\ntimeout_minutes = nan", "timeout_minutes must be a number of minutes"),
        ("[fixer]\ncommand='x'\ntimeout_minutes = inf", "timeout_minutes must be a number of minutes"),
        ("[fixer]\ncommand='x'\nenv = ['A=b']", "names of environment variables, without values, not 'A=b'"),
        ("[fixer]\ncommand='x'\nenv = 'A'", "[fixer] env must be a list of strings, not 'A'"),
        ("[workspace]\ncopy = ['../secret']", "patterns below the project, without '..', not '../secret'"),
        (
            "[workspace]\ncopy = ['/etc/passwd']",
            "patterns below the project, without '..', not '/etc/passwd'",
        ),
        (COVERED + "coverage_percent = 101", "coverage_percent must be a number from 0 to 100, not 101"),
        (COVERED + "coverage_percent = '80%'", "coverage_percent must be a number from 0 to 100, not '80%'"),
        (COVERED + "optional = 'yes'", "[specialist.test-runner] optional must be true or false, not 'yes'"),
        (
            "[specialist.security]\ncommand = 'x {sarif}'\nfail_on = 'eror'",
            "fail_on must be one of error, warning, note (did you mean 'error'?), not 'eror'",
        ),
        ("[specialist.security]\ncommand = ''", "[specialist.security] command is an empty command"),
        ("[specialist.security]\ncommand = []", "[specialist.security] command is an empty command"),
        ("[specialist.security]\ncommand = ['a', 1]", "must be a string or a list of strings, not a list"),
        ("[specialist.security]\ncheck = {}", "must be written as [[specialist.security.check]]"),
        (
            "[[specialist.security.check]]\nname = 'x'",
            "[[specialist.security.check]] number 1 has no command",
        ),
        (
            "[[specialist.security.check]]\nname = '" + "x" * 81 + "'\ncommand = 'a'",
            "name is longer than 80 characters",
        ),
    ],
)
def test_a_wrong_value_is_named_with_the_accepted_values(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in complaint(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RUNNER + "check = [{command = 'x'}]", "has a command and [[specialist.test-runner.check]] as well"),
        (
            "[[specialist.security.check]]\ncommand='a x'\n[[specialist.security.check]]\ncommand='a y'",
            "[specialist.security] has 2 checks named 'a'; give each a name of its own",
        ),
        (RUNNER + "coverage_percent = 80", "has no effect, because no command here writes {coverage}"),
        (RUNNER + "fail_on = 'note'", "has no effect, because no command here writes {sarif}"),
        ("[specialist.e2e-accessibility]", "has no command, and nothing was detected for this specialist"),
        ("[specialist.test-runner]\ncoverage_percent = 50", "has no command, and nothing was detected"),
        ("frontend = true\n" + RUNNER, "frontend is true, but nothing says how e2e-accessibility is run"),
        ("frontend = false\n[specialist.e2e-accessibility]\ncommand='x'", "nothing is left to check"),
    ],
)
@pytest.mark.proves("K28", "K38", "B68")
def test_keys_that_contradict_each_other_are_refused(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in complaint(tmp_path, text)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"max_iterations = \n", "fixloop.toml is not valid TOML: "),
        (b"a = 1\nb = [1,\n2 3]", "line 3"),
        (b"\n\xff = 1", "fixloop.toml is not UTF-8 text (at line 2)"),
        (b"a = " + b"[" * 100_000, "fixloop.toml is not valid TOML: it is nested too deep"),
        (b"a = " + b"9" * 5_000, "fixloop.toml is not valid TOML: "),
        (b"#" * 4_000_001, "fixloop.toml is larger than 4000000 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "fixloop.toml").write_bytes(content)

    with pytest.raises(UsageError) as raised:
        load_configuration(tmp_path)

    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("target", ["nowhere", "/dev/zero", "/etc/passwd", "."])
def test_a_link_in_place_of_the_file_is_refused_instead_of_ignored(tmp_path: Path, target: str) -> None:
    (tmp_path / "fixloop.toml").symlink_to(target)

    with pytest.raises(UsageError, match=r"fixloop\.toml is not a file inside the project"):
        load_configuration(tmp_path)


@pytest.mark.parametrize(
    ("pyproject", "expected"),
    [
        ("[project", "pyproject.toml is not valid TOML"),
        ("[tool]\nfixloop = 3", "pyproject.toml: tool.fixloop must be a table, not 3"),
        ("tool = 3", "nothing to check"),
    ],
)
def test_a_broken_pyproject_is_one_sentence(tmp_path: Path, pyproject: str, expected: str) -> None:
    written(tmp_path, {"pyproject.toml": pyproject})

    with pytest.raises(UsageError, match=expected):
        load_configuration(tmp_path)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "fixloop.toml").write_text(RUNNER, encoding="utf-8-sig")

    assert [entry.name for entry in load_configuration(tmp_path).specialists] == ["test-runner"]


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder; name the folder"):
        load_configuration(tmp_path / "nowhere")
