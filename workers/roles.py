"""What a process of the application can be: `work`, `control`, `sweep`, `supervise`, `try`, `keep` or `remind`."""

import atexit
import gc
import json
import logging
import multiprocessing
import os
import socket
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from fixloop.machine.process_name import name_after
from fixloop.machine.terminal_text import on_one_line, visible
from workers.processes.lifeline import attach, beat_with

# Celery looks for dead work processes every 5 s: the pipe that should tell it at once is inherited by those
# forked later, and does not close.
LOOK_SECONDS: Final = 0.5
COLLECT_AFTER: Final = 100_000
"""Objects made and not yet let go; Python's own 700 is a few steps' worth of messages."""


class OneRow(logging.Formatter):
    """A row for each message, also where it quotes several lines; only a traceback has several."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return on_one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def main(role: str, options: Mapping[str, Any]) -> int:
    """Be `role` until told to stop; returns the exit code."""
    name_after(role)
    gc.set_threshold(COLLECT_AFTER)
    atexit.register(gc.freeze)
    level = os.environ.get("FIXLOOP_LOG_LEVEL", "WARNING")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneRow(f"%(asctime)s {role} %(levelname)s %(name)s: %(message)s"))
    # A forked process has its supervisor's.
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # Celery sets the root's level to its own.
    logging.getLogger("fixloop").setLevel(level)
    # Celery's about the settings that are as they are for a reason, at each lost connection.
    warnings.simplefilter("ignore", PendingDeprecationWarning)
    module, _, name = _ROLES[role].partition(":")
    code: int = getattr(import_module(module), name)(options)
    return code


def work(options: Mapping[str, Any]) -> int:
    """Do steps, in a pool of processes."""
    from celery.signals import worker_process_init, worker_ready

    def forked(**_: Any) -> None:
        attach()
        _spare_the_collector()

    def ready(sender: Any, **_: Any) -> None:
        sender.hub.call_repeatedly(LOOK_SECONDS, sender.pool._pool.maintain_pool)
        beat_with(sender, lambda: sum(each.exitcode is None for each in sender.pool._pool._pool))

    worker_process_init.connect(forked, weak=False)
    worker_ready.connect(ready, weak=False)
    # The pool's memory is a file that is unlinked once it is open. For that it would make a folder, and a
    # process that is killed could not remove it.
    here: Any = multiprocessing.current_process()
    here._config["tempdir"] = tempfile.gettempdir()
    count = int(options["concurrency"])
    return _celery("work", options["queues"], concurrency=count)


def control(options: Mapping[str, Any]) -> int:
    """Do what is quick: deadlines, letters and what arrives from outside."""
    from celery.signals import worker_ready

    worker_ready.connect(lambda sender, **_: beat_with(sender, lambda: 1), weak=False)
    return _celery("control", options["queues"], pool_cls="solo")


def _celery(kind: str, queues: Sequence[str], **pool: Any) -> int:
    attach()
    from workers.app import app
    from workers.celery_fast.consumer import Worker

    # What `celery worker` does, without what its command line loads: all other commands, and Flower's web server.
    # Neighbours are nobody's business: gossip and mingle cost start-up time and messages.
    worker = app.subclass_with_self(Worker)(
        hostname=f"{kind}-{os.getpid()}@{socket.gethostname()}",
        queues=list(queues),
        loglevel=logging.WARNING,
        without_gossip=True,
        without_mingle=True,
        **pool,
    )
    _spare_the_collector()
    worker.start()
    return worker.exitcode or 0


def _spare_the_collector() -> None:
    """What was loaded stays: looking through it for garbage again and again costs each step a twentieth."""
    gc.collect()
    gc.freeze()


def supervise(options: Mapping[str, Any]) -> int:
    """Be the parent of the other processes of a worker. Without options it is told them while it loads."""
    from workers.processes.start import heeded

    # Before all that takes long.
    stop = heeded()
    from workers.processes.child import begun
    from workers.processes.preload import load

    # What is loaded stays, and hardly any of it is garbage: looking takes a tenth of the start.
    gc.disable()
    load()
    gc.freeze()
    gc.enable()
    if not options and not (options := _told()):
        return 0
    children = begun(options, main)
    # Not before: it takes a thread, and forks come first.
    attach()
    from workers.recovery import supervisor

    return supervisor.supervise(children, str(options.get("queue", "")), stop)


def _told() -> Mapping[str, Any]:
    """The options that come by stdin, with variables and a log; empty: who started this process has no use for it."""
    with socket.socket(fileno=0) as line:
        text, files, *_ = socket.recv_fds(line, 65536, 1)
        while more := line.recv(65536):
            text += more
    if not text.endswith(b"\n"):  # who died over it
        return {}
    told = json.loads(text)
    os.environ.update(told["variables"])
    for number in (1, 2):
        os.dup2(files[0], number)
    os.close(files[0])
    # The lowest number that is free is that of the line.
    os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)
    return dict(told["options"])


_ROLES: Final = {
    **{name: f"{__name__}:{name}" for name in ("work", "control", "supervise")},
    "sweep": "workers.recovery.sweeper:sweep",
    "try": "workers.commands.trial:main",
    "keep": "workers.recovery.timekeeper:keep",
    "remind": "workers.recovery.reminder:remind",
}
