"""The server's refusals in the form of RFC 9457: each kind has a page that says what to do about it."""

import tomllib
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.errors import Damaged, InfrastructureError, NewerVersion, ProtocolError, RefusedError, UsageError
from fixloop.serve.tokens import TooMany


class Kind(NamedTuple):
    status: int
    title: str
    remedy: str


_TOLD: Final = tomllib.loads(Path(__file__).with_name("problems.toml").read_text(encoding="utf-8"))
KINDS: Final = {name: Kind(**told) for name, told in _TOLD.items()}
"""By name, which is the last part of `type`."""
RETRY_SECONDS: Final = 2


class Problem(Exception):
    """A refusal raised by a route; `facts` are added to the fields of every problem."""

    def __init__(self, kind: str, detail: str, **facts: Any) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.facts = kind, detail, facts
        self.written = ""
        """The text typed into the refused form, so that it is not lost."""

    @property
    def status(self) -> int:
        return KINDS[self.kind].status

    @property
    def headers(self) -> dict[str, str]:
        seconds = {"too-many": 60, "away": RETRY_SECONDS}.get(self.kind)
        challenge = {"WWW-Authenticate": "Bearer"} if self.kind == "not-signed-in" else {}
        return challenge | ({"Retry-After": str(seconds)} if seconds else {})

    def document(self) -> dict[str, Any]:
        """The problem as JSON."""
        shared = {"type": f"/problems/{self.kind}", "title": KINDS[self.kind].title, "status": self.status}
        return shared | {"detail": self.detail} | self.facts


def problem_of(error: Exception) -> Problem:
    """A command's error as a problem."""
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
