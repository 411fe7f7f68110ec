"""Mailboxes of declared outside agents, through kombu: letters that carry ids only, the text is in the store.

One topic exchange, `fixloop.messages`; one durable queue for each agent of a project, bound with
`{project}.{agent}.#`. A letter's routing key is `{project}.{agent}.{type}`, where `project` is its eight hex digits:
agents of one name in two projects do not mix. A letter that is lost costs nothing but time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import redis
from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.exceptions import KombuError
from kombu.messaging import Producer
from pydantic import BaseModel, ConfigDict, ValidationError

from fixloop.errors import InfrastructureError
from fixloop.protocol.messages import MAIN_AGENT, Message
from fixloop.protocol.outcome import Outcome
from fixloop.settings import celery_url
from fixloop.store.keys import feature_of

__all__ = ["EXCHANGE", "Letter", "Mailboxes", "Received", "letters_of", "queue_name"]

EXCHANGE: Final = Exchange("fixloop.messages", type="topic", durable=True)
_BOUNDED: Final = {
    "socket_timeout": 1.0,
    "socket_connect_timeout": 1.0,
    # The same as the workers': what is not acknowledged lies in one place for all queues of a broker.
    "visibility_timeout": 6 * 3600,
    "priority_steps": [0, 3, 6, 9],
}
_PATIENCE: Final = {"max_retries": 1, "interval_start": 0.1, "interval_step": 0.0, "interval_max": 0.1}
MOST_LETTERS: Final = 1000
"""Older ones make room: whatever is open is found in the state, and a mailbox that nobody reads has to end."""
_AWAY: Final = (redis.RedisError, KombuError, OSError)
_BY_STEPS: Final = frozenset({"failure-report", "fix-request", "escalation"})
"""Delivered by a step of their own, with attempts, a request with its report; the others are told as they are said."""


class Letter(BaseModel):
    """What lies in a mailbox."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    workflow: str
    message_id: str
    uid: str
    issue: int
    type: str
    """The kind of its body, such as `failure-report`."""

    @classmethod
    def of(cls, message: Message, workflow: str) -> "Letter":
        return cls(
            workflow=workflow,
            message_id=message.message_id,
            uid=message.uid,
            issue=message.issue,
            type=message.body.kind,
        )


class Received:
    """A letter that was taken out; it comes back to its queue unless it is acknowledged."""

    def __init__(self, letter: Letter | None, message: Any) -> None:
        self.letter = letter
        """None: what lay there is no letter of fixloop's."""
        self._message = message

    def acknowledge(self) -> None:
        """It was read: take it away for good."""
        with _answering():
            self._message.ack()


class Mailboxes:
    """A broker's mailboxes, for whoever writes to them and for whoever reads one."""

    def __init__(self, broker_url: str, *, most_letters: int = MOST_LETTERS) -> None:
        """
        Nothing is connected yet.

        Args:
            most_letters: so many a mailbox holds.
        """
        self._most = most_letters
        self._connection = Connection(celery_url(broker_url), transport_options=_BOUNDED)
        self._channel: Any = None

    def put(self, agent: str, letter: Letter, priority: int) -> None:
        """
        Store a letter in the mailbox that `agent` has in the letter's project, urgent ones before others (K13).

        Raises:
            InfrastructureError: the broker is away, or refuses the queue or the letter; nothing was stored.
        """
        project = feature_of(letter.workflow).partition("-")[0]
        with self._used() as channel:
            queue, waiting = _declared(channel, project, agent)
            if waiting >= self._most:
                queue.get(no_ack=True)
            Producer(channel, EXCHANGE, auto_declare=False).publish(
                letter.model_dump(),
                routing_key=f"{project}.{agent}.{letter.type}",
                serializer="json",
                priority=priority,
                delivery_mode="persistent",
            )

    def take(self, project: str, agent: str) -> Received | None:
        """
        The next letter, the most urgent one; None when there is none.

        Raises:
            InfrastructureError: the broker is away, or refuses the queue.
        """
        with self._used() as channel:
            queue, _ = _declared(channel, project, agent)
            found = queue.get(accept=["json"])
        if found is None:
            return None
        try:
            return Received(Letter.model_validate(found.payload), found)
        except (ValidationError, KombuError):
            return Received(None, found)

    def close(self) -> None:
        """What was taken and not acknowledged goes back."""
        with _answering():
            self._connection.release()

    @contextmanager
    def _used(self) -> Iterator[Any]:
        with _answering():
            try:
                if self._channel is None:
                    self._connection.ensure_connection(**_PATIENCE)
                    self._channel = self._connection.channel()
                yield self._channel
            except _AWAY:
                self._channel = None
                self._connection.collect()
                raise


def queue_name(project: str, agent: str) -> str:
    """The queue of an agent's mailbox; `project` is the project's hash."""
    return f"fixloop.mailbox.{project}.{agent}"


def letters_of(outcome: Outcome) -> list[tuple[Letter, int]]:
    """What an outcome says to its declared agent beside what has a step of its own, with the broker's priority."""
    if not outcome.state.agent:
        return []
    return [
        (Letter.of(message, outcome.state.workflow), message.priority.broker)
        for message in outcome.messages
        if message.recipient == MAIN_AGENT and message.body.kind not in _BY_STEPS
    ]


def _declared(channel: Any, project: str, agent: str) -> tuple[Queue, int]:
    """The queue, and how many letters wait in it."""
    name = queue_name(project, agent)
    queue = Queue(name, EXCHANGE(channel), routing_key=f"{project}.{agent}.#", durable=True)(channel)
    queue.exchange.declare()
    if not any(row[-1] == name for row in channel.get_table(EXCHANGE.name)):
        # kombu remembers what it has bound; a broker that was emptied since would drop every letter.
        channel.state.queue_bindings_delete(name)
        queue.declare()
    return queue, int(channel.queue_declare(name).message_count)


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except _AWAY as error:
        raise InfrastructureError(f"the broker did not take part: {' '.join(str(error).split())}") from None
