"""`chat`: take part in one, let commands play its roles, and validate chats."""

import math
import os
import shlex
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, Final, Literal

import typer
from typer import Argument, Option

from fixloop.chat.channels import to_user as to_user_block
from fixloop.chat.closing import STATUSES
from fixloop.chat.conversation import Conversation
from fixloop.chat.crew import Crew, Stop, play
from fixloop.chat.directory import Plan, apply, open_chat, open_with, read_chat
from fixloop.chat.events import Adopted, ChatClosed, ChatRead, MessageWritten, UserAsked
from fixloop.chat.message import MAX_SEQ, stamp
from fixloop.chat.meta import META
from fixloop.chat.rules import examine
from fixloop.chat.sections import Result, Verdict
from fixloop.chat.tree import CHATS, default_chats, find_chat, printable, read_source
from fixloop.chat.validation import as_json, as_sarif, as_text, examine_all
from fixloop.chat.vocabulary import ANSWERS, AREAS, Role, errors_of
from fixloop.commands.screen import print_json, print_lines, print_text, say
from fixloop.errors import ExitCode, RefusedError, UsageError
from fixloop.repository.git import branch_of

group: Final = typer.Typer(help="Talk in files: twin, architect and engineer.", rich_markup_mode=None)
group.callback()(lambda: None)

_STDIN: Final = "-"
_EXIT_CODES: Final = {Stop.CLOSED: ExitCode.DONE, Stop.FULL: ExitCode.DONE, Stop.FAILED: ExitCode.WRONG}

Chat = Annotated[str, Argument(metavar="CHAT", help="Its directory, name or number.")]
Chats = Annotated[
    Path | None, Option("--chats", help="The folder of chats.", show_default=f"{CHATS} in the project")
]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
By = Annotated[Role, Option("--as", help="Your role.")]


@group.command()
def new(
    area: Annotated[str, Argument(metavar="AREA", help=f"One of {', '.join(AREAS)}.")] = "",
    slug: Annotated[str, Argument(metavar="SLUG", help="Lower-case words joined by hyphens.")] = "",
    title: Annotated[str, Option(help="At least three characters.")] = "",
    scope: Annotated[list[str] | None, Option(help="What is in scope; repeatable.")] = None,
    acceptance: Annotated[list[str] | None, Option(help="What must hold in the end; repeatable.")] = None,
    output: Annotated[list[str] | None, Option(help="A deliverable; repeatable.")] = None,
    non_goal: Annotated[list[str] | None, Option(help="What is not in scope; repeatable.")] = None,
    number: Annotated[str, Option("--id", help="Four digits.", show_default="the next number")] = "",
    kind: Annotated[str, Option(help="Branch type: feat, fix or chore.")] = "feat",
    meta: Annotated[
        str, Option(metavar="FILE", help="Use this meta.yaml, - for stdin, instead of other options.")
    ] = "",
    by: By = Role.TWIN,
    chats: Chats = None,
) -> None:
    """
    Open a chat with its contract, meta.yaml.

    Only the twin may. Prints the directory. The architect begins; work goes to the branch named in meta.yaml.
    """
    place = chats if chats is not None else default_chats(Path.cwd())
    if meta:
        made = open_with(place, _given(meta), meta, by, _now())
    else:
        plan = Plan(
            area, slug, title, scope or (), acceptance or (), output or (), non_goal or (), number, kind
        )
        made = open_chat(place, plan, by, _now())
    print_lines(printable(str(made)))


@group.command()
def read(
    chat: Chat,
    by: Annotated[Role | None, Option("--as", help="Your role; the reading is recorded.")] = None,
    everything: Annotated[bool, Option("--all", help="Every message, not only the latest.")] = False,
    json: AsJson = False,
    chats: Chats = None,
) -> None:
    """
    Show a chat's contract and its latest message.

    The architect must read before the first message, the engineer before each one: use --as.
    """
    directory = _directory_of(chat, chats)
    if by is not None:
        apply(directory, ChatRead(by), _now())
    found = read_chat(directory)
    if json:
        print_json(_document(found))
        return
    contract = found.contract.text.rstrip() if found.contract is not None else f"there is no {META}"
    parts = [f"{found.place(META)}\n\n{contract}"]
    for posted in found.messages if everything else found.messages[-1:]:
        source = posted.source
        text = source.text.rstrip() if source.text is not None else str(source.findings[0])
        parts.append(f"{found.place(posted.file)}\n\n{text}")
    print_text("\n\n".join(parts))


