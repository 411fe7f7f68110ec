"""Plays the engineer offline: edits gh_sync.py one step at a time, runs the acceptance criteria, prints its message."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

SOURCE = Path("gh_sync.py")

TITLE = '''

def title(name):
    """The title of a chat's issue."""
    number, area, slug = name.split("-", 2)
    return f"{number} [{area}] {slug}"
'''

CHECKED = '''
import re


def title(name):
    """The title of a chat's issue; ValueError for what is no chat."""
    found = re.fullmatch(r"([0-9]{4})-([a-z]{2})-([a-z0-9-]+)", name)
    if found is None:
        raise ValueError(f"{name!r} is no chat")
    return "{} [{}] {}".format(*found.groups())
'''

LISTED = '''

def titles(names):
    """The titles of the chats among names, in the order of their numbers."""
    found = []
    for name in sorted(names):
        try:
            found.append(title(name))
        except ValueError:
            continue
    return found
'''

COMMAND = '''

if __name__ == "__main__":
    import os
    import sys

    print("\\n".join(titles(os.listdir(sys.argv[1]))))
'''

STEPS = {
    2: ("Say what is missing", []),
    4: ("A title for a chat", [TITLE]),
    6: ("Other names are refused", [CHECKED]),
    8: ("The chats of a directory", [CHECKED, LISTED]),
    10: ("The command", [CHECKED, LISTED, COMMAND]),
}

BODY = Path(__file__).with_name("message.md").read_text()


def main():
    prompt = sys.stdin.read()
    purpose, parts = STEPS[int(os.environ["FIXLOOP_SEQ"])]
    text = "".join(['"""Titles of issues from the chats of a project."""\n', *parts])
    SOURCE.write_text(text)
    gates = [gate(criterion) for criterion in acceptance(prompt)]
    told = "\n".join(f"- [{'pass' if ok else 'fail'}] {criterion}" for criterion, ok in gates)
    passed = sum(ok for _, ok in gates)
    lines = text.count("\n")
    print(BODY.format(purpose=purpose, passed=passed, total=len(gates), gates=told, lines=lines), end="")


def acceptance(prompt):
    """The criteria in the contract: the items of the list `acceptance`."""
    block = re.search(r"^acceptance:\n((?:  - .*\n)+)", prompt, re.MULTILINE)
    return [json.loads(line[4:]) for line in block[1].splitlines()]


def gate(criterion):
    """Whether a criterion holds: it is a command, and passes when that says something and ends well."""
    done = subprocess.run(shlex.split(criterion), capture_output=True, text=True, timeout=60)
    print(f"$ {criterion}: exit code {done.returncode}", file=sys.stderr)
    return criterion, done.returncode == 0 and bool((done.stdout + done.stderr).strip())


if __name__ == "__main__":
    main()
