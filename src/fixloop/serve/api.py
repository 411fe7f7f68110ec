"""`/v1`: the commands, for programs. Every answer is the JSON document that the command prints."""

import re
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from pydantic_core import to_json

from fixloop.commands.handlers import Answer
from fixloop.serve import documents
from fixloop.serve.access import ADMIN, checked_name, scopes_of
from fixloop.serve.lists import Filter, place_of
from fixloop.serve.problems import KINDS, Problem, projects_for, require, require_own
from fixloop.serve.requests import Hooked, Key, Known, Serving, notices_for
from fixloop.serve.submission import Body, NewWorkflow

LONGEST_TEXT: Final = 20_000
_PROBLEM: Final = {"application/problem+json": {"schema": documents.ProblemDocument.model_json_schema()}}
PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    kind.status: {"description": kind.title, "content": _PROBLEM} for kind in KINDS.values()
}


def _document(model: type[BaseModel], status: int = 200) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": model}}


def _of_types(*types: str) -> dict[int | str, dict[str, Any]]:
    """The description of a route whose answer is not JSON of its own."""
    return {200: {"content": {each: {} for each in types}}}


router = APIRouter(prefix="/v1", responses=PROBLEMS)

Workflow = Annotated[str, Path(pattern=r"^[0-9a-f]{8}-\d{1,15}-\d{1,9}$", examples=["0a1b2c3d-47-1"])]
Version = Annotated[str, Header()]
Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]
Cursor = Annotated[str, Query(max_length=200)]
Most = Annotated[int, Query(ge=1, le=500)]
_VERSION: Final = re.compile(r'(?:W/)?"?(\d{1,15})"?')


class Decision(Body):
    """A person's answer to an escalation."""

    escalation: str = Field(min_length=1, max_length=200)
    """Its id, as the inbox has it."""
    decision: str = Field(min_length=1, max_length=LONGEST_TEXT)
    """`manual-fix`, `skip`, `abort`, `extend`, `accept` or `reject`; to a question one of its options, or a text."""
    reason: str = Field("", max_length=LONGEST_TEXT)
    iterations: int | None = Field(None, ge=1, le=1000)
    """extend: how many more."""
    minutes: float | None = Field(None, ge=0.01, le=1_000_000)
    """extend: how much longer."""
    until: str = Field("", pattern=r"^(\d{4}-\d\d-\d\d)?$")
    """skip: the last day that it is good for."""
    owner: str = Field("", max_length=200)
    """skip: who looks after it until then."""


class Command(Body):
    """Pause a workflow, let it go on, or cancel it."""

    command: Literal["pause", "continue", "cancel"]
    reason: str = Field("", max_length=LONGEST_TEXT)


class NewToken(Body):
    """Whom a token stands for."""

    name: str = Field(min_length=1, max_length=64)
    role: Literal["viewer", "operator", "decider", "agent", "admin"]
    agent: str = Field("", max_length=64)
    projects: tuple[str, ...] = ()
    days: float = Field(90, gt=0, le=3650)


class Listed(Filter):
    """The workflows of one page."""

    most: int = Field(50, ge=1, le=500)


@router.get("/workflows", responses=_document(documents.WorkflowPage))
def list_workflows(caller: Known, service: Serving, wanted: Annotated[Listed, Query()]) -> Response:
    """The workflows, the latest change first; `next` is the cursor of the page after this one."""
    page = service.workflows(caller, wanted, wanted.most)
    return Response(to_json(page._asdict()), media_type="application/json")


@router.post(
    "/workflows",
    status_code=201,
    responses={**_document(documents.Workflow), **_document(documents.Workflow, 201)},
)
def submit(caller: Known, service: Serving, given: NewWorkflow, key: Key) -> Response:
    """Hand a feature in. The same one twice is one workflow: 201 where it is new, 200 where it was there."""
    document, created = service.submit(caller, given, key)
    headers = {"Location": f"/v1/workflows/{document['workflow_id']}"}
    return JSONResponse(document, 201 if created else 200, headers)


@router.get("/workflows/{workflow}", responses=_document(documents.Workflow))
def one_workflow(caller: Known, service: Serving, workflow: Workflow) -> Response:
    """What `fixloop status ISSUE --json` prints; its ETag is the state's version."""
    seen = service.seen(caller, workflow)
    return JSONResponse(service.document(seen), headers={"ETag": f'"{seen.found.version}"'})


@router.get("/workflows/{workflow}/log", responses=_document(documents.Log))
def log(caller: Known, service: Serving, workflow: Workflow) -> dict[str, Any]:
    """Everything that was said, as `fixloop log --json` prints it."""
    return service.log(caller, workflow)


