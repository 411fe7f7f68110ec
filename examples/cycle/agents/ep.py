"""Plays EP offline: looks around, and plans."""

import json
from pathlib import Path

from progress import Run

TASKS = [
    {"id": "TASK-001", "description": "Log in with a password"},
    {"id": "TASK-002", "description": "Log in with a token", "depends_on": ["TASK-001"]},
]


def main():
    run = Run()
    count = sum(line.startswith("- FR-") for line in run.read("ra", "requirements.md").splitlines())
    sources = sorted(path.name for path in Path().glob("*.py"))
    run.write("exploration.md", "# Exploration\n\n" + "".join(f"- {name}\n" for name in sources))
    run.write("architecture.md", "# Architecture\n\nOne function, `login`, in login.py.\n")
    run.write("plan.json", json.dumps({"tasks": TASKS}, indent=2) + "\n")
    files = ("exploration.md", "architecture.md", "plan.json")
    run.report("success", f"{len(TASKS)} tasks for {count} requirements", *files)


if __name__ == "__main__":
    main()
