"""Broker messages of every kind that fixloop sends, and how they may be altered: a `Message` is sent as it is.

Nothing of the application is loaded: messages are written as in Celery's protocol.
"""

import base64
import copy
import json
import struct
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any, Final

import amqp
import redis

CONTROL_EXCHANGE: Final = "celery.pidbox"
"""The exchange for remote control of all workers."""
_STEPS: Final = {
    "validation.validate": "fixloop.test-runner",
    "validation.fix": "fixloop.fix",
    "validation.report": "fixloop.control",
    "validation.escalate": "fixloop.control",
    "cycle.work": "fixloop.cycle",
    "handoff.work": "fixloop.handoff",
}
_OTHERS: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "validation.deadline": (
        "fixloop.control",
        {"workflow": "0a1b2c3d-7-1", "name": "global", "due": 12.5, "issue": 7},
    ),
    "validation.start": ("celery", {"issue": 7, "repo": "/nowhere/at/all"}),
    "validation.prepare": ("fixloop.prepare", {"issue": 7, "repo": "/nowhere/at/all"}),
    "chat.validate": ("celery", {"path": "/nowhere/at/all", "title": None}),
    "chat.examine": ("fixloop.prepare", {"path": "/nowhere/at/all", "title": None}),
}
KINDS: Final = (*_STEPS, *_OTHERS, "control")
"""The tasks, by their names without `fixloop.`, and remote control."""


@dataclass(frozen=True)
class Message:
    """One message, in parts that can each be wrong."""

    queue: str
    """Or the exchange of remote control."""
    headers: Any
    body: Any
    """As JSON, unless it is bytes."""
    properties: dict[str, Any] = field(default_factory=dict)
    """In addition to those that a broker needs."""
    content_type: Any = "application/json"
    content_encoding: Any = "utf-8"
    envelope: bytes = b""
    """The whole message as Redis gets it, if it is no valid envelope."""
    fields: bytes = b""
    """The headers and properties as RabbitMQ gets them, if the driver would not write them."""

    @property
    def text(self) -> bytes:
        """The body as it is sent."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()

    def for_redis(self) -> bytes:
        """What kombu's Redis transport puts on a list."""
        if self.envelope:
            return self.envelope
        whole = {
            "body": base64.b64encode(self.text).decode(),
            "content-encoding": self.content_encoding,
            "content-type": self.content_type,
            "headers": self.headers,
            "properties": {
                "delivery_mode": 2,
                "delivery_info": {"exchange": "", "routing_key": self.queue},
                "priority": 0,
                "body_encoding": "base64",
                "delivery_tag": str(uuid.uuid4()),
                **self.properties,
            },
        }
        return json.dumps(whole).encode()


def honest(kind: str, number: int = 1) -> Message:
    """A message as fixloop sends it, of a workflow that does not exist."""
    if kind == "control":
        order: dict[str, Any] = {"method": "ping", "arguments": {}, "destination": None}
        return Message(CONTROL_EXCHANGE, {"clock": number}, order)
    if kind in _STEPS:
        ticket = f"0a1b2c3d-{number}-1.test-runner.validate.1.1"
        told = {"ticket": ticket, "issue": number, "specialist": "test-runner", "iteration": 1}
        return _task(kind, ticket, _STEPS[kind], told)
    queue, told = _OTHERS[kind]
    return _task(kind, str(uuid.UUID(int=number)), queue, dict(told))


def _task(kind: str, task_id: str, queue: str, kwargs: dict[str, Any]) -> Message:
    headers: dict[str, Any] = {
        "lang": "py",
        "task": f"fixloop.{kind}",
        "id": task_id,
        "shadow": None,
        "eta": None,
        "expires": None,
        "group": None,
        "group_index": None,
        "retries": 0,
        "timelimit": [None, None],
        "root_id": task_id,
        "parent_id": None,
        "argsrepr": "()",
        "kwargsrepr": "{}",
        "origin": "gen1@host",
        "ignore_result": True,
        "replaced_task_nesting": 0,
        "stamped_headers": None,
        "stamps": {},
    }
    embed: dict[str, Any] = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    return Message(queue, headers, [[], kwargs, embed])


