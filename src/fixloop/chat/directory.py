"""A chat's directory: creates it, reads all of it, and writes the outcome of a decision, one writer at a time (E32).

A message's file appears completely or not at all, and never replaces another: it is written under another name, synced,
and linked to its own.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.chat.conversation import JOURNAL, Conversation, Posted, Source, digest, entry, read_journal
from fixloop.chat.decision import decide, settle
from fixloop.chat.events import ChatEvent, Outcome, Prepended, Written
from fixloop.chat.message import CHAT_NAME, read_message, read_name, stamp
from fixloop.chat.meta import META, new_text, read_meta
from fixloop.chat.rules import CLOSING_DOCUMENTS
from fixloop.chat.tree import printable, read_source
from fixloop.chat.vocabulary import ChatState, Role
from fixloop.errors import InfrastructureError, RefusedError, UsageError
from fixloop.files.atomic import sync, write_new
from fixloop.files.locks import take

MAX_ID: Final = 9999
LOCK_SECONDS: Final = 10.0
_HIDDEN: Final = ".writing-"


def read_chat(directory: Path, shown: str | None = None) -> Conversation:
    """Everything in `directory`; findings use the name `shown` (the path as given)."""
    path = printable(str(directory)) if shown is None else shown
    names = _names(directory)
    ours = [name for name in names if _is_ours(name)]
    sources = {name: read_source(directory / name, f"{path}/{printable(name)}") for name in ours}
    chat = printable(directory.name) if directory.name else printable(directory.resolve().name)
    journal, meta = sources.pop(JOURNAL, None), sources.get(META)
    fixed = [sources[name] for name in (META, *CLOSING_DOCUMENTS) if name in sources]
    messages = []
    for file, source in sources.items():
        if (parsed := read_name(file)) is not None:
            is_text = source.text is not None
            message = read_message(_text(source), parsed, chat, f"{path}/{file}") if is_text else None
            messages.append(Posted(parsed, source, message))
    return Conversation(
        name=chat,
        path=path,
        contract=read_meta(meta.text, f"{path}/{META}") if meta and meta.text is not None else None,
        messages=sorted(messages, key=lambda posted: (posted.name.seq, posted.file)),
        documents={name: text for name in CLOSING_DOCUMENTS if (text := _text(sources.get(name))).strip()},
        strangers=[printable(name) for name in names if not _is_ours(name) and not name.startswith(".")],
        journal=read_journal(_text(journal)),
        findings=[finding for source in fixed for finding in source.findings],
    )


def apply(directory: Path, event: ChatEvent, now: datetime) -> Outcome:
    """Apply `event` at `now`: read, decide, write, with the directory locked."""
    with _locked(directory):
        # Incomplete files of a writer that died; there is no other writer now.
        for left in directory.glob(f"{_HIDDEN}*"):
            with suppress(OSError):
                left.unlink()
        chat = read_chat(directory)
        outcome = decide(event, chat, now)
        written = settle(chat, outcome, now)
        with _explained(directory):
            for change in written.files:
                match change:
                    case Written(file, text, is_new):
                        write = _create if is_new else _replace
                        write(directory, file, text.encode())
                    case Prepended(file, text, sha256):
                        path = directory / file
                        content = path.read_bytes()
                        if digest(content) != sha256:
                            raise RefusedError(f"{path} was edited meanwhile; try again")
                        _replace(directory, file, text.encode() + content)
            if written.journal:
                _append(directory / JOURNAL, "".join(written.journal))
            if written.contract is not None:
                _replace(directory, META, written.contract.encode())
    return outcome


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"{directory} is no chat: {(error.strerror or str(error)).lower()}") from None
    try:
        try:
            is_taken = take(descriptor, patience_seconds=LOCK_SECONDS)
        except OSError as error:
            raise InfrastructureError(f"{directory} cannot be locked: {error.strerror}") from None
        if not is_taken:
            told = f"another process has held {directory} for {LOCK_SECONDS:.0f} s; end it and try again"
            raise InfrastructureError(told)
        yield
    finally:
        os.close(descriptor)


def _names(directory: Path) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError as error:
        raise UsageError(f"{directory} cannot be listed: {(error.strerror or str(error)).lower()}") from None


def _is_ours(name: str) -> bool:
    return name in (META, JOURNAL, *CLOSING_DOCUMENTS) or read_name(name) is not None


def _text(source: Source | None) -> str:
    return (source.text or "") if source is not None else ""


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise RefusedError(f"{error.filename2 or error.filename} is there already; try again") from None
    except OSError as error:
        name = error.filename or path
        told = f"{name} cannot be written: {(error.strerror or str(error)).lower()}"
        raise InfrastructureError(told) from None


def _create(directory: Path, file: str, content: bytes) -> None:
    hidden = _hidden(directory, content)
    try:
        os.link(hidden, directory / file)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        # A file system without links: the file is incomplete at first, but still created exclusively.
        write_new(directory / file, content, synced=True)
    finally:
        hidden.unlink()
    sync(directory)


def _replace(directory: Path, file: str, content: bytes) -> None:
    hidden = _hidden(directory, content)
    with suppress(OSError):
        os.chmod(hidden, os.stat(directory / file).st_mode & 0o7777)
    os.replace(hidden, directory / file)
    sync(directory)


def _append(path: Path, lines: str) -> None:
    """A line that a crash cut short is ended first, so that it does not spoil the next."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            lines = lines if file.read(1) == b"\n" else f"\n{lines}"
        file.write(lines.encode())
        file.flush()
        os.fsync(descriptor)


