"""Commands as written in a configuration file."""

import pytest
from hypothesis import given, strategies as st

from fixloop.configuration.commands import (
    PLACEHOLDERS,
    braces_doubled,
    is_foreign,
    is_plain,
    program_name,
    split_command,
    with_placeholders,
)
from fixloop.configuration.place import Place
from fixloop.errors import UsageError

HERE = Place("fixloop.toml", section="specialist.security", key="command")


def test_a_string_is_split_as_a_shell_would() -> None:
    assert split_command("tool 'a b' --x=\"c d\" e\\ f", HERE) == ("tool", "a b", "--x=c d", "e f")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sed -i 's/a/b/;' f.py", ("sed", "-i", "s/a/b/;", "f.py")),
        ('sh -c "cd x && make; echo \\";\\"" ";"', ("sh", "-c", 'cd x && make; echo ";"', ";")),
        ("find . -name x -exec rm {} \\;", ("find", ".", "-name", "x", "-exec", "rm", "{}", ";")),
        ("grep '' '|' a\\ b;c", ("grep", "", "|", "a b;c")),
    ],
)
def test_quoted_shell_syntax_is_an_argument(text: str, expected: tuple[str, ...]) -> None:
    assert split_command(text, HERE) == expected


@pytest.mark.parametrize("text", ["tool 'a'; b", 'tool "a" && b', "tool a\\\\; b"])
def test_a_quote_elsewhere_does_not_hide_shell_syntax(text: str) -> None:
    with pytest.raises(UsageError, match="but no shell runs it"):
        split_command(text, HERE)


def test_a_list_is_used_unchanged() -> None:
    assert split_command(["sh", "-c", "a && b | c; $D"], HERE) == ("sh", "-c", "a && b | c; $D")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tool 'a", "cannot be split into arguments: no closing quotation; close the quote, or give a list"),
        ("ruff check && mypy", "uses '&&', but no shell runs it"),
        ("ruff check; mypy", "uses 'check;', but no shell runs it"),
        ("pytest > report", "uses '>', but no shell runs it"),
        ("CI=1 pytest -q", "begin with `env CI=1`"),
        ("  ", "is an empty command"),
        ("a \0", "contains a NUL character"),
        ("'' a", "is an empty command"),
    ],
)
def test_a_command_that_needs_a_shell_is_refused(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        split_command(text, HERE)

    assert expected in str(raised.value)
    assert str(raised.value).startswith("fixloop.toml: [specialist.security] command ")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("{foo}", "unknown placeholder '{foo}'; known are {junit}, {sarif}, {coverage}, {jest}, {eslint}"),
        ("--to={juint}", "unknown placeholder '{juint}'; did you mean {junit}?"),
        ("{JUNIT}", "did you mean {junit}?"),
        ("{ sarif }", "unknown placeholder '{ sarif }'; did you mean {sarif}?"),
        ("{cov}{coverage}", "unknown placeholder '{cov}'"),
        ("{x}", "a literal one is written {{x}}"),
    ],
)
def test_an_unknown_placeholder_is_named(word: str, expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        with_placeholders(("tool", word), HERE)

    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("written", "run"),
    [
        ("json:{coverage}", "json:{coverage}"),
        ("{{abspath}}:{{line}}", "{abspath}:{line}"),
        ('{"a": 1}', '{"a": 1}'),
        ("{{.Name}}", "{{.Name}}"),
        ("{}", "{}"),
        ("${HOME:-x}", "${HOME:-x}"),
        ("{print $1}", "{print $1}"),
    ],
)
def test_other_braces_are_left_alone(written: str, run: str) -> None:
    assert with_placeholders((written,), HERE) == (run,)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("ruff check", "ruff"),
        ("./scripts/check.sh --all", "check.sh"),
        ("python -m pytest -q", "pytest"),
        ("/usr/bin/python3.12 tools/lint.py", "lint.py"),
        ("python -c 1", "python"),
        ("python", "python"),
        ("python -m", "python"),
        ("/", "/"),
        ("npx vitest run", "vitest"),
        ("npx --no-install jest", "jest"),
        ("npm exec -- oxlint .", "oxlint"),
        ("pnpm exec tsc", "tsc"),
        ("bunx biome ci", "biome"),
        ("node_modules/.bin/vitest run", "vitest"),
        ("env NODE_OPTIONS=--x node_modules/.bin/jest", "jest"),
        ("uv run --frozen pytest -q", "pytest"),
        ("uv run python -m mypy .", "mypy"),
        ("npm test", "npm test"),
        ("npm run lint", "npm run lint"),
        ("npm run --silent lint", "npm run"),
        ("cargo test --all", "cargo test"),
        ("go vet ./...", "go vet"),
        ("cargo --version", "cargo"),
        ("env", "env"),
    ],
)
def test_a_check_without_a_name_is_named_after_its_program(command: str, name: str) -> None:
    assert program_name(tuple(command.split())) == name


@pytest.mark.parametrize("command", ["npx vitest", "env A=1 go test", "node_modules/.bin/jest", "npm test"])
def test_a_tool_of_another_language_runs_without_python(command: str) -> None:
    assert is_foreign(tuple(command.split()))


@pytest.mark.parametrize("command", ["make test", "python -m pytest", "env A=1 pytest", "uv run mypy", "env"])
def test_any_other_command_may_run_python(command: str) -> None:
    assert not is_foreign(tuple(command.split()))


@given(st.lists(st.text()))
def test_a_plain_command_is_split_into_the_same_words_again(words: list[str]) -> None:
    if is_plain(tuple(words)):
        assert split_command(" ".join(words), HERE) == tuple(words)


@given(st.lists(st.sampled_from(["a", ":", " ", "{x}", "{line}", *(f"{{{name}}}" for name in PLACEHOLDERS)])))
def test_doubled_braces_are_kept(parts: list[str]) -> None:
    word = "".join(parts)

    assert with_placeholders((braces_doubled(word),), HERE) == (word,)
