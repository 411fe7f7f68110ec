"""A process that polls named files until it is stopped, and prints states that must never be visible."""

import json
import os
import sys
from pathlib import Path

FOLDERS = ("pending", "accepted", "completed")


def look(root: Path) -> str:
    """A sentence about the present fault; empty if there is none."""
    state = json.loads((root / "state.json").read_text())
    if state["first"] != state["last"]:
        return f"half a state: {state['first']} and {state['last']}"
    handoffs = os.open(root / "handoffs", os.O_RDONLY | os.O_DIRECTORY)
    places = []
    try:
        for folder in FOLDERS:
            opened = os.open(folder, os.O_RDONLY, dir_fd=handoffs)
            for name in os.listdir(opened):
                with open(os.open(name, os.O_RDONLY, dir_fd=opened)) as file:
                    places.append((folder, json.load(file)["status"]))
            os.close(opened)
        # A directory that was replaced is emptied, a file at a time.
        if not places and os.fstat(handoffs).st_ino != (root / "handoffs").stat().st_ino:
            return ""
    except FileNotFoundError:
        return ""
    finally:
        os.close(handoffs)
    wrong = len(places) != 1 or places[0][0] != places[0][1]
    return f"the handoff is in {places}" if wrong else ""


if __name__ == "__main__":
    folder, looks = Path(sys.argv[1]), 0
    print("reading", flush=True)
    while not (folder / "stop").exists():
        problem = look(folder)
        if problem:
            sys.exit(problem)
        looks += 1
    print(looks)
