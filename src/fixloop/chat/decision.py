"""The decisions of a chat: a pure function of the chat, the event and the time.

Every refusal is an exception that names file, field and value, and changes nothing.
"""

from datetime import datetime
from functools import singledispatch
from typing import Final

from fixloop.chat import closing, events as ev
from fixloop.chat.conversation import Conversation, digest, entry
from fixloop.chat.message import MAX_SEQ, Front, file_name, header, lines_of, rendered, stamp
from fixloop.chat.meta import META, Contract, Meta, with_values
from fixloop.chat.rules import examine
from fixloop.chat.sections import misplaced, missing, sections, with_results
from fixloop.chat.vocabulary import CLOSERS, TEMPLATES, ChatState, Role, shown
from fixloop.errors import RefusedError, UsageError

MAX_PURPOSE_CHARACTERS: Final = 200


def settle(chat: Conversation, outcome: ev.Outcome, now: datetime) -> ev.Outcome:
    """`outcome` with the writes of an earlier event whose process died: a message is posted by its file; the journal's
    line and the owner's turn follow, if necessary here."""
    lines = []
    for posted in chat.messages:
        front = posted.front
        content = posted.source.content
        if posted.file not in chat.journal.posted and front is not None and content is not None:
            facts = {"by": front.sender, "seq": front.seq, "file": posted.file, "sha256": digest(content)}
            lines.append(entry("posted", now, **facts))
    contract, written = outcome.contract, chat.contract
    if contract is None and written is not None and written.meta is not None and not chat.is_closed:
        owner = chat.turn(written.meta)
        contract = None if written.meta.owner is owner else with_values(written, {"owner": owner})
    return outcome._replace(journal=(*lines, *outcome.journal), contract=contract)


def check_unedited(chat: Conversation) -> None:
    """RefusedError if a message was edited after it was posted: no further one is posted (E29)."""
    for finding in examine(chat):
        if finding.rule == "edited":
            raise RefusedError(
                f"{finding.file}: {finding.message.partition(';')[0]}; put back what was posted, then post"
                f" (`fixloop chat validate {chat.called}` names all that was edited)"
            )


@singledispatch
def decide(event: object, chat: Conversation, now: datetime) -> ev.Outcome:
    """The files to write because of `event`; RefusedError if the chat does not allow it now."""
    raise TypeError(f"{type(event).__name__} is no event of a chat")


@decide.register
def _read(event: ev.ChatRead, chat: Conversation, now: datetime) -> ev.Outcome:
    _contract_of(chat)
    seq = chat.next_seq - 1
    if chat.journal.read.get(event.by, -1) >= seq:
        return ev.Outcome(seq=seq)
    return ev.Outcome(journal=(entry("read", now, by=event.by, seq=seq),), seq=seq)


@decide.register
def _ask_user(event: ev.UserAsked, chat: Conversation, now: datetime) -> ev.Outcome:
    """The question stays open until the next message is posted, or the chat is closed."""
    seq, asked = chat.next_seq - 1, chat.journal.asked
    if chat.is_closed or (asked is not None and asked.text == event.text):
        return ev.Outcome(seq=seq)
    return ev.Outcome(journal=(entry("asked", now, seq=seq, text=event.text),), seq=seq)


@decide.register
def _adopt(event: ev.Adopted, chat: Conversation, now: datetime) -> ev.Outcome:
    _refuse_closed(chat)
    contents = {posted.file: posted.source.content for posted in chat.unmarked}
    files = {
        name: {"sha256": digest(content), "size": len(content)}
        for name, content in contents.items()
        if content is not None
    }
    if chat.journal.is_adopted:
        if not files:
            return ev.Outcome()
        raise RefusedError(
            f"{chat.path} was adopted already, and {', '.join(files)} came later;"
            " messages have to follow the protocol now"
        )
    return ev.Outcome(journal=(entry("adopted", now, files=files),), seq=len(files))


