"""The end of a chat: the results of the acceptance criteria (E24), the two closing documents, and the front matter that
old messages get then (E47, E48, K22, U8)."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from fixloop.chat.conversation import Conversation, digest
from fixloop.chat.events import Prepended
from fixloop.chat.message import Front, front_text, header, lines_of, stamp
from fixloop.chat.sections import Result, results
from fixloop.chat.vocabulary import Role

STATUSES: Final = ("Completed", "Deferred", "Rejected")
MIGRATIONS: Final = "## Migrated messages"
MIGRATED_PURPOSE: Final = "Written before the protocol; migrated when the chat was closed"


def summary_text(chat: Conversation, given: str) -> str:
    """A new SUMMARY.md: the given text, and the results of the acceptance criteria."""
    title = chat.meta.title if chat.meta is not None else chat.name
    text = given.strip() if given.lstrip().startswith("#") else f"# Summary: {title}\n\n{given.strip()}"
    found = {criterion: f"[{result.verdict}] {result.text}" for criterion, result in proofs(chat).items()}
    went = (f"- {found.get(criterion, f'[not run] {criterion}')}" for criterion in chat.acceptance)
    return "\n".join([text, "", "## Acceptance", "", *went, ""])


def with_migrations(chat: Conversation, summary: str) -> str:
    """SUMMARY.md with the list of the files that are migrated now, if any (K22)."""
    files = [f"- {posted.file}" for posted in chat.messages if chat.is_grandfathered(posted)]
    if not files or MIGRATIONS in summary:
        return summary
    return "\n".join([summary.rstrip(), "", MIGRATIONS, "", *files, ""])


def decision_text(status: str, by: Role, at: datetime, given: str) -> str:
    """DECISION.md: status, date, who decided, and the given text."""
    facts = {"Status": status, "Date": stamp(at)[:10], "Decided by": by}
    head = (f"- **{name}**: {value}" for name, value in facts.items())
    return "\n".join(["# Decision", "", *head, "", given.strip(), ""])


def migrated(chat: Conversation) -> Iterator[Prepended]:
    """The front matter that is added to adopted messages without one, before their own bytes."""
    last_role = Role.ARCHITECT
    latest: datetime | None = None
    for posted in chat.messages:
        front = posted.front
        if chat.is_grandfathered(posted) and posted.is_old and posted.source.content is not None:
            # No later than the next message with a time.
            later = (one.message for one in chat.messages if one.name.seq > posted.name.seq)
            times = (one.front.ts for one in later if one is not None and one.front is not None)
            at = min(posted.source.modified, next(times, posted.source.modified))
            at = max(at, latest or at)
            role = posted.name.role
            # The role whose turn it was, unless it is the recipient.
            other = Role.ENGINEER if role is Role.ARCHITECT else Role.ARCHITECT
            sender = last_role if last_role is not role else other
            front = Front(sender, role, chat.name, posted.name.seq, at, MIGRATED_PURPOSE)
            # The bytes stay unchanged in any encoding; the header is ASCII in all old messages.
            text = posted.source.content.decode("utf-8-sig", "replace")
            first = next((line.strip() for line in lines_of(text) if line.strip()), "")
            is_headed = first.lstrip("\ufeff") == header(role)
            head = front_text(front) + ("" if is_headed else f"\n{header(role)}\n\n")
            yield Prepended(posted.file, head, digest(posted.source.content))
        last_role = posted.name.role
        latest = front.ts if front is not None else latest


def declared(text: str, by: Role, file: str = "") -> str:
    """A result with the role that reported it: fixloop has not run the criterion itself."""
    own = text.removesuffix(f" (declared by {by})")
    return f"{own} (declared by {by}{f' in {file}' if file else ''})"


def proofs(chat: Conversation) -> dict[str, Result]:
    """By acceptance criterion: its last reported result, with the reporter and the message."""
    # Longest first: a line about `make test-all` is not about `make test`.
    by_length = sorted(chat.acceptance, key=len, reverse=True)
    found: dict[str, Result] = {}
    for posted in chat.messages:
        front = posted.front
        if posted.message is None or front is None or front.sender is not Role.ENGINEER:
            continue
        for result in results(posted.message.body):
            said = _folded(result.text)
            meant = next((each for each in by_length if said.startswith(_folded(each))), None)
            if meant is not None:
                found[meant] = result._replace(text=declared(result.text, front.sender, posted.file))
    return found


def unproven(chat: Conversation) -> list[str]:
    """The criteria without a result."""
    found = proofs(chat)
    return [each for each in chat.acceptance if each not in found]


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
