"""Random secrets of every alphabet, in every encoding that a tool may print: nothing of them is left."""

import base64
import csv
import html
import io
import json
import os
import shlex
import string
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, strategies as st

from fixloop.secrets.disguises import HIDDEN
from fixloop.secrets.redaction import Redaction

BASE64: Final = string.ascii_letters + string.digits + "+/"
ALPHABETS: Final = (
    BASE64,
    string.ascii_letters + string.digits + "-_",
    string.hexdigits,
    string.digits,
    string.ascii_lowercase,
    string.ascii_uppercase,
    string.punctuation,
    string.printable[:-5],
    "äöüßéèçñøåÆŒ" + string.ascii_letters,
    "пароль" + "密碼" + "🔑🗝" + "ΑΣσς",
    "\"'\\/&<>%+ ",
)
#: What is the same as nothing, stripped or in runs: no value of a secret is made of it.
LETTERS: Final = frozenset(string.ascii_letters + string.digits)


def _is_secret(text: str) -> bool:
    # Hypothesis also draws words from the code, such as `/proc/self/cgroup`: an existing path is no secret.
    is_path = all(os.path.lexists(os.path.expanduser(part)) for part in text.split(os.pathsep))
    return len(text.strip()) == len(text) >= 8 and len(LETTERS.intersection(text)) > 1 and not is_path


SECRETS: Final = st.one_of(
    *(st.text(alphabet, min_size=8, max_size=64) for alphabet in ALPHABETS),
    st.text(
        st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=8, max_size=40
    ),
    st.builds(
        "{}{}".format,
        st.sampled_from(["/", "~/", "./", "../", "-", "%4", "\\", "&#6"]),
        st.text(BASE64, min_size=8),
    ),
).filter(_is_secret)


def _as_csv(text: str) -> str:
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerow([text])
    return file.getvalue().rstrip()


def _base64(text: str, before: int) -> str:
    """As it is in a longer text that was encoded, `before` bytes from its beginning."""
    return base64.b64encode(b"x" * before + text.encode() + b"yz").decode()


def _between(text: str, what: str, every: int = 3) -> str:
    return what.join(text[place : place + every] for place in range(0, len(text), every))


ENCODINGS: Final[dict[str, Callable[[str], str]]] = {
    "as it is": str,
    "json": json.dumps,
    "json, not only ASCII": lambda text: json.dumps(text, ensure_ascii=False),
    "json in json": lambda text: json.dumps(json.dumps(text)),
    "json in json in json": lambda text: json.dumps({"a": json.dumps([json.dumps(text)])}),
    "json with escaped slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "xml": html.escape,
    "json in xml": lambda text: html.escape(json.dumps(text)),
    "xml in json": lambda text: json.dumps(html.escape(text)),
    "references": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "references in hex": lambda text: "".join(f"&#x{ord(letter):X};" for letter in text),
    "url": lambda text: quote(text, safe=""),
    "url, lower case": lambda text: quote(text, safe="").lower(),
    "url twice": lambda text: quote(quote(text, safe=""), safe=""),
    "form": quote_plus,
    "json in a url": lambda text: quote(json.dumps(text)),
    "repr": repr,
    "repr of bytes": lambda text: repr(text.encode()),
    "ascii": ascii,
    "repr in json": lambda text: json.dumps(repr(text.encode())),
    "shell": shlex.quote,
    "yaml": lambda text: "'" + text.replace("'", "''") + "'",
    "csv": _as_csv,
    "name of a file as git has it": lambda text: "".join(
        chr(byte) if 32 < byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in text.encode()
    ),
    "upper case": str.upper,
    "lower case": str.lower,
    "coloured": lambda text: _between(text, "\x1b[31m"),
    "coloured and reset": lambda text: _between(text, "\x1b(B\x1b[m", 1),
    "coloured in xml": lambda text: _between(html.escape(text), "#x1B[0m", 64),
    "coloured in json": lambda text: json.dumps(_between(text, "\x1b[1;31m")),
    "with a link": lambda text: _between(text, "\x1b]8;;http://x\x07"),
    "without width": lambda text: _between(text, "\u200b"),
    "base64": lambda text: _base64(text, 0),
    "base64, second place": lambda text: _base64(text, 1),
    "base64, third place": lambda text: _base64(text, 2),
    "base64 of urls": lambda text: base64.urlsafe_b64encode(b"ab" + text.encode() + b"c").decode(),
    "base64 in json in a url": lambda text: quote(json.dumps({"a": _base64(text, 2)}), safe=""),
    "hex": lambda text: text.encode().hex(),
    "hex, upper case": lambda text: text.encode().hex().upper(),
}
#: What may be left: quotes around it, and the edges of what was encoded with its neighbours.
LEFT: Final = 12


