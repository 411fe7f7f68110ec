"""Print a preset dictionary for `fixloop.store.packing`: what typical entries and snapshots have in common.

A dictionary that was shipped never changes. A new one gets the next number, and pays only where what is stored has
changed much: `python -m bench.dictionary > src/fixloop/store/dictionary-4.txt`.
"""

import re
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Final

from pydantic_core import to_json

from fixloop.engine.engine import Engine, ProfileHolding
from fixloop.protocol import events as ev
from fixloop.protocol.checks import Counts, Evidence
from fixloop.protocol.messages import Decision
from fixloop.protocol.state import Completion, State
from fixloop.repository.snapshot import Snapshot
from fixloop.store.keys import workflow_id
from fixloop.testing import ScriptedCrew
from tests.fixtures.memory_store import MemoryStore

PLAYS: Final = (
    ("a", ("test-runner",), "outside"),
    ("a b -", ("test-runner",), "command"),
    ("b a a a a", ("test-runner",), "command"),
    ("a; fix: fail fail fail", ("test-runner",), "command"),
    ("a; fix: bad bad", ("test-runner",), "command"),
    ("a; fix: blocked", ("test-runner",), "command"),
    ("security: a -; unit-test: a -", ("unit-test", "security", "e2e-accessibility"), "command"),
)
"""The most typical first: script, specialists, fixer."""
SPOKEN: Final = "\n".join(
    (
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3/site-packages/", line , in <module>',
        "E   ModuleNotFoundError: No module named '",
        "E       TypeError: () missing required positional argument: '",
        "E       AttributeError: '' object has no attribute '",
        "E       KeyError: ValueError: ImportError: cannot import name '",
        "E         Full diff: E         - E         + E         ?   ^",
        "E       AssertionError: assert  is not None where  = <function  at 0x",
        "    def test_",
        "    @pytest.fixture",
        "    @pytest.mark.parametrize(",
        "        with pytest.raises(",
        ">       assert ",
        "E       assert ",
        "E        +  where  = ",
        "tests/test_.py:: AssertionError",
    )
)
"""How failing Python tests talk."""
OWNER: Final = "host/boot/4026531836/17/99"
OWN: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{8}-\d+-\d+|[0-9a-f]{16,}"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?|\d{8}T\d{6}Z|\d{3,}(\.\d+)?|/home/ann/shop|SPOKEN"
)
"""What differs from one workflow to the next."""


WORTH: Final = (1000, 24, 12)
"""From how many characters on a piece is not repeated: in the first play, in the second, in all others."""


def main() -> None:
    """What is most typical comes last, where it costs least."""
    found = ""
    texts: list[tuple[int, str]] = []
    for issue, (script, specialists, fixer) in enumerate(PLAYS, 1):
        worth = WORTH[min(issue, len(WORTH)) - 1]
        texts += [(worth, text) for text in reversed(list(_texts(issue, script, specialists, fixer)))]
    for worth, text in (*texts, (WORTH[-1], SPOKEN)):
        parts = [part for part in OWN.sub("\0", text).split("\0") if len(part) > 3]
        found = "".join(_news(part, found, worth) for part in parts if part not in found) + found
    sys.stdout.write(found)


def _news(part: str, found: str, worth: int) -> str:
    """What of `part` is not to be had from `found` in pieces of more than `worth` characters."""
    news, stretch, place = "", "", 0
    while place < len(part):
        length = worth
        while place + length <= len(part) and part[place : place + length] in found:
            length += 1
        if length > worth:
            news, stretch = news + _kept(stretch, worth), ""
            place += length - 1
        else:
            stretch += part[place]
            place += 1
    return news + _kept(stretch, worth)


def _kept(stretch: str, worth: int) -> str:
    return stretch if len(stretch) >= min(worth // 2, 6) else ""


def _texts(issue: int, script: str, specialists: tuple[str, ...], fixer: str) -> Iterator[str]:
    """The entries and snapshots of one play, as they are written."""
    workflow, now = workflow_id("be9c4a11", issue, 1), datetime(2026, 3, 2, 9, 0, 0, 1, tzinfo=UTC)
    store = MemoryStore(lambda: now)
    engine, tip, tree = Engine(store), "b1" * 20, "c1" * 20
    facts = {
        "workflow": workflow,
        "project": "/home/ann/shop",
        "issue": issue,
        "name": script,
        "fixer": fixer,
    }
    facts |= {"specialists": specialists, "tip": tip, "tree": tree, "configuration": "d1" * 32}
    snapshot = Snapshot(source="/home/ann/shop", commit=tip, tree=tree).model_dump_json()
    engine.start(ev.WorkflowStarted.model_validate(facts | {"snapshot": snapshot}))
    while True:
        found = store.read(workflow)
        assert found is not None
        (entry,) = store.history(workflow, found.version - 1)
        yield to_json(entry.body).decode()
        yield found.snapshot.decode()
        for held in found.tickets:
            now += timedelta(seconds=held.ticket.delay_seconds + 1)
            store.stay_awake()
            claim = store.claim(held.ticket.id, OWNER, uuid.uuid4().hex)
            if claim.status == "ok" and claim.ticket is not None:
                holding = engine.held(engine.profile, claim.ticket, claim, OWNER)
                engine.finish(holding, _event(holding), claim.moment)
                break
        else:
            if not engine.state(workflow).paused:
                return
            engine.apply(workflow, ev.DecisionMade(decision=Decision.ABORT, by="ann"), operation="abort")


def _event(holding: ProfileHolding[State]) -> ev.Event:
    if holding.ticket.step == "notify":
        return ev.PersonNotified(detail="told")
    event = ScriptedCrew().carried_out(SimpleNamespace(holding=holding, cancelled=lambda: False))
    assert event is not None, "nobody cancels here"
    if isinstance(event, ev.FixCompleted):
        changes = {"by": "command", "files": ("src/",), "tip": "b2" * 20, "tree": "c2" * 20}
        changed: Completion = event.completion.model_copy(update=changes)
        return event.model_copy(update={"completion": changed, "artifacts": ("f4" * 32,)})
    return _run(event) if isinstance(event, ev.RunFinished) else event


def _run(run: ev.RunFinished) -> ev.RunFinished:
    changes = {"file": "tests/test_", "message": "SPOKEN", "check": "test-runner"}
    failures = tuple(
        failure.model_copy(update=changes | {"name": f"tests/test_.py::test_{failure.name}"})
        for failure in run.failures
    )
    evidence = Evidence(
        check="test-runner",
        command="python -m pytest --junitxml={junit}",
        interpreter="/home/ann/shop/.venv/bin/python",
        exit_code=1 if failures else 0,
        tree=run.tree,
        report_digest="f1" * 32,
        counts=Counts(total=12, passed=11, failed=1),
        duration_seconds=1.25,
    )
    real: dict[str, Any] = {"failures": failures, "evidence": (evidence,), "artifacts": ("f2" * 32,)}
    return run.model_copy(update=real | {"passed": ("tests/test_",)})


if __name__ == "__main__":
    main()
