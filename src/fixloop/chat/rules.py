"""Checks a chat of any author: reports every finding, not only the first (E34 to E38, E45, E46)."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from fixloop.chat.closing import unproven
from fixloop.chat.conversation import Conversation, Posted, digest
from fixloop.chat.message import CHAT_NAME, MAX_SEQ, loose_number
from fixloop.chat.meta import META
from fixloop.chat.vocabulary import Finding, Level, Role, shown

CLOSING_DOCUMENTS: Final = ("SUMMARY.md", "DECISION.md")


def examine(chat: Conversation, legacy_until: int = 0) -> list[Finding]:
    """Every finding, by file and line; messages up to `legacy_until` may lack front matter, as if adopted."""
    findings = [*chat.findings, *_contract(chat), *_sequence(chat)]
    old_until = max(legacy_until, chat.old_until)
    for posted in chat.messages:
        findings += _message(chat, posted, old_until)
    first = next((posted for posted in chat.messages if posted.name.seq == 1), None)
    if first is not None and not chat.is_grandfathered(first) and not first.is_old:
        front, place = first.front, chat.place(first.file)
        if first.name.role is not Role.ENGINEER:
            told = f"the first message has to be 001-to-engineer.md from the architect, not {first.file}"
            findings.append(Finding("first-message", place, told))
        elif front is not None and front.sender is not Role.ARCHITECT:
            told = f"the first message has to be from the architect, not from the {front.sender}"
            findings.append(Finding("first-message", place, told, field="from", value=front.sender))
    findings += [*_state(chat), *_files(chat)]
    return sorted(findings, key=lambda finding: (finding.file, finding.line))


def _contract(chat: Conversation) -> Iterator[Finding]:
    if not CHAT_NAME.fullmatch(chat.name):
        told = f"the directory is {shown(chat.name)}; it has to be {{id}}-{{area}}-{{slug}}, such as 0005-dx-gh-sync"
        yield Finding("directory", chat.path, told, value=chat.name)
    elif chat.meta is not None and chat.meta.directory != chat.name:
        told = f"the directory is {shown(chat.name)}, but {META} says {shown(chat.meta.directory)}"
        yield Finding("directory", chat.path, told, value=chat.name)
    if chat.contract is None:
        if not any(finding.file == chat.place(META) for finding in chat.findings):
            yield Finding("contract", chat.path, f"there is no {META}; the twin writes it before any message")
        return
    yield from chat.contract.findings
    meta = chat.meta
    if meta is not None and not meta.branch.endswith(f"/{meta.area}-{meta.slug}-{meta.id}"):
        told = f"branch is {shown(meta.branch)}; the usual one is {{kind}}/{meta.area}-{meta.slug}-{meta.id}"
        line = chat.contract.line("branch")
        yield Finding("contract", chat.place(META), told, line, Level.WARNING, "branch", meta.branch)


def _sequence(chat: Conversation) -> Iterator[Finding]:
    misnamed = [number for name in chat.strangers if (number := loose_number(name)) is not None]
    names = sorted(chat.messages, key=lambda posted: posted.name.seq)
    if names and names[0].name.seq == 0:
        yield Finding("sequence", chat.place(names[0].file), "numbers begin at 001")
    files = {posted.name.seq: posted.file for posted in names}
    for before, after in pairwise(sorted({0, *misnamed, *files})):
        # A gap before a misnamed file is not reported: one mistake, one finding.
        if after - before > 1 and after in files:
            absent = f"{before + 1:03}" if after - before == 2 else f"{before + 1:03} to {after - 1:03}"
            yield Finding("sequence", chat.place(files[after]), f"there is no message {absent}")
    for one, other in pairwise(names):
        if one.name.seq == other.name.seq:
            told = f"number {one.name.seq:03} is used twice, by {one.file} too"
            yield Finding("sequence", chat.place(other.file), told)
    if names and names[-1].name.seq > MAX_SEQ:
        yield Finding("sequence", chat.place(names[-1].file), f"a chat has at most {MAX_SEQ} messages")


def _message(chat: Conversation, posted: Posted, legacy_until: int) -> Iterator[Finding]:
    if chat.is_grandfathered(posted):
        # A warning while it is unchanged, and nothing once it is migrated with the same body.
        adopted = chat.journal.adopted[posted.file]
        content = posted.source.content
        if content is None:
            yield from posted.source.findings
        elif digest(content[max(0, len(content) - adopted.size) :]) != adopted.sha256:
            told = "it was edited after the chat was adopted; only closing the chat adds front matter to it"
            yield Finding("edited", chat.place(posted.file), told)
        elif posted.is_old:
            yield _legacy(chat, posted)
        elif posted.message is not None:
            # An old body never had to follow a template, and its header may be anywhere.
            yield from (one for one in posted.message.findings if one.rule in ("front-matter", "timestamp"))
        return
    if posted.source.findings:
        yield from posted.source.findings
        return
    if posted.is_old and posted.name.seq <= legacy_until:
        yield _legacy(chat, posted)
        return
    yield from posted.message.findings if posted.message is not None else ()
    known = chat.journal.posted.get(posted.file)
    present = posted.source.content or b""
    # Line ends that git changes in a checkout are no edit.
    if known is not None and known not in (digest(present), digest(present.replace(b"\r\n", b"\n"))):
        told = "it was edited after it was posted; write a new message"
        yield Finding("edited", chat.place(posted.file), told)


def _legacy(chat: Conversation, posted: Posted) -> Finding:
    told = "it is older than the protocol and has no front matter; it is migrated when the chat is closed"
    return Finding("legacy", chat.place(posted.file), told, level=Level.WARNING)


def _state(chat: Conversation) -> Iterator[Finding]:
    last, meta, contract = chat.last, chat.meta, chat.contract
    if contract is None:
        return
    if not chat.is_closed:
        # Only if each message is valid by itself: an error is reported once.
        front = chat.last_front
        if last is not None and front is not None and meta is not None and front.recipient is not meta.owner:
            told = f"owner is {meta.owner}, but {last.file} made it the turn of {front.recipient}"
            line = contract.line("owner")
            yield Finding("owner", chat.place(META), told, line, field="owner", value=meta.owner)
        return
    for name in CLOSING_DOCUMENTS:
        if name not in chat.documents:
            yield Finding("ending", chat.path, f"the chat is closed without {name}")
    if meta is not None and meta.closed is None:
        told = "the chat is closed, but closed, its time, is missing"
        yield Finding("ending", chat.place(META), told, contract.line("state"), Level.WARNING, "closed")
    for each in unproven(chat):
        told = f"no message of the engineer says whether {shown(each)} holds"
        line = contract.line("acceptance")
        yield Finding("ending", chat.place(META), told, line, Level.WARNING, "acceptance", each)


def _files(chat: Conversation) -> Iterator[Finding]:
    for name in chat.strangers:
        if loose_number(name) is not None:
            told = f"{shown(name)} is no name of a message; it has to be such as 004-to-engineer.md"
            yield Finding("file-name", chat.place(name), told, value=name)
        elif name.endswith(".md"):
            told = f"{shown(name)} is no part of a chat: messages, SUMMARY.md and DECISION.md are"
            yield Finding("file-name", chat.place(name), told, level=Level.WARNING, value=name)
    there = {posted.file for posted in chat.messages}
    for name in sorted({*chat.journal.posted, *chat.journal.adopted} - there):
        yield Finding("edited", chat.place(name), "it was posted, and is gone")
