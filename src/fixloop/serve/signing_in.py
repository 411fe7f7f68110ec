"""Signing in and out with a browser: by a token, a name and password, or the code on the terminal."""

import hmac
import re
import secrets
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from fixloop.serve.identity import COOKIE, Identities, address_of
from fixloop.serve.problems import Problem
from fixloop.serve.rendering import page
from fixloop.serve.requests import Form, Known, identities_of
from fixloop.serve.tokens import SESSION_HOURS

FORM_COOKIE: Final = "fixloop_form"
"""Of a browser that is not signed in: the value its form must send, so that no other site's page can sign it in."""
_LOCAL: Final = re.compile(r"/(?![/\\])[^\x00-\x20\\\x7f]*")

router = APIRouter(include_in_schema=False)
Identifying = Annotated[Identities, Depends(identities_of)]


@router.api_route("/sign-in", methods=["GET", "HEAD"], response_class=HTMLResponse)
def form(
    request: Request,
    code: Annotated[str, Query(max_length=200)] = "",
    next: Annotated[str, Query(max_length=2000)] = "/",
) -> Response:
    """The form; a code is only filled in, not submitted."""
    return _form(request, next, code=code)


@router.post("/sign-in")
def sign_in(request: Request, identities: Identifying, given: Form) -> Response:
    """Start a session, always under a new id."""
    expected = request.cookies.get(FORM_COOKIE, "")
    if not expected or not hmac.compare_digest(expected.encode(), given.get("csrf", "").encode()):
        raise Problem("not-allowed", "the form has run out, or is not of this site; open it again")
    name, tokens = given.get("name", ""), identities.tokens
    # Counted before: otherwise the right password is told from a wrong one, however many were tried.
    tokens.count_failure(address_of(request))
    if given.get("code"):
        how, found = "code", tokens.redeemed(given["code"])
    elif given.get("token"):
        how, found = "token", tokens.caller(given["token"].strip())
    else:
        how, found = "password", identities.people.signed_in(name, given.get("password", ""))
    if found is None:
        return _form(request, given.get("next", "/"), status=401, name=name, failed=how)
    if before := request.cookies.get(COOKIE, ""):
        tokens.sign_out(before)
    answer = RedirectResponse(local(given.get("next", "/")), 303)
    _set(request, answer, COOKIE, tokens.sign_in(found), SESSION_HOURS * 3600)
    answer.delete_cookie(FORM_COOKIE)
    return answer


@router.post("/sign-out")
def sign_out(request: Request, caller: Known, identities: Identifying) -> Response:
    """End the session of this browser."""
    identities.tokens.sign_out(request.cookies.get(COOKIE, ""))
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(COOKIE)
    return answer


def asked_to_sign_in(request: Request) -> Response:
    """The response to a browser that is not authenticated."""
    is_read = request.method in ("GET", "HEAD")
    wanted = f"{request.url.path}?{request.url.query}".rstrip("?") if is_read else "/"
    address = f"/sign-in?{urlencode({'next': local(wanted)})}" if wanted != "/" else "/sign-in"
    if request.headers.get("HX-Request"):
        # Only a part of a page was requested: send the whole page to the form.
        return Response(status_code=401, headers={"HX-Redirect": "/sign-in"})
    return RedirectResponse(address, 303)


def local(address: str) -> str:
    """An address on this site, without the site's name; `/` for any other address."""
    return address if _LOCAL.fullmatch(address) else "/"


def _form(request: Request, next: str, status: int = 200, **shown: Any) -> Response:
    known = request.cookies.get(FORM_COOKIE, "")
    fresh = known or secrets.token_urlsafe(32)
    told: dict[str, Any] = {"code": "", "name": "", "failed": "", "next": local(next), "csrf": fresh, **shown}
    answer = page(request, "sign-in", None, status, **told)
    if not known:
        _set(request, answer, FORM_COOKIE, fresh, 3600)
    return answer


def _set(request: Request, answer: Response, name: str, value: str, seconds: int) -> None:
    answer.set_cookie(
        name, value, max_age=seconds, httponly=True, samesite="lax", secure=request.app.state.is_secure
    )
