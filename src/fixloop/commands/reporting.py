"""`report`: what came of a feature, as Markdown, as a page to look at, or as JSON."""

import os
import sys
import webbrowser
from enum import StrEnum
from functools import partial
from json import loads
from pathlib import Path
from typing import Annotated

import typer

from fixloop.commands.diffs import diff_of_all, diffs_of
from fixloop.commands.lookup import project_of
from fixloop.commands.screen import print_json, print_lines, print_patch, print_text, say
from fixloop.commands.session import Issue, ProjectOption, Seen, Session, look, open_session
from fixloop.commands.views.view import Logged
from fixloop.errors import UsageError
from fixloop.repository.identity import top_of
from fixloop.servers.redis_place import own_folder

STDOUT = "-"


class Format(StrEnum):
    """How a report is written."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(report)


def report(
    issue: Issue,
    format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="Text to read, a page to look at, or everything as data.",
            show_default="what FILE ends in; html with --open; else markdown",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Where to write it, `-` for stdout.",
            show_default="stdout; a page goes to .fixloop/reports/feature-ISSUE-PROFILE.html",
        ),
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Instead: only what all fixes together changed, uncut.")
    ] = False,
    project: ProjectOption = None,
) -> None:
    """
    Sum up a feature: phases, iterations, gates, times, fixes, evidence.

    Of a running, paused, aborted, cancelled or completed workflow. The page is one file that needs neither
    network nor scripts. What is written to a file is named on stdout.
    """
    wanted = format or _meant(output, open=open)
    if open and (wanted is not Format.HTML or output == STDOUT):
        raise UsageError("--open shows the page in a file; use it with --format html and without --output -")
    with open_session() as session:
        seen = look(session, session.workflow_of(issue, project))
        # What was committed since the snapshot was read belongs to the next report.
        entries = session.store.history(seen.found.workflow)[: seen.found.version]
        target = _target(session, seen, wanted, output)
        artifact = partial(session.store.get_artifact, seen.found.workflow)
        whole = diff_of_all(session, seen.state, diffs_of(entries, artifact))
        across = seen.view.across(session.store, project_of(seen.found.workflow))
        logged = Logged(seen.state, seen.found.moment, entries, artifact=artifact, diff=whole, across=across)
        text = whole if diff else seen.view.report(seen.found, logged, wanted.value)
    if diff:
        print_patch(text) if text else say("no fix changed anything")
        return
    if target is None:
        print_json(loads(text)) if wanted is Format.JSON else print_text(text)
        return
    _write(target, text)
    print_lines(str(target))
    if open:
        _show(target)


def _meant(output: str | None, *, open: bool) -> Format:
    """The format of a call that names none: whoever writes `report.html` means a page."""
    named = {".html": Format.HTML, ".htm": Format.HTML, ".json": Format.JSON, ".md": Format.MARKDOWN}
    suffix = Path(output).suffix.casefold() if output is not None else ""
    return named.get(suffix, Format.HTML if open else Format.MARKDOWN)


def _target(session: Session, seen: Seen, wanted: Format, output: str | None) -> Path | None:
    """The file to write; None for stdout."""
    if output is not None:
        return None if output == STDOUT else Path(output).absolute()
    if wanted is not Format.HTML:
        return None
    top, _ = top_of(session.directory)
    return _reports_folder(top) / f"feature-{seen.state.issue}-{seen.state.profile}.html"


def _reports_folder(top: Path) -> Path:
    try:
        made = own_folder(top) / "reports"
        made.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {top}: {error.strerror}; name a file with --output") from None
    return made


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"cannot write {target}: {error.strerror}; name another file with --output"
        ) from None


def _show(page: Path) -> None:
    """Open the page where there is a browser to see it in."""
    if not _has_browser():
        say(f"no browser can be opened here; open {page} yourself")
        return
    try:
        opened = webbrowser.open(page.as_uri())
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        say(f"the browser could not be opened; open {page} yourself")


def _has_browser() -> bool:
    """True with $BROWSER or a display; a text browser would take over the terminal unasked."""
    if sys.platform == "darwin" or os.environ.get("BROWSER"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
