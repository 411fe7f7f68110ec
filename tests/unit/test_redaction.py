"""What of a command's output is a secret, and what is kept."""

import html
import json

import pytest
from hypothesis import given, strategies as st

from fixloop.secrets.disguises import HIDDEN
from fixloop.secrets.redaction import Redaction

SECRET = 'p&ss"w<rd/3141592653'
REDACTION = Redaction.of(
    (), {"A_TOKEN": SECRET, "B_TOKEN": "true", "URL": "https://me:hunter22@shop.example/"}
)


@pytest.mark.parametrize("form", [SECRET, html.escape(SECRET), json.dumps(SECRET)[1:-1]])
def test_a_secret_is_redacted_in_every_form_a_report_may_use(form: str) -> None:
    assert REDACTION.text(f"login {form} refused") == f"login {HIDDEN} refused"
    assert REDACTION.data(f"login {form} refused".encode()) == f"login {HIDDEN} refused".encode()


def test_the_password_of_a_url_is_a_secret_by_itself() -> None:
    assert REDACTION.text("password hunter22 is wrong") == f"password {HIDDEN} is wrong"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://me:pw12@db/shop", f"postgres://me:{HIDDEN}@db/shop"),
        (
            "fatal: https://x-token:abc@example.org/a.git",
            f"fatal: https://x-token:{HIDDEN}@example.org/a.git",
        ),
        ("Authorization: Bearer abcdefghij0123456789==", f"Authorization: Bearer {HIDDEN}"),
        ("key AKIAABCDEFGHIJKLMNOP leaked", f"key {HIDDEN} leaked"),
        ("ghp_" + "a" * 36, HIDDEN),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nend", f"{HIDDEN}\nend"),
    ],
)
def test_secrets_of_a_recognisable_form_are_redacted(text: str, shown: str) -> None:
    assert Redaction().text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "assert password == 'wrong'",
        "true is not false in /usr/lib/python",
        "http://localhost:8080/path@x",
        "git@example.org:owner/name.git",
        "calc.py:2: AssertionError: 1 + 2 is not 3",
    ],
)
def test_text_that_is_no_secret_is_kept(text: str) -> None:
    assert REDACTION.text(text) == text


def test_half_a_secret_at_the_edge_of_an_excerpt_is_redacted() -> None:
    redaction = Redaction(["tok-3141592653"])

    shown = redaction.text("begins tok-31415\n[… 7 bytes left out …]\n2653 ends")

    assert shown == "begins \n[… 7 bytes left out …]\n ends"


@given(st.binary())
def test_bytes_without_a_secret_are_returned_unchanged(data: bytes) -> None:
    assert Redaction(["tok-3141592653"]).data(data) == data
