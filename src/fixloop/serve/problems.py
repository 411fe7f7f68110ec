"""What the server refuses, as RFC 9457 has it: each kind has a page that says what to do about it."""

from typing import Any, Final, NamedTuple

from fixloop.errors import Damaged, InfrastructureError, NewerVersion, ProtocolError, RefusedError, UsageError
from fixloop.serve.tokens import TooMany


class Kind(NamedTuple):
    """One kind of problem."""

    status: int
    title: str
    remedy: str


KINDS: Final = {
    "not-signed-in": Kind(
        401,
        "Nobody is known",
        "Send `Authorization: Bearer fl_…`; `fixloop token create` makes a token. It may have run out.",
    ),
    "not-allowed": Kind(
        403,
        "This caller may not do that",
        "Ask for a token with the scope that is named, or have somebody do it who has one.",
    ),
    "not-found": Kind(404, "There is no such thing", "It may be of a project that the token is not for."),
    "refused": Kind(
        409, "The state does not allow it now", "Read the workflow again; the detail says where it stands."
    ),
    "used": Kind(
        410,
        "This link was used, or has run out",
        "Sign in, and look at the inbox: what is still open is there.",
    ),
    "stale": Kind(
        412,
        "It has changed meanwhile",
        "`happened` says what; read it again, and send its new ETag as If-Match.",
    ),
    "too-large": Kind(413, "The body is too large", "Send at most 8 MiB."),
    "invalid": Kind(
        422, "The request is not valid", "The detail, and `errors` where there are several, say where."
    ),
    "key-used": Kind(
        422,
        "This Idempotency-Key went with another request",
        "Use a new key for each request, and the same to repeat it.",
    ),
    "no-version": Kind(428, "Which version is meant is missing", "Send the workflow's ETag as If-Match."),
    "too-many": Kind(429, "Too many requests", "Wait as long as Retry-After says."),
    "damaged": Kind(
        500, "What is stored cannot be read", "The operator finds it with `fixloop audit verify`."
    ),
    "away": Kind(503, "Redis is away", "Nothing is lost; try again after Retry-After."),
}
"""By name, which is the last part of `type`."""
RETRY_SECONDS: Final = 2


class Problem(Exception):
    """A refusal that a route raises; `facts` stand beside what every problem has."""

    def __init__(self, kind: str, detail: str, **facts: Any) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.facts = kind, detail, facts
        self.written = ""
        """What somebody has typed into a form that is refused, so that it is not lost."""

    @property
    def status(self) -> int:
        return KINDS[self.kind].status

    @property
    def headers(self) -> dict[str, str]:
        seconds = {"too-many": 60, "away": RETRY_SECONDS}.get(self.kind)
        challenge = {"WWW-Authenticate": "Bearer"} if self.kind == "not-signed-in" else {}
        return challenge | ({"Retry-After": str(seconds)} if seconds else {})

    def document(self) -> dict[str, Any]:
        """Its JSON."""
        shared = {"type": f"/problems/{self.kind}", "title": KINDS[self.kind].title, "status": self.status}
        return shared | {"detail": self.detail} | self.facts


def problem_of(error: Exception) -> Problem:
    """What a command's error is over HTTP."""
    if isinstance(error, Problem):
        return error
    kinds: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
        (InfrastructureError, "away"),
        (TooMany, "too-many"),
        ((Damaged, NewerVersion), "damaged"),
        ((RefusedError, ProtocolError), "refused"),
        (UsageError, "invalid"),
    )
    return Problem(next((name for each, name in kinds if isinstance(error, each)), "damaged"), str(error))
