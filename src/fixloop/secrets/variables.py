"""Finds the variables of an environment that hold secrets, and the secret parts of their values."""

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

SHORTEST: Final = 8
"""Shorter values are words like `true` and `staging`; removing those would damage other text."""
SHORTEST_PASSWORD: Final = 4
"""The same for the password in a URL that a project asks for, or that is fixloop's own."""

_CALLED_SECRET: Final = re.compile(
    r"\w*(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIAL|AUTH_CONFIG)\w*"
    r"|\w*PWD|SSHPASS|(?:\w*_)?(?:PASS|PAT|AUTH|KEY|CREDS?|DSN|COOKIE|JWT|PSK|SIGNATURE|WEBHOOK)",
    re.IGNORECASE,
)
_CALLED_PLACE: Final = re.compile(
    r"\w*(?:PATH|FILE|DIR|DIRECTORY|FOLDER|HOME|ROOT|SOCK|SOCKET)S?", re.IGNORECASE
)
_OURS: Final = ("FIXLOOP_STATE_URL", "FIXLOOP_BROKER_URL")
_PASSWORD: Final = re.compile(r"://([^\s/:@\"'<>]{0,200}):([^\s/@\"'<>]{1,500})@")
_PARAMETER: Final = re.compile(
    r"[?&;\s](?:password|passwd|pwd|token|secret|sig|(?:api_?|access_?|account|sharedaccess)key)=([^&;\s\"']{8,})",
    re.IGNORECASE,
)


def is_called_secret(name: str) -> bool:
    """Whether the name suggests a secret."""
    return _CALLED_SECRET.fullmatch(name) is not None and _CALLED_PLACE.fullmatch(name) is None


def worker_secrets(names: Collection[str], variables: Mapping[str, str]) -> Iterator[str]:
    """
    The secrets in `variables`: values of those called `names`, and of all that are named like a secret.

    Any other variable gives the password of a URL, unless it equals the user name, as defaults do.
    """
    for name, value in variables.items():
        if value.startswith(("/", "~/", "./", "../")):
            # A path or several; many values that begin like one are secrets in base64.
            parts = (os.path.expanduser(part) for part in value.split(os.pathsep))
            if _CALLED_PLACE.fullmatch(name) or all(map(os.path.lexists, parts)):
                continue
        if name in _OURS:
            yield from _passwords(value, SHORTEST_PASSWORD)
        elif name in names or is_called_secret(name):
            yield from secrets_in(value)
        else:
            yield from _passwords(value, SHORTEST)


def secrets_in(value: str) -> Iterator[str]:
    """The parts of a value that are secrets: the whole, each line, a password in a URL or after a user name."""
    yield from _passwords(value, SHORTEST_PASSWORD)
    login = "" if "://" in value else value.partition(":")[2].strip()
    # Tools print keys line by line, and a value read from a file often ends with a line break.
    parts = {value.strip(), login, *(line.strip() for line in value.splitlines())}
    if value.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            parts.update(_named_in(json.loads(value)))
    yield from (part for part in parts if len(part) >= SHORTEST)


def _passwords(value: str, shortest: int) -> Iterator[str]:
    for user, password in _PASSWORD.findall(value):
        if len(password) >= shortest and password != user:
            yield from (password, unquote(password))
    if "=" in value:
        for word in _PARAMETER.findall(value):
            yield from (word, unquote(word))


def _named_in(found: Any) -> Iterator[str]:
    """The members of a JSON document that are named like a secret."""
    for name, inner in found.items() if isinstance(found, dict) else ():
        if isinstance(inner, str) and is_called_secret(name):
            yield from (inner.strip(), *(line.strip() for line in inner.splitlines()))
        yield from _named_in(inner)
