"""What the four agents share: where they write, and how they report."""

import json
import os
import re
import sys
from pathlib import Path


class Run:
    """One run of an agent: its request, its progress directory, its report."""

    def __init__(self):
        self.request = sys.stdin.read()
        self.role = os.environ["FIXLOOP_ROLE"]
        self.name = self.request.splitlines()[0].partition(" for ")[2]
        self.progress = Path(re.search(r"`(\.workflow/\.cycle/[^`]+\.progress)/", self.request)[1])
        self.own = self.progress / self.role

    def read(self, agent, name):
        """A document of another agent."""
        return (self.progress / agent / name).read_text()

    def write(self, name, text):
        """A document of its own, as a whole."""
        self.own.mkdir(parents=True, exist_ok=True)
        (self.own / name).write_text(text)

    def report(self, status, summary, *files, issues=(), **further):
        """The PHASE_RESULT that ends every run."""
        lines = [
            f"- {key}: {value if isinstance(value, str) else json.dumps(value)}"
            for key, value in further.items()
        ]
        print("PHASE_RESULT:")
        print(f"- phase: {self.role}")
        print(f"- status: {status}")
        print(f"- files_written: {json.dumps(files)}")
        print(f"- summary: {summary}")
        print(*lines, sep="\n", end="\n" * bool(lines))
        print(f"- issues: {json.dumps(list(issues))}")
