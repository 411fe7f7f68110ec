"""Authenticates requests: by a token, a browser's session, or a person whom a proxy has signed in."""

import hmac
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from starlette.requests import Request

from fixloop.errors import UsageError
from fixloop.serve.access import PASSWORD, PROXY, Caller
from fixloop.serve.people import People
from fixloop.serve.problems import Problem
from fixloop.serve.tokens import Tokens

COOKIE: Final = "fixloop_session"
CSRF_HEADER: Final = "X-CSRF-Token"
PROXY_HEADER: Final = "X-Fixloop-Proxy"
_READING: Final = ("GET", "HEAD", "OPTIONS")


class Identities:
    """Authenticates callers by what this deployment trusts."""

    def __init__(
        self, tokens: Tokens, people: People, proxies: Sequence[str] = (), header: str = "", secret: str = ""
    ) -> None:
        """`proxies` are the addresses or networks whose `header` names a person, if they also send `secret`: a check on
        the proxy's machine has its address. UsageError: an address is malformed, or the secret missing or short."""
        if proxies and len(secret) < 16:
            raise UsageError(f"--proxy needs a FIXLOOP_SERVE_PROXY_SECRET, which it sends as {PROXY_HEADER}")
        self._secret = secret.encode()
        self.tokens = tokens
        self.people = people
        self._proxies: list[IPv4Network | IPv6Network] = []
        for each in proxies:
            try:
                self._proxies.append(ip_network(each))
            except ValueError:
                told = f"--proxy {each!r} is neither an address nor a network; use one such as 10.0.0.7 or 10.0.0.0/8"
                raise UsageError(told) from None
        self._header = header

    def caller(self, request: Request, csrf: str = "") -> Caller:
        """The caller; `csrf` is the value from its form. Problem: the caller is unknown, or another site's page made
        the request; also raises TooMany."""
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        cookie = request.cookies.get(COOKIE, "")
        if scheme.lower() == "bearer":
            found = self.tokens.caller(text.strip())
            if found is None:
                self.tokens.count_failure(address_of(request))
                raise Problem("not-signed-in", "this token is unknown, was revoked or has run out")
            return found
        found = self.tokens.signed_in(cookie) if cookie else None
        if found is not None and found.token == PASSWORD:
            # A person's rights are read from the current file of people.
            person = self.people.known(found.name)
            found = person and person._replace(csrf=found.csrf)
        # A proxy's users have no session here: each request has their name, and a token for forms.
        found = found or self._proxied(request)
        if found is None:
            raise Problem("not-signed-in", "this needs a token, or a session in a browser")
        given = request.headers.get(CSRF_HEADER, csrf)
        is_own = bool(found.csrf) and hmac.compare_digest(given.encode(), found.csrf.encode())
        if request.method not in _READING and not is_own:
            told = f"a request of a browser needs its {CSRF_HEADER}; load the page again"
            raise Problem("not-allowed", told)
        return found

    def _proxied(self, request: Request) -> Caller | None:
        name = request.headers.get(self._header, "") if self._header else ""
        is_proxy, sent = False, request.headers.get(PROXY_HEADER, "").encode()
        with suppress(ValueError):
            is_proxy = any(ip_address(address_of(request)) in network for network in self._proxies)
        is_proxy = is_proxy and hmac.compare_digest(sent, self._secret)
        person = self.people.known(name, PROXY) if name and is_proxy else None
        return person and person._replace(csrf=self.tokens.csrf_of(name))


def address_of(request: Request) -> str:
    """The other end of the connection; headers are ignored."""
    return request.client.host if request.client else ""