@group.command()
def post(
    chat: Chat,
    by: By,
    purpose: Annotated[str, Option(help="What the message is for, in one line.")],
    to: Annotated[Role | None, Option(help="The recipient.", show_default="who answers")] = None,
    file: Annotated[str, Option(metavar="FILE", help="The body; - is stdin.")] = _STDIN,
    seq: Annotated[
        int | None, Option(min=1, max=MAX_SEQ, help="The number it must get.", show_default="the next")
    ] = None,
    result: Annotated[
        list[str] | None,
        Option(metavar="N=pass|fail[: TEXT]", help="Your result for acceptance criterion N; repeatable."),
    ] = None,
    branch: Annotated[
        str | None, Option(help="Where you work.", show_default="the branch of the chat's checkout")
    ] = None,
    json: AsJson = False,
    chats: Chats = None,
) -> None:
    """
    Post a message: the body with your role's sections, in order.

    Front matter and header line are added. Prints the file. With --seq, repeating a call gives the same
    result; a different message with that number is refused.
    """
    directory = _directory_of(chat, chats)
    meta = read_chat(directory).meta if result else None
    criteria = meta.acceptance if meta is not None else ()
    results = []
    for word in result or ():
        criterion, _, rest = word.partition("=")
        verdict, text = (part.strip() for part in rest.partition(":")[::2])
        is_one = criterion.isdecimal() and 1 <= int(criterion) <= len(criteria)
        if not is_one or verdict not in tuple(Verdict):
            numbers = f"N is 1 to {len(criteria)}" if criteria else f"{META} names no criterion"
            raise UsageError(f"--result is {word!r}; it must be N=pass or N=fail, and {numbers}")
        told = criteria[int(criterion) - 1]
        results.append(Result(Verdict(verdict), f"{told}: {text}" if text else told))
    written = MessageWritten(
        by=by,
        to=to if to is not None else ANSWERS[by],
        purpose=purpose,
        body=_given(file),
        seq=seq,
        branch=branch if branch is not None else branch_of(directory),
        results=tuple(results),
    )
    outcome = apply(directory, written, _now())
    path = printable(str(directory / outcome.file))
    if json:
        print_json({"file": path, "seq": outcome.seq, "owner": written.to})
    else:
        print_lines(path)


@group.command()
def close(
    chat: Chat,
    by: By,
    summary: Annotated[str, Option(metavar="FILE", help="The text of SUMMARY.md.")] = "",
    decision: Annotated[str, Option(metavar="FILE", help="The text of DECISION.md.")] = "",
    status: Annotated[str, Option(help=f"{', '.join(STATUSES)}.")] = STATUSES[0],
    chats: Chats = None,
) -> None:
    """
    Close a chat with SUMMARY.md and DECISION.md.

    For the architect or the twin. Old messages get front matter. A document already in the directory
    needs no option; - is stdin. Completed needs the engineer's result for every criterion.
    """
    directory = _directory_of(chat, chats)
    texts = [_given(name) if name else "" for name in (summary, decision)]
    apply(directory, ChatClosed(by, status, *texts), _now())
    print_lines(printable(str(directory)))
    found = read_chat(directory)
    if wrong := errors_of(examine(found)):
        say(f"it is closed with errors ({len(wrong)}); `fixloop chat validate {found.called}` lists them")


@group.command()
def run(
    chat: Chat,
    architect: Annotated[
        str, Option(metavar="CMD", help="Plays the architect.", show_default="outside")
    ] = "",
    engineer: Annotated[str, Option(metavar="CMD", help="Plays the engineer.", show_default="outside")] = "",
    twin: Annotated[str, Option(metavar="CMD", help="Plays the twin.", show_default="outside")] = "",
    most: Annotated[int, Option("--messages", min=1, max=MAX_SEQ, help="Post at most this many.")] = MAX_SEQ,
    timeout: Annotated[
        float | None,
        Option("--timeout-minutes", min=0.01, help="How long a command may take.", show_default="no limit"),
    ] = None,
    log: Annotated[
        Path | None,
        Option(metavar="FILE", help="Write the commands' stderr here, by role.", show_default="stderr"),
    ] = None,
    chats: Chats = None,
) -> None:
    """
    Let commands play the roles until the chat is closed.

    A command reads contract, latest message and rules on stdin and prints the body of its message. Another run
    continues from the files. Exit code 0: closed, or the message limit reached; 1: a command failed three times
    or gave two invalid answers; 3: a role without a command, or a person, must answer.
    """
    directory = _directory_of(chat, chats)
    words = {Role.ARCHITECT: architect, Role.ENGINEER: engineer, Role.TWIN: twin}
    commands = {}
    for role, text in words.items():
        try:
            commands[role] = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--{role} is {text!r}: {str(error).lower()}") from None
    with ExitStack() as opened:
        try:
            printed: IO[str] = opened.enter_context(log.open("a", encoding="utf-8")) if log else sys.stderr
        except OSError as error:
            raise UsageError(f"{log} cannot be written: {(error.strerror or str(error)).lower()}") from None
        crew = Crew(
            commands={role: command for role, command in commands.items() if command},
            directory=Path.cwd(),
            environment=os.environ,
            branch=partial(branch_of, directory),
            posted=print_lines,
            timeout_seconds=60 * timeout if timeout is not None else math.inf,
            log=printed,
        )
        ended = play(directory, crew, most)
    if ended.stop is Stop.FOR_USER:
        print_text(ended.text)
    else:
        say(ended.text)
    code = _EXIT_CODES.get(ended.stop, ExitCode.WAITS)
    if code:
        raise typer.Exit(code)


