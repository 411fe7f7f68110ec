"""Plays the architect offline: reads its prompt, prints the body of its next message, and closes after the tenth."""

import os
import sys

STEPS = {
    1: ("Plan the synchronisation", "Read the contract and the tests; say what is missing."),
    3: ("Make a title of a chat", "C-01: `title(name)` for names such as 0005-dx-gh-sync."),
    5: ("Refuse what is no chat", "C-02: `title` raises ValueError for other names."),
    7: ("List the chats of a directory", "C-03: `titles(names)`, in the order of their numbers."),
    9: ("Make it a command", "C-04: `python gh_sync.py DIRECTORY --dry-run` prints the titles."),
}

BODY = """\
---
purpose: "{purpose}"
---
## STATUS

Ready: {purpose}.

## PLAN

- {change}

## CHANGESETS

- {change}

## SMOKE

    python -m unittest -q

## RISKS

- None that a test would not show.
"""

END = """\
---
close: Completed
---
Titles are made of chats, by function and by command.

# DECISION

Merge the branch; writing issues is a chat of its own.
"""


def main():
    prompt = sys.stdin.read()
    seq = int(os.environ["FIXLOOP_SEQ"])
    if seq not in STEPS:
        # The contract and the engineer's last message are in the prompt: nothing is closed on a failed gate.
        if "[fail]" in prompt:
            sys.exit("the last gates failed")
        print(END, end="")
        return
    purpose, change = STEPS[seq]
    print(BODY.format(purpose=purpose, change=change), end="")


if __name__ == "__main__":
    main()