@decide.register
def _post(event: ev.MessageWritten, chat: Conversation, now: datetime) -> ev.Outcome:
    contract, meta = _contract_of(chat)
    _refuse_closed(chat)
    body = _body(event)
    for posted in chat.messages:
        front = posted.front
        if posted.name.seq == event.seq and front is not None and posted.message is not None:
            said = (front.sender, front.recipient, front.purpose, "\n".join(posted.message.body).strip("\n"))
            if said == (event.by, event.to, event.purpose.strip(), body):
                # It was posted before, but its sender did not learn that.
                return ev.Outcome(seq=posted.name.seq, file=posted.file)
    check_unedited(chat)
    _check_turn(event, chat)
    if event.by is not Role.TWIN and event.branch not in (None, meta.branch):
        raise RefusedError(
            f"the branch is {shown(event.branch or '')}, but {META} names {shown(meta.branch)}:"
            f" `git switch {meta.branch}` (with -c where it is new), or name the one you work on with --branch"
        )
    seq = _number(event, chat)
    last = chat.last_front
    # Times in a chat never decrease, even if a clock is set back (K34).
    at = max(now, last.ts) if last is not None else now
    front = Front(event.by, event.to, chat.name, seq, at, event.purpose.strip())
    file, text = file_name(seq, event.to), rendered(front, body)
    facts = {"by": event.by, "seq": seq, "file": file, "sha256": digest(text.encode())}
    branch = {"branch": event.branch} if event.branch is not None else {}
    return ev.Outcome(
        files=(ev.Written(file, text),),
        journal=(entry("posted", now, **facts, **branch),),
        contract=with_values(contract, {"owner": event.to}),
        seq=seq,
        file=file,
    )


@decide.register
def _close(event: ev.ChatClosed, chat: Conversation, now: datetime) -> ev.Outcome:
    contract, meta = _contract_of(chat)
    _refuse_closed(chat)
    if event.by not in CLOSERS:
        raise RefusedError(f"{event.by} cannot close {chat.path}; {' or '.join(CLOSERS)} can")
    if event.status not in closing.STATUSES:
        known = ", ".join(closing.STATUSES)
        raise UsageError(f"the status of a decision is {shown(event.status)}; it has to be one of {known}")
    given = {"SUMMARY.md": event.summary, "DECISION.md": event.decision}
    for name, text in given.items():
        if not text.strip() and name not in chat.documents:
            option = f"--{name.partition('.')[0].lower()}"
            raise RefusedError(f"{chat.path} has no {name}; write it, or give its text with {option}")
    if event.status == closing.STATUSES[0] and (absent := closing.unproven(chat)):
        raise RefusedError(
            f"no message of the engineer says whether {shown(absent[0])} holds (acceptance in {chat.place(META)});"
            " a line `- [pass] …` or `- [fail] …` under GATES does, or close it as Deferred or Rejected"
        )
    for name, there in chat.documents.items():
        if given[name].strip() not in there:
            place = chat.place(name)
            told = f"{place} is there already with another text; leave out its option, or remove it"
            raise RefusedError(told)
    old = list(closing.migrated(chat))
    documents = {
        "SUMMARY.md": closing.summary_text(chat, event.summary),
        "DECISION.md": closing.decision_text(event.status, event.by, now, event.decision),
        **chat.documents,
    }
    documents["SUMMARY.md"] = closing.with_migrations(chat, documents["SUMMARY.md"])
    written = [
        ev.Written(name, text, is_new=name not in chat.documents)
        for name, text in documents.items()
        if chat.documents.get(name) != text
    ]
    values = {"owner": chat.turn(meta), "state": ChatState.CLOSED, "closed": stamp(now)}
    facts = {"by": event.by, "status": event.status, "migrated": [one.file for one in old]}
    return ev.Outcome(
        files=(*old, *written),
        # The process that closed it may have died before meta.yaml was written.
        journal=() if chat.journal.is_closed else (entry("closed", now, **facts),),
        contract=with_values(contract, values),
    )


def _contract_of(chat: Conversation) -> tuple[Contract, Meta]:
    if chat.contract is None:
        first = next((str(one) for one in chat.findings if one.file == chat.place(META)), "")
        raise RefusedError(first or f"{chat.path} has no {META}; the twin writes it before any message")
    if chat.contract.meta is None:
        raise UsageError(str(chat.contract.findings[0]))
    return chat.contract, chat.contract.meta