@group.command()
def validate(
    paths: Annotated[
        list[Path] | None,
        Argument(metavar="PATH", help="Chats, or directories with chats.", show_default=CHATS),
    ] = None,
    title: Annotated[str | None, Option(help="The title of a pull request.", show_default="none")] = None,
    log: Annotated[list[Path] | None, Option(metavar="FILE", help="Output of agents; repeatable.")] = None,
    kind: Annotated[Literal["text", "json", "sarif"], Option("--format", help="The format.")] = "text",
    legacy_until: Annotated[
        int, Option(min=0, max=999, help="Messages up to this number need no front matter.")
    ] = 0,
) -> None:
    """
    Print all problems in chats, with file and line.

    Changes nothing. With --title or --log and no PATH, checks only those.
    Exit code 0: no errors, perhaps warnings; 1: errors.
    """
    trees = paths or ([] if title is not None or log else [default_chats(Path.cwd())])
    examined = examine_all(trees, title=title, logs=log or [], legacy_until=legacy_until)
    if kind == "text":
        print_text(as_text(examined))
    else:
        print_json(as_json(examined) if kind == "json" else as_sarif(examined))
    if examined.errors:
        raise typer.Exit(ExitCode.WRONG)


@group.command()
def adopt(chat: Chat, chats: Chats = None) -> None:
    """
    Mark messages as older than the protocol.

    Marks all without front matter, once per chat. From then on they are warnings,
    and closing the chat migrates them.
    """
    directory = _directory_of(chat, chats)
    outcome = apply(directory, Adopted(), _now())
    say(f"adopted in {printable(str(directory))} as older than the protocol: {outcome.seq}")


@group.command(name="to-user")
def to_user(
    chat: Chat,
    status: Annotated[str, Option(help="The state of things, in one line.")],
    action: Annotated[str, Option(help="What the user should do, in one line.")],
    by: By = Role.ARCHITECT,
    chats: Chats = None,
) -> None:
    """
    Print the architect's block for a person.

    Nothing else may be said outside the files. `fixloop inbox` shows it until the next message.
    """
    directory = _directory_of(chat, chats)
    if by is not Role.ARCHITECT:
        raise RefusedError(f"{by} prints nothing; only the architect speaks to the user")
    for name, text in (("--status", status), ("--action", action)):
        if not text.strip() or not text.isprintable():
            raise UsageError(f"{name} is {text!r}; it must be one line of text")
    block = to_user_block(status.strip(), action.strip(), f"{printable(str(directory)).rstrip('/')}/")
    apply(directory, UserAsked(block), _now())
    print_text(block)


def _directory_of(chat: str, chats: Path | None) -> Path:
    directory = find_chat(chats if chats is not None else default_chats(Path.cwd()), chat)
    if not directory.is_dir():
        raise UsageError(f"{printable(str(directory))} is not a directory; name a chat")
    return directory


def _now() -> datetime:
    return datetime.now(UTC)


def _given(file: str) -> str:
    """The text of a file, or of stdin."""
    if file != _STDIN:
        source = read_source(Path(file), file)
        if source.text is None:
            raise UsageError(str(source.findings[0]))
        return source.text
    if sys.stdin.isatty():
        raise UsageError("there is no text; give it on stdin or as a file")
    # It loads much that other chat commands do not need.
    from fixloop.commands.answer_file import text_in

    return text_in(sys.stdin.buffer.read(), "stdin").replace("\r\n", "\n")


def _document(chat: Conversation) -> dict[str, Any]:
    """`chat, directory, state, owner, branch, acceptance, next_seq, messages[], latest`."""
    value = chat.contract.value if chat.contract is not None else (lambda field: "")
    messages = []
    for posted in chat.messages:
        front = posted.front
        messages.append(
            {
                "file": posted.file,
                "seq": posted.name.seq,
                "to": posted.name.role,
                "from": front.sender if front is not None else None,
                "ts": stamp(front.ts) if front is not None else None,
                "purpose": front.purpose if front is not None else None,
            }
        )
    return {
        "chat": chat.name,
        "directory": chat.path,
        "state": value("state"),
        "owner": value("owner"),
        "branch": value("branch"),
        "acceptance": list(chat.meta.acceptance) if chat.meta is not None else [],
        "next_seq": chat.next_seq,
        "messages": messages,
        "latest": chat.last.source.text if chat.last is not None else None,
    }
