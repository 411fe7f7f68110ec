"""The program's commands, and how their errors are reported: every expected failure in one sentence.

Shows no traceback for anything a user or an operator can fix.
"""

import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer import Option
from typer.core import TyperGroup

from fixloop import __version__
from fixloop.commands.screen import print_lines, print_text, say
from fixloop.errors import ExitCode, FixloopError, UsageError

_COMMANDS: Final = {
    "run": "run:run",
    "check": "check:check",
    "hook": "hook:group",
    "resume": "run:resume",
    "enqueue": "run:enqueue_command",
    "apply": "apply:apply_command",
    "push": "apply:push_command",
    "status": "status:status",
    "inbox": "inbox:inbox",
    "watch": "watch:watch",
    "log": "log:log_command",
    "report": "report:report",
    "integrity": "integrity:integrity",
    "ack": "answers:ack",
    "fixed": "answers:fixed",
    "decline": "answers:decline",
    "decide": "answers:decide",
    "cancel": "answers:cancel",
    "send": "answers:send",
    "reject": "answers:reject",
    "pause": "answers:pause",
    "continue": "answers:continue_command",
    "lock": "fixloop.profiles.handoff.lock_commands:lock",
    "unlock": "fixloop.profiles.handoff.lock_commands:unlock",
    "write": "fixloop.profiles.handoff.lock_commands:write",
    "heartbeat": "fixloop.profiles.handoff.lock_commands:heartbeat",
    "mailbox": "mailbox:mailbox",
    "files": "files:files",
    "chat": "chat:group",
    "archive": "archive:archive",
    "purge": "archive:purge",
    "backup": "backup:backup",
    "restore": "backup:restore_command",
    "worker": "worker:worker",
    "flower": "worker:flower",
    "queues": "queues:queues",
    "runner": "worker:runner",
    "serve": "fixloop.serve.commands:serve",
    "mcp": "fixloop.serve.commands:mcp",
    "trace": "fixloop.serve.commands:trace",
    "token": "fixloop.serve.commands:token_group",
    "webhook": "fixloop.serve.webhook_commands:webhook_group",
    "person": "fixloop.serve.commands:person",
    "read": "read:read",
    "doctor": "doctor:doctor",
    "init": "init:init_command",
    "chaos": "chaos:chaos",
    "cheats": "cheats:cheats",
    "audit": "audit:group",
    "repair": "audit:repair",
}
"""The function or group of each command, in `fixloop.commands` or a profile, in the order of the help page."""


class _Commands(TyperGroup):
    """Loads a command's module only when it is used: all of them take a second, and most calls need one."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # For an unknown word all names are needed, to find the nearest.
        for name in [cmd_name] if cmd_name in _COMMANDS else _COMMANDS:
            if name not in self.commands:
                module, _, part = _COMMANDS[name].partition(":")
                module = module if "." in module else f"fixloop.commands.{module}"
                command = getattr(import_module(module), part)
                found = typer.Typer(rich_markup_mode=None)
                # With a callback, typer makes a group even of a single command.
                found.callback()(lambda: None)
                if isinstance(command, typer.Typer):
                    found.add_typer(command, name=name)
                else:
                    found.command(name=name)(command)
                self.commands.update(typer.main.get_group(found).commands)
        return self.commands.get(cmd_name)


app = typer.Typer(
    name="fixloop",
    cls=_Commands,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def fixloop(
    context: typer.Context, version: Annotated[bool, Option("--version", help="Print the version.")] = False
) -> None:
    """
    Validate a feature, report failures, get them fixed and check again, until everything passes or a person decides.

    FIXLOOP_STATE_URL and FIXLOOP_BROKER_URL name the Redis to use; without them each project has an embedded one.
    """
    if version:
        print_lines(f"fixloop {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print_text(context.get_help())
        raise typer.Exit(ExitCode.USAGE)


def call(words: Sequence[str]) -> int:
    """Run the command in `words` and return its exit code."""
    # A stream is None if the caller closed it.
    sys.stdout, sys.stderr = (each or io.StringIO() for each in (sys.stdout, sys.stderr))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A log may hold what this terminal's encoding has not; that is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    try:
        return _answer(words)
    except BrokenPipeError:
        # Nothing more to say, not even when Python flushes at its end.
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (OSError, ValueError, AttributeError):
            sys.stdout = io.StringIO()
        return ExitCode.PIPE_CLOSED
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _answer(words: Sequence[str]) -> int:
    """The exit code of the command, after its errors. Raises BrokenPipeError if nobody reads its output."""
    try:
        for word in words:
            # What is not text could neither be stored nor looked up; a path may be any bytes.
            try:
                word.encode()
            except UnicodeEncodeError:
                if not os.path.lexists(word):
                    raise UsageError(f"{word!r} is not UTF-8; write it as text") from None
        returned = typer.main.get_command(app)(list(words), prog_name="fixloop", standalone_mode=False)
        sys.stdout.flush()
        return returned if isinstance(returned, int) else ExitCode.DONE
    except FixloopError as error:
        say(" ".join(str(error).split()))
        return error.exit_code
    except typer.TyperException as error:
        # Such as `no such command 'stauts'; did you mean 'status'?`
        text = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
        text = f"{text[:1].lower()}{text[1:]}".replace(". Did you mean", "; did you mean")
        context = getattr(error, "ctx", None)
        if context is not None and "did you mean" not in text:
            text = f"{text}; see `{context.command_path} --help`"
        say(text)
        return ExitCode.USAGE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        say(f"cannot write: {error.strerror}; make room on the disk")
        return ExitCode.AWAY
    except SystemExit as end:
        # typer itself ends the process when the pipe is closed.
        if isinstance(end.__context__, OSError) and end.__context__.errno == errno.EPIPE:
            raise BrokenPipeError from None
        raise
