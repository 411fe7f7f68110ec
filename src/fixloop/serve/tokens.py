"""Tokens, sign-ins and rate limits of `serve`, in Redis. Only the SHA-256 of a secret is stored: each secret is 32
random bytes, so a slower hash is not needed."""

import hmac
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

from fixloop.errors import UsageError
from fixloop.protocol.durations import iso_stamp
from fixloop.serve.access import Caller
from fixloop.store import keys
from fixloop.store.connection import Connection

PER_MINUTE: Final = 1200
"""The rate limit of requests for one token."""
FAILED_PER_MINUTE: Final = 30
"""For sign-ins and refused tokens of one address: passwords can be guessed, and logs fill up."""
SESSION_HOURS: Final = 12
CODE_SECONDS: Final = 600
LINK_DAYS: Final = 7
REQUEST_SECONDS: Final = 86_400
"""How long an Idempotency-Key is remembered."""
_TOKEN: Final = re.compile(r"fl_([0-9a-f]{8})_[\w-]{43}")
_ID: Final = re.compile(r"[0-9a-f]{8}")
_USED_SECONDS: Final = 60


class Token(NamedTuple):
    """The stored facts about a token, without the token."""

    id: str
    name: str
    scopes: Sequence[str]
    projects: Sequence[str]
    created: str
    expires: str
    used: str = ""


class Link(NamedTuple):
    """A link in a message: what one person may decide with it, once."""

    name: str
    workflow: str
    escalation: str
    version: int
    """The workflow's version when the message was sent: another state is another question."""
    decisions: tuple[str, ...]
    """None: it only shows."""


class TooMany(UsageError):
    """A rate limit was reached; it resets within a minute."""