def _header(name: str, value: Any) -> Callable[[Message], Message]:
    return lambda message: replace(message, headers={**message.headers, name: value})


def _body(body: Any) -> Callable[[Message], Message]:
    return lambda message: replace(message, body=body)


def _property(name: str, value: Any) -> Callable[[Message], Message]:
    return lambda message: replace(message, properties={name: value})


def _envelope(envelope: bytes) -> Callable[[Message], Message]:
    return lambda message: replace(message, envelope=envelope)


POISON: Final[Mapping[str, Callable[[Message], Message]]] = {
    "a body that is a dictionary": _body({"args": 1}),
    "a body that is a number": _body(5),
    "a body that is no JSON": _body(b"\xff\xfe{"),
    "a body that is too deep": _body(b"[" * 100_000),
    "a body of one part": _body([[]]),
    "an id that is a list": _header("id", ["a"]),
    "an id that is a dictionary": _header("id", {}),
    "no id": lambda message: replace(
        message, headers={name: value for name, value in message.headers.items() if name != "id"}
    ),
    "a task that is a list": _header("task", ["fixloop.validation.validate"]),
    "a task of nobody": _header("task", "os.system"),
    "a task of Celery's own": _header("task", "celery.chord_unlock"),
    "a time that is a number": _header("eta", 5),
    "a time that is none": _header("expires", "tomorrow"),
    "a limit that is a word": _header("timelimit", "soon"),
    "one limit of two": _header("timelimit", [None]),
    "three limits": _header("timelimit", [None, None, None]),
    "stamps that are a number": _header("stamped_headers", 5),
    "retries that are a word": _header("retries", "many"),
    "a compression": _header("compression", "zlib"),
    "arguments that are none": _body([None, None, None]),
    "arguments of nobody": _body([[1, 2], {"a": 1}, {}]),
    "arguments that are a number": lambda message: replace(message, body=[0, *message.body[1:]]),
    "a chain that is a word": lambda message: replace(message, body=[*message.body[:2], {"chain": "on"}]),
    "another kind of content": lambda message: replace(
        message, content_type="application/x-python-serialize"
    ),
    "an encoding that is none": lambda message: replace(message, content_encoding="no-such-code"),
}
"""Messages that were seen to end a worker, and similar ones, for any broker and any task."""

POISON_OF_REDIS: Final[Mapping[str, Callable[[Message], Message]]] = {
    "headers that are a number": lambda message: replace(message, headers=5),
    "a tag that is a dictionary": _property("delivery_tag", {}),
    "a place that is a word": _property("delivery_info", "here"),
    "a priority without end": _property("priority", 1e999),
    "no text": _envelope(b"\xff\xff"),
    "no JSON": _envelope(b"not json"),
    "a number": _envelope(b"5"),
    "a list": _envelope(b"[]"),
    "nothing": _envelope(b"{}"),
    "depth": _envelope(b"[" * 100_000),
    "endless digits": _envelope(b"9" * 10_000),
}
"""What only Redis accepts: it requires no format."""

_DEEP: Final = 3000
# How deep a pickle may be depends on the Python: 900 levels are too much for 3.11 and 3.12, 7,000 for 3.13.
_TOO_DEEP: Final = 7000 if sys.version_info >= (3, 13) else 900
TOO_DEEP: Final = _header("stamps", json.loads('{"a":' * _TOO_DEEP + "1" + "}" * _TOO_DEEP))
"""It is read, and cannot be passed on to another process."""
POISON_OF_RABBITMQ: Final[Mapping[str, Callable[[Message], Message]]] = {
    name: partial(replace, fields=fields)
    for name, fields in {
        "a kind of content that is no text": b"\x80\x00\x02\xff\xfe",
        "a header of no known type": b"\x20\x00\x00\x00\x00\x03\x01a?",
        "a time beyond all time": b"\x20\x00\x00\x00\x00\x0b\x01aT" + b"\x7f" * 8,
        "depth": b"\x20\x00"
        + struct.pack(">I", 3 + 5 * _DEEP - 1)
        + b"\x01a"
        + b"".join(b"A" + struct.pack(">I", 5 * level) for level in range(_DEEP - 1, -1, -1)),
    }.items()
}
"""What only RabbitMQ accepts: it passes on what it does not read."""

