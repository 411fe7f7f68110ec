"""`hook`: give an agent the verdict when it stops, and install what it needs for that in its settings."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer import Argument, Option

from fixloop.commands.screen import print_json, print_text, say, short
from fixloop.configuration.document import FILE_NAME
from fixloop.errors import InfrastructureError, UsageError
from fixloop.intake.hook_files import keep_heartbeat, keep_session, session_of, write_settings
from fixloop.intake.hook_session import Found, Limits, Outcome, Reply, answered
from fixloop.outside.hook_dialects import (
    DIALECTS,
    Call,
    Dialect,
    Document,
    is_installed,
    read_call,
    with_hooks,
    with_lines,
    without_hooks,
    without_lines,
    worded,
)
from fixloop.repository.identity import top_of
from fixloop.repository.snapshot import checkout_tree
from fixloop.servers.settings import load_settings

PAGE: Final = "AGENTS.md"
END_SECONDS: Final = 6.0
"""How long a check may take to end once its time is up."""
MOST_BYTES: Final = 4 * 1024 * 1024
"""Of an agent's input: some agents send their whole last answer."""
_CHECK: Final = "import sys; from fixloop.cli import main; sys.exit(main())"
_OUTCOMES: Final = {0: Outcome.PASSED, 1: Outcome.FAILED}
_GO_ON: Final = (
    "fixloop: not done yet. Mend what is listed, then stop again; tests and gates are judged as they were before your "
    "change.\n"
)

group: Final = typer.Typer(help="Check the project when an agent wants to stop.", rich_markup_mode=None)
group.callback()(lambda: None)

Agents = Annotated[
    list[str], Option("--agent", metavar="NAME", help=f"Repeat or separate by commas: {', '.join(DIALECTS)}.")
]
Folder = Annotated[Path, Argument(metavar="PATH", help="The project's folder.")]
Dry = Annotated[bool, Option("--dry", help="Show the changes, write nothing.")]


@group.command()
def install(agent: Agents, path: Folder = Path("."), dry: Dry = False) -> None:
    """
    Add hooks to agents' settings, and instructions for agents to AGENTS.md.

    Existing content is kept; `fixloop hook uninstall` removes what was added. `fixloop doctor` shows when each
    hook last ran.
    """
    program = "fixloop" if shutil.which("fixloop") else str(Path(sys.executable).with_name("fixloop"))
    chosen = _chosen(agent)
    _change(path, chosen, lambda settings, name: with_hooks(settings, name, program), with_lines, is_dry=dry)
    for name in chosen:
        if trust := DIALECTS[name].trust:
            say(f"{name}: {trust}")
    if program != "fixloop":
        say(f"fixloop is not on the PATH, so the hooks name {program}, which works on this machine only")


@group.command()
def uninstall(agent: Agents = [], path: Folder = Path("."), dry: Dry = False) -> None:  # noqa: B006
    """Remove the hooks from the settings of these agents; default: all agents."""
    chosen = _chosen(agent) or list(DIALECTS)
    files = (path / dialect.file for name, dialect in DIALECTS.items() if name not in chosen)
    left = any(file.is_file() and is_installed(file.read_text(errors="replace")) for file in files)
    # The page stays as long as any agent has a hook.
    page = str if left else without_lines
    _change(path, chosen, lambda settings, name: without_hooks(settings), page, is_dry=dry)


def _chosen(agents: Iterable[str]) -> list[str]:
    names = [name.strip() for each in agents for name in each.split(",")]
    for name in names:
        if name not in DIALECTS:
            raise UsageError(f"there is no hook for {name!r}; choose from {', '.join(DIALECTS)}")
    return names


def _change(
    folder: Path,
    agents: Iterable[str],
    change: Callable[[Document, str], Document],
    change_page: Callable[[str], str],
    *,
    is_dry: bool,
) -> None:
    """Change each agent's settings and the page; everything is read before anything is written."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; name the folder of the project")
    written = []
    for name in agents:
        path = folder / DIALECTS[name].file
        settings = _settings(path)
        changed = change(settings, name)
        if changed != settings:
            is_empty = set(changed) <= {"version"}
            text = "" if is_empty else json.dumps(changed, indent=2, ensure_ascii=False) + "\n"
            written.append((path, path.read_text(encoding="utf-8") if path.exists() else "", text))
    page = folder / PAGE
    try:
        before = page.read_text(encoding="utf-8") if page.exists() else ""
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot read {page} as text: {error}; fix it first") from None
    if (after := change_page(before)) != before:
        written.append((page, before, after))
    for path, _, _ in written:
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise UsageError(
                f"{path} is a link to {os.path.realpath(path)}, outside the project; replace it by a file"
            )
    for path, old, new in written:
        name = str(path.relative_to(folder))
        if is_dry:
            print_text("\n".join(unified_diff(old.splitlines(), new.splitlines(), name, name, lineterm="")))
            continue
        try:
            write_settings(path, new)
        except OSError as error:
            raise InfrastructureError(f"cannot write {path}: {error.strerror}") from error
        say(f"{'wrote' if new else 'removed'} {name}")
    if not written:
        say("nothing to change")


def _settings(path: Path) -> Document:
    """An agent's settings. Refuses what is not plain JSON, such as comments, so that nothing is lost."""
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig")) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path} as JSON: {error}; fix it, or add the hook by hand") from None
    if not isinstance(found, dict) or not isinstance(found.get("hooks", {}), dict):
        raise UsageError(f"{path} is not an object with hooks; fix it, or add the hook by hand")
    return found


