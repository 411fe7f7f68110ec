"""Plays a role of a chat in a chaos run: a program of its own, of the standard library only, to start quickly.

Its answer follows from its prompt and its number alone, so that an answer given twice is the same answer. It writes
down that it begins, takes its time, and leaves a file beside the others of its work.
"""

import os
import re
import sys
import time
from pathlib import Path

LAST = 11
"""The architect closes the chat in this turn."""
SECONDS = 0.05


def main() -> None:
    prompt, role, seq = sys.stdin.read(), os.environ["FIXLOOP_ROLE"], int(os.environ["FIXLOOP_SEQ"])
    step = "close" if seq == LAST else "answer"
    _record(f"{Path(os.environ['FIXLOOP_CHAT']).name}.{role}.{seq}", step)
    time.sleep(SECONDS)
    if step == "close":
        print("---\nclose: Completed\n---\nTen messages were written.\n# DECISION\nNothing was lost.")
        return
    Path(f"turn-{seq:03}.txt").write_text(f"the work of {role} in turn {seq}\n", encoding="utf-8")
    print(f"---\npurpose: Turn {seq} of the {role}\n---")
    print("\n\n".join(_section(title, prompt, seq) for title in _titles(prompt)))


def _titles(prompt: str) -> list[str]:
    found = re.search(r"^- Sections, .*: (.*)\.$", prompt, re.MULTILINE)
    return [title for title in found[1].split(", ") if "(" not in title] if found else []


def _section(title: str, prompt: str, seq: int) -> str:
    text = f"What turn {seq} has to say."
    if title == "GATES":
        criteria = re.search(r"^acceptance:\n((?: +- .*\n)+)", prompt, re.MULTILINE)
        found = [line.strip(' -"') for line in criteria[1].splitlines()] if criteria else []
        text = "\n".join(f"- [pass] {criterion}" for criterion in found)
    return f"## {title}\n\n{text}"


def _record(ticket: str, step: str) -> None:
    """The fields of `fixloop.testing.verdict.Execution`; the process is the one that asked, above the guard."""
    above = os.environ["FIXLOOP_TESTING_RUNNER"]
    skew = time.time() - time.clock_gettime(time.CLOCK_REALTIME)
    told = ticket, time.monotonic_ns(), step, "-", above, f"{time.monotonic():.6f}", f"{skew:.1f}"
    descriptor = os.open(os.environ["FIXLOOP_EXECUTIONS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{' '.join(map(str, told))}\n".encode())
    os.close(descriptor)


if __name__ == "__main__":
    main()
