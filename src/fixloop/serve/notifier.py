"""Calls people about open decisions at the addresses of their contacts, and tells them when it is decided.

Redis stores what was sent, so that each person gets one message per escalation, whichever server sends it.
"""

import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from operator import methodcaller
from typing import Any, Final

from fixloop.commands.screen import short
from fixloop.errors import FixloopError, InfrastructureError
from fixloop.protocol.durations import iso_stamp
from fixloop.serve.access import READ, TERMINAL, Caller
from fixloop.serve.background import repeating
from fixloop.serve.contacts import Call, Contact, Contacts, due
from fixloop.serve.lists import Item
from fixloop.serve.problems import Problem
from fixloop.serve.service import DECIDABLE, Service
from fixloop.serve.tokens import Link
from fixloop.store import keys
from fixloop.store.connection import Connection
from fixloop.store.locks import Turns

log = logging.getLogger("fixloop.serve")

TICK_SECONDS: Final = 1.0
AGAIN_SECONDS: Final = 60
"""The pause after a failed call."""
LONGEST_TEXT: Final = 500
_TURN: Final = "calls"
_EVERYTHING: Final = Caller("fixloop", frozenset({READ}), TERMINAL)
Send = Callable[[Contact, str, str], bool]
"""Sends a title and a body to one person; returns whether it was accepted."""


class Notifier:
    """One thread that looks for open decisions and due calls."""

    def __init__(
        self,
        service: Service,
        connection: Connection,
        contacts: Contacts,
        address: str,
        send: Send,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`address` is the prefix of links."""
        self._service, self._connection, self._contacts = service, connection, contacts
        self._address, self._send, self._now = address, send, now
        self._turns, self._owner = Turns(connection), uuid.uuid4().hex
        self._again: dict[tuple[str, str], datetime] = {}
        self._stopping = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Call people until the end of the block."""
        self.name_contacts()
        with repeating("notifier", self.look, self._stopping):
            yield
        self._turns.end(_TURN)

    def name_contacts(self) -> None:
        """Make links valid for the current contacts. Raises InfrastructureError."""
        self._service.tokens.name_contacts({each.name: each.role for each in self._contacts.contact})

    def look(self) -> float:
        """Make the calls that are due, if this server has the turn; returns the seconds until the next look. Raises
        InfrastructureError."""
        waiting = {
            f"{item['workflow_id']} {item['escalation_id']}": item
            for item in self._service.waiting(_EVERYTHING)
            if item["waits_for"] in DECIDABLE and item["escalation_id"]
        }
        if not self._turns.take(_TURN, self._owner):
            return TICK_SECONDS
        known = {
            name.decode(): {mark: datetime.fromisoformat(at) for mark, at in json.loads(text).items()}
            for name, text in self._connection.call(lambda client: client.hgetall(keys.CALLS)).items()
        }
        for name, item in waiting.items():
            self._ask(name, item, known.get(name, {}))
        for name in known.keys() - waiting.keys():
            self._tell_answered(name, known[name])
        return TICK_SECONDS

    def _ask(self, name: str, item: Item, told: dict[str, datetime]) -> None:
        contacts = [each for each in self._contacts.contact if each.covers(item["workflow_id"])]
        each = timedelta(minutes=self._contacts.answer_minutes)
        opened, now = datetime.fromisoformat(item["since"]), self._now()
        for call in due(opened, each, contacts, told, now):
            if self._again.get((name, call.mark), now) > now or not self._turns.take(_TURN, self._owner):
                continue
            if self._send(call.contact, *self._question(item, call)):
                told[call.mark] = now
                self._again.pop((name, call.mark), None)
            else:
                log.warning("%s could not be told of %s; it is tried again", call.contact.name, name)
                self._again[name, call.mark] = now + timedelta(seconds=AGAIN_SECONDS)
                told.setdefault(f"failed {call.contact.name}", now)
            text = json.dumps({mark: iso_stamp(at) for mark, at in told.items()})
            self._connection.call(methodcaller("hset", keys.CALLS, name, text))

    def _question(self, item: Item, call: Call) -> tuple[str, str]:
        """The title and the text of a call, with a link made for it."""
        workflow, choices = item["workflow_id"], item.get("choices", ())
        version = self._service.seen(_EVERYTHING, workflow).found.version
        may = tuple(choice["answer"] for choice in choices if choice["answer"]) or ("*",)
        decisions = may if call.contact.role == "decider" else ()
        made = Link(call.contact.name, workflow, item["escalation_id"], version, decisions)
        advice = next((choice for choice in choices if choice.get("because")), None)
        lines = [
            # In an agent's words, which must not look like a line of this message.
            f"{item['reason']}{': ' + short(item['detail'], LONGEST_TEXT) if item['detail'] else ''}",
            f"{item['specialist']}, run {item['iteration']}; it has waited since {item['since']}.",
            *([f"Recommended: {advice['answer']}, because {advice['because']}."] if advice else []),
            f"Look at it, and decide: {self._address}/a/{self._service.tokens.link(made)}",
        ]
        begins = "Still open: " if call.what == "reminded" else ""
        return f"{begins}{_called(workflow, item)} waits for you", "\n".join(lines)

    def _tell_answered(self, name: str, told: Mapping[str, datetime]) -> None:
        workflow, _, escalation = name.partition(" ")
        try:
            made = self._service.decided(self._service.look(_EVERYTHING, workflow), escalation)
        except InfrastructureError:
            raise
        except (Problem, FixloopError):
            # Its workflow was purged, or cannot be read.
            made = None
        said = "It is no longer asked."
        if made:
            said = f"{made['by']} decided {made['decision']} at {made['at']}."
        for contact in self._contacts.contact:
            if f"asked {contact.name}" in told:
                title = f"{_called(workflow, {})} is decided"
                self._send(contact, title, f"{said} There is nothing left to do for you.")
        self._connection.call(lambda client: client.hdel(keys.CALLS, name))


def by_apprise(contact: Contact, title: str, body: str) -> bool:
    """Send a message to each of a contact's addresses; returns whether all accepted it."""
    import apprise

    addresses = apprise.Apprise()
    for url in contact.urls:
        addresses.add(url)
    return bool(addresses.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT))


def unknown_addresses(contacts: Contacts) -> list[str]:
    """The contacts with addresses that apprise does not know, and the number of the first one of each."""
    import apprise

    return [
        f"{contact.name}, url {number}"
        for contact in contacts.contact
        for number, url in enumerate(contact.urls, 1)
        if not apprise.Apprise().add(url)
    ]


def _called(workflow: str, item: Mapping[str, Any]) -> str:
    return short(f"#{workflow.split('-')[1]} {item.get('name') or ''}")
