"""Chats on a virtual clock: a directory, three roles that write what their templates ask for, and hand-made files."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fixloop.chat.directory import apply, read_chat
from fixloop.chat.events import Adopted, ChatClosed, ChatEvent, ChatRead, MessageWritten, Outcome
from fixloop.chat.findings import Finding
from fixloop.chat.opening import Plan, open_chat
from fixloop.chat.roles import TEMPLATES, Role
from fixloop.chat.rules import examine

TWIN, ARCHITECT, ENGINEER = Role.TWIN, Role.ARCHITECT, Role.ENGINEER
NAME = "0005-dx-gh-sync"
START = datetime(2025, 9, 6, tzinfo=UTC)
PLAN = Plan(
    area="dx",
    slug="gh-sync",
    title="Synchronise issues with chats",
    scope=("agents/gh_sync.py",),
    acceptance=("python -m pytest", "ruff check"),
    outputs=("a command gh-sync",),
    id="0005",
)


def body(role: Role, *, results: Iterable[str] = (), without: Iterable[str] = ()) -> str:
    """What a role writes: every section of its template, in order; `results` go under GATES."""
    parts = []
    for title in (title for title in TEMPLATES[role] if title not in without):
        told = "\n".join(f"- {result}" for result in results) if title == "GATES" else ""
        parts.append(f"## {title}\n\n{told or f'{title.lower()} of the {role}'}")
    return "\n\n".join(parts)


def message(sender: str = "architect", to: str = "engineer", seq: str = "001", **other: str) -> str:
    """A message file as somebody would write it by hand; `other` replaces front matter, header or body."""
    values = {
        "from": sender,
        "to": to,
        "chat": NAME,
        "seq": seq,
        "ts": "2025-09-06T00:00:00Z",
        "purpose": "Work",
    }
    values |= {key: value for key, value in other.items() if key not in ("header", "body")}
    front = "\n".join(f"{key}: {value}" for key, value in values.items() if value != "absent")
    written = other.get("body", body(Role(sender)) if sender in tuple(Role) else "STATUS: none")
    return f"---\n{front}\n---\n\n{other.get('header', f'-- TO {to.upper()}:')}\n\n{written}\n"


def meta(**other: str) -> str:
    """A meta.yaml as somebody would write it by hand; `absent` leaves a field out."""
    values = {
        "id": "'0005'",
        "slug": "gh-sync",
        "area": "dx",
        "title": "Synchronise issues with chats",
        "owner": "architect",
        "state": "open",
        "branch": "feat/dx-gh-sync-0005",
        "created": "'2025-09-06T00:00:00Z'",
        "scope": "[agents/gh_sync.py]",
        "acceptance": "[python -m pytest, ruff check]",
        "outputs": "[a command gh-sync]",
    }
    return "".join(f"{key}: {value}\n" for key, value in (values | other).items() if value != "absent")


class Stage:
    """One chat, played minute by minute."""

    def __init__(self, parent: Path) -> None:
        self.parent = parent
        self.path = parent / NAME
        self.now = START

    def open(self, plan: Plan = PLAN) -> "Stage":
        """The twin writes the contract."""
        self.path = open_chat(self.parent, plan, TWIN, self.now)
        return self

    def put(self, name: str, content: str | bytes) -> "Stage":
        """A file as somebody made it with an editor."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return self

    def let(self, event: ChatEvent) -> Outcome:
        """`event` happens a minute later."""
        self.now += timedelta(minutes=1)
        return apply(self.path, event, self.now)

    def adopt(self) -> "Stage":
        """What is there is older than the protocol."""
        self.let(Adopted())
        return self

    def post(self, by: Role, to: Role, purpose: str = "Work", text: str = "", **other: Any) -> Outcome:
        """Read, then answer."""
        self.let(ChatRead(by))
        written = MessageWritten(by, to, purpose, text or body(by))
        return self.let(written._replace(**other))

    def close(self, by: Role = ARCHITECT, status: str = "Completed", **texts: str) -> Outcome:
        return self.let(
            ChatClosed(by, status, texts.get("summary", "All done."), texts.get("decision", "Ship it."))
        )

    def findings(self, legacy_until: int = 0) -> list[Finding]:
        return examine(read_chat(self.path, NAME), legacy_until)

    def files(self) -> dict[str, bytes]:
        """Every file with its content, hidden ones too."""
        return {file.name: file.read_bytes() for file in sorted(self.path.iterdir())}

    def owner(self) -> str:
        contract = read_chat(self.path).contract
        return contract.value("owner") if contract is not None else ""
