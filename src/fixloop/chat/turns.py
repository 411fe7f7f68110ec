"""A role as a command: the prompt on its stdin, and the meaning of its answer on stdout.

An answer is the body of a message. It may begin with its own front matter: `purpose` and `to` for a message, `close`
(Completed, Deferred or Rejected) for the end, whose text is then divided by a line `# DECISION`.
"""

import re
from typing import Final

from fixloop.chat import string_yaml
from fixloop.chat.channels import TO_USER
from fixloop.chat.closing import STATUSES
from fixloop.chat.conversation import Conversation
from fixloop.chat.events import ChatClosed, MessageWritten, UserAsked
from fixloop.chat.message import file_name, lines_of
from fixloop.chat.vocabulary import ANSWERS, CLOSERS, OPTIONAL_SECTIONS, TEMPLATES, Role, shown
from fixloop.errors import UsageError

_KEYS: Final = ("purpose", "to", "close")
_DECISION: Final = re.compile(r"#{1,2}\s+DECISION\s*", re.IGNORECASE)
_SHORT: Final = 120


def prompt(chat: Conversation, role: Role, wrong: str = "") -> str:
    """The prompt for `role`; `wrong` says what was wrong with its last answer."""
    contract = chat.contract.text.strip() if chat.contract is not None else ""
    template = ", ".join(
        f"{title} (if you are blocked)" if title in OPTIONAL_SECTIONS else title for title in TEMPLATES[role]
    )
    rules = [
        "Print the body of the message and nothing else; front matter and header line are written for you.",
        "You may begin with front matter of your own: a line ---, then `purpose:` and `to:`, then a line ---.",
        f"Sections, as `## TITLE`, in this order: {template}.",
    ]
    if role is Role.ENGINEER:
        gates = "under GATES say `- [pass] criterion` or `- [fail] criterion: why`"
        rules.append(f"Run the acceptance criteria; {gates}.")
    if role in CLOSERS:
        ending = f"front matter `close:` with {', '.join(STATUSES)}, the summary, # DECISION, why"
        rules.append(f"To end the chat: {ending}.")
    if role is Role.ARCHITECT:
        rules.append(f"To ask a person: the lines {', '.join(TO_USER)}, and nothing else.")
    parts = [
        f"You are the {role} of chat {chat.name}. Write message {file_name(chat.next_seq, ANSWERS[role])}.",
        *([f"Your last answer was refused: {wrong}"] if wrong else []),
        f"## The contract ({chat.place('meta.yaml')})\n\n{contract}",
    ]
    last = chat.last
    if last is not None and last.source.text is not None:
        parts.append(f"## The latest message ({chat.place(last.file)})\n\n{last.source.text.strip()}")
    listed = "\n".join(f"- {rule}" for rule in rules)
    return "\n\n".join([*parts, f"## How to answer\n\n{listed}"]) + "\n"


def understood(answer: str, role: Role, chat: Conversation) -> MessageWritten | ChatClosed | UserAsked:
    """The event of an answer; a message gets the next number of `chat`, and no other."""
    if answer.lstrip().startswith(TO_USER[0]):
        if role is not Role.ARCHITECT:
            raise UsageError(f"{role} prints nothing; only the architect speaks to the user")
        return UserAsked(answer.strip())
    values, body = _parted(answer)
    if "close" in values:
        lines = lines_of(body)
        at = next((number for number, line in enumerate(lines) if _DECISION.fullmatch(line)), None)
        if at is None:
            told = "an answer that closes the chat has a line `# DECISION` between summary and decision"
            raise UsageError(told)
        summary, decision = lines[:at], lines[at + 1 :]
        return ChatClosed(role, values["close"], "\n".join(summary).strip(), "\n".join(decision).strip())
    to = values.get("to", ANSWERS[role])
    if to not in tuple(Role):
        raise UsageError(f"to is {shown(to)}; it has to be one of {', '.join(Role)}")
    # By default, the first line with text.
    said = (line.strip(" #*-:\t") for line in lines_of(body))
    headline = next((line for line in said if line and line not in TEMPLATES[Role.ENGINEER]), "")
    purpose = values.get("purpose") or headline[:_SHORT]
    return MessageWritten(role, Role(to), purpose, body, seq=chat.next_seq)


def _parted(answer: str) -> tuple[dict[str, str], str]:
    lines = lines_of(answer.strip())
    if lines[0].rstrip() != "---":
        return {}, answer
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), None)
    if end is None:
        raise UsageError("the front matter of the answer does not end: a second line --- is missing")
    try:
        found = string_yaml.plain(string_yaml.load("\n".join(lines[1:end])))
    except string_yaml.YamlError as error:
        told = f"the front matter of the answer cannot be read: {error} (line {error.line + 1})"
        raise UsageError(told) from None
    odd = next((key for key, value in found.items() if key not in _KEYS or not isinstance(value, str)), None)
    if odd is not None:
        raise UsageError(f"{shown(odd)} is no text that an answer may have; it may have {', '.join(_KEYS)}")
    return found, "\n".join(lines[end + 1 :])
