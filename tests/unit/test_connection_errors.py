"""Why a server could not be reached, in words that say what to do."""

import ssl

import pytest

from fixloop.servers.connection_errors import reason_of


def wrapped(cause: BaseException) -> RuntimeError:
    """An error as a library passes it on."""
    error = RuntimeError("Error while reading from somewhere")
    error.__cause__ = cause
    return error


def of_tls(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] something (_ssl.c:1006)")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "connection refused"),
        (
            of_tls("TLSV13_ALERT_CERTIFICATE_REQUIRED"),
            "it refuses us without a certificate that it knows; name",
        ),
        (of_tls("WRONG_VERSION_NUMBER"), "it does not speak TLS; use a URL without TLS"),
        (of_tls("NO_CIPHERS_AVAILABLE"), "TLS failed (no ciphers available); see FIXLOOP_TLS_CA"),
        (ValueError("two\nlines."), "Error while reading from somewhere"),
    ],
)
def test_the_cause_of_a_connection_error_is_given_briefly(cause: BaseException, said: str) -> None:
    assert str(reason_of(wrapped(cause))).startswith(said)


@pytest.mark.parametrize(
    "cause", [ssl.SSLEOFError(8, "EOF occurred"), ConnectionResetError(104, "Connection reset by peer")]
)
def test_a_connection_refused_without_a_certificate_names_the_setting(cause: BaseException) -> None:
    assert "FIXLOOP_TLS_CERT" in str(reason_of(wrapped(cause), "rediss://h"))
    assert "if it asks" not in str(reason_of(wrapped(cause), "rediss://h?ssl_certfile=/a.pem"))
    assert "if it asks" not in str(reason_of(wrapped(cause), "redis://h"))
