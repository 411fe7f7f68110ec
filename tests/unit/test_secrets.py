"""Which secrets are redacted in an output, and that similar text is kept: `***` cannot be fixed.

The secrets are made here, because a repository with whole ones in it is refused by those who scan for them.
"""

from pathlib import Path
from typing import Final

import pytest
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector

from fixloop.secrets.disguises import HIDDEN
from fixloop.secrets.redaction import Redaction

LETTERS: Final = "Ab3dEf6hIj9lMn2pQr5tUv8xYz1BcDe4gHi7kLm0oPq3sTu6wXy9aBcD2fGh5jKl8nOp1rSt4vWx7z"
UPPER: Final = "A1B2C3D4E5F6G7H8"
HEX: Final = "0123456789abcdef" * 4
JWT: Final = ".".join(
    ("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkEifQ", LETTERS[:43])
)
KEY: Final = (
    f"-----BEGIN OPENSSH {'PRIVATE'} KEY-----\n{LETTERS}\n{LETTERS}\n-----END OPENSSH {'PRIVATE'} KEY-----"
)
SLACK: Final = "xox" + "b-123456789012-1234567890123-" + LETTERS[:24].lower()

KNOWN: Final[tuple[tuple[type[RegexBasedDetector], str], ...]] = (
    (AWSKeyDetector, "AKIA" + UPPER),
    (AWSKeyDetector, "ASIA" + UPPER),
    (AWSKeyDetector, f"aws_secret_access_key = '{LETTERS[:40]}'"),
    (AzureStorageKeyDetector, f"AccountKey={LETTERS[:78]}{LETTERS[:8]}=="),
    (BasicAuthDetector, "postgres://me:pa55word@db/shop"),
    *((GitHubTokenDetector, f"gh{kind}_{LETTERS[:36]}") for kind in "pousr"),
    (GitLabTokenDetector, f"glpat-{LETTERS[:20]}"),
    (GitLabTokenDetector, f"glptt-{LETTERS[:40]}"),
    (GitLabTokenDetector, f"gloas-{LETTERS[:64]}"),
    (GitLabTokenDetector, f"GR1348941{LETTERS[:20]}"),
    (JwtTokenDetector, JWT),
    (MailchimpDetector, f"{HEX[:32]}-us12"),
    (NpmDetector, f"//registry.example/:_authToken=npm_{LETTERS[:36]}"),
    (OpenAIDetector, f"sk-{LETTERS[:20]}T3BlbkFJ{LETTERS[20:40]}"),
    (PrivateKeyDetector, KEY),
    (PypiTokenDetector, f"pypi-AgEIcHlwaS5vcmc{LETTERS[:72]}"),
    (SendGridDetector, f"SG.{LETTERS[:22]}.{LETTERS[22:65]}"),
    (SlackDetector, SLACK),
    (SlackDetector, f"https://hooks.slack.com/services/T{UPPER}/B{UPPER}/{LETTERS[:24]}"),
    (SquareOAuthDetector, f"sq0csp-{LETTERS[:43]}"),
    (StripeDetector, f"sk_live_{LETTERS[:24]}"),
    (StripeDetector, f"rk_live_{LETTERS[:24]}"),
    (TelegramBotTokenDetector, f"1234567890:AA{LETTERS[:33]}"),
)
OURS: Final = (
    f"sk-ant-api03-{LETTERS[:70]}",
    f"sk-proj-{LETTERS[:48]}",
    f"github_pat_{LETTERS[:60]}",
    f"AIza{LETTERS[:35]}",
    f"hf_{LETTERS[:34]}",
    f"whsec_{LETTERS[:32]}",
    f"npm_{LETTERS[:36]}",
    f"dop_v1_{HEX}",
    f"hvs.{LETTERS[:30]}",
)


@pytest.mark.parametrize(("detector", "secret"), KNOWN, ids=lambda value: str(value)[:20])
def test_secrets_that_detect_secrets_knows_are_redacted(
    detector: type[RegexBasedDetector], secret: str
) -> None:
    knows = detector()
    output = f"E   before\nE   assert '{secret}' in login\nE   after it"
    assert any(knows.analyze_string(line) for line in output.splitlines() if [*knows.analyze_string(line)])

    shown = Redaction().text(output)

    assert [
        found for line in shown.splitlines() for found in knows.analyze_string(line) if HIDDEN not in found
    ] == []
    assert shown.startswith("E   before\nE   assert '")
    assert shown.endswith("in login\nE   after it")


