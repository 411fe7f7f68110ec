"""The messages a declared agent has to read: what the state has open for it, and other letters in its mailbox.

The state is read first, so a mailbox may lose everything without harm; a letter that no longer matters is dropped.
"""

from collections.abc import Iterable
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fixloop.engine.engine import Engine
from fixloop.engine.history import Said, said
from fixloop.engine.profile import load_state
from fixloop.errors import ProtocolError, UsageError
from fixloop.protocol.documents import STATUS_CHANGE, change_uid
from fixloop.protocol.event import Unexpected
from fixloop.protocol.events import Event, FixAcknowledged, ReceiptGiven
from fixloop.protocol.messages import MAIN_AGENT, Message
from fixloop.protocol.rendering import render_delivery
from fixloop.protocol.roles import WrongParty
from fixloop.protocol.specialists import WITH_MAIN_AGENT, Transition
from fixloop.protocol.state import State
from fixloop.store.contract import Store
from fixloop.store.damage import reading
from fixloop.store.records import RejectedMessage

if TYPE_CHECKING:  # kombu is loaded only where a mailbox is opened
    from fixloop.outside.mailbox import Letter, Mailboxes, Received

MOST_AT_ONCE: Final = 100
"""How many letters are taken before their messages are shown; the others wait for the next call."""
_OF_A_REQUEST: Final = frozenset({"fix-request", "protocol-violation", "timeout-reminder"})
"""Messages that follow a failure report and are useless without it."""


class Mail(NamedTuple):
    """A message that its agent has not handled."""

    state: State
    line: Said
    received: "Received | None" = None
    """The letter, if it came with one."""

    @property
    def message(self) -> Message:
        return self.line.message

    @property
    def text(self) -> str:
        """The text for its reader: a failure report comes with its request and the rules for fixing."""
        return render_delivery(self.message) if self.is_request else self.line.rendered

    @property
    def is_request(self) -> bool:
        return self.message.body.kind == "failure-report"

    def acknowledge(self, engine: Engine, agent: str, *, sender: str = MAIN_AGENT) -> None:
        """Send the receipt, and only then remove the letter; a repetition has no further effect (G1, R8)."""
        message = self.message
        shared: dict[str, Any] = {"uid": message.uid, "by": agent, "sender": sender}
        receipt: Event = ReceiptGiven(message_id=message.message_id, **shared)
        if self.is_request:
            receipt = FixAcknowledged(specialist=message.specialist, iteration=message.iteration, **shared)
        try:
            if not self.state.ended:
                engine.apply(self.state.workflow, receipt, operation=f"receipt/{message.uid}")
        except WrongParty:
            raise
        except Unexpected:
            pass  # somebody was faster; it is read all the same
        if self.received is not None:
            self.received.acknowledge()


class Change(NamedTuple):
    """A status change that its agent has not been shown yet."""

    letter: "Letter"
    change: Transition


def waiting(store: Store, project: str, agent: str) -> list[Mail]:
    """The agent's open messages according to the state, most urgent first; `project` is the project's hash."""
    found: list[Mail] = []
    for workflow, fields in store.workflows(live_only=True):
        # The plain fields exclude nearly all workflows; only the rest needs the snapshot.
        asked = bool(fields.get("paused")) or fields.get("status") in WITH_MAIN_AGENT
        if asked and fields.get("agent") == agent and workflow.startswith(f"{project}-"):
            # A damaged workflow must not keep others from being read.
            with suppress(ProtocolError), reading(workflow):
                state = _state(store, workflow)
                if state is None:
                    continue
                for line in said(store.history(workflow)):
                    if line.message.recipient == MAIN_AGENT and _is_open(state, line.message):
                        found.append(Mail(state, line))
    return _in_order(found)


def arrived(
    store: Store,
    mailboxes: "Mailboxes",
    project: str,
    agent: str,
    known: Iterable[Mail],
    others: "list[Letter] | None" = None,
    changes: "list[Received] | None" = None,
) -> list[Mail]:
    """`known` with their letters, and other letters in the mailbox that still matter. `others` gets letters about
    workflows of other profiles, whose state says what is open. `changes` gets letters about status changes, which open
    nothing and stay in the mailbox until they have been shown."""
    found = {mail.message.uid: mail for mail in known}
    for _ in range(MOST_AT_ONCE):
        received = mailboxes.take(project, agent)
        if received is None:
            break
        if received.letter is not None and received.letter.type == STATUS_CHANGE:
            if changes is not None:
                changes.append(received)
            continue
        if received.letter is None:
            told = RejectedMessage(store.now(0).at, f"the mailbox of {agent}", "it is no letter", "")
            store.reject([told], 1)
        mail = _read(store, received.letter)
        if others is not None and mail is None and received.letter is not None:
            others.append(received.letter)
        if mail is None or (mail.message.uid in found and found[mail.message.uid].received is not None):
            received.acknowledge()
        else:
            found[mail.message.uid] = mail._replace(received=received)
    return _in_order(found.values())


def changed(store: Store, letters: "Iterable[Received]") -> list[Change]:
    """The status changes in letters, oldest first, without those that the store no longer has (A50)."""
    asked = {each.letter.uid: each.letter for each in letters if each.letter is not None}
    found = [
        Change(letter, change)
        for workflow in {letter.workflow for letter in asked.values()}
        for entry in (store.history(workflow) if _state(store, workflow) is not None else ())
        for change in map(Transition.model_validate, entry.body.get("transitions", ()))
        if (letter := asked.get(change_uid(workflow, change))) is not None
    ]
    return sorted(found, key=lambda each: each.change.at)


def known_agents(store: Store, project: str) -> set[str]:
    """The agents named by workflows of a project."""
    agents = {fields.get("agent", "") for name, fields in store.workflows() if name.startswith(f"{project}-")}
    return agents - {""}


def _read(store: Store, letter: "Letter | None") -> Mail | None:
    """The message a letter is about, if it still matters."""
    state = _state(store, letter.workflow) if letter is not None else None
    if letter is None or state is None:
        return None
    with suppress(ProtocolError), reading(letter.workflow):
        for line in said(store.history(letter.workflow)):
            if line.message.uid == letter.uid:
                is_news = line.message.body.kind in ("success", "error-notification")
                return Mail(state, line) if is_news or _is_open(state, line.message) else None
    return None


def _state(store: Store, workflow: str) -> State | None:
    """None for an unknown workflow, or one that this version cannot read: it must not keep others from being read."""
    try:
        found = store.read(workflow)
        return load_state(found.snapshot) if found is not None else None
    except (UsageError, ProtocolError):
        return None


def _is_open(state: State, message: Message) -> bool:
    """Whether it asks for something that has not been done yet."""
    kind, opened, delivery = message.body.kind, state.escalation, state.delivery
    if kind == "escalation":
        if opened is None or opened.uid != message.uid:
            return False
        return opened.receipt is None and opened.decision is None
    at_rest = state.paused or state.held is not None or state.ended
    if at_rest or state.active.status not in WITH_MAIN_AGENT or delivery is None:
        return False
    if kind == "failure-report":
        return delivery.uid == message.uid
    asked = (state.active.name, state.active.iteration)
    return kind in _OF_A_REQUEST and (message.specialist, message.iteration) == asked


def _in_order(found: Iterable[Mail]) -> list[Mail]:
    return sorted(found, key=attrgetter("message.priority.broker", "message.at", "message.number"))
