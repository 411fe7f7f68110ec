"""Seals history entries. The chain of digests shows a change; a seal shows that a holder of the key wrote the entry.

An entry's text ends with its seal: an HMAC over workflow, number, its frame's digests, and the text without the seal.
"""

import hmac
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.errors import UsageError
from fixloop.files.atomic import write_new

DIGITS: Final = 32
LEAST_CHARACTERS: Final = 16
_SEALED: Final = re.compile(rb'(.*),"seal":"([0-9a-f]{%d})"\}' % DIGITS, re.DOTALL)
_AT: Final = re.compile(rb'[{,]"at":"([^"]{1,40})"')

Objection = Callable[[int, str, str, bytes], str]
"""Says what is wrong with an entry's seal, given its number, the digests before and after it, and its text; or ""."""


class Sealing(NamedTuple):
    """A deployment's sealing key."""

    key: bytes
    since: str = ""
    """When the deployment began to seal, ISO; empty: always sealed."""

    def sealed(self, workflow: str, number: int, prev: str, state: str, text: bytes) -> bytes:
        """An entry's text with its seal; `prev` and `state` are digests, or the beginnings that a frame keeps."""
        return b'%s,"seal":"%s"}' % (text[:-1], self._seal(workflow, number, prev, state, text))

    def objection(self, workflow: str, number: int, prev: str, state: str, text: bytes) -> str:
        """Why an entry cannot have been written by a holder of the key; empty if nothing is wrong."""
        found = _SEALED.fullmatch(text)
        if found is None:
            at = _AT.search(text)
            is_older = at is not None and self.since > at[1].decode(errors="replace")
            return "" if is_older else f"entry {number} has no seal: it was not written by fixloop"
        seal = self._seal(workflow, number, prev, state, found[1] + b"}")
        if hmac.compare_digest(seal, found[2]):
            return ""
        return f"entry {number} has a seal that is not its own: it was not written by fixloop"

    def of(self, purpose: str, text: bytes) -> bytes:
        """The seal of data that is no history entry."""
        return self._digest(purpose.encode(), text)

    def is_of(self, purpose: str, text: bytes, seal: bytes) -> bool:
        """Whether a holder of the key sealed this text for this purpose."""
        return hmac.compare_digest(self.of(purpose, text), seal)

    def _seal(self, workflow: str, number: int, prev: str, state: str, text: bytes) -> bytes:
        return self._digest(f"{workflow} {number} {prev[:DIGITS]} {state[:DIGITS]}".encode(), text)

    def _digest(self, what: bytes, text: bytes) -> bytes:
        return hmac.new(self.key, b"%s\n%s" % (what, text), sha256).hexdigest()[:DIGITS].encode()


def sealing_in(file: Path | None, *, create: bool = False) -> Sealing | None:
    """
    Read the key from a file's first line and, from an optional second line, the time since when it is used.

    `create`: create a missing file, readable only by its owner; OSError if that fails. UsageError: the file cannot be
    read, or holds no key.
    """
    if file is None:
        return None
    if create and not file.exists():
        new = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
        text = f"{secrets.token_hex(32)}\n{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}\n"
        write_new(new, text.encode(), mode=0o600, synced=True)
        try:
            with suppress(FileExistsError):  # if several processes create it, the first one's key is used
                os.link(new, file)
        finally:
            new.unlink()
    try:
        key, _, since = file.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the key of the histories' seals, {file}: {error}") from None
    if len(key.strip()) < LEAST_CHARACTERS:
        raise UsageError(f"{file} holds no key: its first line needs at least {LEAST_CHARACTERS} characters")
    return Sealing(key.strip().encode(), since.strip())
