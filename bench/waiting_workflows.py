"""Makes workflows that wait for a fix, through the engine as workers do: `bench.waiting_workflows URL FIRST LAST`.

Each has a different name, hashes and failure, so that nothing compresses better than in real use.
"""

import random
import sys
import uuid
from types import SimpleNamespace
from typing import Final

from fixloop.engine.engine import Engine
from fixloop.machine.owner import identity
from fixloop.protocol.events import Event, ReportDelivered, RunFinished, WorkflowStarted
from fixloop.protocol.failures import Failure
from fixloop.protocol.ticket import Ticket
from fixloop.repository.snapshot import Snapshot
from fixloop.store.keys import project_hash, workflow_id
from fixloop.store.redis_store import RedisStore
from fixloop.testing import scripted_crew

SCRIPT: Final = "a -"
"""The first run fails, the second passes."""
PROJECTS: Final = 20
_WORDS: Final = (
    "order total price basket customer invoice address payment shipping discount item stock parcel refund "
    "account session token cache index parser reader writer buffer socket handler queue event stream"
)


def main() -> None:
    url, first, last = sys.argv[1:]
    waiting = WaitingWorkflows(url)
    for number in range(int(first), int(last)):
        waiting.make(number)


def workflow_of(number: int) -> str:
    return workflow_id(project_hash(_project(number)), number // PROJECTS + 1, 1)


class WaitingWorkflows:
    def __init__(self, url: str) -> None:
        self.store = RedisStore(url)
        self._made: list[Ticket] = []
        self._engine = Engine(self.store, lambda ticket, _: self._made.append(ticket))
        self._crew = scripted_crew()
        self._owner = identity()

    def make(self, number: int) -> str:
        chance, workflow = random.Random(number), workflow_of(number)
        commit, tree = f"{chance.getrandbits(160):040x}", f"{chance.getrandbits(160):040x}"
        source = f"/srv/git/{_words(chance, 1)}/{_project(number).rpartition('/')[2]}"
        self.store.use_issue(project_hash(_project(number)), number // PROJECTS + 1)
        gates = self.store.put_artifact(workflow, f"gates of {_project(number)}".encode(), shared=True)
        self._engine.start(
            WorkflowStarted(
                workflow=workflow,
                project=_project(number),
                issue=number // PROJECTS + 1,
                name=SCRIPT,
                specialists=("test-runner",),
                fixer="outside",
                configuration=gates,
                snapshot=Snapshot(source=source, commit=commit, tree=tree).model_dump_json(),
                tip=commit,
                tree=tree,
            )
        )
        while self._made:
            self._carry_out(self._made.pop(), chance)
        return workflow

    def _carry_out(self, ticket: Ticket, chance: random.Random) -> None:
        claim = self.store.claim(ticket.id, self._owner, uuid.uuid4().hex)
        if claim.status != "ok" or claim.ticket is None:
            raise RuntimeError(f"{ticket.id} is {claim.status}: somebody else works here")
        holding = self._engine.held(self._engine.profile, claim.ticket, claim, self._owner)
        event: Event = ReportDelivered(specialist=ticket.specialist, iteration=ticket.iteration)
        if ticket.step != "report":
            run = self._crew.check(SimpleNamespace(holding=holding, cancelled=lambda: False))
            assert isinstance(run, RunFinished)
            event = run.model_copy(update={"failures": (_failure(chance),)})
        applied = self._engine.finish(holding, event, claim.moment)
        if applied.status != "ok":
            raise RuntimeError(f"{ticket.id} ended as {applied.status}")
        self._made.extend(ticket for ticket in applied.steps if ticket not in self._made)


def _project(number: int) -> str:
    return f"github.com/acme/shop-{number % PROJECTS}"


def _words(chance: random.Random, count: int) -> str:
    return "_".join(chance.choices(_WORDS.split(), k=count))


def _failure(chance: random.Random) -> Failure:
    """As pytest tells of one, in about a kilobyte."""
    module, test, kind = _words(chance, 1), _words(chance, 3), _words(chance, 2).title().replace("_", "")
    line, one, other = chance.randrange(10, 400), chance.randrange(10_000), chance.randrange(10_000)
    call = f"{kind}({_words(chance, 1)}={chance.randrange(1000)}, {_words(chance, 1)}='{_words(chance, 2)}')"
    told = f"<{module}.{kind} object at 0x7f{chance.getrandbits(40):010x}>"
    lines = [
        f"    def test_{test}({_words(chance, 1)}):",
        f"        {_words(chance, 1)} = {call}",
        f"        {_words(chance, 2)} = {_words(chance, 1)}.{_words(chance, 2)}({chance.randrange(100)})",
        f">       assert {_words(chance, 1)}.{_words(chance, 2)}() == {other}",
        f"E       AssertionError: assert {one} == {other}",
        f"E        +  where {one} = <bound method {kind}.{_words(chance, 2)} of {told}>()",
        f"E        +    where <bound method {kind}.{_words(chance, 2)} of {told}> = {told}.{_words(chance, 2)}",
        "",
        f"tests/test_{module}.py:{line}: AssertionError",
        "----------------------------- Captured log call ------------------------------",
    ]
    while sum(map(len, lines)) < 700:
        level = chance.choice(("WARNING", "ERROR  "))
        lines.append(
            f"{level}  {module}:{chance.randrange(400)} {_words(chance, 2)} {chance.getrandbits(32)}"
        )
    return Failure(
        name=f"tests/test_{module}.py::test_{test}",
        file=f"tests/test_{module}.py",
        line=line,
        error_type="AssertionError",
        check="test-runner",
        message="\n".join(lines),
    )


if __name__ == "__main__":
    main()