@pytest.mark.heavy
@given(secret=SECRETS)
@example(secret="/aB3dEf6hIj9lMn2pQr5")
@example(secret="~/b64+/secret==9")
@example(secret="a\"b\\c'd&e<f>g%41")
@example(secret="00000000001\xa0[")
def test_a_secret_is_redacted_in_every_encoding(secret: str) -> None:
    redaction = Redaction.of((), {"DEPLOY_TOKEN": secret})
    for encoding, disguised in ENCODINGS.items():
        encoded = disguised(secret)

        shown = redaction.text(f"before {encoded} after")

        assert shown.startswith("before ")
        assert shown.endswith(" after")
        left = shown.removeprefix("before ").removesuffix(" after")
        assert HIDDEN in left, (encoding, left)
        around = len(encoded) - len(secret) if encoding.startswith("base64") else 0
        assert sum(map(str.isalnum, left)) <= LEFT + around, (encoding, left)


@pytest.mark.heavy
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
@given(secret=SECRETS)
def test_secrets_are_found_in_bytes_of_every_width(encoding: str, secret: str) -> None:
    data = f"before {secret} after".encode(encoding)

    shown = Redaction.of((), {"DEPLOY_TOKEN": secret}).data(data)

    assert shown == f"before {HIDDEN} after".encode(encoding)


@pytest.mark.parametrize(
    "name",
    [
        "GH_PAT",
        "SSH_KEY",
        "MYSQL_PWD",
        "REDISCLI_AUTH",
        "DB_PASS",
        "SENTRY_DSN",
        "npm_config__auth",
        "SSHPASS",
    ],
)
def test_variables_of_the_worker_with_secret_names_are_secrets(name: str) -> None:
    assert (
        Redaction.of((), {name: "/orrect+horse/battery"}).text("is /orrect+horse/battery") == f"is {HIDDEN}"
    )


@given(password=st.text(BASE64, min_size=8, max_size=40))
def test_the_password_of_any_url_in_the_environment_is_a_secret(password: str) -> None:
    redaction = Redaction.of(
        (), {"DATABASE_URL": f"postgres://shop:{quote(password, safe='')}@db.example/shop"}
    )

    assert (
        redaction.text(f"FATAL: {password} is wrong at db.example")
        == f"FATAL: {HIDDEN} is wrong at db.example"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgres://postgres:postgres@localhost/test"),
        ("DATABASE_URL", "postgres://shop:test@localhost/shop"),
        ("TOKEN_FILE", "/run/secrets/token"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-XXXXab12/agent.4711"),
        ("PROJECT_PWD", "/usr/lib"),
        ("PWD", "/usr/bin"),
        ("GOPATH", "/home/me/go:/srv/go"),
        ("MONKEY", "see no evil"),
        ("KEYBOARD_LAYOUT", "us-international"),
        ("COMPASS_HEADING", "north-north-west"),
    ],
)
def test_variables_that_are_no_secrets_are_kept(name: str, value: str) -> None:
    text = f"{name} is {value}: postgres and test pass in /usr/lib"

    assert Redaction.of([name] if name == "GOPATH" else [], {name: value}).text(text) == text.replace(
        ":test@", f":{HIDDEN}@"
    ).replace(":postgres@", f":{HIDDEN}@")


def test_each_line_of_a_key_is_a_secret_even_with_a_leading_slash() -> None:
    lines = ["-----BEGIN KEY-----", "b3BlbnNzaC1rZXktdjEAAAAA", "/9j4AAQSkZJRgABAQ+AAAQ", "-----END KEY-----"]

    shown = Redaction.of((), {"SSH_KEY": "\n".join(lines)}).text(f"1: {lines[1]}\n2: {lines[2]}\n")

    assert shown == f"1: {HIDDEN}\n2: {HIDDEN}\n"


def test_a_secret_of_a_known_form_is_redacted_despite_colour_codes() -> None:
    token = "ghp_" + "\x1b[1;31m" + "a1b2c3d4e5f6" * 3

    assert Redaction().text(f"key {token} leaked") == f"key {HIDDEN} leaked"


def test_redacted_json_stays_json() -> None:
    secret = 'p\\"ä/b\nc&d<e'
    inner = json.dumps({"password": secret, "port": 1})

    shown = Redaction.of((), {"APP_SECRET": secret}).text(json.dumps([inner, secret, "stays"]))

    first, second, stays = json.loads(shown)
    assert secret not in first
    assert (second.strip('\\"'), stays) == (HIDDEN, "stays")
