"""The start of a pair, and how commands show it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from fixloop.commands import agent_log
from fixloop.commands.handlers import CommandHandlers
from fixloop.commands.presenter import Presenter, Standing
from fixloop.commands.screen import row, table
from fixloop.errors import UsageError
from fixloop.intake.feature import Feature
from fixloop.intake.preparation import Intake, Prepared
from fixloop.protocol.agent_events import BranchPushed, Cancelled, Continued, Paused
from fixloop.protocol.event import Start
from fixloop.protocol.ids import called
from fixloop.store.contract import Store
from fixloop.store.records import Snapshot
from tests.e2e.pair.protocol import AGENTS, PAIR, Message, Pair, PairStarted


def _begun(store: Store, prepared: Prepared, feature: Feature, facts: Mapping[str, Any]) -> Start:
    return PairStarted(**facts)


def _standing(state: Pair) -> Standing:
    return Standing(state.issue, state.name, state.outcome, at_work=state.turn, called=called(state))


def _document(found: Snapshot, state: Pair) -> dict[str, Any]:
    return state.model_dump(mode="json", include={"issue", "profile", "status", "turn", "outcome", "lines"})


def _details(found: Snapshot, state: Pair, away: bool) -> Iterator[tuple[str, str]]:
    yield "status", f"{state.outcome or state.status}, {state.lines} of {len(AGENTS)} have passed it on"


def _table(state: Pair) -> Any:
    made = table("", "agent")
    for agent in AGENTS:
        row(made, ">" if agent == state.turn else "", agent)
    return made


def _line(kept: dict[str, Any], state: Pair | None) -> agent_log.Line:
    said = Message.model_validate(kept)
    return agent_log.Line(
        number=said.number,
        at=said.at,
        sender=said.sender,
        recipient="orchestrator",
        kind="passed",
        message_id=said.message_id,
        summary=said.text,
        iteration=1,
        max_iterations=1,
        text=said.text,
    )


def _impossible(*given: Any) -> NoReturn:
    raise UsageError("a pair goes on by itself")


_SPEECH: Final = agent_log.Speech(_line, lambda state, said: {})
INTAKE: Final = Intake(begun=_begun)
PRESENTER: Final[Presenter[Pair]] = Presenter(
    load=PAIR.load,
    standing=_standing,
    document=_document,
    details=_details,
    table=_table,
    clocks=lambda found, state: "",
    happened=_SPEECH.happened,
    result=lambda state: iter((f"#{state.issue} {state.name}: {state.outcome or state.status}",)),
    items=lambda found, state, cache: iter(()),
    log_text=_SPEECH.log_text,
    log_markdown=_SPEECH.log_markdown,
    log_document=_SPEECH.log_document,
    report=lambda found, logged, form: "",
)
HANDLERS: Final = CommandHandlers(
    cancelled=lambda reason: Cancelled(reason=reason),
    paused=lambda reason: Paused(reason=reason),
    continued=Continued,
    pushed=lambda branch: BranchPushed(branch=branch),
    decide=_impossible,
    ack=_impossible,
    fixed=_impossible,
    show=_impossible,
)
