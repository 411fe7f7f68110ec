"""A small project whose whole run takes seconds: twelve steps, each of which leaves a trace in a journal.

`test-runner` needs three runs, `code-quality` two; the fix of the latter changes the tree, so that the former is
confirmed on it. Checks and fixer write to a journal outside the workspace when they begin: it tells what ran twice.
"""

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from tests.fixtures.repositories import git, make_repository

ISSUE: Final = 47


class Step(NamedTuple):
    """One ticket of the run."""

    ticket: str
    """The end of its id."""
    execution: str
    """Its line in the journal; empty for a step that runs no command."""


STEPS: Final = (
    Step("test-runner.validate.1.1", "check ledger.txt with 3 bad"),
    Step("test-runner.report.1.1", ""),
    Step("test-runner.fix.1.1", "fix test-runner 1"),
    Step("test-runner.recheck.2.1", "check ledger.txt with 2 bad"),
    Step("test-runner.report.2.1", ""),
    Step("test-runner.fix.2.1", "fix test-runner 2"),
    Step("test-runner.recheck.3.1", "check ledger.txt with 1 bad"),
    Step("code-quality.validate.1.1", "check style.txt with 1 bad"),
    Step("code-quality.report.1.1", ""),
    Step("code-quality.fix.1.1", "fix code-quality 1"),
    Step("code-quality.recheck.2.1", "check style.txt with 0 bad"),
    Step("test-runner.confirm.3.1.e1", "check ledger.txt with 0 bad"),
)
EXECUTIONS: Final = [step.execution for step in STEPS if step.execution]

_CHECK: Final = """
import os, sys, time
from pathlib import Path

name = sys.argv[1]
lines = Path(name).read_text().splitlines()
bad = sum(line.startswith("bad") for file in Path().glob("*.txt") for line in file.read_text().splitlines())
with open(os.environ["LEDGER_JOURNAL"], "a") as file:
    file.write(f"check {name} with {bad} bad\\n")
time.sleep(0.15)
for number, line in enumerate(lines, 1):
    if line.startswith("bad"):
        print(f"{name}:{number}: {line.split()[1]}: this line is bad")
        sys.exit(1)
"""

_FIX: Final = """
import os, time
from pathlib import Path

specialist, iteration = os.environ["FIXLOOP_SPECIALIST"], os.environ["FIXLOOP_ITERATION"]
name, word = {
    ("test-runner", "1"): ("ledger.txt", "first"),
    ("test-runner", "2"): ("ledger.txt", "second"),
    ("code-quality", "1"): ("style.txt", "indent"),
}[specialist, iteration]
with open(os.environ["LEDGER_JOURNAL"], "a") as journal:
    journal.write(f"fix {specialist} {iteration}\\n")
    journal.flush()
    time.sleep(0.05)
    Path(name).write_text(Path(name).read_text().replace(f"bad {word}", f"good {word}"))
    journal.write(f"edited {name}\\n")
time.sleep(0.1)
"""

_CONFIGURATION: Final = """
project = "ledger"
base = "none"

[fixer]
command = ["python", "-I", "-S", "scripts/fix.py"]
env = ["LEDGER_JOURNAL"]

[specialist.test-runner]
command = ["python", "-I", "-S", "scripts/check.py", "ledger.txt"]
env = ["LEDGER_JOURNAL"]

[specialist.code-quality]
command = ["python", "-I", "-S", "scripts/check.py", "style.txt"]
baseline = "all"
env = ["LEDGER_JOURNAL"]
"""


def make_ledger(folder: Path, settings: str) -> Path:
    """The project in its own repository, with an untracked file and one that is only staged."""
    files = {
        "ledger.txt": "bad first\nbad second\nfine\n",
        "style.txt": "fine\nbad indent\n",
        "scripts/check.py": _CHECK,
        "scripts/fix.py": _FIX,
        "fixloop.toml": settings + _CONFIGURATION,
    }
    make_repository(folder, files)
    (folder / "notes.txt").write_text("not committed yet\n")
    (folder / "staged.txt").write_text("in the index only\n")
    git(folder, "add", "staged.txt")
    return folder


def change_the_tree(project: Path) -> None:
    """What the user sees is another tree from now on."""
    (project / "notes.txt").write_text("another thought\n")


class Untouched(NamedTuple):
    """Everything of the user's."""

    head: str
    staged: str
    status: str
    files: str


def untouched(project: Path) -> Untouched:
    """HEAD, index, status and files of the checkout, `.git` and `.fixloop` aside."""
    found = sorted(
        path for path in project.rglob("*") if path.is_file() and not {".git", ".fixloop"} & set(path.parts)
    )
    text = "".join(f"{path}\n{path.read_text()}" for path in found)
    return Untouched(
        head=git(project, "rev-parse", "HEAD") + git(project, "symbolic-ref", "HEAD"),
        staged=hashlib.sha256((project / ".git/index").read_bytes()).hexdigest(),
        status=git(project, "--no-optional-locks", "status", "--porcelain"),
        files=hashlib.sha256(text.encode()).hexdigest(),
    )