def answer(
    context: typer.Context,
    start: Annotated[bool, Option("--start", help="A session begins: record the folder's state.")] = False,
    alike: Annotated[int, Option(help="Let it stop after the same failures this often in a row.", min=1)] = 3,
    blocks: Annotated[int, Option(help="Let it stop after telling it this often to go on.", min=0)] = 6,
    minutes: Annotated[
        float, Option(help="Let it stop this long after it was first told to go on.", min=0)
    ] = 30.0,
) -> None:
    """
    Used in an agent's settings: read its input and answer in its format.

    Tells it to go on while `fixloop check` fails, but not if the check could not run. Always exits with code 0.
    """
    name = str(context.info_name)
    dialect = DIALECTS[name]
    if os.environ.get("FIXLOOP_ROLE"):
        # In a workflow the verdict comes from its own checks, and nothing can be stored in there either.
        print_json({})
        return
    try:
        # A person who tries it has nothing to send.
        call = read_call(b"{}" if sys.stdin.isatty() else sys.stdin.buffer.read(MOST_BYTES))
        folder = _project(call, dialect)
        cache = load_settings().cache_dir
        reply = _reply(name, call, folder, cache, None if start else Limits(alike, blocks, minutes))
        said = f"told to go on: {reply.block}" if reply.block else reply.message or "nothing to say"
        keep_heartbeat(cache, name, folder, short("a session began" if start else said, 200))
    except Exception as error:
        # A fault in here is no reason for the agent to go on.
        reply = Reply(message=f"fixloop could not check: {short(str(error) or type(error).__name__, 400)}")
    if reply.message and not dialect.tell:
        say(reply.message.removeprefix("fixloop").lstrip(" :"))
    told = worded(dialect.tell, reply.message) if reply.message else {}
    print_json(worded(dialect.block, _GO_ON + reply.block) if reply.block else told)


for _name in DIALECTS:
    group.command(name=_name)(answer)


def _reply(name: str, call: Call, folder: Path, cache: Path, limits: Limits | None) -> Reply:
    """The reply to an agent that wants to stop; without limits, a session begins."""
    session = session_of(cache, name, folder, call.session)
    if limits is None:
        if not session.tree:
            keep_session(cache, session.with_(tree=checkout_tree(folder)), call.session)
        return Reply()
    if call.is_cut_off or (session.tree and not session.since and session.tree == checkout_tree(folder)):
        return Reply()
    session, reply = answered(session, _found(folder, DIALECTS[name].seconds), datetime.now(UTC), limits)
    # Count first, then answer: an uncounted loop would never end.
    keep_session(cache, session, call.session)
    return reply


def _project(call: Call, dialect: Dialect) -> Path:
    """The nearest folder with the agent's settings or ours, from the agent's folder up to the repository's top."""
    place = Path(call.folder or ".").resolve()
    top, _ = top_of(place)
    for folder in (place, *place.parents):
        if folder == top or any((folder / name).is_file() for name in (dialect.file, FILE_NAME)):
            return folder
    return place


def _found(folder: Path, seconds: float) -> Found:
    """The result of `fixloop check` in a separate process, which can be killed and cannot kill this one."""
    words = [sys.executable, "-P", "-c", _CHECK, "check", str(folder), "--json", "--within", f"{seconds:.0f}"]
    try:
        done = subprocess.run(words, capture_output=True, timeout=seconds + END_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Found(Outcome.UNKNOWN, f"the checks did not end within {seconds:.0f} s")
    if not done.stdout.strip():
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return Found(
            Outcome.UNKNOWN, said[-1] if said else f"the check ended with exit code {done.returncode}"
        )
    document: dict[str, Any] = json.loads(done.stdout)
    outcome = _OUTCOMES.get(done.returncode, Outcome.UNKNOWN)
    return Found(outcome, "\n".join(document["text"]), document["signature"])
