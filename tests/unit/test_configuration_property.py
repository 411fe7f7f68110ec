"""Every text of a configuration file gives a configuration or one sentence."""

import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from fixloop.configuration.document import Document
from fixloop.configuration.init import first_configuration, init
from fixloop.configuration.loader import load_configuration
from fixloop.configuration.model import Configuration
from fixloop.configuration.place import Place
from fixloop.errors import UsageError
from fixloop.protocol.specialists import NAMES

KEYS = (
    *("max_iterations", "project", "notify", "frontend", "workspace", "fixer", "specialist", "setup", "copy"),
    *("command", "timeout_minutes", "env", "check", "name", "optional", "fail_on", "coverage_percent"),
    *NAMES,
)
WORDS = st.sampled_from(
    [
        "pytest",
        "{junit}",
        "{sarif}",
        "{coverage}",
        "{foo}",
        "{{foo}}",
        "error",
        "note",
        "a b",
        "'",
        "",
        "\n",
        "*",
    ]
)
SCALARS = st.one_of(
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text(),
    WORDS,
    st.dates(),
    st.just(datetime.time(1)),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)
GOOD = st.sampled_from(["pytest {junit} {coverage}", "ruff {sarif}", "make test"])
COMMANDS = st.one_of(GOOD, GOOD, WORDS, st.lists(WORDS, max_size=3), VALUES)
ENTRIES = st.fixed_dictionaries({}, optional=dict.fromkeys(["command"], COMMANDS) | {
    "name": WORDS,
    "optional": st.booleans(),
    "coverage_percent": st.floats(0, 100),
    "fail_on": st.sampled_from(["error", "note"]),
    "env": st.lists(st.sampled_from(["A", "B"]), max_size=2),
})  # fmt: skip
SECTIONS = st.one_of(ENTRIES, st.fixed_dictionaries({"check": st.lists(ENTRIES, max_size=3)}), VALUES)
TABLES = st.one_of(
    st.dictionaries(st.sampled_from(KEYS) | st.text(), VALUES, max_size=4),
    st.fixed_dictionaries({"specialist": st.dictionaries(st.sampled_from(NAMES), SECTIONS, max_size=3)}),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("project")
    (directory / "test_shop.py").touch()
    return directory


def answered(document: Document, directory: Path) -> Configuration | UsageError:
    try:
        return load_configuration(directory, document=document)
    except UsageError as error:
        return error


# Each example opens files; on a busy machine that takes as long as it takes.
@pytest.mark.heavy
@settings(deadline=None)
@given(table=TABLES)
def test_any_table_gives_a_configuration_or_one_sentence(project: Path, table: dict[str, Any]) -> None:
    document = Document(Place("fixloop.toml"), table, True, {})

    answer = answered(document, project)

    if isinstance(answer, UsageError):
        assert str(answer).isprintable()
    else:
        assert Configuration.model_validate_json(answer.to_json()) == answer
        assert answer.specialists
        assert all(entry.checks for entry in answer.specialists)


@pytest.mark.heavy
@settings(deadline=None)
@given(pyproject=VALUES)
def test_any_pyproject_gives_a_configuration_or_one_sentence(project: Path, pyproject: Any) -> None:
    tools = {"pytest": pyproject, "coverage": {"report": pyproject, "run": pyproject}, "bandit": pyproject}
    content = {"project": pyproject, "dependency-groups": pyproject, "tool": tools | {"poetry": pyproject}}

    document = Document(Place("fixloop.toml"), {}, False, content)
    configuration = load_configuration(project, document=document)

    assert configuration.specialists


@settings(deadline=None)
@given(content=st.binary() | st.text().map(str.encode))
@example(content=b"\r[x]")
@example(content=b"a.b.c = 1\na = 2")
def test_any_file_gives_a_configuration_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    directory = tmp_path_factory.mktemp("any")
    (directory / "fixloop.toml").write_bytes(content)

    with pytest.raises(UsageError) as raised:
        load_configuration(directory)

    assert str(raised.value).isprintable()


@pytest.mark.heavy
@settings(deadline=None)
@given(measured=st.none() | st.floats(0, 100))
def test_for_any_coverage_init_writes_a_file_that_loads(
    tmp_path_factory: pytest.TempPathFactory, measured: float | None
) -> None:
    directory = tmp_path_factory.mktemp("any")
    (directory / "test_shop.py").touch()

    text = init(first_configuration(directory, None), measured_coverage=measured)

    (directory / "fixloop.toml").write_text(text)
    assert load_configuration(directory).specialists