_ODD: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 2**63, 10**400, 1e308, float("inf"), float("nan"), "", "x" * 3000, "\0", "\udcff"),
    *(
        "\u202e",
        [],
        {},
        [[]],
        {"a": {}},
        ["a"],
        [None, None, None],
        {"__type__": "datetime", "__value__": "x"},
    ),
    *(
        "1970-01-01T00:00:00",
        "9999-12-31T23:59:59+00:00",
        "fixloop.validation.fix",
        "0a1b2c3d-1-1.x",
        "../../etc",
    ),
)


def mutated(random: Random, number: int) -> Message:
    """A message of some kind with one to three changes."""
    message = honest(random.choice(KINDS), number)
    if message.queue != CONTROL_EXCHANGE and random.random() < 0.3:
        return random.choice([*POISON.values(), *POISON_OF_REDIS.values()])(message)
    whole = {
        "headers": copy.deepcopy(message.headers),
        "body": copy.deepcopy(message.body),
        "properties": {"priority": 3, "correlation_id": "c", "reply_to": "r"},
        "content_type": message.content_type,
        "content_encoding": message.content_encoding,
    }
    for _ in range(random.randint(1, 3)):
        _change(random, whole)
    made = Message(message.queue, **whole) if isinstance(whole["properties"], dict) else message
    return _damaged(random, made) if random.random() < 0.2 else made


def _change(random: Random, whole: dict[str, Any]) -> None:
    """Change, remove or wrap something, wherever it is."""
    place, key = random.choice(list(_places(whole)))
    how = random.random()
    if how < 0.6:
        place[key] = copy.deepcopy(random.choice(_ODD))
    elif how < 0.8 and place is not whole:
        del place[key]
    else:
        place[key] = [place[key]]


def _places(within: Any) -> Iterator[tuple[Any, Any]]:
    pairs = within.items() if isinstance(within, dict) else enumerate(within)
    for key, value in list(pairs):
        yield within, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _damaged(random: Random, message: Message) -> Message:
    """Bytes are cut off, or changed: of the body, or of all that Redis gets."""
    data = bytearray(message.for_redis() if random.random() < 0.5 else message.text)
    is_whole = bytes(data) != message.text
    if random.random() < 0.5:
        del data[random.randrange(len(data) + 1) :]
    for _ in range(random.randint(0, 4) if data else 0):
        data[random.randrange(len(data))] = random.randrange(256)
    kept = bytes(data)
    return replace(message, envelope=kept or b"\0") if is_whole else replace(message, body=kept)


def send_redis(client: "redis.Redis", message: Message, *, database: int) -> None:
    """Put it into the workers' queue."""
    if message.queue == CONTROL_EXCHANGE:
        client.publish(f"/{database}.{CONTROL_EXCHANGE}", message.for_redis())
    else:
        client.lpush(message.queue, message.for_redis())


class _Raw(amqp.Message):  # type: ignore[misc]
    """A message whose properties are bytes."""

    def __init__(self, message: Message) -> None:
        super().__init__(message.text)
        self.fields = message.fields

    def _serialize_properties(self) -> bytes:
        return self.fields


def send_rabbitmq(channel: Any, message: Message) -> bool:
    """Send it if the protocol can express it; False if not."""
    properties = {
        "application_headers": message.headers,
        "content_type": message.content_type,
        "content_encoding": message.content_encoding,
        "priority": 2,
        **{name: value for name, value in message.properties.items() if name in _OF_RABBITMQ},
    }
    exchange, key = ("", message.queue) if message.queue != CONTROL_EXCHANGE else (message.queue, "")
    try:
        made = _Raw(message) if message.fields else amqp.Message(message.text, **properties)
        channel.basic_publish_confirm(made, exchange=exchange, routing_key=key)
    except (amqp.FrameSyntaxError, struct.error, ValueError, TypeError, AttributeError, RecursionError):
        return False  # the driver has no form for it
    except (amqp.ConnectionError, OSError):
        return False  # RabbitMQ refuses it, and closes the connection
    return True


_OF_RABBITMQ: Final = ("priority", "correlation_id", "reply_to")
