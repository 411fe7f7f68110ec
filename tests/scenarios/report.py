"""What a stage played, recorded by the real engine in the store in memory, and the report on it."""

from dataclasses import replace

from fixloop.engine.engine import Engine
from fixloop.protocol import events as ev
from fixloop.protocol.event import Moment
from fixloop.store.records import Entry, Snapshot
from fixloop.summary import Summary, summarize
from tests.fixtures.memory_store import MemoryStore
from tests.fixtures.validation_stage import START, Stage


class ToldStore(MemoryStore):
    """Its time is the last one given, wall and engine's (K34)."""

    def __init__(self) -> None:
        self.moment = Moment(START, 0.0)
        super().__init__(lambda: self.moment.at)

    def now(self, where: str | int) -> Moment:
        return self.moment

    def read(self, workflow: str) -> Snapshot | None:
        found = super().read(workflow)
        return replace(found, moment=self.moment) if found is not None else None


def history_of(stage: Stage) -> list[Entry]:
    """The entries that the stage's events come to."""
    store = ToldStore()
    engine = Engine(store)
    for number, (event, moment) in enumerate(stage.applied):
        store.moment = moment
        if isinstance(event, ev.WorkflowStarted):
            engine.start(event)
        else:
            engine.apply(stage.state.workflow, event, operation=f"event {number}")
    assert engine.state(stage.state.workflow) == stage.state
    return store.history(stage.state.workflow)


def report_on(stage: Stage) -> Summary:
    """The report on the workflow as the stage left it."""
    return summarize(stage.state, history_of(stage), stage.now)
