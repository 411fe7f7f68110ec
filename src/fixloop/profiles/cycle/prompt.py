"""Builds the request to an agent of a cycle for one run (C18, C21, C32, C33, C39, C61, U13)."""

from collections.abc import Iterable, Iterator
from typing import Final

from fixloop.profiles.cycle.documents import progress_path
from fixloop.profiles.cycle.engine import CYCLE
from fixloop.profiles.cycle.files import state_path
from fixloop.profiles.cycle.messages import Input, Message, Violation, input_text
from fixloop.profiles.cycle.plan import ready_tasks
from fixloop.profiles.cycle.records import ResultStatus, TaskStatus
from fixloop.profiles.cycle.state import Cycle
from fixloop.profiles.cycle.workers import Worker, worker
from fixloop.store.contract import Store

_FIGURES: Final = {
    "cd": (("tasks_completed", "[ids of the plan's tasks that are done]"),),
    "vas": (
        ("test_pass_rate", "in percent"),
        ("coverage", "in percent"),
        ("failed_tests", "[their names]"),
        ("critical_issues", "how many"),
    ),
}
"""The fields of an answer that affect the cycle, besides its status and issues (U13)."""


def request(store: Store, snapshot: bytes, agent: str) -> str:
    """The request for an agent's current run, with the inputs since its last report."""
    state = CYCLE.load(snapshot)
    told: list[Message] = []
    for entry in reversed(store.history(state.workflow)):
        event = entry.body["event"]
        if event["kind"] == "phase-reported" and event.get("sender") == agent:
            break
        said = map(Message.model_validate, reversed(entry.body.get("messages", ())))
        told += [m for m in said if m.recipient == agent and isinstance(m.body, Input | Violation)]
    return prompt(state, agent, told[::-1])


def prompt(state: Cycle, key: str, messages: Iterable[Message]) -> str:
    """The request for the agent's current run; `messages` were sent to it since its last report, oldest first."""
    needed, own = state.agent(key).depends_on, worker(key)
    where = f"Cycle {state.cycle_id}, iteration {state.iteration} of {state.max_iterations}, version {state.version}."
    parts = [f"# {own.name}: {own.role.lower()} for {state.name}"]
    if state.description.strip():
        parts.append(f"## The request\n\n{state.description.strip()}")
    parts.append(f"## Where you are\n\n{where}")
    if needed:
        # The dependencies of this work and their status: all are complete (C39).
        stands = (f"{worker(other).name} (`agents.{other}`): {state.agent(other).status}" for other in needed)
        check = "Check in the shared state that each is `completed`; if one is not, report `failed` and change nothing."
        parts.append(f"## What your work depends on\n\n{_bullets(stands)}\n\n{check}")
    parts += [
        f"## What to read\n\n{_bullets(_sources(state, key))}",
        f"## What to write\n\n{_bullets(_targets(state, own))}",
        *_tasks(state, key),
    ]
    for message in messages:
        if isinstance(message.body, Input):
            parts.append(input_text(message.body).rstrip())
        elif isinstance(message.body, Violation):
            parts.append(f"## Your last answer was none\n\n{' '.join(message.body.problem.split())}")
    return "\n\n".join([*parts, f"## How to answer\n\n{_answer(own)}"]) + "\n"


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _sources(state: Cycle, key: str) -> Iterator[str]:
    """Only paths, never contents (U13)."""
    yield f"`{state_path(state.cycle_id)}`: the shared state; you may read it and not change it"
    yield f"`{progress_path(state.cycle_id, 'coordination', 'feedback.md')}`: decisions and blockers so far"
    for other in state.agent(key).depends_on:
        for document in state.documents_of(other):
            path = progress_path(state.cycle_id, other, document.name)
            yield f"`{path}`: version {document.version} of {worker(other).name}"


def _targets(state: Cycle, own: Worker) -> Iterator[str]:
    yield from (f"`{progress_path(state.cycle_id, own.key, name)}`, as a whole" for name in own.documents)
    for name in own.logs:
        yield (
            f"`{progress_path(state.cycle_id, own.key, name)}`: add lines at its end, each with its time "
            "(2026-01-22T10:30:00+08:00) and the task it is about; change none"
        )
    yield "the code of the project, where your work is code; what you leave there is taken as it stands"
    yield "nothing else below `.workflow/`: each file has one writer"


def _tasks(state: Cycle, key: str) -> Iterator[str]:
    """The plan's tasks that are done, those that are ready, and what the others wait for (C43)."""
    if key != "cd" or not state.plan:
        return
    done = [task.id for task in state.plan if task.status is TaskStatus.COMPLETED]
    ready = ready_tasks(state.plan)
    waiting = [task for task in state.plan if task not in ready and task.id not in done]
    lines = [f"done: {', '.join(done)}"] if done else []
    lines += [f"now: {task.id} {task.description}".rstrip() for task in ready]
    for task in waiting:
        after = ", ".join(other for other in task.depends_on if other not in done)
        lines.append(f"later: {task.id} {task.description}".rstrip() + f", after {after}")
    free = "Those of now do not rest on each other: they may be done in any order, or beside each other."
    yield f"## The tasks of the plan\n\n{_bullets(lines)}" + (f"\n\n{free}" if len(ready) > 1 else "")


def _answer(own: Worker) -> str:
    """Quoted, so that an agent that prints its request has not answered it."""
    block = [
        "PHASE_RESULT:",
        f"- phase: {own.key}",
        f"- status: {', '.join(ResultStatus)} (one of them; partial or failed where you cannot go on)",
        "- files_written: [names of the documents you wrote]",
        "- summary: one line",
        *(f"- {name}: …" for name in own.fields if name != "summary"),
        *(f"- {name}: {what}" for name, what in _FIGURES.get(own.key, ())),
        "- issues: [what is wrong or unclear, such as FR-003: text, or TASK-002: text]",
    ]
    quoted = "\n".join(f"> {line}" for line in block)
    return f"End with this block, each key once, lists as `[a, b]`; keys of your own work may be added.\n\n{quoted}"
