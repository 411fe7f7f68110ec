"""The program `fixloop`, loaded once and forked for each call: a user's process without the time it takes to load.

Loading takes half a second of a processor, more than most calls need; a command loads what it needs itself, but here
all is there that any of them does. Reads a JSON document a line (words, directory, variables, and the files for stdin,
stdout and stderr) and answers each with the exit code.
"""

import atexit
import gc
import io
import json
import os
import sys
import threading
from contextlib import redirect_stdout
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, Final

import fixloop
from fixloop import cli
from fixloop.engine.hints import producer

OTHERS: Final = (
    "celery.app.events",
    "celery.canvas",
    "celery.result",
    "kombu.transport.redis",
    "typer._adapters",
)
"""What is loaded when it is first needed."""


def _call(asked: dict[str, Any]) -> int:
    for number, name in enumerate(asked["files"]):
        os.dup2(os.open(name, os.O_RDWR), number)
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["variables"])
    return cli.main(asked["words"])


def _end(code: int) -> None:
    """As Python ends, but that nothing is taken apart: in a fork that costs more than most calls."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _load() -> None:
    for module in walk_packages(fixloop.__path__, "fixloop."):
        if not module.name.startswith("fixloop.testing"):
            import_module(module.name)
    for name in OTHERS:
        import_module(name)
    assert producer("redis://localhost").amqp
    with redirect_stdout(io.StringIO()):
        cli.main(["--help"])


def _serve() -> None:
    _load()
    gc.freeze()  # what a call does not touch stays shared
    for line in sys.stdin.buffer:
        child = os.fork()
        if child == 0:
            _end(_call(json.loads(line)))
        _, status = os.waitpid(child, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    _serve()
