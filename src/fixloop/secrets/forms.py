"""The forms of secrets that can be told from any other text: what issuers give out, and how they are handed on.

Each form has a fixed part, its anchor, and is looked for only in texts that hold it: an output of 64 MB is a matter
of seconds. docs/decisions says why the table is ours.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from fixloop.secrets.disguises import HIDDEN


class _Form(NamedTuple):
    anchor: str
    """What it begins with, or is handed on by."""
    pattern: re.Pattern[str]
    """It begins with the anchor, to be found fast. Its groups `before` and `after`, where it has them, stay."""


def _form(anchor: str, rest: str, *, alone: bool = True) -> _Form:
    """
    What begins with `anchor` and goes on as the pattern `rest` says.

    `alone`: whether a letter, digit or dash right before it makes it part of something else. It is asked behind the
    anchor, so that the search is for a fixed text, and no run of anchors costs the square of its length.
    """
    fixed = re.escape(anchor)
    return _Form(anchor, re.compile(fixed + (rf"(?<![\w-]{fixed})" if alone else "") + rest))


def _named(name: str, rest: str) -> _Form:
    """A value behind the name `name`, which stays."""
    return _Form(name, re.compile(rf"(?P<before>{re.escape(name)}{rest}"))


_NAMES: Final = (
    *("SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE"),
    *("APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL"),
)
_LAST_WORDS: Final = ("_PWD", "_PAT", "_AUTH", "SSH_KEY", "SIGNING_KEY", "ENCRYPTION_KEY")
"""Names that end so; `_PATH` and `_AUTHOR` are others."""
_IS: Final = r"(?:=\\*[\"']?|\\*[\"']\s?[:=]\s?\\*[\"'])"
_VALUE: Final = r"(?=[^\s\"']{0,200}\d)[\w+/=.~!@#$%^&*-]{8,500}"
_MIXED: Final = r"(?=[\w-]{0,200}\d)(?=[\w-]{0,200}[A-Za-z])[\w-]{20,}"
_FORMS: Final = (
    # In URLs of every kind, and in what a client says of itself.
    _Form("://", re.compile(r"(?P<before>://[^\s/:@\"'<>]{0,200}:)[^\s/@\"'<>]{1,500}(?P<after>@)")),
    _named("Bearer ", r")[\w.~+/-]{16,}=*"),
    _named("uthorization", r"[\"']?\s?[:=]\s?[\"']?(?:Basic|Token|token) )[\w.~+/-]{8,}=*"),
    _named("_authToken", r"\s?=\s?)[^\s\"']{8,}"),
    # What `env` prints, and a dictionary of it; written in capitals it is no sentence.
    *(_named(name, rf"[A-Z0-9_]{{0,40}}+{_IS}){_VALUE}") for name in _NAMES),
    *(_named(name, rf"{_IS})(?![~.]{{0,2}}/){_VALUE}") for name in _LAST_WORDS),
    _named("secret_access_key", r"[\"']?\s?[:=]\s?[\"']?)[A-Za-z0-9/+]{40}"),
    _named("AccountKey=", r")[A-Za-z0-9+/=]{40,}"),
    # Issuers' own.
    *(_form(head, r"[A-Z0-9]{16}(?![A-Za-z0-9])") for head in ("AKIA", "ASIA", "ABIA", "ACCA")),
    _form("AIza", r"[\w-]{35}(?![\w-])"),
    _form("ya29.", r"[\w-]{20,}"),
    *(_form(f"gh{kind}_", r"[A-Za-z0-9_]{30,}") for kind in "pousr"),
    _form("github_pat_", r"\w{40,}"),
    *(
        _form(f"gl{kind}-", r"[\w-]{20,}")
        for kind in ("pat", "dt", "ft", "soat", "rt", "cbt", "imt", "ptt", "agent", "oas")
    ),
    _form("GR1348941", r"[\w-]{20,}"),
    *(_form(f"xox{kind}-", r"[A-Za-z0-9-]{10,}") for kind in "abeoprs"),
    _form("hooks.slack.com/services/", r"T\w+/B\w+/\w+", alone=False),
    _form("sk-", _MIXED),
    *(_form(f"{kind}_", r"[0-9A-Za-z]{16,}") for kind in ("sk_live", "sk_test", "rk_live", "rk_test")),
    _form("whsec_", r"[0-9A-Za-z+/=]{24,}"),
    _form("sq0csp-", r"[\w\\-]{40,}"),
    _form("npm_", r"[A-Za-z0-9]{36}"),
    _form("pypi-Ag", r"[\w-]{50,}"),
    _form("SG.", r"[\w-]{16,32}\.[\w-]{32,64}"),
    _form("hf_", r"[A-Za-z0-9]{30,}"),
    _form("dop_v1_", r"[a-f0-9]{64}"),
    _form("eyJ", r"[\w=-]{10,}+\.eyJ[\w=-]{10,}+\.[\w.+/=-]{10,}"),
    _form("hvs.", r"[\w-]{24,}"),
    _form("AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
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
            text = pattern.sub(_hidden, text)
    # Secrets whose fixed part comes late: the beginning is read from there back.
    for anchor, pattern, head in ((":AA", _TELEGRAM, r"\d{8,10}"), ("-us", _MAILCHIMP, r"[0-9a-f]{32}")):
        if anchor in text:
            text = "".join(_without_backwards(text, pattern, re.compile(rf"(?<!\w){head}\Z")))
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
