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
    "state_url": "Redis for state and locks; default: `FIXLOOP_BROKER_URL`, else the project's embedded one.",
    "broker_url": "RabbitMQ or Redis for Celery's messages; default: `FIXLOOP_STATE_URL`.",
    "tls_ca": "CA certificates to verify servers with; default: the system's.",
    "tls_cert": "The client certificate, for servers that require one; default: none.",
    "tls_key": "Its key, if not in the same file.",
    "sentinel_username": "The user for the sentinels themselves; default: none.",
    "sentinel_password": "The password for the sentinels themselves; default: none.",
    "replicas": "How many replicas must confirm a commit; default: 1 with `sentinel://`, else 0.",
    "replica_seconds": "How long they may take, at most 2; default: 1.",
    "cache_dir": "The folder for mirrors and workspaces, outside any checkout; default: `~/.cache/fixloop`.",
    "guard": "How to stop commands from leaving processes behind: auto, namespace or watched; default: auto.",
    "sandbox": "What confines checks and fixers, overriding projects: auto, require, off, landlock or bubblewrap.",
    "sandbox_writable": "Places that all checks and fixers may also write, separated by colons; default: none.",
    "take_over_seconds": "How old a `fixloop check` result may be for `run` to reuse it in its first validation; "
    "0: never reused; default: 300.",
    "ahead": "Unless 0, linters and scanners run alongside the tests, and in `run` also what runs the project; "
    "default: processors less one.",
    "keep": "Whether clocks of an embedded Redis keep running while somebody outside is awaited; default: yes.",
    "archive_dir": "The archive for ended workflows, which can still be read; default: they stay in Redis.",
    "archive_after_days": "How many days after their end they are moved there; default: 30.",
    "archive_after_days_of": "The same for single projects: `0a1b2c3d=7,1b2c3d4e=365`; default: none.",
    "allow_env": "Variables that a shared worker may pass to checks and fixers, separated by commas; default: none.",
    "embedded": "The folder of the project whose embedded Redis to use; default: the current one.",
    "seal_key_file": "A file with the key that seals histories; an embedded Redis has its own.",
    "redis_connect_seconds": "Timeout for connecting to Redis; default: 1.",
    "redis_timeout_seconds": "Timeout for an answer from Redis; default: 2.",
}
"""By field of `Settings`: its meaning and its default."""

HEAD: Final = """\
# Commands

This page is generated from the help texts; `python -m tests.unit.command_pages` rewrites it.

Data goes to stdout, messages to stderr, and no command ever prompts.
ISSUE is an issue number and means its latest workflow in the current directory's project.
Elsewhere all projects are searched; use `--project` if several have the number.

| exit code | `run`, `resume`, `watch` | other commands |
|---|---|---|
| 0 | every applicable specialist passed, or was skipped by a person | done |
| 1 | aborted or cancelled | `read`: failed or error; `mailbox`: no message; others: something is wrong |
| 2 | wrong usage or configuration | the same; refused |
| 3 | waits for a decision, or for an outside agent's fix without a terminal | – |
| 4 | infrastructure is away | the same |
| 130 | interrupted; continue with `resume` | – |

| variable | what it is, and its default |
|---|---|
"""


def commands() -> Iterator[Any]:
    """The context of every command, which has its path and its help, in the order of `fixloop --help`."""
    return _below(COMMANDS.make_context("fixloop", [], resilient_parsing=True, terminal_width=WIDTH))


def _below(context: Any) -> Iterator[Any]:
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        if hasattr(command, "commands"):
            yield from _below(inner)
        else:
            yield inner


def page() -> str:
    """The whole of docs/commands.md."""
    variables = "".join(f"| `FIXLOOP_{name.upper()}` | {text} |\n" for name, text in SETTINGS.items())
    helps = "".join(
        f"\n## {each.command_path}\n\n```text\n{_stripped(each.get_help())}\n```\n" for each in commands()
    )
    return f"{HEAD}{variables}{helps}"


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
