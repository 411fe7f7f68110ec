"""Taking part in a chat: `chat new`, `read`, `post`, `close`, `adopt` and `to-user`."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fixloop.chat.channels import to_user as to_user_block
from fixloop.chat.closing import STATUSES
from fixloop.chat.conversation import Conversation, Posted
from fixloop.chat.directory import apply, read_chat
from fixloop.chat.events import Adopted, ChatClosed, ChatRead, MessageWritten, UserAsked
from fixloop.chat.findings import errors_of
from fixloop.chat.message import MAX_SEQ, stamp
from fixloop.chat.meta import META
from fixloop.chat.opening import Plan, open_chat, open_with
from fixloop.chat.roles import ANSWERS, AREAS, Role
from fixloop.chat.rules import examine
from fixloop.chat.sections import Result, Verdict
from fixloop.chat.sources import printable, read_source
from fixloop.chat.tree import default_chats
from fixloop.commands.chat_examining import validate
from fixloop.commands.chat_places import Chat, Chats, directory_of
from fixloop.commands.chat_playing import run
from fixloop.commands.screen import print_json, print_lines, print_text, say
from fixloop.errors import RefusedError, UsageError
from fixloop.repository.git import branch_of

_STDIN: Final = "-"

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
By = Annotated[Role, typer.Option("--as", help="Who you are.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    chat = typer.Typer(help="Talk in files: twin, architect and engineer.", rich_markup_mode=None)
    chat.callback()(_chat)
    chat.command()(new)
    chat.command()(read)
    chat.command()(post)
    chat.command()(close)
    chat.command()(run)
    chat.command()(validate)
    chat.command()(adopt)
    chat.command(name="to-user")(to_user)
    app.add_typer(chat, name="chat")


def _chat() -> None:
    """Talk in files: twin, architect and engineer."""


def new(
    area: Annotated[str, typer.Argument(metavar="AREA", help=f"One of {', '.join(AREAS)}.")] = "",
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="Lower-case words joined by hyphens.")] = "",
    title: Annotated[str, typer.Option("--title", help="At least three characters.")] = "",
    scope: Annotated[list[str] | None, typer.Option("--scope", help="What belongs to it; repeat.")] = None,
    acceptance: Annotated[
        list[str] | None, typer.Option("--acceptance", help="What has to hold in the end; repeat.")
    ] = None,
    output: Annotated[list[str] | None, typer.Option("--output", help="What comes out; repeat.")] = None,
    non_goal: Annotated[list[str] | None, typer.Option("--non-goal", help="What does not; repeat.")] = None,
    number: Annotated[str, typer.Option("--id", help="Four digits.", show_default="the next number")] = "",
    kind: Annotated[str, typer.Option("--kind", help="Of the branch: feat, fix or chore.")] = "feat",
    meta: Annotated[
        str,
        typer.Option(
            "--meta", metavar="FILE", help="A meta.yaml written by hand, - for stdin; nothing else then."
        ),
    ] = "",
    by: By = Role.TWIN,
    chats: Chats = None,
) -> None:
    """
    Open a chat with its contract, meta.yaml.

    The twin's right. Prints the directory. The architect begins; work goes to the branch that meta.yaml names.
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


def read(
    chat: Chat,
    by: Annotated[Role | None, typer.Option("--as", help="Who you are; the reading is recorded.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every message, not only the latest.")] = False,
    json: AsJson = False,
    chats: Chats = None,
) -> None:
    """
    Show a chat's contract and its latest message.

    The architect has to read before the first message, the engineer before each one: say who you are.
    """
    directory = directory_of(chat, chats)
    if by is not None:
        apply(directory, ChatRead(by), _now())
    found = read_chat(directory)
    if json:
        print_json(_document(found))
    else:
        print_text(_shown(found, everything))


def post(
    chat: Chat,
    by: By,
    purpose: Annotated[str, typer.Option("--purpose", help="What the message is for, in one line.")],
    to: Annotated[
        Role | None, typer.Option("--to", help="Whom it is for.", show_default="who answers")
    ] = None,
    file: Annotated[str, typer.Option("--file", metavar="FILE", help="The body; - is stdin.")] = _STDIN,
    seq: Annotated[
        int | None,
        typer.Option("--seq", min=1, max=MAX_SEQ, help="The number it has to get.", show_default="the next"),
    ] = None,
    result: Annotated[
        list[str] | None,
        typer.Option(
            "--result",
            metavar="N=pass|fail[: TEXT]",
            help="How acceptance criterion N went, as you declare it; repeat.",
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch", help="Where you work.", show_default="the branch of the checkout the chat lies in"
        ),
    ] = None,
    json: AsJson = False,
    chats: Chats = None,
) -> None:
    """
    Post a message: the body with your role's sections, in order.

    Front matter and header line are made for it. Prints the file. With --seq a second call that says the same
    is answered as the first was, and one that says something else is refused.
    """
    directory = directory_of(chat, chats)
    written = MessageWritten(
        by=by,
        to=to if to is not None else ANSWERS[by],
        purpose=purpose,
        body=_given(file),
        seq=seq,
        branch=branch if branch is not None else branch_of(directory),
        results=_results(result or [], directory),
    )
    outcome = apply(directory, written, _now())
    path = printable(str(directory / outcome.file))
    if json:
        print_json({"file": path, "seq": outcome.seq, "owner": written.to})
    else:
        print_lines(path)


