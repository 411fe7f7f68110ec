"""How commands write: data to stdout, messages to stderr. Nothing in it controls a terminal, hides, or forges a row.

All output of commands goes through here. rich is loaded with the first table: most calls print none.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import typer

from fixloop.machine.terminal_text import json_visible, on_one_line, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.status import Status
    from rich.table import Table
    from rich.text import Text

T = TypeVar("T")
# A table that goes into a file or another program is not wrapped for a terminal.
_PIPE_COLUMNS: Final = 220
_FEW: Final = 5
_HEARD: Final[ContextVar[list[str] | None]] = ContextVar("heard", default=None)


def console(file: IO[str] | None = None) -> "Console":
    """A console on `file` (default: stdout) that prints text unchanged."""
    from rich.console import Console

    target = file if file is not None else sys.stdout
    width = None if target.isatty() else _PIPE_COLUMNS
    return Console(file=target, width=width, highlight=False, markup=False, emoji=False)


def show(what: "RenderableType") -> None:
    """A table or the like on stdout; off a terminal, without padding at line ends."""
    target = console()
    if target.is_terminal:
        target.print(what)
        return
    with target.capture() as captured:
        target.print(what)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def table(*headings: str) -> "Table":
    """An empty table in the style of all tables."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        made.add_column(heading)
    return made


def row(made: "Table", *cells: object, style: str = "", most: int = 200) -> None:
    """Add `cells` to a table as plain text, each at most `most` characters long."""
    made.add_row(*(styled(short(str(cell), most), style) for cell in cells))


def styled(line: str, style: str = "") -> "Text":
    """One line for a console."""
    from rich.text import Text

    return Text(on_one_line(line), style=style)


def short(text: str, limit: int = 160) -> str:
    """`text` on one line of at most `limit` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def few(names: Sequence[str]) -> str:
    """The first names on one line, and how many more there are."""
    shown = ", ".join(short(name, 80) for name in names[:_FEW])
    return f"{shown} and {len(names) - _FEW} more" if len(names) > _FEW else shown


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    typer.echo(json_visible(json.dumps(document, ensure_ascii=False, indent=2)))


def print_text(text: str) -> None:
    """A document on stdout, one or more lines; not JSON."""
    _write(visible(text).removesuffix("\n"))


def print_patch(text: str) -> None:
    """A patch on stdout: exact for a file or `git apply`, made visible for a person."""
    typer.echo(visible(text) if sys.stdout.isatty() else text, nl=False)


def print_lines(*lines: object) -> None:
    """Rows on stdout."""
    for line in lines:
        _write(on_one_line(str(line)))


def note(*lines: str) -> None:
    """Rows on stderr: what happens, and what to do next."""
    for line in lines:
        _write(on_one_line(line), err=True)


def _write(text: str, *, err: bool = False) -> None:
    heard = _HEARD.get()
    if heard is None:
        typer.echo(text, err=err)
    elif err:
        heard.append(text)


@contextmanager
def heard() -> Iterator[list[str]]:
    """What this thread would write to stderr in the block, for a remote user; nothing reaches the screen."""
    lines: list[str] = []
    before = _HEARD.set(lines)
    try:
        yield lines
    finally:
        _HEARD.reset(before)


def say(sentence: str) -> None:
    """One sentence on stderr, prefixed with `fixloop:`."""
    note(f"fixloop: {sentence}")


@contextmanager
def status_line(text: str) -> Iterator["Status"]:
    """A line that can be updated until the end of the block if stderr is a terminal; otherwise nothing."""
    screen = console(sys.stderr)
    line = screen.status(text)
    with line if screen.is_terminal else nullcontext():
        yield line


def counted(found: Iterable[T], what: str) -> Iterator[T]:
    """The items found, with a running count if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield from found
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.completed:,.0f}"), TextColumn(what), console=console, transient=True
    ) as shown:
        task = shown.add_task(what, total=None)
        for each in found:
            shown.advance(task)
            yield each
