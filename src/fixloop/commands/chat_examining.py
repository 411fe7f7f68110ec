"""`chat validate`: everything that is wrong with chats, a pull request's title and logs of agents."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fixloop.chat.examining import examine_all
from fixloop.chat.listing import as_json, as_sarif, as_text
from fixloop.chat.tree import CHATS, default_chats
from fixloop.commands.exit_codes import ExitCode
from fixloop.commands.screen import print_json, print_text


class Format(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


def validate(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Chats, or directories with chats.", show_default=CHATS),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", help="The title of a pull request.", show_default="none")
    ] = None,
    log: Annotated[
        list[Path] | None, typer.Option("--log", metavar="FILE", help="What agents printed; repeat.")
    ] = None,
    kind: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TEXT,
    legacy_until: Annotated[
        int,
        typer.Option(
            "--legacy-until", min=0, max=999, help="Messages up to this number may be without front matter."
        ),
    ] = 0,
) -> None:
    """
    Print everything that is wrong with chats, with file and line.

    Changes nothing. Without PATH and with --title or --log only those are looked at.
    Exit code 0: no error, perhaps warnings; 1: errors.
    """
    trees = paths or ([] if title is not None or log else [default_chats(Path.cwd())])
    examined = examine_all(trees, title=title, logs=log or [], legacy_until=legacy_until)
    if kind is Format.TEXT:
        print_text(as_text(examined))
    else:
        print_json(as_json(examined) if kind is Format.JSON else as_sarif(examined))
    if examined.errors:
        raise typer.Exit(ExitCode.WRONG)
