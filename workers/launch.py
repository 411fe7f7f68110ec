"""Start one process of the application: `python launch.py ROLE [JSON]`.

The only place that puts the application's folder on `sys.path`, and only in a worker process: a `config`
next to the validated project would make a project that forgot its own `config` pass.
"""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    # Python put the folder of this file first; the application's modules lie one above it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from workers.roles import main

    sys.exit(main(sys.argv[1], json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}))
