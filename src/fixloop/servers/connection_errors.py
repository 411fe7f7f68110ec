"""Explains why a server could not be reached, in a few words with a remedy, from an exception."""

import re
import ssl
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_UNTRUSTED: Final = "name the file of the authority that signed it in FIXLOOP_TLS_CA"
_MISNAMED: Final = "use a host name that stands in the certificate"
_ANONYMOUS: Final = "name a certificate that it accepts in FIXLOOP_TLS_CERT and its key in FIXLOOP_TLS_KEY"
_PLAIN: Final = "use a URL without TLS, or the port that speaks it"
_ALERTS: Final = re.compile(
    "CERTIFICATE_REQUIRED|BAD_CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE|CERTIFICATE_UNKNOWN"
)
_WITH_TLS: Final = ("rediss", "amqps", "sentinels")
_NO_TLS: Final = re.compile(
    "WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|PACKET_LENGTH_TOO_LONG|UNKNOWN_PROTOCOL"
)


class Reason(NamedTuple):
    """What went wrong, and what to do about it."""

    text: str
    remedy: str = ""
    """Empty for the usual one: start the server, or name another."""

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


def reason_of(error: BaseException, url: str = "") -> Reason:
    """`connection refused` rather than a library's sentence around it; with `url`, whether a certificate is missing."""
    is_anonymous = urlsplit(url).scheme in _WITH_TLS and "ssl_certfile=" not in url
    # With TLS 1.3 a server refuses a client after the client's handshake is done. Whether its message or the end of the
    # connection arrives first is chance.
    ends = (ssl.SSLEOFError, ConnectionResetError, BrokenPipeError)
    is_cut = any(
        isinstance(cause, ends) or "Connection closed by server" in str(cause) for cause in _causes(error)
    )
    if is_anonymous and is_cut:
        return Reason("it closed the connection", f"if it asks for a certificate, {_ANONYMOUS}")
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            said = cause.verify_message.rstrip(".")
            remedy = _MISNAMED if "mismatch" in said else _UNTRUSTED
            return Reason(f"its certificate is refused ({said})", remedy)
        if isinstance(cause, ssl.SSLError):
            said = getattr(cause, "reason", None) or one_line(cause)
            if _ALERTS.search(said):
                return Reason("it refuses us without a certificate that it knows", _ANONYMOUS)
            if _NO_TLS.search(said):
                return Reason("it does not speak TLS", _PLAIN)
            failed = f"TLS failed ({said.lower().replace('_', ' ')})"
            return Reason(failed, "see FIXLOOP_TLS_CA, _CERT and _KEY")
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.strerror:
            return Reason(cause.strerror.lower())
    return Reason(one_line(error) or type(error).__name__)


def one_line(error: BaseException) -> str:
    """The message of `error`, on one line and without its full stop."""
    return " ".join(str(error).split()).rstrip(".")


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
