"""The roles of the application's processes: `work`, `control`, `sweep`, `supervise`, `try`, `keep` and `remind`."""

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
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from fixloop.machine.process_name import name_after
from fixloop.machine.terminal_text import on_one_line, visible
from workers.processes.lifeline import attach, beat_with

# Celery looks for dead work processes every 5 s. Its pipe that should report a death at once stays open, because
# processes forked later inherit it.
LOOK_SECONDS: Final = 0.5
COLLECT_AFTER: Final = 100_000
"""Objects allocated and not freed before a collection; Python's default of 700 is reached within a few steps."""


class OneRow(logging.Formatter):
    """Writes each message on one line, even if it quotes several; only a traceback has several lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return on_one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def main(role: str, options: Mapping[str, Any]) -> int:
    """Run `role` until told to stop; returns the exit code."""
    name_after(role)
    gc.set_threshold(COLLECT_AFTER)
    level = os.environ.get("FIXLOOP_LOG_LEVEL", "WARNING")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneRow(f"%(asctime)s {role} %(levelname)s %(name)s: %(message)s"))
    # A forked process has its supervisor's handlers.
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # Celery overrides the root logger's level.
    logging.getLogger("fixloop").setLevel(level)
    # Celery repeats its warnings about deliberate settings at each lost connection.
    warnings.simplefilter("ignore", PendingDeprecationWarning)
    module, _, name = _ROLES[role].partition(":")
    code: int = getattr(import_module(module), name)(options)
    return code


def work(options: Mapping[str, Any]) -> int:
    """Do steps in a pool of processes."""
    from celery.signals import worker_process_init, worker_ready

    main = os.getpid()

    def forked(**_: Any) -> None:
        # Celery asks the kernel for a signal at the main process's death, but that may have died before.
        if os.getppid() != main:
            os._exit(1)
        attach()
        _spare_the_collector()

    def ready(sender: Any, **_: Any) -> None:
        sender.hub.call_repeatedly(LOOK_SECONDS, sender.pool._pool.maintain_pool)
        beat_with(sender, lambda: sum(each.exitcode is None for each in sender.pool._pool._pool))

    worker_process_init.connect(forked, weak=False)
    worker_ready.connect(ready, weak=False)
    # The pool's memory is a file that is unlinked once it is open. It would be created in a new folder, which a killed
    # process could not remove.
    here: Any = multiprocessing.current_process()
    here._config["tempdir"] = tempfile.gettempdir()
    return _celery("work", options["queues"], concurrency=int(options["concurrency"]))


def control(options: Mapping[str, Any]) -> int:
    """Do quick tasks: deadlines, letters and outside calls."""
    from celery.signals import worker_ready

    worker_ready.connect(lambda sender, **_: beat_with(sender, lambda: 1), weak=False)
    return _celery("control", options["queues"], pool_cls="solo")


def _celery(kind: str, queues: Sequence[str], **pool: Any) -> int:
    attach()
    from workers.app import app
    from workers.celery_fast.consumer import Worker

    # Does what `celery worker` does without loading its command line: all other commands, and Flower's web server.
    # Gossip and mingle with other workers cost start-up time and messages, and are not needed.
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
    """Exempt loaded objects from garbage collection, which would cost each step a twentieth of its time."""
    gc.collect()
    gc.freeze()


def try_checks(options: Mapping[str, Any]) -> int:
    """Run checks once, without a workflow. The sandbox is detected while the rest loads."""
    from concurrent.futures import ThreadPoolExecutor

    from fixloop.machine.sandbox import means_in_use

    with ThreadPoolExecutor(1) as threads:
        threads.submit(means_in_use)
        from workers.commands.trial import main
    return main(options)


def supervise(options: Mapping[str, Any]) -> int:
    """Be the parent of a worker's other processes. Without options, it reads them from stdin once it has loaded."""
    from workers.processes.start import heeded

    # Install the signal handlers before anything slow.
    stop = heeded()
    from workers.processes.child import begun
    from workers.processes.preload import load

    # Loaded objects stay and few are garbage: collecting would take a tenth of the start-up.
    gc.disable()
    load()
    gc.freeze()
    gc.enable()
    if not options:
        # Its work processes would each find out, before their first check; now the command still prepares the run.
        from fixloop.errors import FixloopError
        from fixloop.machine.sandbox import means_in_use
        from fixloop.repository.git import require_git

        with suppress(FixloopError):
            means_in_use()
            require_git()
        if not (options := _told()):
            return 0
    children = begun(options, main)
    # After the forks, because it starts a thread.
    attach()
    from workers.recovery import supervisor

    return supervisor.supervise(children, str(options.get("queue", "")), stop)


def _told() -> Mapping[str, Any]:
    """The options from stdin, along with variables and log files; empty: the starting process died or closed it."""
    with socket.socket(fileno=0) as line:
        text, files, *_ = socket.recv_fds(line, 65536, 1)
        while more := line.recv(65536):
            text += more
    if not text.endswith(b"\n"):  # the sender died
        return {}
    told = json.loads(text)
    os.environ.update(told["variables"])
    for number in (1, 2):
        os.dup2(files[0], number)
    os.close(files[0])
    # The lowest free descriptor is now stdin, which was the socket.
    os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)
    return dict(told["options"])


_ROLES: Final = {
    **{name: f"{__name__}:{name}" for name in ("work", "control", "supervise")},
    "try": f"{__name__}:try_checks",
    "sweep": "workers.recovery.sweeper:sweep",
    "keep": "workers.recovery.timekeeper:keep",
    "remind": "workers.recovery.reminder:remind",
}
