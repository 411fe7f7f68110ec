"""The stop hooks of coding agents: what each sends, how it is told to continue, and where its settings are.

Decides nothing. The contracts are the makers' and change; `tests/unit/hook_calls/` has recorded calls, by version.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

Document = dict[str, Any]

_OURS: Final = re.compile(r"\bfixloop\W{0,4} hook \w")
"""Matches a hook's command in JSON."""
MARK: Final = ("<!-- fixloop hook -->", "<!-- /fixloop hook -->")
LINES: Final = """\
Before you say that you are done, run `fixloop check`. Its first line is the verdict; exit code 0 is passed, 1 failed,
3 could not check. `fixloop check --show ID` shows one failure in full. Tests and gates are judged as they were before
your change: if a test is wrong, say so instead of editing it.
"""


class Call(NamedTuple):
    """An agent's call of one of its hooks."""

    session: str
    folder: str
    """The agent's folder; empty: unknown."""
    is_cut_off: bool
    """A person or an error ended the agent's turn, so it must not be told to continue."""


class Dialect(NamedTuple):
    """One agent's contract; `hook_dialects.toml` explains the fields."""

    file: str
    starts: str
    stops: str
    entry: Document
    block: Document
    """Tells the agent to continue, and why."""
    tell: Document = {}  # noqa: RUF012
    """Lets the agent stop with a message to the person; empty if the agent shows none."""
    seconds: float = 45.0
    has_version: bool = False
    trust: str = ""
    """What a person has to do before the agent runs the hook."""


def read_call(sent: bytes) -> Call:
    """
    Read a hook's standard input, in any dialect; a byte-order mark and unknown fields are accepted.

    Raises ValueError: it is no JSON object.
    """
    document = json.loads(sent.decode("utf-8-sig"))
    if not isinstance(document, dict):
        raise ValueError("the agent sent JSON that is no object")
    roots = document.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots else ""
    session = _text(document, "session_id", "sessionId", "conversation_id")
    folder = _text(document, "cwd") or (root if isinstance(root, str) else "")
    return Call(session, folder, _text(document, "status") in ("aborted", "error"))


def is_installed(settings: str) -> bool:
    """Whether an agent's settings contain one of fixloop's hooks."""
    return _OURS.search(settings) is not None


def with_hooks(settings: Document, name: str, program: str) -> Document:
    """An agent's settings with fixloop's hooks, once; all other settings stay, in order."""
    dialect = DIALECTS[name]
    made = without_hooks(settings)
    if dialect.has_version:
        made = {"version": 1, **made}
    elif dialect.file.endswith("hooks.json"):
        made = {key: value for key, value in made.items() if key != "version"}
    hooks = dict(made.get("hooks", {}))
    for event, option in ((dialect.starts, " --start"), (dialect.stops, "")):
        entry = worded(dialect.entry, f"{shlex.quote(program)} hook {name}{option}")
        hooks[event] = [*hooks.get(event, ()), entry]
    return {**made, "hooks": hooks}


def without_hooks(settings: Document) -> Document:
    """An agent's settings without fixloop's hooks and the empty parts they leave."""
    hooks = settings.get("hooks")
    if not isinstance(hooks, dict):
        return settings
    rest = {}
    for event, entries in hooks.items():
        left = [kept for each in entries if (kept := _pruned(each))] if isinstance(entries, list) else entries
        if left or left == entries:
            rest[event] = left
    made = {key: rest if key == "hooks" else value for key, value in settings.items()}
    return made if rest or rest == hooks else {key: value for key, value in made.items() if key != "hooks"}


def with_lines(text: str) -> str:
    """A page for agents with the lines about fixloop, once."""
    rest = without_lines(text)
    gap = "\n" if rest else ""
    return f"{rest}{gap}{MARK[0]}\n{LINES}{MARK[1]}\n"


def without_lines(text: str) -> str:
    before, mark, rest = text.partition(MARK[0])
    return before.removesuffix("\n") + rest.partition(f"{MARK[1]}\n")[2] if mark else text


def _pruned(entry: Any) -> Any:
    """An entry without fixloop's command; None if it had nothing else."""
    if not isinstance(entry, dict):
        return entry
    inner = entry.get("hooks")
    if not isinstance(inner, list):
        return None if _OURS.search(json.dumps(entry)) else entry
    left = [each for each in inner if not _OURS.search(json.dumps(each))]
    return entry if left == inner else {**entry, "hooks": left} if left else None


def _text(document: Mapping[str, Any], *names: str) -> str:
    found = (document.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value), "")


def worded(form: Any, text: str) -> Any:
    """An answer or an entry of a dialect, with its text filled in."""
    if isinstance(form, dict):
        return {key: worded(value, text) for key, value in form.items()}
    if isinstance(form, list):
        return [worded(value, text) for value in form]
    return text if form == "TEXT" else form


DIALECTS: Final = {
    name: Dialect(**told)
    for name, told in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
"""By the argument of `fixloop hook`."""