@pytest.mark.parametrize("secret", OURS, ids=lambda secret: secret[:12])
def test_secrets_that_detect_secrets_does_not_know_are_redacted(secret: str) -> None:
    assert Redaction().text(f"key={secret}, and more") == f"key={HIDDEN}, and more"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("AWS_SECRET_ACCESS_KEY=abc/def+1234", f"AWS_SECRET_ACCESS_KEY={HIDDEN}"),
        ("{'DB_PASSWORD': 'hunter2222', 'A': 1}", f"{{'DB_PASSWORD': '{HIDDEN}', 'A': 1}}"),
        ('{"GITHUB_TOKEN":"abcdef123456"}', f'{{"GITHUB_TOKEN":"{HIDDEN}"}}'),
        ("Authorization: Basic bWU6aHVudGVyMg==", f"Authorization: Basic {HIDDEN}"),
        ("'Authorization': 'Bearer abcdefghij0123456789'", f"'Authorization': 'Bearer {HIDDEN}'"),
        ("amqp://me:pw12@mq:5672//", f"amqp://me:{HIDDEN}@mq:5672//"),
        ("redis://:s3cret@cache/0", f"redis://:{HIDDEN}@cache/0"),
    ],
)
def test_a_declared_secret_is_redacted_and_its_name_kept(text: str, shown: str) -> None:
    assert Redaction().text(text) == shown


def test_the_worker_s_own_secrets_are_redacted_though_checks_never_get_them() -> None:
    redaction = Redaction.of(
        ["API_URL"],
        {
            "API_URL": "https://api.example/v1",
            "FIXLOOP_STATE_URL": "rediss://worker:q%2Fw9e8r7@redis.example:6379/0",
            "FIXLOOP_FLOWER_AUTH": "me:flower-word",
            "DEPLOY_TOKEN": "correct horse battery",
            "TOKEN_FILE": "/run/secrets/token",
            "LANG": "C.UTF-8-and-more",
        },
    )

    assert redaction.text("https://api.example/v1") == HIDDEN
    assert redaction.text("q%2Fw9e8r7 or q/w9e8r7") == f"{HIDDEN} or {HIDDEN}"
    assert redaction.text("flower-word, correct horse battery") == f"{HIDDEN}, {HIDDEN}"
    for stays in ("redis.example:6379", "/run/secrets/token", "C.UTF-8-and-more"):
        assert redaction.text(stays) == stays


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f2a9c1d7b6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a",
        "index 83db48f..bf269f4 100644",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  dist/shop.whl",
        "--hash=sha256:6bb46dcc553c10df51475641bb30fd69d25645cc12339e46c824c1e0c388898a",
        '"integrity": "sha512-AKIA0lVgAbUYpzPZ3T9Q+lqOaBAgw0lXGkJwzBPV9XAvQ2ZpB5xL0OvQ9xq3xQzW0wYw=="',
        "id 123e4567-e89b-12d3-a456-426614174000 took 0.1s at 2026-03-01T10:30:01.123456Z",
        "assert token == 'wrong' and password != 'right'",
        "E   KeyError: 'API_KEY'",
        "DJANGO_SECRET_KEY is not set; export SECRET_KEY first",
        "SECRET_KEY=changeme",
        "test_basic_auth: Basic functionality of authorization: Bearer of news",
        "tests/test_disk.py::test_task-management-with-a-long-name-2 PASSED",
        "class=sk-learn-estimator-documentation-link",
        "class_hf_module_with_quite_a_long_name_that_ends",
        "mask-ask-0123456789abcdefghijklmnop risk-0123456789abcdefghijklmnop",
        "http://localhost:8080/a@b git@example.org:owner/name.git user@example.org",
        "https://example.org:8443/login?next=/@me",
        "MSG.something.that.is.a.dotted.module.path.of.a.project",
        "0x7f3dad0bc4d0 <function Deployment.owner_pid.<locals>.works at 0x7f3dad030180>",
        "1700000000:test_a_name_of_exactly_the_right_len",
        "FAILED test_calc.py::test[3f2a9c1d-7b6e] - assert 0.30000000000000004 == 0.3",
    ],
)
def test_text_that_only_looks_like_a_secret_is_kept(text: str) -> None:
    assert Redaction().text(text) == text


def test_nothing_in_the_reports_of_real_tools_is_taken_for_a_secret() -> None:
    reports = [
        path for path in (Path(__file__).parents[1] / "fixtures" / "reports").rglob("*") if path.is_file()
    ]
    assert len(reports) > 20

    changed = [path.name for path in reports if Redaction().data(path.read_bytes()) != path.read_bytes()]

    assert changed == []
