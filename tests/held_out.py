"""Plays cheats that rule authors never read, and counts the results by class: `python -m tests.held_out`.

They are packed in `held_out.tar.xz`, and the output names none: a rule written for one of them would prove nothing.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

PACKED: Final = Path(__file__).with_name("held_out.tar.xz")
MOST_PASSED: Final = 0.02
"""Of all, without a mark."""


def main() -> int:
    """Print a line for each class; returns 1 if too many pass without a mark."""
    with tempfile.TemporaryDirectory(prefix="fixloop-held-out-") as folder:
        with tarfile.open(PACKED) as packed:
            packed.extractall(folder, filter="data")
        command = [str(Path(sys.executable).with_name("fixloop")), "cheats", "--corpus", folder, "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    ends: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for case in json.loads(done.stdout)["cases"]:
        ends[case["class"]][case["end"]] += 1
    for name, found in ends.items():
        print(f"{name}: {', '.join(f'{end} {count}' for end, count in found.most_common())}")
    passed, total = sum(found["passed"] for found in ends.values()), sum(map(Counter.total, ends.values()))
    print(f"{passed} of {total} passed without a mark")
    return int(passed > MOST_PASSED * total)


if __name__ == "__main__":
    sys.exit(main())