class Tokens:
    """Authentication data in one Redis."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, name: str, scopes: Iterable[str], projects: Iterable[str], *, days: float) -> str:
        """Create a token; it cannot be shown again."""
        now = datetime.now(UTC)
        text = f"fl_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"
        record = {
            "name": name,
            "scopes": sorted(scopes),
            "projects": sorted(projects),
            "created": iso_stamp(now),
            "expires": iso_stamp(now + timedelta(days=days)),
            "digest": _digest(text),
        }
        told = json.dumps(record)
        self._connection.call(lambda client: client.hset(keys.TOKENS, text[3:11], told))
        return text

    def all(self) -> list[Token]:
        """Every token that was not revoked, latest first."""
        stored, used = self._connection.together(
            lambda pipe: (pipe.hgetall(keys.TOKENS), pipe.hgetall(keys.TOKENS_USED))
        )
        found = []
        for id, text in stored.items():
            record = json.loads(text)
            told = {name: record[name] for name in Token._fields if name in record}
            found.append(Token(id=id.decode(), **told, used=used.get(id, b"").decode()))
        return sorted(found, key=lambda token: token.created, reverse=True)

    def revoke(self, token: str) -> None:
        """Revoke a token and the sessions it started. UsageError: there is none."""
        gone, _ = self._connection.together(
            lambda pipe: (pipe.hdel(keys.TOKENS, token), pipe.hdel(keys.TOKENS_USED, token))
        )
        if not gone:
            raise UsageError(f"no token {token[:40]!r}; `fixloop token list` lists all tokens")

    def caller(self, text: str) -> Caller | None:
        """The caller of a token; None if it is invalid. Raises TooMany."""
        if (found := _TOKEN.fullmatch(text)) is None:
            return None
        return self._caller(found[1], lambda record: hmac.compare_digest(record["digest"], _digest(text)))

    def sign_in(self, caller: Caller) -> str:
        """Start a browser session; returns the value of its cookie."""
        own = caller._replace(csrf=secrets.token_urlsafe(32))
        return self._keep("session", _known(own), SESSION_HOURS * 3600)

    def sign_out(self, cookie: str) -> None:
        self._connection.call(lambda client: client.delete(keys.served_key("session", _digest(cookie))))

    def signed_in(self, cookie: str) -> Caller | None:
        """The caller of a session cookie; None if the session has ended, or its token was revoked. Raises TooMany."""
        text = self._connection.call(lambda client: client.get(keys.served_key("session", _digest(cookie))))
        if text is None:
            return None
        caller = _caller(json.loads(text))
        if not _ID.fullmatch(caller.token):
            return caller
        found = self._caller(caller.token, lambda _: True)
        return found and found._replace(csrf=caller.csrf)

    def code(self, caller: Caller) -> str:
        """A code that signs in once, for the person at the terminal."""
        return self._keep("code", _known(caller), CODE_SECONDS)

    def redeemed(self, code: str) -> Caller | None:
        """The caller that a code signs in; None the second time."""
        text = self._connection.call(lambda client: client.getdel(keys.served_key("code", _digest(code))))
        return _caller(json.loads(text)) if text else None

    def link(self, link: Link) -> str:
        """The end of a link's address: a key that signs its content, which nobody can change in Redis alone."""
        text, record = secrets.token_urlsafe(32), json.dumps(link._asdict())
        signed = {"record": record, "signature": _signature(text, record)}
        return self._keep("link", signed, LINK_DAYS * 86_400, text)

    def name_contacts(self, roles: Mapping[str, str]) -> None:
        """From now on links are valid only for these people, and only deciders can decide."""
        self._connection.together(
            lambda pipe: (pipe.delete(keys.CONTACTS), pipe.hset(keys.CONTACTS, mapping=dict(roles)))
        )

    def linked(self, text: str) -> Link | None:
        """A link's content, not used up by reading; None: it has expired, never was, or its person is no contact."""
        kept = self._connection.call(lambda client: client.get(keys.served_key("link", _digest(text))))
        if kept is None:
            return None
        signed = json.loads(kept)
        if not hmac.compare_digest(signed["signature"], _signature(text, signed["record"])):
            return None
        record = json.loads(signed["record"])
        role, are_named = self._connection.together(
            lambda pipe: (pipe.hget(keys.CONTACTS, record["name"]), pipe.exists(keys.CONTACTS))
        )
        if are_named and role is None:
            return None
        return Link(**{**record, "decisions": () if role == b"viewer" else tuple(record["decisions"])})

    def csrf_of(self, name: str) -> str:
        """The form value of a proxy's user: the same for a day and on all replicas."""
        key, fresh = keys.served_key("csrf", _digest(name)), secrets.token_urlsafe(32)
        _, kept = self._connection.together(
            lambda pipe: (pipe.set(key, fresh, nx=True, ex=2 * SESSION_HOURS * 3600), pipe.get(key))
        )
        return str(kept.decode())

    def count_failure(self, address: str) -> None:
        """TooMany if an address has failed too often in this minute; an attempt that may fail is counted before it."""
        self._count(_digest(address), FAILED_PER_MINUTE)

    def request(self, caller: Caller, key: str, body: str) -> Literal["new", "repeated", "other"]:
        """Whether a caller's key is new, was used with this body, or with another one; it is remembered for a day."""
        name, digest = keys.served_key("request", _digest(f"{caller.signature}/{key}")), _digest(body)
        put, kept = self._connection.together(
            lambda pipe: (pipe.set(name, digest, nx=True, ex=REQUEST_SECONDS), pipe.get(name))
        )
        if put:
            return "new"
        return "repeated" if kept == digest.encode() else "other"

    def _keep(self, kind: str, record: Mapping[str, Any], seconds: int, text: str = "") -> str:
        """Keep a record under a secret, by default a new one; returns the secret."""
        text = text or secrets.token_urlsafe(32)
        key, told = keys.served_key(kind, _digest(text)), json.dumps(record)
        self._connection.call(lambda client: client.set(key, told, ex=seconds))
        return text

    def _caller(self, token: str, proves: Any) -> Caller | None:
        text, used = self._connection.together(
            lambda pipe: (pipe.hget(keys.TOKENS, token), pipe.hget(keys.TOKENS_USED, token))
        )
        if text is None or not proves(record := json.loads(text)):
            return None
        now = datetime.now(UTC)
        if iso_stamp(now) >= record["expires"]:
            return None
        self._count(token, PER_MINUTE)
        if used is None or iso_stamp(now - timedelta(seconds=_USED_SECONDS)) > used.decode():
            self._connection.call(lambda client: client.hset(keys.TOKENS_USED, token, iso_stamp(now)))
        return _caller({**record, "token": token})

    def _count(self, who: str, most: int) -> None:
        key = keys.served_key("rate", f"{who}:{datetime.now(UTC):%H%M}")
        count, _ = self._connection.together(lambda pipe: (pipe.incr(key), pipe.expire(key, 120)))
        if count > most:
            raise TooMany(f"more than {most} requests in a minute; wait for the next")


def _known(caller: Caller) -> dict[str, Any]:
    facts = {"name": caller.name, "token": caller.token, "csrf": caller.csrf}
    return {**facts, "scopes": sorted(caller.scopes), "projects": sorted(caller.projects)}


def _caller(record: Mapping[str, Any]) -> Caller:
    scopes, projects = frozenset(record["scopes"]), frozenset(record["projects"])
    return Caller(record["name"], scopes, record["token"], projects, record.get("csrf", ""))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _signature(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), sha256).hexdigest()
