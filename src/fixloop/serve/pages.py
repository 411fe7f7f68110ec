"""The pages that belong to no single workflow: inbox, workflows, integrity, problems, and static files."""

from collections import Counter
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from fixloop.commands.integrity import COLUMNS, counted, too_often
from fixloop.serve.access import DECIDE
from fixloop.serve.lists import Filter
from fixloop.serve.problems import KINDS, Problem
from fixloop.serve.rendering import page, static_files
from fixloop.serve.requests import Hooked, Known, Serving, notices_for
from fixloop.serve.signing_in import asked_to_sign_in
from fixloop.summary import packet

SHOWN_ITEMS: Final = 50
"""Per page of the inbox."""
SHOWN_WORKFLOWS: Final = 100
SHOWN_HOLDS: Final = 100
SHOWN_AGENTS: Final = 30
RUNNING: Final = 5
"""How many running workflows are named if nothing waits."""
READING: Final = ["GET", "HEAD"]
Start = Annotated[int, Query(ge=0, le=100_000)]

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.api_route("/", methods=READING)
def inbox(request: Request, caller: Known, service: Serving, hooks: Hooked, start: Start = 0) -> Response:
    """What this caller can decide, then other waiting items."""
    items = service.inbox(caller)
    mine = [item for item in items if item["can_decide"]]
    others = [item for item in items if not item["can_decide"]]
    listed = [*mine, *others][start : start + SHOWN_ITEMS]
    return page(
        request,
        "inbox",
        caller,
        mine=[{**item, "answers": packet.choices(item)} for item in listed if item["can_decide"]],
        others=[item for item in listed if not item["can_decide"]],
        counts=(len(mine), len(others)),
        may_decide=caller.may(DECIDE),
        notices=notices_for(caller, service, hooks),
        start=start,
        shown=len(listed),
        most=SHOWN_ITEMS,
        running=() if mine else service.workflows(caller, Filter(state="live"), RUNNING).workflows,
    )


@router.api_route("/fleet", methods=READING)
def fleet(request: Request, caller: Known, service: Serving, given: Annotated[Filter, Query()]) -> Response:
    """All workflows by state, queues, agents, and the workers and hooks of this host."""
    found = service.workflows(caller, given, SHOWN_WORKFLOWS)
    counts, states = service.counts(caller), Counter[str]()
    for each in counts:
        states[each["state"]] += each["count"]
    return page(
        request,
        "fleet",
        caller,
        found=found,
        given=given,
        cursor=given.cursor,
        counts=counts,
        states=states.most_common(),
        profiles=sorted({each["profile"] for each in counts}),
        workers=service.workers(caller),
        queues=service.queues(caller),
        agents=service.agents(caller)[:SHOWN_AGENTS],
        hooks=service.hooks(caller)[:SHOWN_AGENTS],
    )


@router.api_route("/integrity", methods=READING)
def integrity(request: Request, caller: Known, service: Serving) -> Response:
    """What integrity rules held, and what people decided."""
    held = service.holds(caller)
    rules = counted((tuple(each.rules), each.decision) for each in held.holds)
    return page(
        request,
        "integrity",
        caller,
        columns=COLUMNS,
        rules=rules,
        remarks=[remark for rule, n in rules if (remark := too_often(rule, n))],
        holds=held.holds[:SHOWN_HOLDS],
        more=len(held.holds[SHOWN_HOLDS:]),
        left=held.left,
        open={item["workflow_id"]: item for item in service.inbox(caller) if item.get("findings")},
    )


@router.api_route("/problems/{kind}", methods=READING)
def explained(request: Request, kind: str) -> Response:
    """The page that a problem's `type` links to."""
    if kind not in KINDS:
        raise Problem("not-found", f"there is no problem {kind[:60]}")
    return page(request, "problem-kind", None, kind=kind, told=KINDS[kind])


@router.api_route("/static/{name}", methods=READING)
def static(name: str, v: Annotated[str, Query(max_length=64)] = "") -> Response:
    """A static file; one addressed with its version never changes."""
    found = static_files().get(name)
    if found is None:
        raise Problem("not-found", f"there is no file {name[:60]}")
    kept = "public, max-age=31536000, immutable" if v == found.version else "no-cache"
    return Response(found.body, media_type=found.kind, headers={"Cache-Control": kept})


def refusal(request: Request, problem: Problem) -> Response:
    """A problem in plain words, for a browser."""
    if problem.kind == "not-signed-in":
        return asked_to_sign_in(request)
    answer = page(request, "problem", None, problem.status, problem=problem, told=KINDS[problem.kind])
    answer.headers.update(problem.headers)
    return answer