def _refuse_closed(chat: Conversation) -> None:
    if chat.is_closed:
        raise RefusedError(f"{chat.path} is closed; open a new chat with `fixloop chat new`")


def _body(event: ev.MessageWritten) -> str:
    if event.by is event.to:
        raise UsageError(f"from and to are both {event.by}; a message goes to somebody else")
    if event.results and "GATES" not in TEMPLATES[event.by]:
        raise UsageError(f"{event.by} has no section GATES; results are the engineer's to give")
    purpose = event.purpose.strip()
    if not purpose or len(purpose) > MAX_PURPOSE_CHARACTERS or not purpose.isprintable():
        told = f"purpose is {shown(event.purpose)}; it has to be one line of 1 to {MAX_PURPOSE_CHARACTERS} characters"
        raise UsageError(told)
    odd = next((sign for sign in event.body if ord(sign) < 32 and sign not in "\n\r\t"), None)
    if odd is not None:
        raise UsageError(f"the body holds the control character {odd!r}; a message is plain text")
    lines = lines_of(event.body.removeprefix("\ufeff"))
    while lines and not lines[0].strip():
        del lines[0]
    if lines and lines[0].strip() == header(event.to):
        del lines[0]
    if lines and lines[0].rstrip() == "---":
        told = "front matter and header line are written by fixloop, leave them out"
        raise UsageError(f"the body begins with ---; {told}")
    found, template = sections(lines), ", ".join(TEMPLATES[event.by])
    if absent := missing(found, event.by):
        told = f"the body lacks {', '.join(absent)}"
        raise UsageError(f"{told}; the sections of a message of {event.by} are {template}")
    if pair := misplaced(found, event.by):
        told = f"section {pair[1].title} (line {pair[1].line + 1}) has to come before {pair[0].title}"
        raise UsageError(f"{told}; the order is {template}")
    results = [result._replace(text=closing.declared(result.text, event.by)) for result in event.results]
    return "\n".join(with_results(lines, results)).strip("\n")


def _check_turn(event: ev.MessageWritten, chat: Conversation) -> None:
    """The first message is the architect's, after reading the contract; the engineer must have read that and the latest
    message to it (E17, E22)."""
    if chat.unmarked:
        raise RefusedError(
            f"{chat.place(chat.unmarked[0].file)} has no front matter;"
            f" if it is older than the protocol, `fixloop chat adopt {chat.called}` says so"
        )
    if not chat.messages and (event.by, event.to) != (Role.ARCHITECT, Role.ENGINEER):
        told = f"the first message of {chat.path} has to be {file_name(1, Role.ENGINEER)} from the architect"
        raise RefusedError(f"{told}, not from {event.by} to {event.to}")
    read = chat.journal.read.get(event.by)
    command = f"`fixloop chat read {chat.called} --as {event.by}`"
    if event.by is not Role.TWIN and read is None:
        raise RefusedError(f"{event.by} has not read {chat.place(META)} yet; {command} shows and records it")
    own = [posted.name.seq for posted in chat.messages if posted.name.role is event.by]
    if event.by is Role.ENGINEER and read is not None and own and read < own[-1]:
        latest = chat.place(file_name(own[-1], event.by))
        raise RefusedError(f"engineer has not read {latest} yet; {command} does")


def _number(event: ev.MessageWritten, chat: Conversation) -> int:
    following = chat.next_seq
    told = f"{chat.path} has {MAX_SEQ} messages, and no more fit; close it and open a new chat"
    if event.seq is not None and event.seq < following:
        there = next((posted.file for posted in chat.messages if posted.name.seq == event.seq), "")
        told = f"number {event.seq:03} is taken by {chat.place(there)}; the next is {following:03}"
    elif event.seq is not None and event.seq > following:
        told = f"number {event.seq:03} would skip {following:03}, the next one of {chat.path}"
    elif following <= MAX_SEQ:
        return following
    raise RefusedError(told)
