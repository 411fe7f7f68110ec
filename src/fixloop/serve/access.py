"""Authorization over HTTP: scopes, the roles that bundle them, and the caller of a request. Nothing is stored."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from fixloop.errors import UsageError

READ, SUBMIT, DECIDE, ADMIN = "read", "submit", "decide", "admin"
AGENT: Final = "agent:"
ROLES: Final[dict[str, frozenset[str]]] = {
    "viewer": frozenset({READ}),
    "operator": frozenset({READ, SUBMIT}),
    "decider": frozenset({READ, DECIDE}),
    "agent": frozenset({READ}),
    "admin": frozenset({READ, SUBMIT, DECIDE, ADMIN}),
}
"""The scopes of each role; an agent's token also has `agent:NAME`."""
TERMINAL, PASSWORD, PROXY, WEBHOOK, LINK = NO_TOKEN = ("terminal", "password", "proxy", "webhook", "link")
"""How callers without a token are authenticated: by the code that `serve` printed, a password, a proxy, a source's
signature, or a link that was sent to them."""
_NAME: Final = re.compile(r"[\w.@+-]{1,64}")
_HASH: Final = re.compile(r"[0-9a-f]{8}")


class Caller(NamedTuple):
    """The caller of a request, from a token or a page's session."""

    name: str
    scopes: frozenset[str]
    token: str
    """The authentication: the id of a token, or one of NO_TOKEN."""
    projects: frozenset[str] = frozenset()
    """The projects whose workflows the caller can see, eight hex digits each, or one workflow's id; empty: all."""
    csrf: str = ""
    """The value that the session's forms must send; empty: no session, and a browser sends nothing by itself."""

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    def sees(self, workflow: str) -> bool:
        return not self.projects or workflow[:8] in self.projects or workflow in self.projects

    def covers(self, projects: Iterable[str]) -> bool:
        """Whether the caller has access to all of these projects; an empty list means all that exist."""
        named = frozenset(projects)
        return not self.projects or (bool(named) and named <= self.projects)

    @property
    def signature(self) -> str:
        """The caller's name and authentication, for the history."""
        return f"{self.name} ({self.token if self.token in NO_TOKEN else f'token {self.token}'})"

    @property
    def agents(self) -> frozenset[str]:
        """The agents whose work the caller may claim and submit."""
        return frozenset(scope.removeprefix(AGENT) for scope in self.scopes if scope.startswith(AGENT))


def scopes_of(role: str, agent: str) -> frozenset[str]:
    """The scopes of a token with this role. UsageError: the role is unknown, or an agent has no name."""
    if role not in ROLES:
        raise UsageError(f"{role!r} is no role; there are {', '.join(ROLES)}")
    if (role == "agent") != bool(agent):
        raise UsageError("--agent NAME goes with --role agent, which needs it")
    return ROLES[role] | ({f"{AGENT}{checked_name(agent)}"} if agent else set())


def checked_name(name: str) -> str:
    """A person's or an agent's name. UsageError: it could be mistaken for something else where it is shown."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name[:80]!r} is no name; use up to 64 letters, digits and . @ + - _")
    return name


def checked_projects(projects: Iterable[str]) -> frozenset[str]:
    """The projects of a token. UsageError: one is malformed."""
    found = frozenset(projects)
    for each in found:
        if not _HASH.fullmatch(each):
            told = f"{each[:80]!r} is no project; use the eight hex digits that its workflows begin with"
            raise UsageError(told)
    return found
