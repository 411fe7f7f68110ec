"""Removes secrets from others' text before it is stored or judged.

Owns what counts as a secret: the variables a project asks for by name, environment variables named like a secret,
passwords in URLs, and tokens and keys of a known form. Does not guess from words such as `password` in running text:
that would eat error messages.
"""

import codecs
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from fixloop.secrets.disguises import HIDDEN, Disguises, without_colours
from fixloop.secrets.variables import SHORTEST_PASSWORD, worker_secrets


class _Form(NamedTuple):
    anchor: str
    """What it begins with, or is handed on by."""
    pattern: str
    """It begins with the anchor, to be found fast. Its groups `before` and `after`, if any, are kept."""


def _form(anchor: str, rest: str, *, alone: bool = True) -> _Form:
    """
    A form that begins with `anchor` and continues with the pattern `rest`.

    `alone`: whether a letter, digit or dash right before it makes it part of something else. The pattern checks this
    after the anchor, so that the search is for a fixed text, and no run of anchors takes quadratic time.
    """
    fixed = re.escape(anchor)
    return _Form(anchor, fixed + (rf"(?<![\w-]{fixed})" if alone else "") + rest)


def _named(name: str, rest: str) -> _Form:
    """A value after the name `name`, which is kept."""
    return _Form(name, rf"(?P<before>{re.escape(name)}{rest}")


_NAMES: Final = (
    *("SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE"),
    *("APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL"),
)
_LAST_WORDS: Final = ("_PWD", "_PAT", "_AUTH", "SSH_KEY", "SIGNING_KEY", "ENCRYPTION_KEY")
"""Endings of secret names; `_PATH` and `_AUTHOR` do not count."""
_IS: Final = r"(?:=\\*[\"']?|\\*[\"']\s?[:=]\s?\\*[\"'])"
_VALUE: Final = r"(?=[^\s\"']{0,200}\d)[\w+/=.~!@#$%^&*-]{8,500}"
_ISSUED: Final = tomllib.loads(Path(__file__).with_name("issued.toml").read_text())
_FORMS: Final = (
    # In URLs of every kind, and in authorization headers.
    _Form("://", r"(?P<before>://[^\s/:@\"'<>]{0,200}:)[^\s/@\"'<>]{1,500}(?P<after>@)"),
    _named("Bearer ", r")[\w.~+/-]{16,}=*"),
    _named("uthorization", r"[\"']?\s?[:=]\s?[\"']?(?:Basic|Token|token) )[\w.~+/-]{8,}=*"),
    _named("_authToken", r"\s?=\s?)[^\s\"']{8,}"),
    # Output of `env`, or a dictionary of it; a name in capitals is not a sentence.
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
    """`text` with three stars for each secret of a known form."""
    if "PRIVATE KEY" in text:
        text = "".join(_without_keys(text))
    for anchor, pattern in _FORMS:
        if anchor in text:
            text = re.sub(pattern, _hidden, text)
    # Secrets whose fixed part comes late: the beginning is read backwards from there.
    for anchor, late, head in ((":AA", _TELEGRAM, r"\d{8,10}"), ("-us", _MAILCHIMP, r"[0-9a-f]{32}")):
        if anchor in text:
            text = "".join(_without_backwards(text, late, re.compile(rf"(?<!\w){head}\Z")))
    return text


def _hidden(found: re.Match[str]) -> str:
    groups = found.groupdict()
    return f"{groups.get('before') or ''}{HIDDEN}{groups.get('after') or ''}"


def _without_keys(text: str) -> Iterator[str]:
    """Private keys are removed with all their lines, even if the end was cut off."""
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


LEFT_OUT: Final = "\n[… "
"""Where a long output was cut (`fixloop.machine.guard`): half a secret may be on either side."""
_WIDE: Final = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
_MARKS: Final = (
    # Those of UTF-32 begin with those of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Redaction:
    """Hides the secrets of one workflow."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._disguises = Disguises(secrets)

    @classmethod
    def of(cls, names: Collection[str], variables: Mapping[str, str]) -> "Redaction":
        """
        The redaction of the variables called `names`, and of all other secrets in `variables`.

        Checks do not get the latter, but may read them: they run with the worker's rights.
        """
        return cls(set(worker_secrets(names, variables)))

    def text(self, text: str) -> str:
        """`text` with three stars for each secret."""
        text = self._disguises.cut(text)
        if LEFT_OUT in text:
            # The text at the edges may be part of a secret.
            head, mark, rest = text.partition(LEFT_OUT)
            count, bracket, tail = rest.partition("]\n")
            for form in self._disguises.exact:
                for length in range(len(form) - 1, SHORTEST_PASSWORD - 1, -1):
                    head = head.removesuffix(form[:length])
                    tail = tail.removeprefix(form[-length:])
            text = f"{head}{mark}{count}{bracket}{tail}"
        plain = without_colours(text)
        if plain != text and (shown := without_known_forms(plain)) != plain:
            return shown
        return without_known_forms(text)

    def holds(self, data: bytes) -> bool:
        """Whether `data` contains a value; the form of a secret alone does not count here."""
        return self._through(data, self._disguises.cut) != data

    def data(self, data: bytes) -> bytes:
        """The same for bytes; without a secret they are returned unchanged."""
        return self._through(data, self.text)

    def _through(self, data: bytes, hide: Callable[[str], str]) -> bytes:
        encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")
        errors = "strict"
        if not encoding:
            encoding, errors = "utf-8", "surrogateescape"
            data = self._without_wide(data) if b"\0" in data else data
        try:
            shown = data.decode(encoding, errors)
        except UnicodeDecodeError:
            return self._without_wide(data)
        hidden = hide(shown)
        return data if hidden == shown else hidden.encode(encoding, errors)

    def _without_wide(self, data: bytes) -> bytes:
        """Removes values in multi-byte encodings from data that is not text as a whole."""
        for encoding in _WIDE:
            for form in self._disguises.exact:
                data = data.replace(form.encode(encoding, "surrogatepass"), HIDDEN.encode(encoding))
        return data
