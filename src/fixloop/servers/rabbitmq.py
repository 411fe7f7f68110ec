"""RabbitMQ as Celery's broker, transparent to other code; loaded only for such a broker.

On Redis priority 0 is served first; RabbitMQ serves the highest first and needs to know it when a queue is declared.
Queues are classic ones: a hint need not be replicated, and only classic queues have priorities in every version.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Final

from amqp.method_framing import frame_handler
from amqp.serialization import decode_properties_basic
from celery.app import amqp as celery_amqp
from kombu.entity import Queue
from kombu.transport import pyamqp

from fixloop.servers.broker_url import PRIORITY_STEPS, VISIBILITY_SECONDS

HIGHEST: Final = len(PRIORITY_STEPS) - 1
UNUSED_SECONDS: Final = 3600
"""How long after a `fixloop run` its own queue is removed."""
_HEADER: Final = 2
"""The kind of frame with a message's size and properties."""
_FIXED: Final = 12
"""Its bytes before the properties."""
_NO_PROPERTIES: Final = b"\0\0"
FOREIGN: Final = "celery"
"""The queue for callers that only have Celery: declared with Celery's arguments, or they would be refused."""


def queue_arguments(name: str) -> dict[str, Any] | None:
    """The arguments a queue is declared with, which must be the same for all its users."""
    if name == FOREIGN:
        return None
    arguments: dict[str, Any] = {
        "x-queue-type": "classic",
        "x-max-priority": HIGHEST,
        # The default is 30 minutes, which a check or a fix may exceed; supported from 3.12 on, ignored before.
        "x-consumer-timeout": VISIBILITY_SECONDS * 1000,
    }
    if name.startswith("run-"):
        arguments["x-expires"] = UNUSED_SECONDS * 1000
    return arguments


class Channel(pyamqp.Channel):
    """Sends priorities in RabbitMQ's order, and receives them in Redis's."""

    def prepare_message(self, body: Any, priority: Any = None, *further: Any, **named: Any) -> Any:
        kombus: Any = super()
        level = HIGHEST - (bisect_right(PRIORITY_STEPS, priority or 0) - 1)
        return kombus.prepare_message(body, level, *further, **named)

    def message_to_python(self, raw_message: Any) -> Any:
        level = raw_message.properties.get("priority") or 0
        raw_message.properties["priority"] = PRIORITY_STEPS[HIGHEST - min(level, HIGHEST)]
        kombus: Any = super()
        return kombus.message_to_python(raw_message)


class _Driver(pyamqp.Connection):
    Channel = Channel

    def __init__(self, *args: Any, hosts: Any = (), **options: Any) -> None:
        super().__init__(*args, frame_handler=_tolerant, **options)


def _tolerant(connection: Any, callback: Any) -> Callable[[Any], Any]:
    """The driver's frame reader; unreadable properties are dropped, or the message would be redelivered for ever."""
    drivers = frame_handler(connection, callback)

    def on_frame(frame: Any) -> Any:
        kind, channel, data = frame
        if kind != _HEADER:
            return drivers(frame)
        try:
            decode_properties_basic(data, _FIXED)
        except Exception:  # of text, numbers and times alike; nothing is asked of anybody
            return drivers((kind, channel, bytes(data[:_FIXED]) + _NO_PROPERTIES))
        return drivers(frame)

    return on_frame


class Transport(pyamqp.Transport):
    """kombu's transport with these channels; a refusal by the broker is an OperationalError for the sender."""

    Connection = _Driver
    recoverable_channel_errors = pyamqp.Transport.channel_errors

    def establish_connection(self) -> Any:
        """Connect to the host that served last, or else to the next of `hosts` that serves."""
        kombus: Any = super()
        told: Any = self.client
        hosts = [(told.hostname, told.port)]
        hosts += [host for host in told.transport_options.get("hosts", ()) if host != hosts[0]]
        for number, (told.hostname, told.port) in enumerate(hosts, 1):
            try:
                return kombus.establish_connection()
            except (*self.connection_errors, OSError):
                if number == len(hosts):
                    raise
        raise AssertionError("there is always a host")


class TLSTransport(Transport, pyamqp.SSLTransport):
    """`Transport` with TLS."""


class Queues(celery_amqp.Queues):  # type: ignore[misc]
    """Queues that are created when they are first named."""

    def new_missing(self, name: str) -> Queue:
        """A queue with fixloop's arguments, bound to the common exchange."""
        return Queue(name, None, name, queue_arguments=queue_arguments(name))


class AMQP(celery_amqp.AMQP):  # type: ignore[misc]
    """Sends and receives an app's messages."""

    queues_cls = Queues
