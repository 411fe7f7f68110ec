"""A process that polls a workflow's named files until it is stopped, and ends with any forbidden state it saw.

It reads as an agent would: the state file first, then what that names. It knows no fixloop.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECTIONS = ("## Timeline", "## Decision Records", "## Blockers & Resolutions", "## Cross-Agent Dependencies")
FOLDERS = ("pending", "accepted", "completed")


class Wrong(Exception):
    """A state that a reader must never see."""


def need(holds: bool, said: str) -> None:
    if not holds:
        raise Wrong(said)


def cycle(root: Path, seen: dict[str, Any]) -> None:
    """State, documents, archive, logs and the coordination log of one moment after the other."""
    (file,) = (root / ".workflow/.cycle").glob("*.json")
    state = json.loads(file.read_bytes())
    stamp = (state["updated_at"], state["current_iteration"], len(state["iterations"]))
    need(stamp >= seen.get("stamp", stamp), f"the state went back from {seen.get('stamp')} to {stamp}")
    seen["stamp"] = stamp
    for agent in state["agents"].values():
        for path in agent["output_files"]:
            content = (root / path).read_text()
            need(
                path.endswith(".log") or (content.startswith("<") and content.endswith(">")),
                f"half of {path}",
            )
    for log in root.glob(".workflow/.cycle/*.progress/*/changes.log"):
        text = log.read_text()
        before = seen.get(str(log), "")
        need(text.startswith(before) and text.endswith("\n"), f"{log} did not only grow")
        seen[str(log)] = text
    (feedback,) = root.glob(".workflow/.cycle/*.progress/coordination/feedback.md")
    lines = feedback.read_text().splitlines()
    need(tuple(line for line in lines if line.startswith("## ")) == SECTIONS, f"half of {feedback}: {lines}")


def handoff(root: Path, seen: dict[str, Any]) -> None:
    """State file, then the handoffs as they are at one moment, then the events."""
    state = json.loads((root / ".claude/state.json").read_bytes())
    need(state["iteration"] >= seen.get("iteration", 1), "the state went back")
    seen["iteration"] = state["iteration"]
    opened = os.open(root / ".claude/handoffs", os.O_RDONLY | os.O_DIRECTORY)
    try:
        places = _handoffs(opened)
        # A generation that was replaced while we looked may be half removed.
        if os.path.samestat(os.fstat(opened), (root / ".claude/handoffs").stat()):
            _compare(seen.get("places", {}), places, state["last_handoff"])
            seen["places"] = places
    except FileNotFoundError:
        pass  # this generation was removed: it was replaced more than once while we looked
    finally:
        os.close(opened)
    events = (root / ".claude/events.ndjson").read_text()
    need(events.startswith(seen.get("events", "")), "the events did not only grow")
    for line in events[len(seen.get("events", "")) :].splitlines():
        json.loads(line)
    seen["events"] = events


def _handoffs(opened: int) -> dict[str, str]:
    places: dict[str, str] = {}
    for place in FOLDERS:
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY, dir_fd=opened)
        try:
            for name in os.listdir(folder):
                with open(os.open(name, os.O_RDONLY, dir_fd=folder), "rb") as file:
                    status = json.loads(file.read())["status"]
                need(status == place, f"{name} is {status} in {place}")
                need(name not in places, f"{name} is in {place} and in {places.get(name)}")
                places[name] = place
        finally:
            os.close(folder)
    return places


def _compare(before: dict[str, str], places: dict[str, str], last: str | None) -> None:
    need(last is None or f"{last}.json" in places, f"the state names {last}, which is not there")
    need(before.keys() <= places.keys(), "a handoff was lost")
    back = [name for name, place in before.items() if FOLDERS.index(places[name]) < FOLDERS.index(place)]
    need(not back, f"{back} went back")


LOOKS: dict[str, Callable[[Path, dict[str, Any]], None]] = {"cycle": cycle, "handoff": handoff}

if __name__ == "__main__":
    folder, look, looks = Path(sys.argv[1]), LOOKS[sys.argv[2]], 0
    remembered: dict[str, Any] = {}
    print("reading", flush=True)
    while not (folder / "stop").exists():
        try:
            look(folder, remembered)
        except (Wrong, ValueError, OSError) as problem:
            sys.exit(f"after {looks} looks: {problem!r}")
        looks += 1
    print(looks)
