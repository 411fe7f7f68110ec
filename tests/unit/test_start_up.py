"""Every command is found by its name without loading the others."""

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import typer
from typer.models import ParameterInfo

from fixloop import commands
from fixloop.commands.program import app

GROUP: Final[Any] = typer.main.get_command(app)
CONTEXT: Final = GROUP.make_context("fixloop", [], resilient_parsing=True)


def test_every_function_with_options_is_found_by_the_name_of_its_command() -> None:
    written: list[tuple[str, str]] = []
    library = Path(commands.__file__).parents[1]
    for path in sorted(
        [
            *library.glob("commands/*.py"),
            *library.glob("profiles/*/*_commands.py"),
            *library.glob("serve/*commands.py"),
        ]
    ):
        module = import_module(".".join(("fixloop", *path.relative_to(library).with_suffix("").parts)))
        for name, function in inspect.getmembers(module, inspect.isfunction):
            given = [each.annotation for each in inspect.signature(function).parameters.values()]
            marks = [mark for each in given for mark in getattr(each, "__metadata__", ())]
            is_own = function.__module__ == module.__name__ and name != "fixloop"
            if is_own and any(isinstance(mark, ParameterInfo) for mark in marks):
                written.append((module.__name__, name))

    names = GROUP.list_commands(CONTEXT)
    listed = [GROUP.get_command(CONTEXT, name) for name in names]
    found = [one for each in listed for one in getattr(each, "commands", {"": each}).values()]

    assert [each.name for each in listed] == names
    # One function may serve several commands.
    assert {(one.callback.__module__, one.callback.__name__) for one in found} == set(written)
