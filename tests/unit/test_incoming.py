"""Which messages a worker accepts from the broker: decided before Celery sees them."""

from collections.abc import Callable
from typing import Any

import pytest
from kombu.connection import Connection

from tests.attacks.messages import KINDS, POISON, POISON_OF_REDIS, Message, honest
from workers.app import app
from workers.celery_fast.incoming import Headers, arrived, opened, reason

TASKS = [kind for kind in KINDS if kind != "control"]


app.loader.import_default_modules()


@pytest.fixture
def taken() -> Callable[[Message], Headers]:
    """A message as from a list in Redis, by kombu's transport in memory."""
    connection: Any = Connection("memory://")
    channel = connection.channel()
    return lambda message: arrived(channel.Message(opened(message.for_redis()), channel=channel), app.tasks)


@pytest.mark.parametrize("kind", TASKS)
def test_messages_that_fixloop_sends_are_accepted(kind: str, taken: Callable[[Message], Headers]) -> None:
    assert taken(honest(kind)).task == f"fixloop.{kind}"


@pytest.mark.parametrize(
    "spoil", [*POISON.values(), *POISON_OF_REDIS.values()], ids=[*POISON, *POISON_OF_REDIS]
)
def test_messages_of_another_form_are_rejected(
    spoil: Callable[[Message], Message], taken: Callable[[Message], Headers]
) -> None:
    for kind in TASKS:
        with pytest.raises(Exception) as refused:  # noqa: PT011 - kombu's, JSON's, our own: each is one reason
            taken(spoil(honest(kind)))

        assert reason(refused.value), kind
