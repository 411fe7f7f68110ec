"""The longest tests, of which `make test` runs a share that changes with each commit.

    python -m pytest -n 6 --dist worksteal --junitxml=report.xml && python -m tests.long_tests report.xml

rewrites the list. Without LONG_TESTS_SHARE all of them run.
"""

import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

LISTED: Final = Path(__file__).with_suffix(".txt")
LONG_SECONDS: Final = 3.0
"""Of a test among those of a whole run."""
ALWAYS: Final = (
    "tests/chaos/", "tests/crash/test_chaos.py", "tests/e2e/test_cheats.py", "tests/integration/test_serve_schema.py",
    "tests/wheel/",
)  # fmt: skip
"""The tests that each run must play, according to the documents."""


def left_out(items: Sequence[pytest.Item], share: int) -> list[pytest.Item]:
    """The long tests that are not among one of `share` parts, drawn by the commit; none without a commit."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=LISTED.parent, capture_output=True, text=True)
    if asked.returncode:
        return []
    long = frozenset(LISTED.read_text().split())
    return [
        item
        for item in items
        if item.nodeid.partition("[")[0] in long and _drawn(asked.stdout.strip(), item.nodeid) % share
    ]


def _drawn(commit: str, name: str) -> int:
    return int.from_bytes(sha256(f"{commit} {name}".encode()).digest()[:8])


def main(report: Path) -> None:
    """Write the list from a JUnit report of all tests."""
    found = set()
    for case in ElementTree.parse(report).iter("testcase"):
        path = f"{case.get('classname', '').replace('.', '/')}.py"
        if float(case.get("time", 0)) > LONG_SECONDS and not path.startswith(ALWAYS):
            found.add(f"{path}::{case.get('name', '').partition('[')[0]}")
    LISTED.write_text("".join(f"{name}\n" for name in sorted(found)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
