"""An answer submitted as a file: read within bounds, kept whole, and never lost (A71, A84)."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from fixloop.commands.session import Session, caller
from fixloop.errors import RefusedError, UsageError
from fixloop.intake.redaction_scope import redaction_for
from fixloop.protocol import answers
from fixloop.protocol.events import AnswerRejected
from fixloop.protocol.messages import MAIN_AGENT
from fixloop.protocol.state import State

SHOWN_CHARACTERS: Final = 2000


def read_given(file: Path, what: str = "the answer", most: int = answers.LIMIT_BYTES) -> bytes:
    """The bytes of a file, `-` for standard input; if it is too long, one byte more than `most`."""
    try:
        if str(file) == "-":
            return sys.stdin.buffer.read(most + 1)
        with file.open("rb") as opened:
            return opened.read(most + 1)
    except OSError as error:
        raise UsageError(f"cannot read {what} {file}: {error.strerror or error}") from None


def text_in(raw: bytes, what: str) -> str:
    """The submitted bytes as text."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UsageError(f"{what} is not UTF-8: byte {byte:#04x} at {error.start}") from None


def said(session: Session, state: State, raw: bytes, *, awaited: bool) -> answers.Answer | None:
    """The answer in `raw`. One that does not fit an awaited fix is recorded and answered with a notice, then raised. If
    no fix is awaited, the only condition is that it is not a repetition (AnsweredAlready)."""
    active = state.active
    try:
        return answers.parse_answer(
            answers.decode_answer(raw), issue=state.issue, iteration=active.iteration, specialist=active.name
        )
    except answers.AnsweredAlready:
        raise
    except answers.InvalidAnswer as invalid:
        if not awaited:
            return None
        # Secrets are removed before the text is cut, or half of one could remain.
        hidden = redaction_for(session.store, state).data(raw)
        beginning = hidden[: 4 * SHOWN_CHARACTERS].decode("utf-8", "replace")[:SHOWN_CHARACTERS]
        # A refusal is in the history; the problem with the answer is still reported.
        with suppress(RefusedError):
            session.bring(
                state.workflow,
                AnswerRejected(
                    specialist=active.name,
                    iteration=active.iteration,
                    violations=invalid.violations,
                    offending=beginning,
                    artifacts=keep(session, state.workflow, raw),
                    sender=caller(MAIN_AGENT),
                ),
            )
        raise


def keep(session: Session, workflow: str, raw: bytes | None) -> tuple[str, ...]:
    """The digest under which `raw`, without secrets, can be fetched again; empty if there is nothing."""
    if not raw:
        return ()
    hidden = redaction_for(session.store, session.engine_of(workflow).state(workflow)).data(raw)
    return (session.store.put_artifact(workflow, hidden),)
