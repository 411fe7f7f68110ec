"""What a call of the program loads: a second of imports is too long for a one-line answer."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.slow

LOADED: Final = """
import contextlib, io, json, sys
from fixloop.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)))
"""
NEVER: Final = {
    "celery",
    "kombu",
    "flower",
    "jinja2",
    "markdown_it",
    "fixloop.reports.sarif",
    "junitparser",
    "asyncio",
}
"""Modules that take long to load and that no quick call needs."""


def loaded_by(words: list[str], directory: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], cwd=directory, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("words", "not_needed"),
    [
        (["--version"], NEVER | {"redis", "rich", "fixloop.servers.settings"}),
        # redis-py loads asyncio itself.
        (
            ["status"],
            NEVER - {"asyncio"} | {"fixloop.engine.engine", "fixloop.reports", "fixloop.intake.preparation"},
        ),
        (
            ["log", "47"],
            NEVER - {"asyncio"} | {"fixloop.engine.engine", "fixloop.reports", "fixloop.intake.preparation"},
        ),
        (["decide", "47", "skip"], NEVER - {"asyncio"} | {"fixloop.reports", "fixloop.intake.preparation"}),
        (["fixed", "47"], NEVER - {"asyncio"} | {"fixloop.reports", "fixloop.intake.preparation"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_call_loads_no_more_than_it_needs(words: list[str], not_needed: set[str], tmp_path: Path) -> None:
    assert loaded_by(words, tmp_path) & not_needed == set()


def test_only_server_commands_load_the_server_s_modules() -> None:
    program = (
        "import sys; from fixloop.commands.program import app; import typer\n"
        "group = typer.main.get_command(app); context = group.make_context('fixloop', [], resilient_parsing=True)\n"
        "[group.get_command(context, name) for name in group.list_commands(context)]\n"
        "print(*sorted({'fastapi', 'uvicorn', 'argon2', 'mcp'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "\n"


def test_a_server_loads_the_sdk_of_the_model_context_protocol_for_an_agent_alone() -> None:
    program = (
        "import sys; from types import SimpleNamespace; from fixloop.serve.app import create_app\n"
        "create_app(SimpleNamespace(), None, None)\n"
        "print('mcp' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
