"""Webhook endpoints and event sources, and how far each endpoint has been told, in Redis."""

import base64
import json
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import TypeAdapter

from fixloop.errors import UsageError
from fixloop.protocol.durations import iso_stamp
from fixloop.store import keys
from fixloop.store.connection import Connection
from fixloop.store.locks import Turns

ROTATION_HOURS: Final = 24
"""How long an earlier secret stays valid together with the new one."""


class Endpoint(NamedTuple):
    """A receiver of events (`out`) or a source of events (`in`)."""

    id: str
    kind: Literal["out", "in"]
    url: str
    """Of a source: its name."""
    secrets: tuple[tuple[str, str], ...]
    """`whsec_…` and the end of its validity (empty: none); the newest first. Both sides need them, so they are stored
    in plain text."""
    since: str
    """Only events after this time are sent."""
    types: tuple[str, ...] = ()
    """Prefixes of the event types that are sent; none: all types."""
    projects: tuple[str, ...] = ()
    """Eight hex digits each; none: all projects."""
    disabled: str = ""
    """Why nothing is sent any more; empty: it is enabled."""
    disabled_at: str = ""
    replays: int = 0
    """How often a replay was requested."""

    def good_secrets(self, now: datetime) -> list[str]:
        return [secret for secret, until in self.secrets if not until or until > iso_stamp(now)]

    def covers(self, workflow: str) -> bool:
        return not self.projects or workflow[:8] in self.projects

    @property
    def place(self) -> str:
        """The URL's scheme and host, without parts that may be secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}" if parts.netloc else self.url

    @property
    def notice(self) -> dict[str, str]:
        """A disabled endpoint's entry in the inbox."""
        text = f"webhook {self.id} to {self.place} is disabled: {self.disabled}"
        return {"text": text, "since": self.disabled_at, "command": f"fixloop webhook replay {self.id}"}

    def shown(self) -> dict[str, Any]:
        """All fields except the secrets."""
        return {name: value for name, value in self._asdict().items() if name != "secrets"}


class Standing(NamedTuple):
    """The state of an endpoint's deliveries."""

    delivered: int = 0
    last: str = ""
    """When a delivery last succeeded."""
    failures: int = 0
    """Consecutive failures."""
    due: str = ""
    """The time of the next attempt."""
    error: str = ""


class Webhooks:
    """Endpoints and sources stored in one Redis."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.turns = Turns(connection)

    def add(
        self, kind: Literal["out", "in"], url: str, types: Iterable[str] = (), projects: Iterable[str] = ()
    ) -> Endpoint:
        """Add an endpoint or source with a new secret; events from now on are sent."""
        made = Endpoint(
            secrets.token_hex(4),
            kind,
            url,
            ((_secret(), ""),),
            datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            tuple(types),
            tuple(sorted(projects)),
        )
        self._put(made)
        return made

    def all(self) -> list[Endpoint]:
        found = self._connection.call(lambda client: client.hgetall(keys.WEBHOOKS))
        made = (_endpoint(each.decode(), json.loads(text)) for each, text in found.items())
        return sorted(made, key=lambda each: (each.kind, each.since))

    def get(self, id: str) -> Endpoint:
        """Raises UsageError: no endpoint has this id."""
        text = self._connection.call(lambda client: client.hget(keys.WEBHOOKS, id))
        if text is None:
            raise UsageError(f"no webhook {id[:40]!r}; `fixloop webhook list` names them")
        return _endpoint(id, json.loads(text))

    def source(self, name: str) -> Endpoint | None:
        """The event source with this name."""
        return next((each for each in self.all() if each.kind == "in" and each.url == name), None)

    def disabled(self) -> list[Endpoint]:
        """The endpoints that need a person's attention."""
        return [each for each in self.all() if each.disabled]

    def remove(self, id: str) -> None:
        """Raises UsageError: no endpoint has this id."""
        self.get(id)
        gone = [keys.served_key(kind, id) for kind in ("standing", "sent", "turn")]
        self._connection.together(lambda pipe: (pipe.hdel(keys.WEBHOOKS, id), pipe.delete(*gone)))

    def rotate(self, id: str) -> Endpoint:
        """Make a new secret; earlier ones stay valid for ROTATION_HOURS, and every valid secret signs."""
        found, now = self.get(id), datetime.now(UTC)
        until = iso_stamp(now + timedelta(hours=ROTATION_HOURS))
        kept = tuple((secret, before or until) for secret, before in found.secrets[:2])
        made = found._replace(secrets=((_secret(), ""), *kept))
        self._put(made)
        return made

    def disable(self, id: str, why: str) -> None:
        """Stop sending until a person enables it."""
        self._put(self.get(id)._replace(disabled=why, disabled_at=iso_stamp(datetime.now(UTC))))

    def enable(self, id: str, since: str = "") -> Endpoint:
        """Resume sending where it stopped; with `since`, resend all events after that time, including delivered ones.
        Raises UsageError."""
        found = self.get(id)
        made = found._replace(disabled="", disabled_at="")
        if since:
            made = made._replace(since=since, replays=found.replays + 1)
        gone = [keys.served_key(kind, id) for kind in ("standing", *(("sent",) if since else ()))]
        self._connection.call(lambda client: client.delete(*gone))
        self._put(made)
        return made

    def standing(self, id: str) -> Standing:
        text = self._connection.call(lambda client: client.get(keys.served_key("standing", id)))
        return Standing(**json.loads(text)) if text else Standing()

    def stand(self, id: str, standing: Standing) -> None:
        key, text = keys.served_key("standing", id), json.dumps(standing._asdict())
        self._connection.call(lambda client: client.set(key, text))

    def sent(self, id: str) -> dict[str, str]:
        """Workflow → how far it has been told, as passed to `tell`."""
        found = self._connection.call(lambda client: client.hgetall(keys.served_key("sent", id)))
        return {workflow.decode(): mark.decode() for workflow, mark in found.items()}

    def tell(self, id: str, marks: Mapping[str, str], gone: Iterable[str] = ()) -> None:
        """Store how far workflows have been told, and drop the workflows in `gone`."""
        key, left = keys.served_key("sent", id), tuple(gone)
        if marks:
            self._connection.call(lambda client: client.hset(key, mapping=dict(marks)))
        if left:
            self._connection.call(lambda client: client.hdel(key, *left))

    def _put(self, endpoint: Endpoint) -> None:
        text = json.dumps({name: value for name, value in endpoint._asdict().items() if name != "id"})
        self._connection.call(lambda client: client.hset(keys.WEBHOOKS, endpoint.id, text))


def _secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def _endpoint(id: str, record: Mapping[str, Any]) -> Endpoint:
    known = {name: record[name] for name in Endpoint._fields if name in record}
    return TypeAdapter(Endpoint).validate_python(known | {"id": id})
