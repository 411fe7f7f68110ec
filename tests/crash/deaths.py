"""Death at a named point: kills the whole process group of a run, from inside and without its knowledge.

A copy of this file named `sitecustomize.py` lies on the PYTHONPATH of the run that is to die. Python imports it first
in each process; it waits for the modules that hold the boundaries and wraps a few of their functions. So the product
needs no trigger of its own. Standard library only: it must not change what a process can import.

`CRASH_AT` is the point, with the end of a ticket's id where it belongs to a step: `after commit/test-runner.fix.1.1`.
"""

import importlib.abc
import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_BOUNDARY, _, _TICKET = os.environ.get("CRASH_AT", "").partition("/")
_working_on = ""


def _is_due(boundary: str, ticket: str) -> bool:
    return boundary == _BOUNDARY and ticket.partition(".")[2] == _TICKET


def _die(boundary: str, ticket: str = "") -> None:
    """Kill all processes, this one included, if this is the point; once only."""
    if not _is_due(boundary, ticket):
        return
    # The run leads the session, so the asking process is in its group.
    group = os.getsid(0)
    assert group != int(os.environ["CRASH_SPARES"]), "these are the tests themselves"
    try:
        os.close(os.open(os.environ["CRASH_REACHED"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.killpg(group, signal.SIGKILL)


def _die_amid(lines: int, ticket: str) -> None:
    """Die as soon as the journal of the checks and the fixer has this many more lines."""
    journal = Path(os.environ["LEDGER_JOURNAL"])
    enough = _lines_of(journal) + lines
    while _lines_of(journal) < enough:
        time.sleep(0.002)
    _die("amid work", ticket)


def _lines_of(journal: Path) -> int:
    return len(journal.read_text().splitlines()) if journal.exists() else 0


def _watch_store(module: Any) -> None:
    store = module.RedisStore
    claim, commit, create, create_all = store.claim, store.commit, store.create, store.create_all

    def dying_claim(self: Any, ticket: str, *rest: Any, **options: Any) -> Any:
        global _working_on
        _die("before claim", ticket)
        answer = claim(self, ticket, *rest, **options)
        if answer.status == "ok":
            _working_on = ticket
            _die("after claim", ticket)
        return answer

    def dying_commit(self: Any, change: Any) -> Any:
        global _working_on
        started = change.operation.partition("/")[0] if change.operation.endswith("/started") else ""
        _die("before receipt", started)
        _die("before commit", change.ticket)
        answer = commit(self, change)
        # A commit that met a newer version has changed nothing; it is made again.
        if answer.status == "ok":
            _die("after commit", change.ticket)
            _die("after receipt", started)
            if answer.claim is not None:
                _working_on = change.claim
                _die("after claim", change.claim)
        return answer

    def dying_create(self: Any, change: Any) -> Any:
        awaiting = change.fields.get("parent", "")
        _die("before child", awaiting)
        answer = create(self, change)
        _die("after child", awaiting)
        return answer

    def dying_create_all(self: Any, changes: Any) -> Any:
        answers = create_all(self, changes)
        _die("created")
        return answers

    store.claim, store.commit = dying_claim, dying_commit
    store.create, store.create_all = dying_create, dying_create_all
    store.release = _around(store.release, "putting off")
    store.wake = _around(store.wake, "word")


def _around(method: Callable[..., Any], boundary: str) -> Callable[..., Any]:
    """Die before or after a method of the store that a ticket's id is given to."""

    def dying(self: Any, ticket: str, *rest: Any, **options: Any) -> Any:
        _die(f"before {boundary}", ticket)
        answer = method(self, ticket, *rest, **options)
        _die(f"after {boundary}", ticket)
        return answer

    return dying


def _watch_hints(module: Any) -> None:
    from celery.signals import after_task_publish, before_task_publish

    before_task_publish.connect(lambda **_: _die("before hint", _working_on), weak=False)
    after_task_publish.connect(lambda **_: _die("after hint", _working_on), weak=False)


def _watch_ends(module: Any) -> None:
    """A step that nothing follows sends no hint: its points are those of looking for one."""
    follow = module.follow

    def dying_follow(task: Any, done: Any, state: Any, steps: Sequence[Any], *further: Any) -> None:
        last = "" if steps else done.id
        _die("before hint", last)
        follow(task, done, state, steps, *further)
        _die("after hint", last)

    module.follow = dying_follow


def _watch_commands(module: Any) -> None:
    run_guarded = module.run_guarded

    def dying_run(*arguments: Any, **options: Any) -> Any:
        if _is_due("amid work", _working_on):
            # A check writes one line when it starts; the fixer a second one after its edit.
            lines = 2 if ".fix." in _working_on else 1
            threading.Thread(target=_die_amid, args=(lines, _working_on), daemon=True).start()
        return run_guarded(*arguments, **options)

    module.run_guarded = dying_run


def _watch_children(module: Any) -> None:
    attended, tell = module.attended, module._tell

    def dying_attended(store: Any, engine_of: Any, ticket: Any, *rest: Any) -> Any:
        ended = attended(store, engine_of, ticket, *rest)
        if ended is not None:
            _die("child ended", ticket.id)
        return ended

    def dying_tell(store: Any, engine_of: Any, child: str, word: str) -> None:
        _die(word)
        tell(store, engine_of, child, word)

    module.attended, module._tell = dying_attended, dying_tell


def _watch_draining(module: Any) -> None:
    stop, told = module.Child.stop, []

    def dying_stop(self: Any, number: Any) -> None:
        stop(self, number)
        told.append(number)
        if len(told) == 2:
            _die("draining")

    module.Child.stop = dying_stop


def _watch_branch(module: Any) -> None:
    write = module.Session.write_branch

    def dying_write(self: Any, state: Any) -> None:
        _die("before branch")
        write(self, state)

    module.Session.write_branch = dying_write


def _before(name: str, boundary: str) -> Callable[[Any], None]:
    """Die instead of calling the module's function `name`."""
    return _wrapping(name, boundary, "")


def _after(name: str, boundary: str) -> Callable[[Any], None]:
    """Die when the module's function `name` has returned."""
    return _wrapping(name, "", boundary)


def _wrapping(name: str, before: str, after: str) -> Callable[[Any], None]:
    def watch(module: Any) -> None:
        function = getattr(module, name)

        def dying(*arguments: Any, **options: Any) -> Any:
            _die(before)
            answer = function(*arguments, **options)
            _die(after)
            return answer

        setattr(module, name, dying)

    return watch


_WATCHED: dict[str, list[Callable[[Any], None]]] = {
    "fixloop.engine.bridging": [_watch_children],
    "fixloop.servers.embedded": [_before("_launch", "before Redis"), _before("_answer", "Redis starting")],
    "fixloop.intake.preparation": [_after("take_snapshot", "snapshot taken")],
    "fixloop.store.redis_store": [_watch_store],
    "fixloop.commands.run": [_before("supervisor", "no worker yet")],
    "fixloop.commands.session": [_watch_branch],
    "workers.processes.child": [_watch_draining],
    "workers.steps.hints": [_watch_hints],
    "workers.steps.step": [_watch_commands],
    "workers.steps.execution": [_watch_ends],
}


class _Watcher(importlib.abc.MetaPathFinder):
    """Lets the usual finders find a module, and wraps its functions as soon as it has been executed."""

    def __init__(self) -> None:
        self._open = set(_WATCHED)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._open:
            return None
        # Before the search below, which comes by here again.
        self._open.remove(name)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Wrapping(spec.loader, _WATCHED[name])
        return spec


class _Wrapping(importlib.abc.Loader):
    def __init__(self, inner: importlib.abc.Loader, watches: list[Callable[[Any], None]]) -> None:
        self._inner = inner
        self._watches = watches

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        for watch in self._watches:
            watch(module)


if __name__ == "sitecustomize" and _BOUNDARY:
    sys.meta_path.insert(0, _Watcher())
