"""Every command is found by its name without loading the others."""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

import typer

from fixloop import commands
from fixloop.cli import app

GROUP: Final[Any] = typer.main.get_command(app)
CONTEXT: Final = GROUP.make_context("fixloop", [], resilient_parsing=True)


def test_every_module_of_commands_is_found_by_the_names_of_its_commands() -> None:
    registered: list[str] = []
    library = Path(commands.__file__).parents[1]
    for path in sorted([*library.glob("commands/*.py"), *library.glob("profiles/*/*_commands.py")]):
        module = import_module(".".join(("fixloop", *path.relative_to(library).with_suffix("").parts)))
        if hasattr(module, "register"):
            own = typer.Typer()
            own.callback()(lambda: None)
            module.register(own)
            found: Any = typer.main.get_command(own)
            registered += found.commands

    names = GROUP.list_commands(CONTEXT)

    assert sorted(names) == sorted(registered)
    assert all(GROUP.get_command(CONTEXT, name).name == name for name in names)
