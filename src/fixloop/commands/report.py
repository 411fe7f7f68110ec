"""`report`: the result of a feature, as Markdown, an HTML page or JSON."""

import os
import sys
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from json import loads
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from typer import Option

from fixloop.commands.lookup import project_of
from fixloop.commands.presenter import Logged
from fixloop.commands.screen import print_json, print_lines, print_patch, print_text, say
from fixloop.commands.session import Issue, ProjectOption, Session, look, open_session, project_folder
from fixloop.errors import UsageError
from fixloop.outside.transfer import snapshot_in
from fixloop.repository.change import diff_between
from fixloop.repository.snapshot import mirror_of
from fixloop.store.records import Entry

STDOUT = "-"
Format = Literal["markdown", "html", "json"]
_NAMED: Final[dict[str, Format]] = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown"}


def report(
    issue: Issue,
    format: Annotated[
        Format | None,
        Option(
            help="Text, a web page, or all data.",
            show_default="by FILE's suffix; html with --open; else markdown",
        ),
    ] = None,
    output: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="The output file, - for stdout.",
            show_default="stdout; a page goes to .fixloop/reports/feature-ISSUE-PROFILE.html",
        ),
    ] = None,
    open: Annotated[bool, Option("--open", help="Open the page in a browser.")] = False,
    diff: Annotated[bool, Option("--diff", help="Instead print the complete diff of all fixes.")] = False,
    project: ProjectOption = None,
) -> None:
    """
    Summarize a feature.

    Shows phases, iterations, gates, times, fixes and evidence, of running, paused, aborted, cancelled and completed
    workflows. The page is a single file without network access or scripts. Prints the name of any file written.
    """
    # Without a format, `report.html` means a page.
    suffix = Path(output).suffix.casefold() if output is not None else ""
    wanted = format or _NAMED.get(suffix, "html" if open else "markdown")
    if open and (wanted != "html" or output == STDOUT):
        raise UsageError("--open needs a page in a file: use --format html, and not --output -")
    with open_session() as session:
        seen = look(session, session.workflow_of(issue, project))
        # Whatever was committed after the snapshot was read belongs to the next report.
        entries = session.store.history(seen.found.workflow)[: seen.found.version]
        target = Path(output).absolute() if output not in (None, STDOUT) else None
        if output is None and wanted == "html":
            folder = project_folder(session.directory, "reports", "name a file with --output")
            target = folder / f"feature-{seen.state.issue}-{seen.state.profile}.html"
        artifact = partial(session.store.get_artifact, seen.found.workflow)
        whole = whole_diff(session, seen.state, entries, artifact)
        across = seen.presenter.across(session.store, project_of(seen.found.workflow))
        logged = Logged(seen.state, seen.found.moment, entries, artifact=artifact, diff=whole, across=across)
        text = whole if diff else seen.presenter.report(seen.found, logged, wanted)
    if diff:
        print_patch(text) if text else say("no fix changed anything")
        return
    if target is None:
        print_json(loads(text)) if wanted == "json" else print_text(text)
        return
    try:
        target.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        told = f"cannot write {target}: {error.strerror}; name another file with --output"
        raise UsageError(told) from None
    print_lines(target)
    if open:
        _show(target)


def _show(page: Path) -> None:
    """Open the page with $BROWSER or on a display; a text browser would take over the terminal."""
    variables = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    if sys.platform != "darwin" and not any(os.environ.get(name) for name in variables):
        say(f"no browser is available here; open {page} yourself")
        return
    with suppress(webbrowser.Error, OSError):
        if webbrowser.open(page.as_uri()):
            return
    say(f"the browser could not be opened; open {page} yourself")


def whole_diff(
    session: Session, state: Any, entries: Iterable[Entry], artifact: Callable[[str], bytes | None]
) -> str:
    """The diff between snapshot and work so far; one fix after the other if the commits are missing here. A line in
    none of the fixes' own diffs was removed from them as a secret, and is left out here too."""
    events = [entry.body["event"] for entry in entries]
    fixes = (event["completion"] if event["kind"] == "fix-completed" else event for event in events)
    kept = (artifact(fix["diff_artifact"]) for fix in fixes if fix.get("diff_artifact"))
    diffs = [diff.decode("utf-8", "replace") for diff in kept if diff is not None]
    if len(diffs) < 2:
        return "".join(diffs)
    snapshot = snapshot_in(state)
    mirror = mirror_of(snapshot, session.settings.cache_dir)
    if not (mirror.has(snapshot.commit) and mirror.has(state.tip)):
        return "".join(diffs)
    whole = diff_between(mirror.git, snapshot.commit, state.tip)
    known = {line[1:] for part in diffs for line in part.splitlines()}
    headers = ("diff ", "index ", "---", "+++", "@@", "new ", "deleted ", "old ", "Binary ", "\\")
    return "".join(
        line if line.startswith(headers) or line.rstrip("\n")[1:] in known else f"{line[0]}…\n"
        for line in whole.splitlines(keepends=True)
    )
