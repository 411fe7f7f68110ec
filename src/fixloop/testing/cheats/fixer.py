"""A fixer that follows a plan; it uses only the standard library, because it is started by its path.

`python -I fixer.py PLAN` runs in the workspace of a fix; PLAN is JSON with a list of `corpus.Edits` for each attempt.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Make the edits of this attempt; none after the last planned one."""
    attempts = json.loads(sys.argv[1])
    number = int(os.environ["FIXLOOP_ITERATION"])
    for edits in attempts[number - 1] if number <= len(attempts) else ():
        edit(edits, Path.cwd())
        if edits["run"]:
            subprocess.run(["sh", "-c", edits["run"]], check=False)
        if edits["answer"]:
            Path(os.environ["FIXLOOP_ANSWER"]).write_text(edits["answer"])


def edit(edits: dict[str, Any], folder: Path) -> None:
    """Change the files of a folder. Raises LookupError if a text to replace is missing."""
    for old, new in edits["rename"].items():
        (folder / new).parent.mkdir(parents=True, exist_ok=True)
        (folder / old).rename(folder / new)
    for name in edits["delete"]:
        (folder / name).unlink()
    for name, text in edits["write"].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name, text in edits["append"].items():
        with (folder / name).open("a") as file:
            file.write(text)
    for name, old, new in edits["replace"]:
        text = (folder / name).read_text()
        if old not in text:
            raise LookupError(f"{name} has no {old!r}")
        (folder / name).write_text(text.replace(old, new))


if __name__ == "__main__":
    main()
