"""Mailboxes of declared outside agents, through kombu; letters carry only ids, and the store has the texts.

There is one topic exchange, and one durable queue per agent of a project, bound with `{project}.{agent}.#`. `project`
is its eight hex digits, which keeps agents of one name in two projects apart. A lost letter costs only time.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Final, NamedTuple

from kombu.entity import Exchange, Queue
from kombu.exceptions import KombuError
from kombu.messaging import Producer
from kombu.transport.virtual import Channel as VirtualChannel
from pydantic import BaseModel, ValidationError

from fixloop.engine.profile import Told
from fixloop.servers.broker import SHORTLY, connection_to, errors_of, explained
from fixloop.store.keys import feature_of

EXCHANGE: Final = Exchange("fixloop.messages", type="topic", durable=True)
MOST_LETTERS: Final = 1000
"""Older letters are dropped: the state has what is open, and an unread mailbox must not grow without limit."""


class Letter(BaseModel, frozen=True, extra="ignore"):
    """The content of a mailbox entry."""

    workflow: str
    message_id: str
    uid: str
    issue: int
    type: str
    """The kind of the message's body, such as `failure-report`."""


class Received(NamedTuple):
    """A letter that was taken out; it returns to its queue unless it is acknowledged."""

    letter: Letter | None
    """None: the entry is no letter of fixloop's."""
    message: Any
    """kombu's message; None if kombu could not decode the entry."""
    explain: Callable[[], AbstractContextManager[None]]

    def acknowledge(self) -> None:
        """Remove the letter for good, because it was read."""
        if self.message is not None:
            with self.explain():
                self.message.ack()


class Mailboxes:
    """A broker's mailboxes, for writers and readers."""

    def __init__(self, broker_url: str, *, most_letters: int = MOST_LETTERS) -> None:
        self._most = most_letters
        self._url = broker_url
        self._connection: Any = connection_to(broker_url)
        self._channel: Any = None

    def put(self, agent: str, letter: Letter, priority: int) -> None:
        """Store a letter in the mailbox of `agent` in the letter's project, by priority (K13). Nothing was stored after
        an InfrastructureError."""
        project = feature_of(letter.workflow).partition("-")[0]
        with self._used() as channel:
            queue, waiting = _declared(channel, project, agent)
            if waiting >= self._most:
                with suppress(_Undecodable):
                    _first(queue, no_ack=True)
            Producer(channel, EXCHANGE, auto_declare=False).publish(
                letter.model_dump(),
                routing_key=f"{project}.{agent}.{letter.type}",
                serializer="json",
                priority=priority,
                delivery_mode="persistent",
            )

    def take(self, project: str, agent: str) -> Received | None:
        """The next letter, most urgent first; None if there is none."""
        with self._used() as channel:
            queue, _ = _declared(channel, project, agent)
            try:
                found = _first(queue, accept=["json"])
            except _Undecodable:
                return Received(None, None, self._explained)
        if found is None:
            return None
        try:
            return Received(Letter.model_validate(found.payload), found, self._explained)
        except (ValidationError, KombuError):
            return Received(None, found, self._explained)

    def close(self) -> None:
        """Return letters that were taken and not acknowledged."""
        with self._explained():
            self._connection.release()

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self._connection, self._url)

    @contextmanager
    def _used(self) -> Iterator[Any]:
        with self._explained():
            try:
                if self._channel is None:
                    self._connection.ensure_connection(**SHORTLY)
                    self._channel = self._connection.channel()
                yield self._channel
            except errors_of(self._connection):
                self._channel = None
                self._connection.collect()
                raise


def queue_name(project: str, agent: str) -> str:
    """The queue of an agent's mailbox; `project` is the project's hash."""
    return f"fixloop.mailbox.{project}.{agent}"


def announce(mailboxes: Mailboxes, told: Iterable[Told], workflow: str, issue: int) -> None:
    """Put a letter for each into its agent's mailbox. InfrastructureError if the broker is away: an agent that misses a
    letter finds what is open in the state."""
    for one in told:
        letter = Letter(workflow=workflow, message_id=one.message_id, uid=one.uid, issue=issue, type=one.kind)
        mailboxes.put(one.agent, letter, one.priority)


class _Undecodable(Exception):
    """A message that cannot be decoded; it is off the queue."""


def _first(queue: Queue, **how: Any) -> Any:
    """The first message of a queue, if any; _Undecodable if kombu cannot decode it."""
    try:
        return queue.get(**how)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        # By then it is off the list in Redis; RabbitMQ has only valid messages.
        raise _Undecodable from error


def _declared(channel: Any, project: str, agent: str) -> tuple[Queue, int]:
    name, arguments, is_bound = queue_name(project, agent), None, False
    is_virtual = isinstance(channel, VirtualChannel)
    if is_virtual:
        EXCHANGE(channel).declare()
        is_bound = any(row[-1] == name for row in channel.get_table(EXCHANGE.name))
        if not is_bound:
            # kombu remembers its bindings; a broker that was emptied since then would drop every letter.
            channel.state.queue_bindings_delete(name)
    else:
        from fixloop.servers.rabbitmq import queue_arguments

        arguments = queue_arguments(name)
    queue = Queue(
        name, EXCHANGE(channel), routing_key=f"{project}.{agent}.#", durable=True, queue_arguments=arguments
    )(channel)
    if not is_bound:
        queue.declare()
    return queue, int(channel.queue_declare(name, passive=not is_virtual).message_count)