def close(
    chat: Chat,
    by: By,
    summary: Annotated[str, typer.Option("--summary", metavar="FILE", help="The text of SUMMARY.md.")] = "",
    decision: Annotated[
        str, typer.Option("--decision", metavar="FILE", help="The text of DECISION.md.")
    ] = "",
    status: Annotated[str, typer.Option("--status", help=f"{', '.join(STATUSES)}.")] = STATUSES[0],
    chats: Chats = None,
) -> None:
    """
    Close a chat with SUMMARY.md and DECISION.md.

    By the architect or the twin. Old messages get front matter. A document that is in the directory
    already needs no option; - is stdin. Completed needs a result of the engineer for every criterion.
    """
    directory = directory_of(chat, chats)
    texts = [_given(name) if name else "" for name in (summary, decision)]
    apply(directory, ChatClosed(by, status, *texts), _now())
    print_lines(printable(str(directory)))
    found = read_chat(directory)
    if wrong := errors_of(examine(found)):
        say(f"it is closed with errors ({len(wrong)}); `fixloop chat validate {found.called}` lists them")


def adopt(chat: Chat, chats: Chats = None) -> None:
    """
    Mark messages as older than the protocol.

    All that have no front matter, once for each chat. They are warnings from now on,
    and are migrated when the chat is closed.
    """
    directory = directory_of(chat, chats)
    outcome = apply(directory, Adopted(), _now())
    say(f"adopted in {printable(str(directory))} as older than the protocol: {outcome.seq}")


def to_user(
    chat: Chat,
    status: Annotated[str, typer.Option("--status", help="How things stand, in one line.")],
    action: Annotated[str, typer.Option("--action", help="What the user should do, in one line.")],
    by: By = Role.ARCHITECT,
    chats: Chats = None,
) -> None:
    """
    Print the architect's block for a person.

    It is the one thing that may be said outside the files. `fixloop inbox` shows it until the next message.
    """
    directory = directory_of(chat, chats)
    if by is not Role.ARCHITECT:
        raise RefusedError(f"{by} prints nothing; only the architect speaks to the user")
    for name, text in (("--status", status), ("--action", action)):
        if not text.strip() or not text.isprintable():
            raise UsageError(f"{name} is {text!r}; it has to be one line of text")
    block = to_user_block(status.strip(), action.strip(), f"{printable(str(directory)).rstrip('/')}/")
    apply(directory, UserAsked(block), _now())
    print_text(block)


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
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"stdin is not UTF-8: byte {error.object[error.start]:#04x} at {error.start}"
        ) from None


def _results(words: list[str], directory: Path) -> tuple[Result, ...]:
    meta = read_chat(directory).meta if words else None
    return tuple(_result(word, meta.acceptance if meta is not None else ()) for word in words)


def _result(word: str, criteria: tuple[str, ...]) -> Result:
    number, _, rest = word.partition("=")
    verdict, _, text = rest.partition(":")
    if (
        not number.isdecimal()
        or not 1 <= int(number) <= len(criteria)
        or verdict.strip() not in tuple(Verdict)
    ):
        numbers = f"N is 1 to {len(criteria)}" if criteria else f"{META} names no criterion"
        raise UsageError(f"--result is {word!r}; it has to be N=pass or N=fail, and {numbers}")
    criterion = criteria[int(number) - 1]
    return Result(Verdict(verdict.strip()), f"{criterion}: {text.strip()}" if text.strip() else criterion)


def _shown(chat: Conversation, everything: bool) -> str:
    contract = chat.contract.text.rstrip() if chat.contract is not None else f"there is no {META}"
    parts = [f"{chat.place(META)}\n\n{contract}"]
    wanted = chat.messages if everything else chat.messages[-1:]
    for posted in wanted:
        text = (
            posted.source.text.rstrip() if posted.source.text is not None else str(posted.source.findings[0])
        )
        parts.append(f"{chat.place(posted.file)}\n\n{text}")
    return "\n\n".join(parts)


def _document(chat: Conversation) -> dict[str, Any]:
    """`chat, directory, state, owner, branch, acceptance, next_seq, messages[], latest`."""
    value = chat.contract.value if chat.contract is not None else (lambda field: "")
    last = chat.last
    return {
        "chat": chat.name,
        "directory": chat.path,
        "state": value("state"),
        "owner": value("owner"),
        "branch": value("branch"),
        "acceptance": list(chat.meta.acceptance) if chat.meta is not None else [],
        "next_seq": chat.next_seq,
        "messages": [_row(posted) for posted in chat.messages],
        "latest": last.source.text if last is not None else None,
    }


def _row(posted: Posted) -> dict[str, Any]:
    front = posted.message.front if posted.message is not None else None
    return {
        "file": posted.file,
        "seq": posted.name.seq,
        "to": posted.name.role,
        "from": front.sender if front is not None else None,
        "ts": stamp(front.ts) if front is not None else None,
        "purpose": front.purpose if front is not None else None,
    }