@router.get("/workflows/{workflow}/report", responses=_of_types("application/json", "text/markdown"))
def report(
    caller: Known, service: Serving, workflow: Workflow, format: Literal["json", "markdown"] = "json"
) -> Response:
    """What came of it so far."""
    kind = "application/json" if format == "json" else "text/markdown; charset=utf-8"
    return Response(service.report(caller, workflow, format), media_type=kind)


@router.get(
    "/workflows/{workflow}/artifacts/{digest}",
    responses=_of_types("application/octet-stream"),
    response_class=Response,
)
def artifact(caller: Known, service: Serving, workflow: Workflow, digest: Digest) -> Response:
    """Bytes that the log names. Tools and agents wrote them: they are given to be saved, never to be shown."""
    headers = {"Content-Disposition": f'attachment; filename="{digest[:12]}"'}
    return Response(service.artifact(caller, workflow, digest), 200, headers, "application/octet-stream")


@router.post("/workflows/{workflow}/decisions", responses=_document(documents.Decided))
def decide(
    caller: Known, service: Serving, workflow: Workflow, given: Decision, key: Key, if_match: Version = ""
) -> dict[str, Any]:
    """Answer an escalation, as of the version in If-Match; once for each Idempotency-Key."""
    found = _VERSION.fullmatch(if_match)
    if found is None:
        raise Problem("no-version", "send the ETag of the workflow that you have read as If-Match")
    more = given.iterations, given.minutes, given.escalation, given.until, given.owner
    return service.decide(caller, workflow, int(found[1]), Answer(given.decision, given.reason, *more), key)


@router.post("/workflows/{workflow}/commands", responses=_document(documents.Workflow))
def command(caller: Known, service: Serving, workflow: Workflow, given: Command, key: Key) -> dict[str, Any]:
    """Pause a workflow, let it go on, or cancel it; returns where it stands."""
    return service.command(caller, workflow, given.command, given.reason, key)


@router.get("/inbox", responses=_document(documents.Inbox))
def inbox(caller: Known, service: Serving, hooks: Hooked, cursor: Cursor = "", most: Most = 50) -> Response:
    """What waits for somebody outside, the longest first; `can_decide` says what this caller may answer, and `notices`
    what else is to be looked after."""
    waiting = service.inbox(caller)
    left = [item for item in waiting if place_of(item) > cursor]
    following = place_of(left[most - 1]) if len(left) > most else ""
    notices = notices_for(caller, service, hooks)
    document = {"items": left[:most], "next": following, "count": len(waiting), "notices": notices}
    # The usual conversion to JSON takes ten times as long, and this is the most frequent request.
    return Response(to_json(document), media_type="application/json")


@router.get("/queues", responses=_document(documents.Queues))
def queues(caller: Known, service: Serving) -> dict[str, Any]:
    """What there is to do in each queue; of all projects, so a token for some sees none."""
    return {"queues": [each._asdict() for each in service.queues(caller)]}


@router.get("/workers", responses=_document(documents.Workers))
def workers(caller: Known, service: Serving) -> dict[str, Any]:
    """The workers of the server's own host, and the agents that were heard of."""
    found = [each._asdict() for each in service.workers(caller)]
    return {"workers": found, "agents": [each._asdict() for each in service.agents(caller)]}


@router.get("/tokens", responses=_document(documents.Tokens))
def tokens(caller: Known, service: Serving) -> dict[str, Any]:
    """What is known of each token; the tokens themselves are not."""
    require(caller, ADMIN)
    return {"tokens": [each._asdict() for each in service.tokens.all() if caller.covers(each.projects)]}


@router.post("/tokens", status_code=201, responses=_document(documents.NewToken, 201))
def create_token(caller: Known, service: Serving, given: NewToken) -> dict[str, Any]:
    """A new token. This answer is the only one that shows it."""
    require(caller, ADMIN)
    scopes = scopes_of(given.role, given.agent)
    projects = projects_for(caller, given.projects, "makes tokens")
    return {"token": service.tokens.create(checked_name(given.name), scopes, projects, days=given.days)}


@router.delete("/tokens/{token}", status_code=204)
def revoke_token(
    caller: Known, service: Serving, token: Annotated[str, Path(pattern="^[0-9a-f]{8}$")]
) -> None:
    """Make a token, and the sessions that it began, prove nothing any more."""
    require_own(caller, "token", token, service.tokens.all())
    service.tokens.revoke(token)
