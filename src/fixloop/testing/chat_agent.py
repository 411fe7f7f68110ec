"""Plays a role of a chat in a chaos run: a program that uses only the standard library, to start quickly.

Its answer depends only on its prompt and its turn's number, so that a repeated answer is the same. It records its
start, sleeps for `SECONDS`, and writes a file in its work folder.
"""

import os
import re
import sys
import time
from pathlib import Path

LAST = 11
"""The turn in which the architect closes the chat."""
SECONDS = 0.05


def main() -> None:
    prompt, role, seq = sys.stdin.read(), os.environ["FIXLOOP_ROLE"], int(os.environ["FIXLOOP_SEQ"])
    step, chat = "close" if seq == LAST else "answer", Path(os.environ["FIXLOOP_CHAT"]).name
    # The fields of `fixloop.testing.executions.Execution`; the process is the runner, above the guard.
    skew = time.time() - time.clock_gettime(time.CLOCK_REALTIME)
    fields = f"{chat}.{role}.{seq}", time.monotonic_ns(), step, "-", os.environ["FIXLOOP_TESTING_RUNNER"]
    descriptor = os.open(os.environ["FIXLOOP_EXECUTIONS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{' '.join(map(str, fields))} {time.monotonic():.6f} {skew:.1f}\n".encode())
    os.close(descriptor)
    time.sleep(SECONDS)
    if step == "close":
        print("---\nclose: Completed\n---\nTen messages were written.\n# DECISION\nNothing was lost.")
        return
    Path(f"turn-{seq:03}.txt").write_text(f"the work of {role} in turn {seq}\n", encoding="utf-8")
    print(f"---\npurpose: Turn {seq} of the {role}\n---")
    found = re.search(r"^- Sections, .*: (.*)\.$", prompt, re.MULTILINE)
    titles = [title for title in found[1].split(", ") if "(" not in title] if found else []
    criteria = re.search(r"^acceptance:\n((?: +- .*\n)+)", prompt, re.MULTILINE)
    met = [line.strip(' -"') for line in criteria[1].splitlines()] if criteria else []
    texts = {"GATES": "\n".join(f"- [pass] {criterion}" for criterion in met)}
    said = f"What turn {seq} has to say."
    print("\n\n".join(f"## {title}\n\n{texts.get(title, said)}" for title in titles))


if __name__ == "__main__":
    main()
