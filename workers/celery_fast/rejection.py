"""Rejects messages that no worker can take: logs, counts and keeps them (docs/decisions/0040).

The caller acknowledges the message, or has already removed it from the broker.
"""

import logging
import os
import queue
import threading
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from fixloop.errors import InfrastructureError
from fixloop.secrets.redaction import Redaction
from fixloop.servers.settings import named_urls
from fixloop.store.limits import MOST_REJECTED
from fixloop.store.records import RejectedMessage
from fixloop.store.redis_store import RedisStore
from workers.celery_fast.incoming import reason

log = logging.getLogger("fixloop.rejecting")

SHOWN_CHARACTERS: Final = 200
KEPT_BYTES: Final = 2_000
PAUSE_SECONDS: Final = 0.2
"""How long rejected messages are collected: each count is a write that Redis stores on its disk."""
MOST_WAITING: Final = 10_000
"""The most messages waiting to be counted while Redis is away; further ones are only logged."""


def reject(where: str, text: bytes, error: Exception) -> None:
    """Log, count and keep a message from the queue `where`; `text` may be its beginning."""
    why = _on_one_line(reason(error)[:SHOWN_CHARACTERS])
    log.warning("a message on %s is rejected: %s", where, why)
    # More than is kept, because a secret that is cut in two is not recognised.
    shown = text[: 2 * KEPT_BYTES].decode(errors="backslashreplace")
    try:
        _waiting(os.getpid()).put_nowait(RejectedMessage(datetime.now(UTC), where, why, shown))
    except queue.Full:
        log.warning("it is not counted: too many are")


def reject_message(message: Any, error: Exception) -> None:
    """Reject a kombu message, and acknowledge it."""
    where = str((message.delivery_info or {}).get("routing_key", ""))
    body = message.body if isinstance(message.body, bytes) else str(message.body).encode(errors="replace")
    headers = repr(message.headers)[:KEPT_BYTES].encode(errors="replace")
    reject(where, body[:KEPT_BYTES] + b" " + headers, error)
    if not message.acknowledged:
        message.ack()


@lru_cache(maxsize=1)
def _waiting(pid: int) -> "queue.Queue[RejectedMessage]":
    """The messages that this process has to count; starts the thread that counts them."""
    waiting: queue.Queue[RejectedMessage] = queue.Queue(MOST_WAITING)

    def count_for_ever() -> None:
        store, redaction = RedisStore(named_urls().state), Redaction.of((), os.environ)
        while True:
            some = [waiting.get()]
            time.sleep(PAUSE_SECONDS)
            while not waiting.empty():
                some.append(waiting.get())
            last, hide = some[-MOST_REJECTED:], redaction.text
            kept = [each._replace(text=_on_one_line(hide(each.text))[:KEPT_BYTES]) for each in last]
            try:
                store.reject(kept, len(some))
            except InfrastructureError as away:
                log.warning("%d rejected messages are not counted: %s", len(some), away)

    threading.Thread(target=count_for_ever, name="fixloop-rejecting", daemon=True).start()
    return waiting


def _on_one_line(text: str) -> str:
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
