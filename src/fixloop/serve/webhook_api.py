"""`/v1/webhooks`: the receivers of events. `/v1/hooks`: events from outside, signed by Standard Webhooks."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from standardwebhooks import Webhook, WebhookVerificationError

from fixloop.protocol.events import ResultNoted
from fixloop.protocol.messages import USER
from fixloop.serve.access import ADMIN, READ, SUBMIT, WEBHOOK, Caller
from fixloop.serve.api import PROBLEMS
from fixloop.serve.identity import address_of
from fixloop.serve.problems import Problem, projects_for, require, require_own
from fixloop.serve.requests import Hooked, Hooks, Known, Serving, body_of
from fixloop.serve.submission import Body
from fixloop.serve.work import MOST_PATCH_BYTES, Desk
from fixloop.serve.work_api import REVISION
from fixloop.store.webhooks import Endpoint

router = APIRouter(prefix="/v1", responses=PROBLEMS)

Id = Annotated[str, Path(pattern="^[0-9a-f]{8}$")]
_SIGNED: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")


class NewWebhook(Body):
    """Where events go."""

    url: str = Field(min_length=1, max_length=2000)
    types: tuple[str, ...] = Field((), max_length=50)
    """Beginnings of types, such as `dev.fixloop.escalation.`; none: all."""
    projects: tuple[str, ...] = ()


class Again(Body):
    """From when on events are told again."""

    since: datetime


class WebhookList(BaseModel):
    """Endpoints and sources, without their secrets."""

    webhooks: list[dict[str, Any]]


class Secret(BaseModel):
    """A new endpoint; this answer is the only one that shows its secret."""

    webhook: dict[str, Any]
    secret: str


class _Event(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Fix(_Event):
    """A fix, and where it is."""

    workflow_id: Annotated[str, Field(pattern=r"^[0-9a-f]{8}-\d{1,15}-\d{1,9}$")]
    patch: str = Field("", max_length=2 * MOST_PATCH_BYTES)
    revision: str = Field("", max_length=300, pattern=REVISION)
    summary: str = Field("", max_length=5000)


class CiResult(_Event):
    """What a CI elsewhere says of a commit; it is written into the history, and decides nothing."""

    workflow_id: Annotated[str, Field(pattern=r"^[0-9a-f]{8}-\d{1,15}-\d{1,9}$")]
    commit: str = Field(pattern="^[0-9a-f]{7,64}$")
    name: str = Field(min_length=1, max_length=200)
    conclusion: str = Field(min_length=1, max_length=40)
    url: str = Field("", max_length=1000)


class FixDone(_Event):
    """A fix is done for a workflow that waits for one. What else a CloudEvent has is left aside."""

    type: Literal["fix.done"]
    data: Fix


class CiCompleted(_Event):
    """A CI elsewhere is through."""

    type: Literal["ci.completed"]
    data: CiResult


_HOOK: Final[TypeAdapter[FixDone | CiCompleted]] = TypeAdapter(
    Annotated[FixDone | CiCompleted, Field(discriminator="type")]
)


@router.get("/webhooks", responses={200: {"model": WebhookList}})
def webhooks(caller: Known, hooks: Hooked) -> dict[str, Any]:
    """Who is told of events, and what came of the last deliveries."""
    require(caller, ADMIN)
    mine = [each for each in hooks.webhooks.all() if caller.covers(each.projects)]
    return {"webhooks": [_shown(hooks, each) for each in mine]}


@router.post("/webhooks", status_code=201, responses={201: {"model": Secret}})
def create_webhook(caller: Known, hooks: Hooked, given: NewWebhook) -> dict[str, Any]:
    """Tell an address of what happens from now on. This answer is the only one that shows the secret."""
    require(caller, ADMIN)
    projects = projects_for(caller, given.projects, "adds webhooks")
    hooks.targets.check(given.url)
    made = hooks.webhooks.add("out", given.url, given.types, projects)
    return {"webhook": _shown(hooks, made), "secret": made.secrets[0][0]}


@router.post("/webhooks/{webhook}/replay", responses={200: {"model": WebhookList}})
def replay(caller: Known, hooks: Hooked, webhook: Id, given: Again) -> dict[str, Any]:
    """Enable it, and tell all again that has happened since; their ids are those of the first time."""
    require_own(caller, "webhook", webhook, hooks.webhooks.all())
    since = given.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"webhooks": [_shown(hooks, hooks.webhooks.enable(webhook, since))]}


@router.delete("/webhooks/{webhook}", status_code=204)
def remove_webhook(caller: Known, hooks: Hooked, webhook: Id) -> None:
    """Tell it nothing more."""
    require_own(caller, "webhook", webhook, hooks.webhooks.all())
    hooks.webhooks.remove(webhook)


@router.post(
    "/hooks/{source}",
    response_model=None,
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
    },
)
def hook(
    request: Request,
    service: Serving,
    hooks: Hooked,
    source: Annotated[str, Path(pattern=r"^[\w.@+-]{1,64}$")],
    body: Annotated[bytes, Depends(body_of)],
) -> dict[str, Any]:
    """
    Take an event of a source that `fixloop webhook source` made, signed with its secret by Standard Webhooks.

    `fix.done` hands a patch or a revision in for a workflow that waits for a fix; `ci.completed` writes a result of
    a CI elsewhere into its history. The same `webhook-id` twice is one event.
    """
    found, told = hooks.webhooks.source(source), {name: request.headers.get(name, "") for name in _SIGNED}
    is_signed = False
    for secret in found.good_secrets(datetime.now(UTC)) if found is not None else ():
        # An error in the signature that the library does not expect also counts as a missing signature.
        with suppress(WebhookVerificationError, ValueError):
            Webhook(secret).verify(body, told, json_parse=False)
            is_signed = True
    if found is None or not is_signed:
        service.tokens.count_failure(address_of(request))
        refusal = f"no source {source} has signed this, or it is more than five minutes old"
        raise Problem("not-signed-in", refusal)
    caller = Caller(source, frozenset({READ, SUBMIT}), WEBHOOK, frozenset(found.projects))
    try:
        given = _HOOK.validate_json(body)
    except (ValueError, RecursionError) as error:
        raise Problem("invalid", f"this is no event that is taken: {str(error)[:500]}") from None
    key = told["webhook-id"]
    if isinstance(given, FixDone):
        fix = given.data
        return Desk(service, caller).done(fix.workflow_id, fix.patch, fix.revision, fix.summary, key)
    result = given.data
    seen = service.seen(caller, result.workflow_id)
    if seen.state.profile != "validation":
        raise Problem("refused", f"{seen.state.profile} workflows keep no results of a CI elsewhere")
    service.is_repeated(caller, key, result)
    event = ResultNoted(by=caller.signature, sender=USER, **result.model_dump(exclude={"workflow_id"}))
    service.acting(caller, f"hook/{key}").bring(result.workflow_id, event)
    service.follower.refresh(result.workflow_id)
    return {"status": "noted", "workflow_id": result.workflow_id}


def _shown(hooks: Hooks, endpoint: Endpoint) -> dict[str, Any]:
    return {**endpoint.shown(), **hooks.webhooks.standing(endpoint.id)._asdict()}
