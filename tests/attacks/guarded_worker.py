"""A worker for one test: runs each way of `stray_processes.py` under guard, as `guarded_worker.py MODE WAY…`.

Prints a line of JSON for each: how long it took, how it ended, and how many processes were left.
"""

import json
import os
import sys
import time
import uuid
from pathlib import Path

from fixloop.machine.guard import run_guarded
from tests.attacks import stray_processes
from tests.fixtures.processes import running

LIMIT_SECONDS = 3.0


def main() -> None:
    for way in sys.argv[1:]:
        token = uuid.uuid4().hex
        began = time.monotonic()
        result = run_guarded(
            [sys.executable, "-I", "-S", stray_processes.__file__, way, token],
            cwd=Path("/"),
            env={"PATH": os.environ["PATH"]},
            timeout_seconds=LIMIT_SECONDS,
        )
        seconds, survivors = time.monotonic() - began, running(token)
        told = {"way": way, "seconds": seconds, "left": len(survivors), "code": result.exit_code}
        told |= {"signal": result.signal, "late": result.timed_out, "said": result.output[-300:]}
        print(json.dumps(told), flush=True)
        for pid in survivors:
            os.kill(pid, 9)


if __name__ == "__main__":
    main()
