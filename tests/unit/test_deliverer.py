"""When a failed delivery is tried again, and which addresses are allowed."""

import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fixloop.errors import UsageError
from fixloop.serve.deliverer import DELAYS_SECONDS, after
from fixloop.serve.targets import Refused, Targets
from fixloop.store.webhooks import Standing

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def test_a_failed_delivery_is_retried_with_growing_delays_then_given_up() -> None:
    standing, waits = Standing(delivered=3), []
    for _ in DELAYS_SECONDS:
        standing, disabled = after(standing, "it answers 500", NOW)
        assert not disabled
        waits.append(datetime.fromisoformat(standing.due) - NOW)

    last, disabled = after(standing, "it answers 500", NOW)

    assert waits == [timedelta(seconds=each) for each in DELAYS_SECONDS]
    assert (last.delivered, disabled) == (3, "it was refused 7 times: it answers 500")


def test_a_final_failure_disables_at_once_and_a_success_resets_failures() -> None:
    _, disabled = after(Standing(), "it answers 410", NOW, is_final=True)
    done, _ = after(Standing(delivered=1, failures=4, due="x", error="y"), "", NOW)

    assert disabled == "it was refused: it answers 410"
    assert done == Standing(2, "2026-11-26T12:00:00Z")


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/x",
        "https://localhost/x",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[fd00::1]/",
        "https://0.0.0.0/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://224.0.0.1/",
        "https://100.64.0.1/",
    ],
)
def test_an_internal_address_is_refused_and_named(url: str) -> None:
    with pytest.raises(UsageError, match="not of the internet at large; list it"):
        Targets().check(url)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "https://user:secret@example.org/",
        "https://",
        "https://example.org:99999/",
        "https://exa mple.org/",
        "https://example.org/\r\nX: y",
        "//example.org",
        "https://[::1",
        "https://example.org@127.0.0.1/",
    ],
)
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no address for webhooks"):
        Targets().check(url)


def test_a_listed_address_may_be_internal_and_without_tls() -> None:
    targets = Targets(["10.0.0.0/8", "hooks.internal"])

    targets.check("http://10.1.2.3:8080/events")
    targets.check("http://hooks.internal/events")
    with pytest.raises(UsageError, match="is not encrypted"):
        targets.check("http://example.org/")


def test_dns_rebinding_does_not_reach_an_internal_address(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [["203.0.114.9"], ["127.0.0.1"]]

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in answers.pop(0)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    targets = Targets()
    targets.check("https://rebound.example/")

    with pytest.raises(Refused, match=r"rebound.example is 127\.0\.0\.1"):
        targets.post("https://rebound.example/", {}, b"{}")
