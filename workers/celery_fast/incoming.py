"""Validates messages from the broker: only fixloop's own forms are accepted (docs/decisions/0040)."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from kombu.utils.json import loads
from pydantic import AfterValidator, BaseModel, Field, FiniteFloat, ValidationError

from fixloop.store.keys import issue_of, workflow_of

_LONGEST_BYTES: Final = 1_000_000
"""The longest message; fixloop's own have a few hundred bytes and a description of the task."""
_LONGEST_DELAY: Final = timedelta(days=1)
"""The longest delay: a worker keeps the message in memory until it is due; fixloop's own wait for minutes."""
_OURS: Final = "fixloop."
"""The prefix of all task names that a worker does; Celery's built-in tasks may not be sent."""
_CONTENT: Final = "application/json", "utf-8"
_ABOUT_A_TICKET: Final = "."
"""A task id with this character is a ticket's id, and the task is a step."""


class _Form(BaseModel, strict=True, extra="ignore"):
    pass


class _Call(BaseModel, strict=True, extra="forbid"):
    """The named arguments of a task; a subclass is the task's attribute `form`."""


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _is_soon(text: str) -> str:
    if _time(text) - datetime.now(UTC) > _LONGEST_DELAY:
        raise ValueError("it is more than a day away")
    return text


_Word = Annotated[str, Field(min_length=1, max_length=300)]
_Line = Annotated[str, Field(max_length=10_000)]
_Time = Annotated[str, AfterValidator(lambda text: _time(text) and text)]
_SoonTime = Annotated[str, AfterValidator(_is_soon)]


class _Signature(_Form):
    """A task that is sent after another one."""

    task: Annotated[str, Field(pattern=r"^fixloop\.")]
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    options: dict[str, Any] = {}


class _Embedded(_Form):
    callbacks: list[_Signature] | None = None
    errbacks: list[_Signature] | None = None
    chain: list[_Signature] | None = None
    chord: None = None


class Headers(_Form):
    """The headers of Celery that it acts on."""

    task: _Word
    id: _Word
    shadow: _Line | None = None
    root_id: _Line | None = None
    parent_id: _Line | None = None
    group: _Line | None = None
    group_index: int | None = None
    retries: Annotated[int, Field(ge=0, le=1000)] | None = None
    replaced_task_nesting: Annotated[int, Field(ge=0, le=1000)] | None = None
    eta: _SoonTime | None = None
    expires: _Time | None = None
    timelimit: Annotated[list[None], Field(min_length=2, max_length=2)] | None = None
    ignore_result: bool | None = None
    stamped_headers: list[str] | None = None
    stamps: dict[str, Any] | None = None
    argsrepr: str | None = None
    kwargsrepr: str | None = None
    origin: _Line | None = None
    compression: None = None


class StepCall(_Call):
    """The arguments of a step's task."""

    ticket: _Word
    issue: int
    specialist: _Line
    iteration: int


class DeadlineCall(_Call):
    """The arguments of the deadline task."""

    workflow: _Word
    name: _Word
    due: FiniteFloat
    issue: int


class _Delivery(_Form):
    exchange: str
    routing_key: str


class _Properties(_Form):
    delivery_tag: _Word
    delivery_info: _Delivery
    priority: int | None = None
    body_encoding: Literal["base64", "utf-8"] | None = None
    correlation_id: str | None = None
    reply_to: str | None = None


class _Envelope(_Form):
    """The envelope of kombu's Redis transport."""

    body: str = ""
    headers: dict[str, Any]
    properties: _Properties
    content_type: str = Field(alias="content-type")
    content_encoding: str = Field(alias="content-encoding")


class _Reply(_Form):
    exchange: Literal["reply.celery.pidbox"]
    routing_key: _Word


class Order(_Form):
    """A remote control command to all workers. Patterns of worker names are refused: neither fixloop nor Flower uses
    them, and matching one may take for ever."""

    method: _Word
    arguments: dict[str, Any] | None = None
    destination: list[str] | None = None
    pattern: None = None
    matcher: None = None
    ticket: str | None = None
    reply_to: _Reply | None = None


def opened(data: bytes) -> dict[str, Any]:
    """The message in an item of a Redis list. ValueError if it is malformed; kombu may raise other errors over its
    content."""
    if len(data) > _LONGEST_BYTES:
        raise ValueError(f"it has {len(data)} bytes")
    message: dict[str, Any] = loads(data.decode())
    _Envelope.model_validate(message)
    if "compression" in message["headers"]:
        raise ValueError("it is compressed")
    if message["properties"].get("body_encoding") == "base64":
        base64.b64decode(message["body"])
    return message


def arrived(message: Any, known: Mapping[str, Any]) -> Headers:
    """The headers of a kombu message, if fixloop sends such messages. `known` are this worker's tasks by name; the
    `form` of each is a model of its named arguments. ValueError if the message is malformed or harmful; kombu may raise
    other errors over its content."""
    if len(message.body or b"") > _LONGEST_BYTES:
        raise ValueError(f"its body has {len(message.body)} bytes")
    if message.content_type != _CONTENT[0] or str(message.content_encoding).lower() != _CONTENT[1]:
        raise ValueError(f"it is not {_CONTENT[0]} in {_CONTENT[1]}")
    headers, payload = message.headers, message.payload
    if "task" in headers:
        if not isinstance(payload, list) or len(payload) != 3:
            raise ValueError("its body is not a list of arguments, named arguments and what follows")
        args, kwargs, embedded = payload
    else:  # the first version of Celery's protocol, which some clients speak
        if not isinstance(payload, dict):
            raise ValueError("it names no task")
        headers = {**payload, **headers}
        args, kwargs, embedded = payload.get("args", []), payload.get("kwargs", {}), payload
    told = Headers.model_validate(headers)
    _Embedded.model_validate(embedded if embedded is not None else {})
    if args != []:
        raise ValueError("it has arguments without a name, or none at all")
    if not told.task.startswith(_OURS):
        raise ValueError(f"no fixloop has a task {told.task}")
    if told.task in known:
        _check_call(told, kwargs, getattr(known[told.task], "form", None))
    return told


def reason(error: Exception) -> str:
    """Why a message was rejected, as a clause."""
    if isinstance(error, ValidationError):
        found = error.errors(include_url=False, include_context=False, include_input=False)
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found[:3])
    return str(error) or type(error).__name__


def _check_call(told: Headers, kwargs: Any, form: type[BaseModel] | None) -> None:
    """Refuse arguments that do not fit the task; UsageError if the id of a ticket or workflow is malformed."""
    call = (form or _Call).model_validate(kwargs)
    if isinstance(call, DeadlineCall):
        issue_of(call.workflow)
    if not isinstance(call, StepCall):
        if _ABOUT_A_TICKET in told.id:
            raise ValueError("its id is that of a step")
        return
    workflow_of(call.ticket)
    if call.ticket != told.id:
        raise ValueError("its id is not that of its ticket")
    if told.expires is not None:
        raise ValueError("a step does not expire")
