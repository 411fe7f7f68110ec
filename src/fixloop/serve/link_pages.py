"""The page of a link in a message: the question, and the answer of the person to whom the link was sent.

Opening it decides nothing, however often and by whatever it is opened, such as mail scanners and chat previews. A
decision is a POST of one of the link's answers, for the version that the link was made for. A decision creates another
version, so a link decides only once; the same answer again gets the same reply.
"""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from fixloop.serve.access import DECIDE, LINK, READ, Caller
from fixloop.serve.identity import address_of
from fixloop.serve.pages import READING
from fixloop.serve.problems import Problem
from fixloop.serve.requests import Form, Serving
from fixloop.serve.service import Service
from fixloop.serve.tokens import Link
from fixloop.serve.workflow_pages import answer_in, decision

router = APIRouter(prefix="/a/{link}", include_in_schema=False, default_response_class=HTMLResponse)
Address = Annotated[str, Path(pattern=r"^[\w-]{43}$")]


@router.api_route("", methods=READING)
def look(request: Request, service: Serving, link: Address) -> Response:
    """Show the question; this does not use up the link."""
    found, caller = _opened(request, service, link)
    return decision(request, caller, service, found.workflow, found.escalation, seen=found.version)


@router.post("")
def decide(request: Request, service: Serving, link: Address, given: Form) -> Response:
    """Answer the question, for the state that the message was about."""
    found, caller = _opened(request, service, link)
    answer = answer_in(given, found.escalation)
    if answer.word not in found.decisions and "*" not in found.decisions:
        raise Problem("not-allowed", f"this link is not for {answer.word[:40]!r}")
    # Another answer is another request, so that a mistyped date can be corrected.
    service.decide(caller, found.workflow, found.version, answer, f"link/{link}/{answer}")
    return RedirectResponse(request.url.path, 303)


def _opened(request: Request, service: Service, link: str) -> tuple[Link, Caller]:
    service.follower.check()
    found = service.tokens.linked(link)
    if found is None:
        service.tokens.count_failure(address_of(request))
        told = "there is no such link, it is older than a week, or its person is called no more"
        raise Problem("used", told)
    scopes = frozenset({READ, DECIDE} if found.decisions else {READ})
    return found, Caller(found.name, scopes, LINK, frozenset({found.workflow}))
