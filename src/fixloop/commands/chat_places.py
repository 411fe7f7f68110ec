"""Which chat a command is about."""

from pathlib import Path
from typing import Annotated

import typer

from fixloop.chat.sources import printable
from fixloop.chat.tree import CHATS, default_chats, find_chat
from fixloop.errors import UsageError

Chat = Annotated[str, typer.Argument(metavar="CHAT", help="Its directory, name or number.")]
Chats = Annotated[
    Path | None, typer.Option("--chats", help="Where the chats lie.", show_default=f"{CHATS} in the project")
]


def directory_of(chat: str, chats: Path | None) -> Path:
    """
    The directory of the chat that somebody named.

    Raises:
        UsageError: there is none, or several.
    """
    directory = find_chat(chats if chats is not None else default_chats(Path.cwd()), chat)
    if not directory.is_dir():
        raise UsageError(f"{printable(str(directory))} is no directory; name a chat")
    return directory
