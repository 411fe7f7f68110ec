"""docs/commands.md, made from the help pages: `python -m tests.unit.command_pages` writes it again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer

from fixloop.commands.program import app

PAGE: Final = Path(__file__).parents[2] / "docs" / "commands.md"
COMMANDS: Final = typer.main.get_command(app)
WIDTH: Final = 100

SETTINGS: Final = {
    "state_url": "Redis for state and locks; `FIXLOOP_BROKER_URL` if not given. Neither: the project's embedded one.",
    "broker_url": "RabbitMQ or Redis for Celery's messages; `FIXLOOP_STATE_URL` if not given.",
    "tls_ca": "The authorities' certificates that those of servers are checked against; the system's if not given.",
    "tls_cert": "Our own certificate, for servers that ask for one; none.",
    "tls_key": "Its key, where that is not in the same file.",
    "sentinel_username": "The user at the sentinels themselves; none.",
    "sentinel_password": "The password at the sentinels themselves; none.",
    "replicas": "How many replicas confirm a commit; 1 with `sentinel://`, 0 without.",
    "replica_seconds": "How long they may take, at most 2; 1.",
    "cache_dir": "Where mirrors and workspaces lie, outside any checkout; `~/.cache/fixloop` if not given.",
    "guard": "What keeps commands from leaving processes behind: auto, namespace or watched; auto.",
    "sandbox": "What confines checks and fixers, whatever a project says: auto, require, off, landlock or bubblewrap.",
    "sandbox_writable": "What all checks and fixers may write, too, separated by colons; nothing.",
    "take_over_seconds": "How old a result of `fixloop check` may be that the first validation of a `run` "
    "takes over; 300; 0: none is.",
    "ahead": "Where not 0, linters and scanners run beside the tests, by `run` also what runs the project; processors "
    "less one.",
    "keep": "Whether clocks of an embedded Redis run on while somebody outside is waited for; yes.",
    "archive_dir": "Where ended workflows are moved to and still read from; they stay in Redis if not given.",
    "archive_after_days": "How many days after their end workers move them there; 30.",
    "archive_after_days_of": "The same for single projects: `0a1b2c3d=7,1b2c3d4e=365`; none.",
    "allow_env": "Variables that a shared worker may pass on to checks and fixers, separated by commas; none.",
    "embedded": "The folder of the project whose embedded Redis to join; the current one's.",
    "seal_key_file": "A file with the key of the histories' seals; an embedded Redis has one of its own.",
    "redis_connect_seconds": "How long the first contact with Redis may take; 1.",
    "redis_timeout_seconds": "How long an answer of Redis may take; 2.",
}
"""By field of `Settings`: what it is, and its default."""

HEAD: Final = """\
# Commands

This page is made from the help pages; `python -m tests.unit.command_pages` writes it again.

Data goes to stdout, talk to stderr, and no command ever asks anything.
ISSUE is an issue's number and means its latest workflow in the current directory's project.
Elsewhere all projects are searched, and `--project` decides where the number is in several.

| exit code | `run`, `resume`, `watch` | other commands |
|---|---|---|
| 0 | every applicable specialist passed, or was skipped by a person | done |
| 1 | aborted or cancelled | `read`: failed or error; `mailbox`: no message; others: something is wrong |
| 2 | wrong usage or configuration | the same; refused |
| 3 | waits for a decision, or for an outside agent's fix with no terminal | – |
| 4 | infrastructure is away | the same |
| 130 | interrupted; goes on with `resume` | – |

| variable | what it is, and its default |
|---|---|
"""


def pages() -> Iterator[tuple[str, str]]:
    """Every command with its help, in the order of `fixloop --help`."""
    root = COMMANDS.make_context("fixloop", [], resilient_parsing=True, terminal_width=WIDTH)
    yield from _below(COMMANDS, root)


def _below(group: Any, context: Any) -> Iterator[tuple[str, str]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        if hasattr(command, "commands"):
            yield from _below(command, inner)
        else:
            yield inner.command_path, command.get_help(inner)


def page() -> str:
    """The whole of docs/commands.md."""
    variables = "".join(f"| `FIXLOOP_{name.upper()}` | {text} |\n" for name, text in SETTINGS.items())
    helps = "".join(f"\n## {path}\n\n```text\n{_stripped(text)}\n```\n" for path, text in pages())
    return f"{HEAD}{variables}{helps}"


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
