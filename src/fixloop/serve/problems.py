"""The server's refusals in the form of RFC 9457: each kind has a page that says what to do about it."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from fixloop.errors import Damaged, InfrastructureError, NewerVersion, ProtocolError, RefusedError, UsageError
from fixloop.serve.access import ADMIN, Caller, checked_projects
from fixloop.serve.tokens import Token, TooMany
from fixloop.store.webhooks import Endpoint


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


def require(caller: Caller, scope: str) -> None:
    """Problem if a caller lacks the scope."""
    if not caller.may(scope):
        may = ", ".join(sorted(caller.scopes))
        raise Problem("not-allowed", f"{caller.name} may {may}; this needs {scope!r}")


def require_own(caller: Caller, what: str, id: str, known: Iterable[Endpoint | Token]) -> None:
    """Problem if a caller is no administrator of all projects of a token or webhook."""
    require(caller, ADMIN)
    if not any(each.id == id and caller.covers(each.projects) for each in known):
        raise Problem("not-found", f"no {what} {id}")


def projects_for(caller: Caller, projects: Iterable[str], does: str) -> frozenset[str]:
    """The projects of something new. UsageError: one is malformed; Problem: they are not all the caller's."""
    found = checked_projects(projects)
    if not caller.covers(found):
        raise Problem("not-allowed", f"{caller.name} {does} for {', '.join(sorted(caller.projects))} alone")
    return found


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
