"""Start one process of the application: `python launch.py ROLE [JSON]`.

Only this module puts the application's folder on `sys.path`, and only in a worker process. Otherwise a validated
project without its own `config` would import the application's, and pass.
"""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    # Python put this file's folder first; the application's modules are in its parent.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from fixloop.machine.process_end import end_process
    from workers.roles import main

    end_process(main(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}))