def _hidden(directory: Path, content: bytes) -> Path:
    path = directory / f"{_HIDDEN}{secrets.token_hex(8)}"
    write_new(path, content, synced=True)
    return path


class Plan(NamedTuple):
    """The twin's plan for a chat."""

    area: str
    slug: str
    title: str
    scope: Sequence[str]
    acceptance: Sequence[str]
    outputs: Sequence[str]
    non_goals: Sequence[str] = ()
    id: str = ""
    """Four digits; empty: the lowest number above all that are used."""
    kind: str = "feat"
    """The kind of the branch: feat, fix or chore."""


def open_chat(chats: Path, plan: Plan, by: Role, now: datetime) -> Path:
    """Create the chat of `plan` below `chats`; returns its directory."""

    def choose(names: Sequence[str]) -> str:
        number = plan.id
        if not number:
            following = max((int(name[:4]) for name in names if CHAT_NAME.fullmatch(name)), default=0) + 1
            if following > MAX_ID:
                raise RefusedError(f"all numbers up to {MAX_ID} are taken; move closed chats elsewhere")
            number = f"{following:04}"
        return plan_text(plan._replace(id=number), now)

    return _created(chats, choose, META, by, now)


def open_with(chats: Path, text: str, file: str, by: Role, now: datetime) -> Path:
    """The same for a contract that the twin wrote; `file` is its name in errors."""
    return _created(chats, lambda names: text, file, by, now)


def plan_text(plan: Plan, now: datetime) -> str:
    """The meta.yaml of `plan`; the architect begins, so it is the architect's turn."""
    values: dict[str, str | Sequence[str]] = {
        "id": plan.id,
        "slug": plan.slug,
        "area": plan.area,
        "title": plan.title,
        "owner": Role.ARCHITECT,
        "state": ChatState.OPEN,
        "branch": f"{plan.kind}/{plan.area}-{plan.slug}-{plan.id}",
        "created": stamp(now),
        "scope": plan.scope,
        "acceptance": plan.acceptance,
        "outputs": plan.outputs,
    }
    return new_text(values | ({"non_goals": plan.non_goals} if plan.non_goals else {}))


def _created(chats: Path, choose: Callable[[Sequence[str]], str], file: str, by: Role, now: datetime) -> Path:
    """Create a chat's directory, which appears with all its files or not at all. `choose` returns its contract, given
    the existing names; the choice is made under a lock."""
    if by is not Role.TWIN:
        raise RefusedError(f"{by} cannot open a chat; its {META} is written by the twin")
    with _explained(chats):
        chats.mkdir(parents=True, exist_ok=True)
    with _locked(chats), _explained(chats):
        names = _names(chats)
        contract = read_meta(choose(names), file)
        if contract.meta is None:
            raise UsageError(str(contract.findings[0]))
        target = chats / contract.meta.directory
        for other in names:
            if other[:5] == target.name[:5] and CHAT_NAME.fullmatch(other):
                raise RefusedError(f"number {contract.meta.id} is taken by {other}")
        if os.path.lexists(target):
            raise RefusedError(f"{target} is there already")
        hidden = chats / f"{_HIDDEN}{secrets.token_hex(8)}"
        hidden.mkdir()
        try:
            write_new(hidden / META, contract.text.encode(), synced=True)
            write_new(hidden / JOURNAL, entry("opened", now, by=Role.TWIN).encode(), synced=True)
            hidden.rename(target)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        sync(chats)
    return target
