"""The forms of secrets that can be told from any other text: what issuers give out, and how they are handed on.

Each form has a fixed part, its anchor, and is looked for only in texts that hold it: an output of 64 MB is a matter
of seconds. docs/decisions says why the table is ours.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.secrets.disguises import HIDDEN


class _Form(NamedTuple):
    anchor: str
    """What it begins with, or is handed on by."""
    pattern: str
    """It begins with the anchor, to be found fast. Its groups `before` and `after`, where it has them, stay."""


def _form(anchor: str, rest: str, *, alone: bool = True) -> _Form:
    """
    What begins with `anchor` and goes on as the pattern `rest` says.

    `alone`: whether a letter, digit or dash right before it makes it part of something else. It is asked behind the
    anchor, so that the search is for a fixed text, and no run of anchors costs the square of its length.
    """
    fixed = re.escape(anchor)
    return _Form(anchor, fixed + (rf"(?<![\w-]{fixed})" if alone else "") + rest)


def _named(name: str, rest: str) -> _Form:
    """A value behind the name `name`, which stays."""
    return _Form(name, rf"(?P<before>{re.escape(name)}{rest}")


_NAMES: Final = (
    *("SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE"),
    *("APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL"),
)
_LAST_WORDS: Final = ("_PWD", "_PAT", "_AUTH", "SSH_KEY", "SIGNING_KEY", "ENCRYPTION_KEY")
"""Names that end so; `_PATH` and `_AUTHOR` are others."""
_IS: Final = r"(?:=\\*[\"']?|\\*[\"']\s?[:=]\s?\\*[\"'])"
_VALUE: Final = r"(?=[^\s\"']{0,200}\d)[\w+/=.~!@#$%^&*-]{8,500}"
_ISSUED: Final = tomllib.loads(Path(__file__).with_name("issued.toml").read_text())
_FORMS: Final = (
    # In URLs of every kind, and in what a client says of itself.
    _Form("://", r"(?P<before>://[^\s/:@\"'<>]{0,200}:)[^\s/@\"'<>]{1,500}(?P<after>@)"),
    _named("Bearer ", r")[\w.~+/-]{16,}=*"),
    _named("uthorization", r"[\"']?\s?[:=]\s?[\"']?(?:Basic|Token|token) )[\w.~+/-]{8,}=*"),
    _named("_authToken", r"\s?=\s?)[^\s\"']{8,}"),
    # What `env` prints, and a dictionary of it; written in capitals it is no sentence.
    *(_named(name, rf"[A-Z0-9_]{{0,40}}+{_IS}){_VALUE}") for name in _NAMES),
    *(_named(name, rf"{_IS})(?![~.]{{0,2}}/){_VALUE}") for name in _LAST_WORDS),
    _named("secret_access_key", r"[\"']?\s?[:=]\s?[\"']?)[A-Za-z0-9/+]{40}"),
    _named("AccountKey=", r")[A-Za-z0-9+/=]{40,}"),
    _form("hooks.slack.com/services/", r"T\w+/B\w+/\w+", alone=False),
    *(_form(anchor, rest) for rest, anchors in _ISSUED.items() for anchor in anchors.split()),
)
_BEGIN: Final = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BODY: Final = re.compile(r"[\w\s+/=:,.\\-]*+")
_LONGEST_KEY: Final = 20_000
_TELEGRAM: Final = re.compile(r":AA[\w-]{33}(?![\w-])")
_MAILCHIMP: Final = re.compile(r"-us\d{1,2}(?!\w)")


def without_known_forms(text: str) -> str:
    """`text` with three stars for each secret that can be told by its form."""
    if "PRIVATE KEY" in text:
        text = "".join(_without_keys(text))
    for anchor, pattern in _FORMS:
        if anchor in text:
            text = re.sub(pattern, _hidden, text)
    # Secrets whose fixed part comes late: the beginning is read from there back.
    for anchor, late, head in ((":AA", _TELEGRAM, r"\d{8,10}"), ("-us", _MAILCHIMP, r"[0-9a-f]{32}")):
        if anchor in text:
            text = "".join(_without_backwards(text, late, re.compile(rf"(?<!\w){head}\Z")))
    return text


def _hidden(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return f"{groups.get('before') or ''}{HIDDEN}{groups.get('after') or ''}"


def _without_keys(text: str) -> Iterator[str]:
    """Private keys go with all their lines, also one whose end was cut off."""
    done = 0
    while (begun := _BEGIN.search(text, done)) is not None:
        yield text[done : begun.start()]
        yield HIDDEN
        furthest = begun.end() + _LONGEST_KEY
        ended = _END.search(text, begun.end(), furthest) or _BODY.match(text, begun.end(), furthest)
        done = ended.end() if ended is not None else begun.end()
    yield text[done:]


def _without_backwards(text: str, pattern: re.Pattern[str], head: re.Pattern[str]) -> Iterator[str]:
    done = 0
    for found in pattern.finditer(text):
        begun = head.search(text[max(done, found.start() - 40) : found.start()])
        if begun is not None:
            yield text[done : found.start() - len(begun[0])]
            yield HIDDEN
            done = found.end()
    yield text[done:]
