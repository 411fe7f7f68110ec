"""The program `fixloop`, loaded once and forked for each call: a user's process without the time it takes to load.

Loading takes half a second of a processor, more than most calls need; a command loads what it needs itself, but all
is loaded for the list of them. Reads a JSON document a line (words, directory, variables, and the files for stdin,
stdout and stderr) and answers each with the exit code.
"""

import gc
import io
import json
import os
import sys
from contextlib import redirect_stdout
from typing import Any

from fixloop import (
    api,  # noqa: F401  loaded before the fork, as the commands are
    cli,
)


def _call(asked: dict[str, Any]) -> int:
    for number, name in enumerate(asked["files"]):
        os.dup2(os.open(name, os.O_RDWR), number)
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["variables"])
    return cli.main(asked["words"])


def _serve() -> None:
    with redirect_stdout(io.StringIO()):
        cli.main(["--help"])
    gc.freeze()  # what a call does not touch stays shared
    for line in sys.stdin.buffer:
        child = os.fork()
        if child == 0:
            sys.exit(_call(json.loads(line)))
        _, status = os.waitpid(child, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    _serve()
