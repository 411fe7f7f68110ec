"""Who may do what over HTTP: scopes, the roles that bundle them, and the caller of a request. Nothing is stored."""

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
"""What each role may; an agent's token has `agent:NAME`, too."""
TERMINAL, PASSWORD, PROXY, WEBHOOK, LINK = WITHOUT_TOKEN = (
    "terminal",
    "password",
    "proxy",
    "webhook",
    "link",
)
"""How callers are known who have no token: by the code that `serve` printed, a password, what a proxy says, a source's
signature, or a link that was sent to them."""
_NAME: Final = re.compile(r"[\w.@+-]{1,64}")
_HASH: Final = re.compile(r"[0-9a-f]{8}")


class Caller(NamedTuple):
    """Who asks, as a token or a page's session says."""

    name: str
    scopes: frozenset[str]
    token: str
    """How the caller is known: the id of a token, or one of WITHOUT_TOKEN."""
    projects: frozenset[str] = frozenset()
    """Those whose workflows there are for the caller, eight hex digits each, or one workflow's id; empty: all."""
    csrf: str = ""
    """What a form of the session has to bring; empty: there is no session, and a browser sends nothing by itself."""

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    def sees(self, workflow: str) -> bool:
        return not self.projects or workflow[:8] in self.projects or workflow in self.projects

    def covers(self, projects: Iterable[str]) -> bool:
        """Whether the caller is for all of these projects, of which none are all there are."""
        named = frozenset(projects)
        return not self.projects or (bool(named) and named <= self.projects)

    @property
    def signature(self) -> str:
        """The name for the history, and how it is known."""
        return f"{self.name} ({self.token if self.token in WITHOUT_TOKEN else f'token {self.token}'})"

    @property
    def agents(self) -> frozenset[str]:
        """The agents whose work the caller takes and hands in."""
        return frozenset(scope.removeprefix(AGENT) for scope in self.scopes if scope.startswith(AGENT))


def scopes_of(role: str, agent: str) -> frozenset[str]:
    """What a token of this role may. Raises UsageError: no such role, or an agent without a name."""
    if role not in ROLES:
        raise UsageError(f"{role!r} is no role; there are {', '.join(ROLES)}")
    if (role == "agent") != bool(agent):
        raise UsageError("--agent NAME goes with --role agent, which needs it")
    return ROLES[role] | ({f"{AGENT}{checked_name(agent)}"} if agent else set())


def checked_name(name: str) -> str:
    """A person's or an agent's name. Raises UsageError: it could be taken for something else where it is shown."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name[:80]!r} is no name; use up to 64 letters, digits and . @ + - _")
    return name


def checked_projects(projects: Iterable[str]) -> frozenset[str]:
    """The projects of a token. Raises UsageError for what is none."""
    found = frozenset(projects)
    for each in found:
        if not _HASH.fullmatch(each):
            told = f"{each[:80]!r} is no project; use the eight hex digits that its workflows begin with"
            raise UsageError(told)
    return found
