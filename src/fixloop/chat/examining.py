"""Everything that `fixloop chat validate` looks at: trees of chats, a pull request's title, logs of agents."""

from collections.abc import Iterable
from pathlib import Path

from fixloop.chat.channels import log_findings
from fixloop.chat.directory import read_chat
from fixloop.chat.findings import Finding
from fixloop.chat.listing import Examined
from fixloop.chat.pull_request import title_findings
from fixloop.chat.rules import examine
from fixloop.chat.sources import printable, read_source
from fixloop.chat.tree import chats_below
from fixloop.errors import UsageError


def examine_all(
    trees: Iterable[Path] = (), *, title: str | None = None, logs: Iterable[Path] = (), legacy_until: int = 0
) -> Examined:
    """
    Look at all of it; a chat is looked at once.

    Raises:
        UsageError: a tree is no directory, or holds no chat: what was not looked at has not passed.
    """
    findings = title_findings(title) if title is not None else []
    chats = messages = 0
    seen: set[Path] = set()
    for tree in trees:
        found = [one for one in chats_below(tree) if isinstance(one, Finding) or one.resolve() not in seen]
        if not found and not seen:
            raise UsageError(f"there is no chat in {tree}; name a chat, or a directory with chats")
        for one in found:
            if isinstance(one, Finding):
                findings.append(one)
                continue
            seen.add(one.resolve())
            chat = read_chat(one)
            findings += examine(chat, legacy_until)
            chats, messages = chats + 1, messages + len(chat.messages)
    for log in logs:
        shown = printable(str(log))
        source = read_source(log, shown)
        findings += log_findings(source.text, shown) if source.text is not None else source.findings
    return Examined(chats, messages, findings)
